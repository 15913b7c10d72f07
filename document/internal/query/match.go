package query

import (
	"math/rand/v2"
	"slices"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/collation"
	"github.com/pandodb/pando/document/internal/expression"
	"github.com/pandodb/pando/document/internal/path"
)

// object is a document to match: raw, or behind fields.
type object struct {
	fields path.Fields
	raw    []byte
}

func newObject(doc path.Fields) object {
	if raw, ok := doc.(path.Document); ok {
		return object{raw: raw}
	}
	return object{fields: doc}
}

func (o object) lookup(name string) bsoncore.Value {
	var v bsoncore.Value
	var ok bool
	if o.fields != nil {
		v, ok = o.fields.Lookup(name)
	} else {
		v, ok = path.Lookup(o.raw, name)
	}
	if !ok {
		return bsoncore.Value{} // what comes with false means nothing
	}
	return v
}

// part returns the document, or as much of it as somebody looks at.
func (o object) part(names []string, whole bool) (bsoncore.Document, error) {
	if o.fields == nil {
		return o.raw, nil
	}
	if w, ok := o.fields.(path.Whole); ok && whole {
		return w.Document(nil)
	}
	b := bsoncore.NewDocumentBuilder()
	for _, name := range names {
		if v := o.lookup(name); v.Type != 0 {
			b.AppendValue(name, v)
		}
	}
	return b.Build(), nil
}

// matcher decides about documents. position is where matches through arrays are noted, nil when nobody asks.
type matcher interface {
	match(o object, position *int) (bool, error)
}

// test decides about single values: elements of arrays, and what no array is.
type test interface {
	test(v bsoncore.Value, position *int) (bool, error)
}

// compile makes the matcher of a tree.
func compile(n Node, c *collation.Collation) matcher {
	switch n := n.(type) {
	case *And:
		return compileAnd(n.Children, c)
	case *Or:
		return anyOf(compileAll(n.Children, c))
	case *Nor:
		return noneOf(compileAll(n.Children, c))
	case *Not:
		return &notMatcher{compile(n.Child, c)}
	case *Always:
		return constant(n.Value)
	case *Expr:
		return newExprMatcher(n.Expression)
	case *JSONSchema:
		return newSchemaMatcher(n.schema)
	case *Sample:
		return sampleMatcher(n.Rate)
	}
	p, _ := pathOf(n)
	return newField(p, n, c)
}

func compileAll(nodes []Node, c *collation.Collation) []matcher {
	matchers := make([]matcher, len(nodes))
	for i, n := range nodes {
		matchers[i] = compile(n, c)
	}
	return matchers
}

// field applies a test to the values at a path.
type field struct {
	path  path.Path
	first string
	rest  []path.Component
	leaf  path.Leaf
	test  test
}

func newField(p string, n Node, c *collation.Collation) *field {
	f := &field{path: path.Parse(p), test: testOf(n, c)}
	f.first, f.rest = f.path.First(), f.path.Components()[1:]
	switch n.(type) {
	case *Size, *ElemMatch, *ElemMatchValue:
		f.leaf = path.Array
	}
	return f
}

func (f *field) match(o object, position *int) (bool, error) {
	return f.value(o.lookup(f.first), position)
}

// value matches the value of the top-level field.
func (f *field) value(v bsoncore.Value, position *int) (bool, error) {
	if v.Type != bsoncore.TypeArray && len(f.rest) == 0 {
		return f.test.test(v, position)
	}
	var err error
	found := path.Walk(v, f.rest, f.leaf, func(v bsoncore.Value, at int) bool {
		var ok bool
		if ok, err = f.test.test(v, position); ok && position != nil && at >= 0 {
			*position = at
		}
		return ok || err != nil
	})
	return found && err == nil, err
}

// allOf matches when all of its matchers do. Where nobody asks for a position, those of one field share a look at it.
type allOf struct {
	ordered []matcher
	groups  []matcher
}

// group is the conditions on one top-level field.
type group struct {
	name   string
	fields []*field
}

func compileAnd(nodes []Node, c *collation.Collation) matcher {
	ordered := compileAll(nodes, c)
	if len(ordered) == 1 {
		return ordered[0]
	}
	all := &allOf{ordered: ordered}
	byName := map[string]*group{}
	for _, m := range ordered {
		f, ok := m.(*field)
		if !ok {
			all.groups = append(all.groups, m)
			continue
		}
		g := byName[f.first]
		if g == nil {
			g = &group{name: f.first}
			byName[f.first] = g
			all.groups = append(all.groups, g)
		}
		g.fields = append(g.fields, f)
	}
	slices.SortStableFunc(all.groups, func(a, b matcher) int { return costOf(a) - costOf(b) })
	return all
}

// costOf ranks what is asked first of a document: comparisons with numbers decide fastest, and cannot fail.
func costOf(m matcher) int {
	g, ok := m.(*group)
	if !ok {
		return 1
	}
	for _, f := range g.fields {
		if t, ok := f.test.(*compareTest); !ok || !t.exact {
			return 1
		}
	}
	return 0
}

func (a *allOf) match(o object, position *int) (bool, error) {
	matchers := a.groups
	if position != nil {
		matchers = a.ordered
	}
	for _, m := range matchers {
		if ok, err := m.match(o, position); !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

func (g *group) match(o object, position *int) (bool, error) {
	v := o.lookup(g.name)
	for _, f := range g.fields {
		if ok, err := f.value(v, position); !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

// anyOf matches when one of them does. It leaves no position, as the server's does not.
type anyOf []matcher

func (a anyOf) match(o object, _ *int) (bool, error) {
	for _, m := range a {
		if ok, err := m.match(o, nil); ok || err != nil {
			return ok && err == nil, err
		}
	}
	return false, nil
}

// noneOf matches when none of them does.
type noneOf []matcher

func (a noneOf) match(o object, _ *int) (bool, error) {
	ok, err := anyOf(a).match(o, nil)
	return !ok && err == nil, err
}

type notMatcher struct{ child matcher }

func (m *notMatcher) match(o object, _ *int) (bool, error) {
	ok, err := m.child.match(o, nil)
	return !ok && err == nil, err
}

type constant bool

func (m constant) match(object, *int) (bool, error) { return bool(m), nil }

type sampleMatcher float64

func (m sampleMatcher) match(object, *int) (bool, error) { return rand.Float64() < float64(m), nil }

// exprMatcher evaluates an expression on as much of a document as it needs.
type exprMatcher struct {
	expression *expression.Expression
	names      []string
	whole      bool
}

func newExprMatcher(e *expression.Expression) matcher {
	m := &exprMatcher{expression: e}
	m.names, m.whole = exprFields(e)
	return m
}

func (m *exprMatcher) match(o object, _ *int) (bool, error) {
	doc, err := o.part(m.names, m.whole)
	if err != nil {
		return false, err
	}
	v, err := m.expression.Eval(doc)
	return err == nil && expression.Truthy(v), err
}
