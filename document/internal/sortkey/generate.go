package sortkey

import (
	"slices"

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
	best, buf []byte
	lowest    []bsoncore.Value // whose key is best
}

// level is how far the parts have come at one document.
type level struct {
	values    []bsoncore.Value // found so far
	rest      [][]string       // what is left of the paths; nil: values has the part's value
	positions []position
}

// position is the element that a part names by its position in the array above, as "a.0" does.
type position struct {
	element bsoncore.Value // Type 0: there is none
	found   bsoncore.Value // what is farther down the path, up to the next array
	rest    []string
}

// below returns the level below, with what has been found so far.
func (l *level) below() *level {
	return &level{values: slices.Clone(l.values), rest: slices.Clone(l.rest), positions: make([]position, len(l.values))}
}

// walk takes all parts down through doc; where they meet an array, it goes on with each of its elements.
func (g *generator) walk(doc path.Fields, l *level) error {
	var array []byte
	var through []int
	whole := false // arrays are values as a whole
	for i := range l.rest {
		if l.rest[i] == nil {
			continue
		}
		v, rest, nested, err := follow(doc, l.rest[i], &l.positions[i])
		whole = whole || nested
		switch {
		case err != nil:
			return err
		case v.Type != bsoncore.TypeArray:
			l.values[i], l.rest[i] = v, nil
			continue
		case through != nil && !same(array, v.Data):
			return parallel()
		}
		array, l.rest[i] = v.Data, rest
		through = append(through, i)
	}
	if through == nil {
		g.offer(l.values)
		return nil
	}
	return g.elements(array, l, through, whole)
}

// same reports whether both are the very same bytes: the same array, not an equal one.
func same(a, b []byte) bool { return len(a) == len(b) && &a[0] == &b[0] }

// follow follows a part's path from a document, or from the element that it names by its position, to its value or to an array on the way.
// nested tells that this element is an array itself.
func follow(doc path.Fields, segments []string, p *position) (v bsoncore.Value, rest []string, nested bool, err error) {
	v, ok := doc.Lookup(segments[0])
	switch {
	case ok && p.element.Type != 0:
		return v, nil, false, mongoerror.New(mongoerror.Code(16746), "Ambiguous field name found in array (do not use numeric field names in embedded elements in an array), field: '%s'", segments[0])
	case ok:
		v, rest = down(v, segments[1:])
		return v, rest, false, nil
	case p.element.Type != 0:
		return p.found, p.rest, p.element.Type == bsoncore.TypeArray, nil
	}
	return null(), nil, false, nil
}

// down follows a path through embedded documents up to the first array.
func down(v bsoncore.Value, segments []string) (found bsoncore.Value, rest []string) {
	for ; len(segments) > 0 && v.Type != bsoncore.TypeArray; segments = segments[1:] {
		var ok bool
		if v.Type == bsoncore.TypeEmbeddedDocument {
			v, ok = path.Lookup(v.Data, segments[0])
		}
		if !ok {
			return null(), nil
		}
	}
	return v, segments
}

// elements goes on with each element of an array, which the parts of through have met.
func (g *generator) elements(array []byte, l *level, through []int, whole bool) error {
	for _, i := range through { // the level itself has no use for its positions any more
		l.positions[i] = positionOf(array, l.rest[i])
	}
	it := path.ElementsOf(array)
	_, v, ok := it.Next()
	if !ok {
		return g.element(array, undefined(), l, through, false)
	}
	for ; ok; _, v, ok = it.Next() {
		if err := g.element(array, v, l, through, whole); err != nil {
			return err
		}
	}
	return nil
}

// positionOf returns the element of an array that the rest of a path names, as the names of elements are their positions.
func positionOf(array []byte, rest []string) (p position) {
	if len(rest) == 0 {
		return p
	}
	v, ok := path.Lookup(array, rest[0])
	if ok {
		p.element = v
		p.found, p.rest = down(v, rest[1:])
	}
	return p
}

func (g *generator) element(array []byte, element bsoncore.Value, l *level, through []int, whole bool) error {
	below := l.below()
	for _, i := range through {
		if len(l.rest[i]) == 0 {
			below.values[i], below.rest[i] = element, nil
			if whole {
				below.values[i] = bsoncore.Value{Type: bsoncore.TypeArray, Data: array}
			}
			continue
		}
		below.positions[i] = l.positions[i]
	}
	var doc path.Document // of other elements nothing is looked up
	if element.Type == bsoncore.TypeEmbeddedDocument {
		doc = element.Data
	}
	return g.walk(doc, below)
}

func parallel() error {
	return mongoerror.New(mongoerror.BadValue, "cannot sort with keys that are parallel arrays")
}
