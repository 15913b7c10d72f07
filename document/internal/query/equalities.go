package query

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
)

// Equalities returns the fields that the filter sets equal to a value, for the document that an upsert inserts: dotted paths with
// values, in the order of the filter. It fails when two are about one path, or one path is within another, and when there is $expr.
func (f *Filter) Equalities() (bsoncore.Document, error) {
	if err := f.Upsertable(); err != nil {
		return nil, err
	}
	var found []*Comparison
	f.collect(f.given, &found)
	b := bsoncore.NewDocumentBuilder()
	seen := map[string]bool{}
	below := map[string]string{} // by the beginnings of paths: a path that goes on from there
	for _, n := range found {
		if seen[n.Path] {
			return nil, notSingle("cannot infer query fields to set, path '%s' is matched twice", n.Path)
		}
		if longer, ok := below[n.Path]; ok {
			return nil, notSingle("cannot infer query fields to set, both paths '%s' and '%s' are matched", longer, n.Path)
		}
		for i := strings.LastIndexByte(n.Path, '.'); i >= 0; i = strings.LastIndexByte(n.Path[:i], '.') {
			if seen[n.Path[:i]] {
				return nil, notSingle("cannot infer query fields to set, both paths '%s' and '%s' are matched", n.Path, n.Path[:i])
			}
			if below[n.Path[:i]] == "" {
				below[n.Path[:i]] = n.Path
			}
		}
		seen[n.Path] = true
		b.AppendValue(n.Path, n.Value)
	}
	return b.Build(), nil
}

// Upsertable refuses filters that an upsert cannot have, whether there is a match or not: those with $expr.
func (f *Filter) Upsertable() error {
	if hasExpr(f.given) {
		return mongoerror.New(mongoerror.QueryFeatureNotAllowed, "$expr is not allowed in the query predicate for an upsert")
	}
	return nil
}

func notSingle(format string, args ...any) error {
	return mongoerror.New(mongoerror.NotSingleValueField, format, args...)
}

func hasExpr(n Node) bool {
	if _, ok := n.(*Expr); ok {
		return true
	}
	return slices.ContainsFunc(childrenOf(n), hasExpr)
}

// collect finds the equalities that must hold. It looks at the filter as it was given, as MongoDB does: {$not: {$ne: 1}} is none.
func (f *Filter) collect(n Node, found *[]*Comparison) {
	switch n := n.(type) {
	case *Comparison:
		if n.Op == Eq {
			*found = append(*found, n)
		}
	case *In:
		if equality, ok := normaliseIn(n, f.collation).(*Comparison); ok {
			*found = append(*found, equality)
		}
	case *And:
		if never(n) {
			return
		}
		for _, child := range n.Children {
			f.collect(child, found)
		}
	case *Or:
		if possible := slices.DeleteFunc(slices.Clone(n.Children), never); len(possible) == 1 {
			f.collect(possible[0], found)
		}
	}
}

// never reports whether nothing can match, as MongoDB finds it out: then what stands beside it sets nothing either.
func never(n Node) bool {
	switch n := n.(type) {
	case *Always:
		return !n.Value
	case *And:
		return slices.ContainsFunc(n.Children, never)
	case *Or:
		return !slices.ContainsFunc(n.Children, func(child Node) bool { return !never(child) })
	}
	return false
}

// Identity is Equalities for a replacement, which takes _id alone of them: a document of it, or an empty one. It fails when _id is there
// twice, or only parts of it are given.
func (f *Filter) Identity() (bsoncore.Document, error) {
	if err := f.Upsertable(); err != nil {
		return nil, err
	}
	var found []*Comparison
	f.collect(f.given, &found)
	b := bsoncore.NewDocumentBuilder()
	seen := false
	for _, n := range found {
		switch {
		case strings.HasPrefix(n.Path, "_id."):
			return nil, mongoerror.New(mongoerror.NotExactValueField, "field at '_id' must be exactly specified, field at sub-path '%s'found", n.Path)
		case n.Path != "_id":
		case seen:
			return nil, notSingle("cannot infer query fields to set, path '%s' is matched twice", n.Path)
		default:
			b.AppendValue(n.Path, n.Value)
			seen = true
		}
	}
	return b.Build(), nil
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
