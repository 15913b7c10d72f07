package plan

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/index"
	"github.com/pandodb/pando/document/internal/query"
)

// wildcard returns the ways to bound a wildcard component: each takes the conditions on one path below it. An entry stands for a
// value that is there and is no document or array, which is what the conditions have to ask for.
func (p *planner) wildcard(x *Index, component int, found []leaf) []option {
	d := x.Definition
	b := newBounder(d, component, x.Multikey, p.q.Collation)
	var out []option
	byPath := map[string]int{}
	for _, l := range found {
		if l.compared != nil || numeric(l.path) || !d.Holds(l.path) || !scalar(l.node) {
			continue
		}
		cond, ok := b.condition(l.node)
		if !ok || cond.missing {
			continue
		}
		at, seen := byPath[l.path]
		_, exists := l.node.(*query.Exists)
		ambiguous := b.descends && strings.Contains(l.path, ".") // a name may have the dot in it
		if l.scope != nil || exists || cond.tight == covered || ambiguous {
			cond.tight = inexact
		}
		if !seen || b.descends || exists {
			o := option{intervals: cond.intervals, paths: index.Space{}.Eq(text(l.path)).Intervals}
			if exists {
				// Whatever lies below the path tells that it is there.
				o.paths = index.Union(o.paths, index.Space{}.Prefix(l.path+".").Intervals)
			} else if !seen {
				byPath[l.path] = len(out)
			}
			at = len(out)
			out = append(out, o)
		} else {
			out[at].intervals = index.Intersect(out[at].intervals, cond.intervals)
		}
		out[at].leaves, out[at].conditions = append(out[at].leaves, l), append(out[at].conditions, cond)
	}
	return out
}

func text(s string) bsoncore.Value {
	return bsoncore.Value{Type: bsoncore.TypeString, Data: bsoncore.AppendString(nil, s)}
}

// scalar reports whether a condition asks for values that are neither documents nor arrays, or only for there being one.
func scalar(n query.Node) bool {
	switch n := n.(type) {
	case *query.Comparison:
		return scalarValue(n.Value)
	case *query.In:
		for _, v := range n.Values {
			if !scalarValue(v) {
				return false
			}
		}
		return true
	case *query.Exists, *query.Regex:
		return true
	case *query.Or:
		return scalars(n.Children)
	case *query.And:
		return scalars(n.Children)
	case *query.ElemMatchValue:
		return scalars(n.Children)
	}
	return false
}

// scalars reports it of conditions that have to hold of one value. That there is one says nothing of where its entries lie: those of what
// a document holds have paths of their own.
func scalars(list []query.Node) bool {
	for _, n := range list {
		if _, exists := n.(*query.Exists); exists || !scalar(n) {
			return false
		}
	}
	return true
}

func scalarValue(v bsoncore.Value) bool {
	switch v.Type {
	case bsoncore.TypeEmbeddedDocument, bsoncore.TypeArray, bsoncore.TypeNull, bsoncore.TypeUndefined, bsoncore.TypeMinKey, bsoncore.TypeMaxKey:
		return false
	}
	return true
}

// numeric reports whether a path goes by the positions of elements, of which wildcard indexes know nothing.
func numeric(path string) bool {
	for _, name := range strings.Split(path, ".") {
		if name != "" && strings.Trim(name, "0123456789") == "" {
			return true
		}
	}
	return false
}

// there returns leaves that ask for nothing but that a path is there, in place of those that a wildcard index does not bound. Who
// prescribes the index gets what it holds: documents without the path are not found, even where a condition would take them.
func (p *planner) there(x *Index, found []leaf) []leaf {
	b := newBounder(x.Definition, 0, x.Multikey, p.q.Collation)
	var out []leaf
	for _, l := range found {
		if l.compared != nil {
			if l.compared.value.Type == bsoncore.TypeArray {
				continue
			}
			l.compared = nil
		} else if _, ok := b.condition(l.node); !ok || !answered(l.node) {
			continue
		}
		l.path = withoutPositions(l.path)
		l.node = &query.Exists{Path: l.path}
		out = append(out, l)
	}
	return out
}

// answered reports whether MongoDB answers a condition from a wildcard index at all: none for which a missing path is like null, and of
// documents and arrays only whether they are empty.
func answered(n query.Node) bool {
	switch n := n.(type) {
	case *query.Comparison:
		return answeredValue(n.Value, n.Op == query.Eq)
	case *query.In:
		for _, v := range n.Values {
			if !answeredValue(v, true) {
				return false
			}
		}
		return true
	case *query.Type, *query.Mod, *query.Regex:
		return true
	case *query.Or:
		return allAnswered(n.Children)
	case *query.And:
		return allAnswered(n.Children)
	case *query.ElemMatchValue:
		return allAnswered(n.Children)
	}
	return false
}

func allAnswered(list []query.Node) bool {
	for _, n := range list {
		if !answered(n) {
			return false
		}
	}
	return true
}

func answeredValue(v bsoncore.Value, equal bool) bool {
	const emptyLength = 5
	switch v.Type {
	case bsoncore.TypeEmbeddedDocument, bsoncore.TypeArray:
		return equal && len(v.Data) == emptyLength
	case bsoncore.TypeNull, bsoncore.TypeUndefined:
		return !equal
	}
	return true
}

// withoutPositions returns a path up to the first position of an element: entries have the elements of an array under its own path.
func withoutPositions(path string) string {
	names := strings.Split(path, ".")
	for i, name := range names {
		if i > 0 && numeric(name) {
			return strings.Join(names[:i], ".")
		}
	}
	return path
}
