package plan

import (
	"strings"

	"github.com/pandodb/pando/document/internal/query"
)

// leaf is a condition on one path, somewhere in the conjunction that a filter is.
type leaf struct {
	path     string
	node     query.Node
	conjunct int
	// scope is the $elemMatch in which it stands: conditions of one scope hold for one element of the array at scope.Path. nil: none.
	scope *query.ElemMatch
	under string // the path of the array of scope

	compared *compared // instead of node: a condition of $expr
}

// conjuncts returns the conditions that all have to hold.
func conjuncts(n query.Node) []query.Node {
	var out []query.Node
	var walk func(query.Node)
	walk = func(n query.Node) {
		switch n := n.(type) {
		case nil:
		case *query.And:
			for _, child := range n.Children {
				walk(child)
			}
		case *query.Nor:
			if len(n.Children) == 1 {
				walk(&query.Not{Child: n.Children[0]})
				return
			}
			out = append(out, n)
		case *query.Not:
			if inner, ok := n.Child.(*query.Not); ok {
				walk(inner.Child)
				return
			}
			out = append(out, n)
		case *query.Always:
			if !n.Value {
				out = append(out, n)
			}
		default:
			out = append(out, n)
		}
	}
	walk(n)
	return out
}

// leaves returns the conditions on single paths among conjuncts.
func (p *planner) leaves(list []query.Node) []leaf {
	var out []leaf
	for i, n := range list {
		if e, ok := n.(*query.Expr); ok {
			out = p.expressions(out, e.Spec, i, true)
			continue
		}
		out = appendLeaves(out, n, i, "", nil, "")
	}
	return out
}

func appendLeaves(out []leaf, n query.Node, conjunct int, prefix string, scope *query.ElemMatch, under string) []leaf {
	if e, ok := n.(*query.ElemMatch); ok {
		if scope != nil && beginsWithPosition(e.Path) {
			return out
		}
		at := join(prefix, e.Path)
		for _, child := range conjuncts(e.Child) {
			out = appendLeaves(out, child, conjunct, at, e, at)
		}
		return out
	}
	if p, ok := pathOf(n); ok && (scope == nil || !beginsWithPosition(p)) {
		out = append(out, leaf{path: join(prefix, p), node: n, conjunct: conjunct, scope: scope, under: under})
	}
	return out
}

// beginsWithPosition reports whether a path may begin with the position of an element. Within an $elemMatch that is one in an element of the
// array, and not in the array itself, of which the joined path would speak.
func beginsWithPosition(path string) bool {
	first, _, _ := strings.Cut(path, ".")
	return numeric(first)
}

// join returns the path of a path within another.
func join(prefix, path string) string {
	switch {
	case prefix == "":
		return path
	case path == "":
		return prefix
	}
	return prefix + "." + path
}

// pathOf returns the one path that a node speaks of; ok is false when there are several, or none.
func pathOf(n query.Node) (path string, ok bool) {
	switch n := n.(type) {
	case *query.Comparison:
		return n.Path, true
	case *query.In:
		return n.Path, true
	case *query.Exists:
		return n.Path, true
	case *query.Regex:
		return n.Path, true
	case *query.ElemMatchValue:
		return n.Path, true
	case *query.Geo:
		return n.Path, true
	case *query.Not:
		return pathOf(n.Child)
	case *query.Or:
		return commonPath(n.Children)
	case *query.And:
		return commonPath(n.Children)
	}
	return otherPath(n)
}

// commonPath returns the path of which all children speak.
func commonPath(children []query.Node) (path string, ok bool) {
	for i, child := range children {
		p, ok := pathOf(child)
		if !ok || i > 0 && p != path {
			return "", false
		}
		path = p
	}
	return path, len(children) > 0
}

// commonPrefix returns the longest path within which both are.
func commonPrefix(a, b string) string {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	n := 0
	for n < len(as) && n < len(bs) && as[n] == bs[n] {
		n++
	}
	return strings.Join(as[:n], ".")
}
