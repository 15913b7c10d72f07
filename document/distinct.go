package document

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/collation"
	"github.com/pandodb/pando/document/internal/order"
)

// valueSet is different values.
type valueSet struct {
	collation *collation.Collation
	byHash    map[uint64][]bsoncore.Value
	list      []bsoncore.Value
}

func newValueSet(c *collation.Collation) *valueSet {
	return &valueSet{collation: c, byHash: map[uint64][]bsoncore.Value{}}
}

// add takes a copy of a value that is not in the set.
func (s *valueSet) add(v bsoncore.Value) {
	h := order.Hash(0, v, s.collation)
	for _, o := range s.byHash[h] {
		if order.Equal(o, v, s.collation) {
			return
		}
	}
	v.Data = slices.Clone(v.Data)
	s.byHash[h] = append(s.byHash[h], v)
	s.list = append(s.list, v)
}

// values returns the values in their order.
func (s *valueSet) values() []bson.RawValue {
	slices.SortStableFunc(s.list, func(a, b bsoncore.Value) int { return order.Compare(a, b, s.collation) })
	out := make([]bson.RawValue, len(s.list))
	for i, v := range s.list {
		out[i] = bson.RawValue{Type: bson.Type(v.Type), Value: v.Data}
	}
	return out
}

// eachLeaf calls fn with the values at a dotted path, element by element where it ends in an array.
func eachLeaf(doc document, path string, fn func(bsoncore.Value)) {
	v, err := doc.LookupErr(path)
	if err == nil {
		eachElement(v, fn)
		return
	}
	name, rest, nested := strings.Cut(path, ".")
	if !nested {
		return
	}
	if v, err = doc.LookupErr(name); err != nil {
		return
	}
	descend(v, rest, fn)
}

func eachElement(v bsoncore.Value, fn func(bsoncore.Value)) {
	if v.Type != bsoncore.TypeArray {
		fn(v)
		return
	}
	for _, e := range elementsOf(document(v.Data)) {
		fn(e.Value())
	}
}

// descend follows the rest of a path into a value: into a document, into the element of an array with that position, and into all
// elements that are documents.
func descend(v bsoncore.Value, path string, fn func(bsoncore.Value)) {
	switch v.Type {
	case bsoncore.TypeEmbeddedDocument:
		eachLeaf(v.Document(), path, fn)
	case bsoncore.TypeArray:
		eachLeaf(document(v.Data), path, fn)
		for _, e := range elementsOf(document(v.Data)) {
			if value := e.Value(); value.Type == bsoncore.TypeEmbeddedDocument {
				eachLeaf(value.Document(), path, fn)
			}
		}
	}
}
