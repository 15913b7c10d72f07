package sortkey

import (
	"slices"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/order"
	"github.com/pandodb/pando/document/internal/path"
)

func null() bsoncore.Value      { return bsoncore.Value{Type: bsoncore.TypeNull} }
func undefined() bsoncore.Value { return bsoncore.Value{Type: bsoncore.TypeUndefined} }

func decimal(v bsoncore.Value) (int64, bool) { return order.DecimalAt(v.Data).Int64() }

// generator walks through all combinations of array elements, the way the keys of a multikey index are made.
type generator struct {
	pattern   *Pattern
	values    []bsoncore.Value // found so far
	rest      [][]string       // what is left of the paths below the document at hand; nil: values has the part's value
	best, buf []byte
	lowest    []bsoncore.Value // whose key is best
}

// step walks one part down to its value, or to an array on the way.
func step(doc path.Fields, segments []string) (v bsoncore.Value, rest []string) {
	v, ok := doc.Lookup(segments[0])
	for segments = segments[1:]; ; segments = segments[1:] {
		switch {
		case !ok:
			return null(), nil
		case v.Type == bsoncore.TypeArray || len(segments) == 0:
			return v, segments
		case v.Type != bsoncore.TypeEmbeddedDocument:
			return null(), nil
		}
		v, ok = path.Lookup(v.Data, segments[0])
	}
}

// walk takes all parts down through doc; where they meet an array, it goes on with each of its elements.
func (g *generator) walk(doc path.Fields) error {
	values, rests := append([]bsoncore.Value(nil), g.values...), append([][]string(nil), g.rest...)
	defer func() { g.values, g.rest = values, rests }()
	g.values, g.rest = append([]bsoncore.Value(nil), values...), append([][]string(nil), rests...)
	var array []byte
	var through []int
	for i := range g.rest {
		if g.rest[i] == nil {
			continue
		}
		v, rest := step(doc, g.rest[i])
		if v.Type != bsoncore.TypeArray {
			g.values[i], g.rest[i] = v, nil
			continue
		}
		if through != nil && !same(array, v.Data) {
			return parallel()
		}
		array, g.rest[i] = v.Data, rest
		through = append(through, i)
	}
	if through == nil {
		g.offer()
		return nil
	}
	return g.elements(array, through)
}

// same reports whether both are the very same bytes: the same array, not an equal one.
func same(a, b []byte) bool { return len(a) == len(b) && &a[0] == &b[0] }

func (g *generator) elements(array []byte, through []int) error {
	if len(array) <= 5 {
		for _, i := range through {
			if g.values[i] = null(); len(g.rest[i]) == 0 {
				g.values[i] = undefined()
			}
			g.rest[i] = nil
		}
		return g.walk(path.Document(array))
	}
	through, done, err := g.positions(array, through)
	if done || err != nil {
		return err
	}
	values, rests := g.values, g.rest
	it := path.ElementsOf(array)
	for _, v, ok := it.Next(); ok; _, v, ok = it.Next() {
		g.values, g.rest = append([]bsoncore.Value(nil), values...), append([][]string(nil), rests...)
		for _, i := range through {
			switch {
			case len(rests[i]) == 0:
				g.values[i], g.rest[i] = v, nil
			case v.Type != bsoncore.TypeEmbeddedDocument:
				g.values[i], g.rest[i] = null(), nil
			}
		}
		var inner path.Document
		if v.Type == bsoncore.TypeEmbeddedDocument {
			inner = v.Data
		}
		if err := g.walk(inner); err != nil {
			return err
		}
	}
	g.values, g.rest = values, rests
	return nil
}

// positions follows parts that go on with a position of the array, such as "a.0": these leave the array, the others expand it.
// done tells that there are no others.
func (g *generator) positions(array []byte, through []int) (others []int, done bool, err error) {
	for _, i := range through {
		if len(g.rest[i]) == 0 || !isPosition(g.rest[i][0]) {
			others = append(others, i)
			continue
		}
		if ambiguous(array, g.rest[i][0]) {
			return nil, false, mongoerror.New(mongoerror.Code(16746), "Ambiguous field name found in array (do not use numeric field names in embedded elements in an array), field: '%s'", g.rest[i][0])
		}
	}
	if len(others) == len(through) {
		return others, false, nil
	}
	inside := path.Document(array) // the names of an array's elements are their positions
	for _, i := range through {
		// What a position leads to is a key as it is, even if it is an array.
		if slices.Contains(others, i) || len(g.rest[i]) > 1 {
			continue
		}
		if v, _ := path.Lookup(array, g.rest[i][0]); v.Type == bsoncore.TypeArray {
			if len(v.Data) <= bsoncore.EmptyDocumentLength {
				v = undefined()
			}
			g.values[i], g.rest[i] = v, nil
		}
	}
	if len(others) == 0 {
		return nil, true, g.walk(inside)
	}
	for _, i := range through {
		if slices.Contains(others, i) || g.rest[i] == nil {
			continue
		}
		v, rest := step(inside, g.rest[i])
		if v.Type == bsoncore.TypeArray && len(rest) > 0 {
			return nil, false, parallel()
		}
		g.values[i], g.rest[i] = v, nil
	}
	return others, false, nil
}

func parallel() error {
	return mongoerror.New(mongoerror.BadValue, "cannot sort with keys that are parallel arrays")
}

func isPosition(s string) bool {
	n, err := strconv.ParseUint(s, 10, 32)
	return err == nil && strconv.FormatUint(n, 10) == s
}

// ambiguous reports whether an element of the array has a field of that name.
func ambiguous(array []byte, name string) bool {
	it := path.ElementsOf(array)
	for _, v, ok := it.Next(); ok; _, v, ok = it.Next() {
		if v.Type == bsoncore.TypeEmbeddedDocument {
			if _, there := path.Lookup(v.Data, name); there {
				return true
			}
		}
	}
	return false
}
