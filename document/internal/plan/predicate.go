package plan

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/collation"
	"github.com/pandodb/pando/document/internal/index"
	"github.com/pandodb/pando/document/internal/query"
)

// tightness tells what the intervals of a condition leave to be looked at.
type tightness uint8

const (
	exact   tightness = iota // every entry within them matches
	covered                  // the value in the entry decides
	inexact                  // the record decides
)

// condition is what a node of a filter asks of one component of an index.
type condition struct {
	intervals []index.Interval
	tight     tightness
	// missing tells that a document without the field may match: a sparse index does not hold it.
	missing bool
}

// bounder makes conditions for one component of one index.
type bounder struct {
	index.Space
	descends bool // the component met arrays
	simple   bool // the index compares strings as the query does
	plain    bool // neither compares them by a collation
	alone    bool // the index is sparse, and the component its only one
	within   bool // the conditions are those of an $elemMatch, on an element
}

func newBounder(d *index.Definition, component int, multikey uint64, c *collation.Collation) *bounder {
	return &bounder{
		Space: d.Space(component), descends: multikey>>component&1 != 0, simple: d.Collation.Equal(c),
		plain: d.Collation == nil && c == nil, alone: d.Sparse && len(d.Components) == 1,
	}
}

// of makes a condition of what the index says.
func of(b index.Bounds) condition {
	t := inexact
	if b.Exact {
		t = exact
	}
	return condition{intervals: b.Intervals, tight: t}
}

// conditionOf returns what a leaf asks of a component with its path.
func (b *bounder) conditionOf(l *leaf) (c condition, ok bool) {
	if l.compared != nil {
		return b.expression(l.compared)
	}
	return b.condition(l.node)
}

// condition returns what a node that speaks of one path only asks of a component with that path; ok is false when an index is of no
// use for it.
func (b *bounder) condition(n query.Node) (c condition, ok bool) {
	switch n := n.(type) {
	case *query.Comparison:
		return b.comparison(n)
	case *query.In:
		return b.in(n)
	case *query.Exists:
		t := inexact
		if b.alone && !b.descends {
			t = exact
		}
		return condition{intervals: all(), tight: t}, !b.Hashed
	case *query.Regex:
		return b.regex(n)
	case *query.Not:
		return b.not(n)
	case *query.ElemMatchValue:
		return b.elements(n)
	case *query.Or:
		return b.union(n.Children)
	case *query.And:
		return b.both(n.Children)
	case *query.Always:
		return condition{}, !n.Value
	}
	return b.typed(n)
}

// residual returns where a condition that the intervals do not settle is decided: one entry says nothing of an array.
func (b *bounder) residual() tightness {
	if b.descends {
		return inexact
	}
	return covered
}

// comparable reports whether the index orders values like v as the query does.
func (b *bounder) comparable(v bsoncore.Value) bool {
	switch v.Type {
	case bsoncore.TypeString, bsoncore.TypeSymbol, bsoncore.TypeEmbeddedDocument, bsoncore.TypeArray:
		return b.simple
	}
	return true
}

// comparison returns the condition of $eq, $lt, $lte, $gt, $gte.
func (b *bounder) comparison(n *query.Comparison) (condition, bool) {
	if !b.comparable(n.Value) || b.Hashed && (n.Op != query.Eq || n.Value.Type == bsoncore.TypeArray) {
		return condition{}, false
	}
	c := of(b.Compare(n.Op, n.Value))
	switch n.Value.Type {
	case bsoncore.TypeUndefined, 0:
		return condition{}, false
	case bsoncore.TypeNull:
		c.missing = len(c.intervals) > 0
	case bsoncore.TypeMinKey, bsoncore.TypeMaxKey:
		c.missing = n.Op != query.Eq
	}
	return c, true
}

// in returns the condition of $in.
func (b *bounder) in(n *query.In) (condition, bool) {
	out := condition{}
	for _, v := range n.Values {
		c, ok := b.comparison(&query.Comparison{Path: n.Path, Op: query.Eq, Value: v})
		if !ok {
			return condition{}, false
		}
		out.add(c)
	}
	for _, r := range n.Regexes {
		c, ok := b.regex(r)
		if !ok {
			return condition{}, false
		}
		out.add(c)
	}
	out.intervals = index.Union(out.intervals, nil)
	return out, true
}

// add makes c a union with another condition, but for the order of its intervals.
func (c *condition) add(o condition) {
	c.intervals = append(c.intervals, o.intervals...)
	c.tight = max(c.tight, o.tight)
	c.missing = c.missing || o.missing
}

// regex returns the condition of a regular expression: strings with its prefix, and the expression itself as a value.
func (b *bounder) regex(n *query.Regex) (condition, bool) {
	if !b.plain || b.Hashed {
		return condition{}, false
	}
	strings := b.Prefix(n.Prefix)
	itself := b.Eq(bsoncore.Value{Type: bsoncore.TypeRegex, Data: bsoncore.AppendRegex(nil, n.Pattern, n.Options)})
	t := b.residual()
	if strings.Exact && n.Exact {
		t = exact
	}
	return condition{intervals: index.Union(strings.Intervals, itself.Intervals), tight: t}, true
}

// not returns the condition of a negation: everything else. Only simple conditions have one: what is left out must be exactly what
// does not match.
func (b *bounder) not(n *query.Not) (condition, bool) {
	var c condition
	switch child := n.Child.(type) {
	case *query.Exists:
		c := b.Null().Intervals
		if !b.Hashed {
			c = index.Intersect(c, b.OfType(bsoncore.TypeNull).Intervals)
		}
		return condition{c, inexact, true}, true
	case *query.Comparison:
		if !b.negatable(child.Value) || child.Op != query.Eq && extremeOrNull(child.Value) {
			return condition{}, false
		}
		var ok bool
		if c, ok = b.comparison(child); !ok {
			return condition{}, false
		}
	case *query.In:
		for _, v := range child.Values {
			if !b.negatable(v) {
				return condition{}, false
			}
		}
		var ok bool
		if c, ok = b.in(child); !ok || len(child.Regexes) > 0 {
			return condition{}, false
		}
	default:
		return condition{}, false
	}
	if b.Hashed {
		return condition{}, false
	}
	t := exact
	if b.descends {
		t = inexact
	}
	return condition{slices.DeleteFunc(b.Complement(c.intervals), between), t, !c.missing}, true
}

// between reports whether an interval lies between undefined and null, where there is no value.
func between(i index.Interval) bool {
	return i.Low.Type == bsoncore.TypeUndefined && i.High.Type == bsoncore.TypeNull && !i.LowInclusive && !i.HighInclusive
}

// negatable reports whether the entries of the documents that are not equal to v are all but those of v: those of an empty array
// and of a missing value are not told apart, and the entries of an array are its elements.
func (b *bounder) negatable(v bsoncore.Value) bool {
	switch v.Type {
	case bsoncore.TypeArray:
		return false
	case bsoncore.TypeNull, bsoncore.TypeUndefined:
		return !b.descends
	}
	return true
}

func extremeOrNull(v bsoncore.Value) bool {
	return v.Type == bsoncore.TypeMinKey || v.Type == bsoncore.TypeMaxKey || v.Type == bsoncore.TypeNull
}

// elements returns the condition of $elemMatch on values: all its conditions hold for one element, which has one entry. An element that
// is an array has one as a whole, and its own elements have none: neither an $elemMatch within another one bounds anything, nor one of an
// array that the path names by its position in an array.
func (b *bounder) elements(n *query.ElemMatchValue) (condition, bool) {
	if b.within || endsInPosition(n.Path) {
		return condition{}, false
	}
	one := *b
	one.descends, one.within = false, true
	c, ok := one.both(n.Children)
	return condition{c.intervals, inexact, false}, ok
}

// endsInPosition reports whether a path, which may be one within an element, can lead to an element by its position.
func endsInPosition(path string) bool { return numeric(path[strings.LastIndexByte(path, '.')+1:]) }

// both returns the condition of a conjunction on one path.
func (b *bounder) both(children []query.Node) (condition, bool) {
	out := condition{intervals: all(), missing: true}
	any := false
	for _, child := range children {
		c, ok := b.condition(child)
		if !ok || any && b.descends {
			out.tight = inexact
			continue
		}
		any = true
		out.intervals = index.Intersect(out.intervals, c.intervals)
		out.tight = max(out.tight, c.tight)
		out.missing = out.missing && c.missing
	}
	return out, any
}

// union returns the condition of a disjunction on one path.
func (b *bounder) union(children []query.Node) (condition, bool) {
	out := condition{}
	for _, child := range children {
		c, ok := b.condition(child)
		if !ok {
			return condition{}, false
		}
		out.add(c)
	}
	out.intervals = index.Union(out.intervals, nil)
	return out, true
}
