package document

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/collation"
	"github.com/pandodb/pando/document/internal/expression"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/order"
	"github.com/pandodb/pando/document/internal/path"
	"github.com/pandodb/pando/document/internal/plan"
)

// Distinct returns the different values of a field among the documents that match, elements of arrays one by one, in their order.
func (c *Collection) Distinct(ctx context.Context, field string, filter any, o *FindOptions) ([]bson.RawValue, error) {
	q, err := c.parseDistinct(ctx, field, filter, o)
	if err != nil {
		return nil, err
	}
	set := newValueSet(q.Collation)
	if o != nil {
		set.most = o.MaxBytes
	}
	if c.virtual() != nil {
		err = c.distinctInView(ctx, q, set)
	} else {
		err = c.distinct(ctx, q, set)
	}
	if err != nil {
		return nil, err
	}
	return set.values(), nil
}

// distinct gathers the values, out of an index where that has them.
func (c *Collection) distinct(ctx context.Context, q *findQuery, set *valueSet) error {
	x, err := c.use()
	if x == nil || err != nil {
		return err
	}
	m, err := c.open(ctx, x, q)
	if err != nil {
		return err
	}
	var buf []byte
	for err == nil && m.next() {
		if view := m.View(); view != nil {
			eachLeaf(view, q.Field, set.add)
			err = view.Err()
		} else if buf, err = m.document(buf[:0]); err == nil {
			eachLeaf(path.Document(buf), q.Field, set.add)
		}
		err = cmp.Or(err, set.full())
	}
	return errors.Join(err, m.err(), m.close())
}

// distinctInView gathers the values of the documents of a view.
func (c *Collection) distinctInView(ctx context.Context, q *findQuery, set *valueSet) error {
	cursor, err := c.findInView(ctx, q)
	if err != nil {
		return err
	}
	defer cursor.Close()
	for cursor.Next(ctx) {
		eachLeaf(path.Document(cursor.current), q.Field, set.add)
		if err := set.full(); err != nil {
			return err
		}
	}
	return cursor.Err()
}

// parseDistinct parses the query of Distinct: the order and the number of the documents mean nothing to it.
func (c *Collection) parseDistinct(ctx context.Context, field string, filter any, o *FindOptions) (*findQuery, error) {
	own := &FindOptions{}
	if o != nil {
		own = &FindOptions{Hint: o.Hint, Collation: o.Collation, Let: o.Let, Verbosity: o.Verbosity}
	}
	if _, err := path.Split(field); err != nil {
		return nil, err
	}
	q, err := c.parseFind(ctx, filter, own)
	if err != nil {
		return nil, err
	}
	q.Goal, q.Field, q.Fields = plan.Distinct, field, []string{field}
	return q, nil
}

// valueSet is different values.
type valueSet struct {
	collation *collation.Collation
	seed      uint64         // of the hashes: nobody can know which values collide
	last      map[uint64]int // by a hash: behind which place in list its newest value lies
	before    []int          // the same for the value of that hash that came before; 0: none
	list      []bsoncore.Value
	size      int // of the values as elements of an array, in bytes
	most      int // 0: no bound
}

func newValueSet(c *collation.Collation) *valueSet {
	return &valueSet{collation: c, seed: rand.Uint64(), last: map[uint64]int{}}
}

// add takes a copy of a value that is not in the set.
func (s *valueSet) add(v bsoncore.Value) {
	h := order.Hash(s.seed, v, s.collation)
	for i := s.last[h]; i > 0; i = s.before[i-1] {
		if order.Equal(s.list[i-1], v, s.collation) {
			return
		}
	}
	s.size += expression.ElementBytes(len(s.list), v)
	v.Data = slices.Clone(v.Data)
	s.before = append(s.before, s.last[h])
	s.list = append(s.list, v)
	s.last[h] = len(s.list)
}

// full is the error of values that take more than they may, or nil.
func (s *valueSet) full() error {
	if s.most > 0 && s.size > s.most {
		return mongoerror.New(mongoerror.Code(17217), "distinct too big, 16mb cap")
	}
	return nil
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
func eachLeaf(doc path.Fields, at string, fn func(bsoncore.Value)) {
	if v, ok := doc.Lookup(at); ok {
		eachElement(v, fn)
		return
	}
	name, rest, nested := strings.Cut(at, ".")
	if !nested {
		return
	}
	if v, ok := doc.Lookup(name); ok {
		descend(v, rest, fn)
	}
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

// descend follows the rest of a path into a value: into a document, into the element of an array that the rest begins with the position
// of, or else into all elements that are documents.
func descend(v bsoncore.Value, rest string, fn func(bsoncore.Value)) {
	switch {
	case v.Type == bsoncore.TypeEmbeddedDocument, v.Type == bsoncore.TypeArray && beginsWithDigits(rest):
		eachLeaf(path.Document(v.Data), rest, fn)
	case v.Type == bsoncore.TypeArray:
		for _, e := range elementsOf(document(v.Data)) {
			if value := e.Value(); value.Type == bsoncore.TypeEmbeddedDocument {
				eachLeaf(path.Document(value.Data), rest, fn)
			}
		}
	}
}

// beginsWithDigits reports whether the first field of a path has nothing but digits for a name.
func beginsWithDigits(at string) bool {
	name, _, _ := strings.Cut(at, ".")
	return name != "" && strings.Trim(name, "0123456789") == ""
}
