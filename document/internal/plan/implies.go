package plan

import (
	"bytes"
	"reflect"

	"github.com/pandodb/pando/document/internal/collation"
	"github.com/pandodb/pando/document/internal/index"
	"github.com/pandodb/pando/document/internal/query"
)

// prover returns what proves that filters imply one another, as the query's collation has it: an index with another one compares
// strings in its own way.
func prover(own, query *collation.Collation) *bounder {
	return &bounder{Space: index.Space{Collation: own}, simple: own.Equal(query), plain: own == nil && query == nil, descends: true}
}

// implies reports whether every document that matches all of conj matches the filter of a partial index. It may say no where a
// cleverer proof would say yes.
func (b *bounder) implies(conj []query.Node, partial query.Node) bool {
	switch p := partial.(type) {
	case *query.And:
		for _, child := range p.Children {
			if !b.implies(conj, child) {
				return false
			}
		}
		return true
	case *query.Or:
		for _, child := range p.Children {
			if b.implies(conj, child) {
				return true
			}
		}
	}
	for _, n := range conj {
		if b.one(n, partial) {
			return true
		}
	}
	return false
}

// one reports whether a single condition implies another.
func (b *bounder) one(n, partial query.Node) bool {
	if b.simple && reflect.DeepEqual(n, partial) {
		return true
	}
	if or, ok := n.(*query.Or); ok {
		for _, child := range or.Children {
			if !b.implies(conjuncts(child), partial) {
				return false
			}
		}
		return len(or.Children) > 0
	}
	path, ok := pathOf(n)
	if other, have := pathOf(partial); !ok || !have || other != path {
		return false
	}
	have, ok := b.condition(n)
	if !ok {
		return false
	}
	switch partial.(type) {
	case *query.Exists:
		return !have.missing
	case *query.Comparison, *query.In:
	default:
		return false
	}
	// The conditions look at the elements of arrays one by one: where each value that n takes is one that the other takes, so is each
	// element. What the intervals do not settle proves nothing.
	want, ok := b.condition(partial)
	if !ok || want.tight != exact || have.missing {
		return false
	}
	switch n.(type) {
	case *query.Comparison, *query.In, *query.Regex, *query.ElemMatchValue:
		return within(have.intervals, want.intervals)
	}
	return false
}

// within reports whether each interval of a lies in one of b.
func within(a, b []index.Interval) bool {
	for _, i := range a {
		in := false
		for _, o := range b {
			in = in || bytes.Compare(o.Lo(), i.Lo()) <= 0 && bytes.Compare(i.Hi(), o.Hi()) <= 0
		}
		if !in {
			return false
		}
	}
	return true
}
