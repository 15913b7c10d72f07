package expression

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// node is a part of an expression. Nodes are immutable.
type node interface {
	// eval returns the value for the state's document; the zero Value when it is missing.
	eval(st *state) (bsoncore.Value, error)
	// children returns the operands.
	children() []node
}

// walk calls visit for n and everything below it.
func walk(n node, visit func(node)) {
	if n == nil {
		return
	}
	visit(n)
	for _, child := range n.children() {
		walk(child, visit)
	}
}

// constant is a value that does not depend on the document.
type constant struct{ value bsoncore.Value }

func (c *constant) eval(*state) (bsoncore.Value, error) { return c.value, nil }
func (c *constant) children() []node                    { return nil }

// isConstant returns the value of a constant node.
func isConstant(n node) (bsoncore.Value, bool) {
	if c, ok := n.(*constant); ok {
		return c.value, true
	}
	return bsoncore.Value{}, false
}

// fieldPath is "$a.b" of the root document; without segments it is $$ROOT.
type fieldPath struct{ segments []string }

func (f *fieldPath) eval(st *state) (bsoncore.Value, error) { return resolve(st, st.root, f.segments) }
func (f *fieldPath) children() []node                       { return nil }

// String returns the path without the dollar.
func (f *fieldPath) String() string { return strings.Join(f.segments, ".") }

// variable is "$$name.a.b".
type variable struct {
	slot     int
	segments []string
}

func (n *variable) eval(st *state) (bsoncore.Value, error) {
	return resolve(st, st.variables[n.slot], n.segments)
}
func (n *variable) children() []node { return nil }

// resolve follows a path. Where it meets an array, the result is an array of what the rest of the path gives for those of its
// elements that are documents; unlike in queries, arrays in arrays are passed over, and positions are not understood.
func resolve(st *state, v bsoncore.Value, segments []string) (bsoncore.Value, error) {
	for i, name := range segments {
		switch v.Type {
		case bsoncore.TypeEmbeddedDocument:
			v = lookup(v.Data, name)
		case bsoncore.TypeArray:
			return resolveArray(st, v, segments[i:])
		default:
			return bsoncore.Value{}, nil
		}
	}
	return v, nil
}

func resolveArray(st *state, v bsoncore.Value, segments []string) (bsoncore.Value, error) {
	base := len(st.stack)
	defer func() { st.stack = st.stack[:base] }()
	it := elementsOf(v.Data)
	for {
		_, element, ok := it.next()
		if !ok {
			return st.array(st.stack[base:])
		}
		if !isObject(element) {
			continue
		}
		found, err := resolve(st, element, segments)
		if err != nil {
			return bsoncore.Value{}, err
		}
		if found.Type == 0 {
			continue
		}
		if err := st.push(found); err != nil {
			return bsoncore.Value{}, err
		}
	}
}

// unary is an operator of one operand.
type unary struct {
	operand node
	apply   func(st *state, v bsoncore.Value) (bsoncore.Value, error)
}

func (n *unary) children() []node { return []node{n.operand} }
func (n *unary) eval(st *state) (bsoncore.Value, error) {
	v, err := n.operand.eval(st)
	if err != nil {
		return bsoncore.Value{}, err
	}
	if err := st.charge(len(v.Data)); err != nil {
		return bsoncore.Value{}, err
	}
	return n.apply(st, v)
}

// dyadic is an operator of two operands, both of which are always evaluated.
type dyadic struct {
	left, right node
	apply       func(st *state, a, b bsoncore.Value) (bsoncore.Value, error)
}

func (n *dyadic) children() []node { return []node{n.left, n.right} }
func (n *dyadic) eval(st *state) (bsoncore.Value, error) {
	a, err := n.left.eval(st)
	if err != nil {
		return bsoncore.Value{}, err
	}
	b, err := n.right.eval(st)
	if err != nil {
		return bsoncore.Value{}, err
	}
	if err := st.charge(len(a.Data) + len(b.Data)); err != nil {
		return bsoncore.Value{}, err
	}
	return n.apply(st, a, b)
}

// nary is an operator of any number of operands, all of which are always evaluated. apply must not keep the slice, and must
// not evaluate anything while it uses it.
type nary struct {
	operands []node
	apply    func(st *state, values []bsoncore.Value) (bsoncore.Value, error)
}

func (n *nary) children() []node                       { return n.operands }
func (n *nary) eval(st *state) (bsoncore.Value, error) { return n.evaluate(st, false) }

// evaluate applies the operator to its operands; when a null ends them, to those up to the first one that is null.
func (n *nary) evaluate(st *state, nullEnds bool) (bsoncore.Value, error) {
	base := len(st.stack)
	defer func() { st.stack = st.stack[:base] }()
	for _, operand := range n.operands {
		v, err := operand.eval(st)
		if err != nil {
			return bsoncore.Value{}, err
		}
		if err := st.push(v); err != nil {
			return bsoncore.Value{}, err
		}
		if err := st.charge(len(v.Data)); err != nil {
			return bsoncore.Value{}, err
		}
		if nullEnds && isNullish(v) {
			break
		}
	}
	return n.apply(st, st.stack[base:])
}

// stopping is an operator of several operands that evaluates none behind the first one that is null.
type stopping struct{ nary }

func (n *stopping) eval(st *state) (bsoncore.Value, error) { return n.evaluate(st, true) }

// lazy is an operator that evaluates its operands itself. Operands that were left out are nil.
type lazy struct {
	operands []node
	apply    func(st *state, operands []node) (bsoncore.Value, error)
}

func (n *lazy) eval(st *state) (bsoncore.Value, error) { return n.apply(st, n.operands) }
func (n *lazy) children() []node                       { return n.operands }

// volatile is what must not be folded: it differs from evaluation to evaluation, or knows variables.
type volatile struct{ lazy }

// object is {a: expression, ...}.
type object struct {
	names  []string
	values []node
}

func (n *object) children() []node { return n.values }
func (n *object) eval(st *state) (bsoncore.Value, error) {
	base := len(st.stack)
	defer func() { st.stack = st.stack[:base] }()
	for _, operand := range n.values {
		v, err := operand.eval(st)
		if err != nil {
			return bsoncore.Value{}, err
		}
		if err := st.push(v); err != nil {
			return bsoncore.Value{}, err
		}
	}
	return st.document(n.names, st.stack[base:])
}

// optional evaluates an operand that may have been left out: nil gives a missing value.
func optional(st *state, n node) (bsoncore.Value, error) {
	if n == nil {
		return bsoncore.Value{}, nil
	}
	return n.eval(st)
}
