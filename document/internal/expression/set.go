package expression

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/collation"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/order"
)

// buildSet makes the operators of sets, all of which see arrays without order and duplicates.
func buildSet(p *parser, name string, operands []node) (node, error) {
	c := p.options.Collation
	if name == "$setEquals" && len(operands) < 2 {
		return nil, mongoerror.New(17045, "%s needs at least two arguments had: %d", name, len(operands))
	}
	checkSets(p, name, operands)
	var apply func(st *state, values []bsoncore.Value) (bsoncore.Value, error)
	switch name {
	case "$setUnion":
		apply = func(st *state, values []bsoncore.Value) (bsoncore.Value, error) { return setUnion(st, name, values, c) }
	case "$setIntersection":
		apply = func(st *state, values []bsoncore.Value) (bsoncore.Value, error) {
			return setIntersection(st, name, values, c)
		}
	case "$setDifference":
		apply = func(st *state, values []bsoncore.Value) (bsoncore.Value, error) {
			return setDifference(st, name, values[0], values[1], c)
		}
	case "$setIsSubset":
		code := mongoerror.Code(17046)
		if _, ok := isConstant(operands[1]); ok && !allConstant(operands) {
			code = 17310
		}
		apply = func(st *state, values []bsoncore.Value) (bsoncore.Value, error) {
			if !isArray(values[0]) {
				return bsoncore.Value{}, mongoerror.New(code,
					"both operands of %s must be arrays. First argument is of type: %s", name, typeName(values[0]))
			}
			return setIsSubset(st, name, values[0], values[1], c)
		}
	default:
		apply = func(st *state, values []bsoncore.Value) (bsoncore.Value, error) {
			return setEquals(st, name, values, c)
		}
	}
	switch name {
	case "$setUnion", "$setIntersection":
		return &stopping{nary{p.commute(operands, apply), apply}}, nil
	case "$setEquals": // the first that is known is what others are compared with, in their order
		known := slices.IndexFunc(operands, func(n node) bool {
			_, ok := isConstant(n)
			return ok
		})
		if known > 0 {
			first := operands[known]
			copy(operands[1:], operands[:known])
			operands[0] = first
		}
	}
	return &nary{operands, apply}, nil
}

// checkSets checks the operands that are constants, as the server does it when only some are.
func checkSets(p *parser, name string, operands []node) {
	for i, n := range operands {
		v, ok := isConstant(n)
		switch {
		case !ok || isArray(v):
		case name == "$setEquals":
			p.later(mongoerror.New(5887502, "All operands of %s must be arrays. %d-th argument is of type: %s", name, i+1, typeName(v)))
		case name == "$setIsSubset" && i == 1 && !allConstant(operands):
			p.later(mongoerror.New(17311, "both operands of %s must be arrays. Second argument is of type: %s", name, typeName(v)))
		}
	}
}

// sorted returns the elements of an array, in order and each once. They lie on top of the stack.
func (st *state) sorted(array []byte, c *collation.Collation) ([]bsoncore.Value, error) {
	base := len(st.stack)
	if err := st.pushAll(array); err != nil {
		return nil, err
	}
	slices.SortStableFunc(st.stack[base:], func(a, b bsoncore.Value) int { return order.Compare(a, b, c) })
	unique := slices.CompactFunc(st.stack[base:], func(a, b bsoncore.Value) bool { return order.Equal(a, b, c) })
	st.stack = st.stack[:base+len(unique)]
	return unique, nil
}

func has(set []bsoncore.Value, v bsoncore.Value, c *collation.Collation) bool {
	_, ok := slices.BinarySearchFunc(set, v, func(a, b bsoncore.Value) int { return order.Compare(a, b, c) })
	return ok
}

func setUnion(st *state, name string, values []bsoncore.Value, c *collation.Collation) (bsoncore.Value, error) {
	operands := slices.Clone(values) // the stack may move below them
	base := len(st.stack)
	defer func() { st.stack = st.stack[:base] }()
	for _, v := range operands {
		switch {
		case isNullish(v):
			return null(), nil
		case !isArray(v):
			return bsoncore.Value{}, mongoerror.New(17043, "All operands of %s must be arrays. One argument is of type: %s", name, typeName(v))
		}
		if err := st.pushAll(v.Data); err != nil {
			return bsoncore.Value{}, err
		}
	}
	all := st.stack[base:]
	slices.SortStableFunc(all, func(a, b bsoncore.Value) int { return order.Compare(a, b, c) })
	return st.array(slices.CompactFunc(all, func(a, b bsoncore.Value) bool { return order.Equal(a, b, c) }))
}

func setIntersection(st *state, name string, values []bsoncore.Value, c *collation.Collation) (bsoncore.Value, error) {
	operands := slices.Clone(values)
	base := len(st.stack)
	defer func() { st.stack = st.stack[:base] }()
	var common []bsoncore.Value
	for i, v := range operands {
		switch {
		case isNullish(v):
			return null(), nil
		case !isArray(v):
			return bsoncore.Value{}, mongoerror.New(17047, "All operands of %s must be arrays. One argument is of type: %s", name, typeName(v))
		}
		set, err := st.sorted(v.Data, c)
		if err != nil {
			return bsoncore.Value{}, err
		}
		if i == 0 {
			common = slices.Clone(set)
			continue
		}
		// What is equal need not be the same, and that of the smaller set is taken.
		kept, other := common, slices.Clone(set)
		if len(kept) > len(other) {
			kept, other = other, kept
		}
		common = slices.DeleteFunc(kept, func(v bsoncore.Value) bool { return !has(other, v, c) })
	}
	return st.array(common)
}

// setDifference keeps the order of the first array.
func setDifference(st *state, name string, a, b bsoncore.Value, c *collation.Collation) (bsoncore.Value, error) {
	switch {
	case isNullish(a) || isNullish(b):
		return null(), nil
	case !isArray(a):
		return bsoncore.Value{}, mongoerror.New(17048, "both operands of %s must be arrays. First argument is of type: %s", name, typeName(a))
	case !isArray(b):
		return bsoncore.Value{}, mongoerror.New(17049, "both operands of %s must be arrays. Second argument is of type: %s", name, typeName(b))
	}
	base := len(st.stack)
	defer func() { st.stack = st.stack[:base] }()
	set, err := st.sorted(b.Data, c)
	if err != nil {
		return bsoncore.Value{}, err
	}
	start := len(st.stack)
	if err := st.pushAll(a.Data); err != nil {
		return bsoncore.Value{}, err
	}
	elements := st.stack[start:]
	again := repeated(elements, c)
	kept := elements[:0]
	for i, v := range elements {
		if !again[i] && !has(set, v, c) {
			kept = append(kept, v)
		}
	}
	return st.array(kept)
}

// repeated tells of each value whether an equal one stands before it.
func repeated(values []bsoncore.Value, c *collation.Collation) []bool {
	sorted, again := make([]int32, len(values)), make([]bool, len(values))
	for i := range sorted {
		sorted[i] = int32(i)
	}
	slices.SortStableFunc(sorted, func(i, k int32) int { return order.Compare(values[i], values[k], c) })
	for at := 1; at < len(sorted); at++ {
		again[sorted[at]] = order.Equal(values[sorted[at-1]], values[sorted[at]], c)
	}
	return again
}

func setIsSubset(st *state, name string, a, b bsoncore.Value, c *collation.Collation) (bsoncore.Value, error) {
	if !isArray(b) {
		return bsoncore.Value{}, mongoerror.New(17042, "both operands of %s must be arrays. Second argument is of type: %s", name, typeName(b))
	}
	base := len(st.stack)
	defer func() { st.stack = st.stack[:base] }()
	set, err := st.sorted(b.Data, c)
	if err != nil {
		return bsoncore.Value{}, err
	}
	it := elementsOf(a.Data)
	for {
		_, v, ok := it.next()
		if !ok || !has(set, v, c) {
			return st.boolean(!ok), nil
		}
	}
}

func setEquals(st *state, name string, values []bsoncore.Value, c *collation.Collation) (bsoncore.Value, error) {
	operands := slices.Clone(values)
	base := len(st.stack)
	defer func() { st.stack = st.stack[:base] }()
	var first []bsoncore.Value
	for i, v := range operands {
		if !isArray(v) {
			return bsoncore.Value{}, mongoerror.New(17044, "All operands of %s must be arrays. %d-th argument is of type: %s", name, i+1, typeName(v))
		}
		set, err := st.sorted(v.Data, c)
		if err != nil {
			return bsoncore.Value{}, err
		}
		if i == 0 {
			first = slices.Clone(set)
			continue
		}
		if !slices.EqualFunc(first, set, func(a, b bsoncore.Value) bool { return order.Equal(a, b, c) }) {
			return st.boolean(false), nil
		}
	}
	return st.boolean(true), nil
}
