package query

import (
	"bytes"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/path"
)

// ElementFilter decides about single values, such as the elements of an array: $pull, and the projection $elemMatch. It is
// immutable, and safe for concurrent use.
type ElementFilter struct {
	equal   test    // a value to be equal to
	value   test    // operators about the value itself
	element matcher // a filter of documents
}

// ParseElement parses a condition on elements: {$gt: 5} and regular expressions are about the element itself, other documents are
// filters that elements which are documents match, and any other value is one to be equal to.
func ParseElement(cond bsoncore.Value, o *Options) (*ElementFilter, error) {
	if o == nil {
		o = new(Options)
	}
	cond.Data = bytes.Clone(cond.Data)
	p := &parser{options: o, inner: 1}
	switch {
	case cond.Type == bsoncore.TypeRegex:
		pattern, options := cond.Regex()
		r, err := newRegex("", pattern, options)
		return &ElementFilter{value: r}, err
	case isElement(cond):
		n, err := p.operators("", cond.Data, 0)
		if err != nil {
			return nil, err
		}
		n = normalise(n, o.Collation)
		if err := checkNear(&Not{n}); err != nil {
			return nil, err
		}
		return &ElementFilter{value: testOf(n, o.Collation)}, nil
	case cond.Type == bsoncore.TypeEmbeddedDocument:
		n, err := p.document(cond.Data, 0)
		if err != nil {
			return nil, err
		}
		n = normalise(n, o.Collation)
		if err := checkNear(&Not{n}); err != nil {
			return nil, err
		}
		return &ElementFilter{element: compile(n, o.Collation)}, nil
	}
	n, err := p.comparison("", Eq, cond)
	if err != nil {
		return nil, err
	}
	return &ElementFilter{equal: testOf(n, o.Collation)}, nil
}

// MatchValue reports whether a value matches.
func (f *ElementFilter) MatchValue(v bsoncore.Value) (bool, error) {
	switch {
	case f.equal != nil:
		return f.equal.test(v, nil)
	case f.value != nil:
		return f.value.test(v, nil)
	case v.Type != bsoncore.TypeEmbeddedDocument:
		return false, nil
	}
	return f.element.match(object{raw: v.Data}, nil)
}

// Single is a document of one field, for filters whose paths all begin with one name: array filters, whose paths begin with an
// identifier.
type Single struct {
	Name  string
	Value bsoncore.Value
}

// Lookup implements path.Fields.
func (s Single) Lookup(name string) (bsoncore.Value, bool) {
	if name != s.Name {
		return bsoncore.Value{}, false
	}
	return s.Value, true
}

var _ path.Fields = Single{}
