package aggregate

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/expression"
	"github.com/pandodb/pando/document/internal/path"
)

// operand is an expression of a stage that sees many documents: plain paths and constants are not evaluated but looked up.
type operand struct {
	expression *expression.Expression
	constant   bool
	value      value    // of a constant
	slot       int      // of the top-level field in the extractor, -1: the expression must be evaluated
	rest       []string // the path below the field
}

// extractor finds all top-level fields that operands need in one walk over a document.
type extractor struct {
	names  []string
	places map[string]int // of names, when there are many
	values []value
}

// manyNames is from how many names on they are found by a map.
const manyNames = 16

// place returns where a name is among those that are looked for, or -1.
func (x *extractor) place(name []byte) int {
	if x.places != nil {
		if i, ok := x.places[string(name)]; ok {
			return i
		}
		return -1
	}
	for i, want := range x.names {
		if len(want) == len(name) && string(name) == want {
			return i
		}
	}
	return -1
}

// add adds a name.
func (x *extractor) add(name string) {
	x.names = append(x.names, name)
	switch {
	case x.places != nil:
		x.places[name] = len(x.names) - 1
	case len(x.names) > manyNames:
		x.places = make(map[string]int, 2*manyNames)
		for i, s := range x.names {
			x.places[s] = i
		}
	}
}

// operand prepares an expression.
func (x *extractor) operand(e *expression.Expression) operand {
	if v, ok := e.Constant(); ok {
		return operand{expression: e, constant: true, value: v, slot: -1}
	}
	name, ok := e.FieldPath()
	if !ok {
		return operand{expression: e, slot: -1}
	}
	segments := strings.Split(name, ".")
	o := operand{expression: e, slot: x.place([]byte(segments[0])), rest: segments[1:]}
	if o.slot < 0 {
		o.slot = len(x.names)
		x.add(segments[0])
	}
	return o
}

// fork returns an extractor with values of its own.
func (x *extractor) fork() *extractor {
	return &extractor{names: x.names, places: x.places, values: make([]value, len(x.names))}
}

// extract looks at a document.
func (x *extractor) extract(doc document) {
	if len(x.names) == 0 {
		return
	}
	clear(x.values)
	left := len(x.names)
	it := path.ElementsOf(doc)
	for name, v, ok := it.Next(); ok; name, v, ok = it.Next() {
		if i := x.place(name); i >= 0 && x.values[i].Type == 0 {
			x.values[i] = v
			if left--; left == 0 {
				return
			}
		}
	}
}

// eval returns the operand's value for the document that was extracted last.
func (x *extractor) eval(o *operand, doc document) (value, error) {
	switch {
	case o.constant:
		return o.value, nil
	case o.slot < 0:
		return o.expression.Eval(doc)
	}
	v := x.values[o.slot]
	for _, name := range o.rest {
		if v.Type == bsoncore.TypeArray {
			return o.expression.Eval(doc) // the elements' fields
		}
		if v.Type != bsoncore.TypeEmbeddedDocument {
			return value{}, nil
		}
		v, _ = path.Lookup(v.Data, name)
	}
	return v, nil
}
