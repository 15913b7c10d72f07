package query

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
)

// Equalities returns the fields that the filter sets equal to a value, for the document that an upsert inserts: dotted paths with
// values, in the order of the filter's tree. It fails when two are about one path, or one path is within another.
func (f *Filter) Equalities() (bsoncore.Document, error) {
	var found []*Comparison
	collect(f.Root, &found)
	b := bsoncore.NewDocumentBuilder()
	seen := map[string]bool{}
	below := map[string]string{} // by the beginnings of paths: a path that goes on from there
	for _, n := range found {
		if seen[n.Path] {
			return nil, notSingle("cannot infer query fields to set, path '%s' is matched twice", n.Path)
		}
		if longer, ok := below[n.Path]; ok {
			return nil, notSingle("cannot infer query fields to set, both paths '%s' and '%s' are matched", n.Path, longer)
		}
		for i := strings.LastIndexByte(n.Path, '.'); i >= 0; i = strings.LastIndexByte(n.Path[:i], '.') {
			if seen[n.Path[:i]] {
				return nil, notSingle("cannot infer query fields to set, both paths '%s' and '%s' are matched", n.Path, n.Path[:i])
			}
			below[n.Path[:i]] = n.Path
		}
		seen[n.Path] = true
		b.AppendValue(n.Path, n.Value)
	}
	return b.Build(), nil
}

func notSingle(format string, args ...any) error {
	return mongoerror.New(mongoerror.NotSingleValueField, format, args...)
}

func collect(n Node, found *[]*Comparison) {
	switch n := n.(type) {
	case *Comparison:
		if n.Op == Eq {
			*found = append(*found, n)
		}
	case *And:
		for _, child := range n.Children {
			collect(child, found)
		}
	}
}

// Fields returns the top-level names of fields that the filter reads; whole means that it may need any ($expr with $$ROOT, $where...).
func (f *Filter) Fields() (names []string, whole bool) {
	seen := map[string]bool{}
	add := func(name string) {
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	whole = fieldsOf(f.Root, add)
	return names, whole
}

func fieldsOf(n Node, add func(string)) (whole bool) {
	if p, ok := pathOf(n); ok {
		add(firstOf(p))
		return false
	}
	switch n := n.(type) {
	case *Expr:
		names, all := exprFields(n.Expression)
		for _, name := range names {
			add(name)
		}
		return all
	case *JSONSchema:
		return n.schema.fields(add)
	}
	for _, child := range childrenOf(n) {
		whole = fieldsOf(child, add) || whole
	}
	return whole
}

// firstOf returns the name of the top-level field of a path.
func firstOf(p string) string {
	name, _, _ := strings.Cut(p, ".")
	return name
}
