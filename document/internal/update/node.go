package update

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/path"
)

// node is a node of the tree that an update's paths make. There are three kinds: a leaf has an operation; an object node has
// children by field name (a position, in an array), and perhaps one for the positional $; an array node has children by the
// identifier of an array filter, "" being that of $[]. Nodes are immutable after parsing.
type node struct {
	op         *operation
	array      bool
	names      path.Names // in the order in which they are applied, once all are parsed
	children   []*node    // of names
	positional *node
	padded     map[int]*node // those children that are positions with zeros in front, once all are parsed
}

// compareNames orders the fields of one document as MongoDB applies, and so appends them: by bytes, but what begins with a digit other than
// 0 by its length first, so that positions are in the order of their numbers.
func compareNames(a, b string) int {
	if len(a) != len(b) && isPositive(a) && isPositive(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

// isPositive reports whether a name begins as a number above 0.
func isPositive(s string) bool { return s != "" && s[0] >= '1' && s[0] <= '9' }

// canonicalIndex reports whether s is a number as an array's positions are written: no leading zeros.
func canonicalIndex(s string) bool {
	if s == "" || len(s) > 1 && s[0] == '0' {
		return false
	}
	return onlyDigits(s)
}

func onlyDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// indexOf returns the position that a path's component names in an array. Leading zeros do not matter there.
func indexOf(s string) (int, bool) {
	if !onlyDigits(s) {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 31)
	return int(n), err == nil
}

// child returns the child of a name.
func (n *node) child(name string) *node {
	if i := n.names.Find([]byte(name)); i >= 0 {
		return n.children[i]
	}
	return nil
}

// put adds or replaces the child of a name.
func (n *node) put(name string, child *node) {
	if i := n.names.Find([]byte(name)); i >= 0 {
		n.children[i] = child
		return
	}
	n.names.Add(name)
	n.children = append(n.children, child)
}

// sort puts the children into the order in which they are applied.
func (n *node) sort() {
	if slices.IsSortedFunc(n.names.List, compareNames) {
		return
	}
	type named struct {
		name  string
		child *node
	}
	list := make([]named, len(n.children))
	for i, name := range n.names.List {
		list[i] = named{name, n.children[i]}
	}
	slices.SortStableFunc(list, func(a, b named) int { return compareNames(a.name, b.name) })
	n.names = path.Names{List: n.names.List[:0]}
	for i, e := range list {
		n.names.Add(e.name)
		n.children[i] = e.child
	}
}

// arrange sorts n and all below it, and notes what is padded.
func (n *node) arrange() {
	n.sort()
	for i, child := range n.children {
		child.arrange()
		if at, ok := indexOf(n.names.List[i]); ok && !canonicalIndex(n.names.List[i]) {
			if n.padded == nil {
				n.padded = map[int]*node{}
			}
			n.padded[at] = child
		}
	}
	if n.positional != nil {
		n.positional.arrange()
	}
}

// isIdentifier reports whether a path's component is $[identifier], and returns the identifier.
func isIdentifier(component string) (string, bool) {
	if len(component) >= 3 && strings.HasPrefix(component, "$[") && component[len(component)-1] == ']' {
		return component[2 : len(component)-1], true
	}
	return "", false
}

// insert adds an operation to the tree. Two operations must not have the same path, nor one the beginning of another's.
func (n *node) insert(components []string, op *operation) error {
	for i, component := range components {
		identifier, isFilter := isIdentifier(component)
		last := i == len(components)-1
		if n.op != nil || n.array != isFilter && (n.array || len(n.names.List) > 0 || n.positional != nil) {
			return conflict(components, i)
		}
		n.array = isFilter
		var next *node
		switch {
		case component == "$":
			next = n.positional
		case isFilter:
			next = n.child(identifier)
		default:
			next = n.child(component)
		}
		if next != nil && last {
			return conflict(components, i+1)
		}
		if next == nil {
			next = new(node)
			switch {
			case component == "$":
				n.positional = next
			case isFilter:
				n.put(identifier, next)
			default:
				n.put(component, next)
			}
		}
		n = next
	}
	n.op = op
	return nil
}

func conflict(components []string, upTo int) error {
	return mongoerror.New(mongoerror.ConflictingUpdateOperators, "Updating the path '%s' would create a conflict at '%s'",
		strings.Join(components, "."), strings.Join(components[:upTo], "."))
}

// merged returns a node that does what a and b do: several array filters may choose one element, and $ may be a position that
// is named as well. at returns the path, for the error.
func merged(a, b *node, at func(suffix []string) string, suffix []string) (*node, error) {
	if a.op != nil || b.op != nil || a.array != b.array {
		return nil, mongoerror.New(mongoerror.ConflictingUpdateOperators, "Update created a conflict at '%s'", at(suffix))
	}
	result := &node{array: a.array, names: a.names.Clone(), children: slices.Clone(a.children), positional: a.positional}
	for i, name := range b.names.List {
		child := b.children[i]
		if other := result.child(name); other != nil {
			component := name
			if a.array {
				component = "$[" + name + "]"
			}
			both, err := merged(other, child, at, append(suffix, component))
			if err != nil {
				return nil, err
			}
			child = both
		}
		result.put(name, child)
	}
	result.sort()
	if b.positional != nil {
		if result.positional == nil {
			result.positional = b.positional
			return result, nil
		}
		both, err := merged(a.positional, b.positional, at, append(suffix, "$"))
		if err != nil {
			return nil, err
		}
		result.positional = both
	}
	return result, nil
}
