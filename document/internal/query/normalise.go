package query

import (
	"cmp"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/collation"
	"github.com/pandodb/pando/document/internal/order"
)

// normalise returns the tree in the form that planners see, and that explain shows: And in And and Or in Or are one, what has a
// single child is that child, $in with one value is an equality, equalities of one path under $or are one $in, double negation is
// gone, constants are folded, equalities that an expression implies stand beside it, and children are in MongoDB's order: by kind,
// path, number of children. Contradictions are left alone. The tree is new; nodes without children are shared.
func normalise(n Node, c *collation.Collation) Node { return (&normaliser{collation: c}).node(n) }

// normaliser is how a tree is normalised. Positions of the positional operators depend on what planners are indifferent to.
type normaliser struct {
	collation *collation.Collation
	asGiven   bool // children stay in the order in which they were given
	negations bool // double negation stays: what is below a negation leaves no position
}

func (f *normaliser) node(n Node) Node {
	switch n := n.(type) {
	case *And:
		return f.and(n)
	case *Or:
		return f.or(n)
	case *Nor:
		return f.nor(n)
	case *Not:
		return f.not(f.node(n.Child))
	case *In:
		return normaliseIn(n, f.collation)
	case *Expr:
		if len(n.implied) > 0 {
			return f.and(&And{append([]Node{&Expr{Spec: n.Spec, Expression: n.Expression}}, n.implied...)})
		}
	case *ElemMatch:
		child := f.node(n.Child)
		if a, ok := child.(*Always); ok && !a.Value {
			return a
		}
		return &ElemMatch{n.Path, child}
	case *ElemMatchValue:
		children := make([]Node, len(n.Children))
		for i, child := range n.Children {
			if children[i] = f.node(child); isAlways(children[i], false) {
				return children[i]
			}
		}
		f.sort(children)
		return &ElemMatchValue{n.Path, children}
	}
	return n
}

// not returns the negation of a normalised node.
func (f *normaliser) not(child Node) Node {
	switch child := child.(type) {
	case *Not:
		if !f.negations {
			return child.Child
		}
	case *Always:
		return &Always{!child.Value}
	}
	return &Not{child}
}

// isAlways reports whether n is the constant.
func isAlways(n Node, value bool) bool {
	a, ok := n.(*Always)
	return ok && a.Value == value
}

func (f *normaliser) and(n *And) Node {
	var children, absorbed []Node // what is absorbed comes behind, as the server has it
	for _, child := range n.Children {
		child = f.node(child)
		switch inner := child.(type) {
		case *And:
			absorbed = append(absorbed, inner.Children...)
		case *Always:
			if !inner.Value {
				return inner
			}
		default:
			children = append(children, child)
		}
	}
	children = append(children, absorbed...)
	if len(children) == 1 {
		return children[0]
	}
	f.sort(children)
	return &And{children}
}

func (f *normaliser) or(n *Or) Node {
	var children, absorbed []Node
	for _, child := range n.Children {
		child = f.node(child)
		switch inner := child.(type) {
		case *Or:
			absorbed = append(absorbed, inner.Children...)
		case *Always:
			if inner.Value {
				return &And{}
			}
		default:
			if isEmpty(child) {
				return child
			}
			children = append(children, child)
		}
	}
	children = joinEqualities(append(children, absorbed...), f.collation)
	switch len(children) {
	case 0:
		return &Always{}
	case 1:
		return children[0]
	}
	f.sort(children)
	return &Or{children}
}

// isEmpty reports whether n is the filter that matches everything.
func isEmpty(n Node) bool {
	and, ok := n.(*And)
	return ok && len(and.Children) == 0
}

func (f *normaliser) nor(n *Nor) Node {
	var children []Node
	for _, child := range n.Children {
		child = f.node(child)
		switch {
		case isAlways(child, true), isEmpty(child):
			return &Always{}
		case !isAlways(child, false):
			children = append(children, child)
		}
	}
	switch len(children) {
	case 0:
		return &And{}
	case 1:
		return f.not(children[0])
	}
	f.sort(children)
	return &Nor{children}
}

// joinEqualities makes one In of the equalities and the regular expressions that several alternatives have for one path.
func joinEqualities(children []Node, c *collation.Collation) []Node {
	count := map[string]int{}
	for _, child := range children {
		if p, ok := equalityOf(child); ok {
			count[p]++
		}
	}
	joined := map[string]*In{}
	var result []Node
	for _, child := range children {
		p, ok := equalityOf(child)
		if !ok || count[p] < 2 {
			result = append(result, child)
			continue
		}
		in := joined[p]
		if in == nil {
			in = &In{Path: p}
			joined[p] = in
			result = append(result, in)
		}
		switch child := child.(type) {
		case *Comparison:
			in.Values = append(in.Values, child.Value)
		case *In:
			in.Values = append(in.Values, child.Values...)
			in.Regexes = append(in.Regexes, child.Regexes...)
		case *Regex:
			in.Regexes = append(in.Regexes, child)
		}
	}
	for i, child := range result {
		if in, ok := child.(*In); ok {
			result[i] = normaliseIn(in, c)
		}
	}
	return result
}

// equalityOf returns the path of a node that In can express. A regular expression as the value of an equality is none: there In
// would match strings.
func equalityOf(n Node) (string, bool) {
	switch n := n.(type) {
	case *Comparison:
		return n.Path, n.Op == Eq && n.Value.Type != bsoncore.TypeRegex
	case *In:
		return n.Path, true
	case *Regex:
		return n.Path, true
	}
	return "", false
}

func normaliseIn(n *In, c *collation.Collation) Node {
	values := slices.Clone(n.Values)
	slices.SortStableFunc(values, func(a, b bsoncore.Value) int { return order.Compare(a, b, c) })
	values = slices.CompactFunc(values, func(a, b bsoncore.Value) bool { return order.Equal(a, b, c) })
	regexes := slices.Clone(n.Regexes)
	slices.SortStableFunc(regexes, func(a, b *Regex) int {
		return cmp.Or(strings.Compare(a.Pattern, b.Pattern), strings.Compare(a.Options, b.Options))
	})
	regexes = slices.CompactFunc(regexes, func(a, b *Regex) bool { return a.Pattern == b.Pattern && a.Options == b.Options })
	switch {
	case len(values) == 0 && len(regexes) == 0:
		return &Always{}
	case len(values) == 1 && len(regexes) == 0:
		return &Comparison{Path: n.Path, Op: Eq, Value: values[0], implied: n.implied}
	case len(values) == 0 && len(regexes) == 1:
		return regexes[0]
	}
	return &In{Path: n.Path, Values: values, Regexes: regexes, implied: n.implied}
}

func (f *normaliser) sort(nodes []Node) {
	if !f.asGiven {
		slices.SortStableFunc(nodes, compareNodes)
	}
}

// compareNodes orders as the server's canonical form of a query does.
func compareNodes(a, b Node) int {
	if r := cmp.Compare(rankOf(a), rankOf(b)); r != 0 {
		return r
	}
	p, _ := pathOf(a)
	q, _ := pathOf(b)
	if r := strings.Compare(p, q); r != 0 {
		return r
	}
	x, y := childrenOf(a), childrenOf(b)
	for i := range min(len(x), len(y)) {
		if r := compareNodes(x[i], y[i]); r != 0 {
			return r
		}
	}
	return cmp.Compare(len(x), len(y))
}

// rankOf is the place of a node's kind in the order of kinds.
func rankOf(n Node) int {
	switch n := n.(type) {
	case *And:
		return 0
	case *Or:
		return 1
	case *ElemMatch:
		return 2
	case *ElemMatchValue:
		return 3
	case *Size:
		return 4
	case *Comparison:
		return 5 + [...]int{Eq: 0, Lte: 1, Lt: 2, Gt: 3, Gte: 4}[n.Op]
	case *Regex:
		return 10
	case *Mod:
		return 11
	case *Exists:
		return 12
	case *In:
		return 13
	case *Bits:
		return 14 + [...]int{BitsAllSet: 0, BitsAllClear: 1, BitsAnySet: 2, BitsAnyClear: 3}[n.Op]
	case *Not:
		return 18
	case *Nor:
		return 19
	case *Type:
		return 20
	case *Geo:
		return 21
	case *Expr:
		return 22
	case *Sample, *JSONSchema:
		return 23
	case *Always:
		if n.Value {
			return 25
		}
		return 24
	}
	return 26
}
