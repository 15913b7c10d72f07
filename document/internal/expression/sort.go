package expression

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/collation"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/number"
	"github.com/pandodb/pando/document/internal/order"
)

// nOf is $firstN, $lastN, $minN and $maxN over an array. The latter two pass over null and missing values.
func nOf(st *state, name string, n int64, array []byte, c *collation.Collation) (bsoncore.Value, error) {
	base := len(st.stack)
	defer func() { st.stack = st.stack[:base] }()
	if err := st.pushAll(array); err != nil {
		return bsoncore.Value{}, err
	}
	all := st.stack[base:]
	switch name {
	case "$minN":
		all = slices.DeleteFunc(all, isNullish)
		slices.SortStableFunc(all, func(a, b bsoncore.Value) int { return order.Compare(a, b, c) })
	case "$maxN":
		all = greatest(slices.DeleteFunc(all, isNullish), n, c)
	case "$lastN":
		return st.array(all[max(0, int64(len(all))-n):])
	}
	return st.array(all[:min(n, int64(len(all)))])
}

// greatest returns the n greatest values, in place, the greatest first, and of equal ones the last. Which of those that are equal to the
// least of them it takes is MongoDB's choice, which looks at one after the other: a value goes in while there is room, and a
// greater one then takes the place of the first.
func greatest(all []bsoncore.Value, n int64, c *collation.Collation) []bsoncore.Value {
	ascending := func(a, b bsoncore.Value) int { return order.Compare(a, b, c) }
	if n < int64(len(all)) {
		sorted := slices.Clone(all)
		slices.SortFunc(sorted, ascending)
		least := sorted[int64(len(all))-n]
		taken, replaced := all[:0], 0
		for _, v := range all {
			if relation := ascending(v, least); relation > 0 || relation == 0 && int64(len(taken)-replaced) < n {
				if int64(len(taken)-replaced) == n {
					replaced++
				}
				taken = append(taken, v)
			}
		}
		all = slices.DeleteFunc(taken, func(v bsoncore.Value) bool {
			gone := replaced > 0 && ascending(v, least) == 0
			if gone {
				replaced--
			}
			return gone
		})
	}
	slices.SortStableFunc(all, ascending)
	slices.Reverse(all)
	return all
}

// sortKey is a component of $sortArray's sortBy.
type sortKey struct {
	path      []string
	direction int
}

// parseSortArray parses {input: ..., sortBy: 1 | -1 | {path: 1 | -1, ...}}.
func parseSortArray(p *parser, name string, v bsoncore.Value) (node, error) {
	if !isObject(v) {
		return nil, mongoerror.New(2942500, "%s requires an object as an argument, found: %s", name, typeName(v))
	}
	raw, err := rawFields(v, argumentSpec(name, 2942501, []string{"input", "sortBy"}, 2942502, 2942503))
	if err != nil {
		return nil, err
	}
	input, err := p.operand(raw[0])
	if err != nil {
		return nil, err
	}
	compare, err := sortBy(raw[1], p.options.Collation)
	if err != nil {
		return nil, err
	}
	return p.fold(&unary{input, func(st *state, v bsoncore.Value) (bsoncore.Value, error) {
		if isNullish(v) {
			return null(), nil
		}
		if !isArray(v) {
			return bsoncore.Value{}, mongoerror.New(2942504, "The input argument to %s must be an array, but was of type: %s", name, typeName(v))
		}
		return st.reordered(v.Data, func(elements []bsoncore.Value) { slices.SortStableFunc(elements, compare) })
	}})
}

// sortBy makes the comparison of a sort specification.
func sortBy(v bsoncore.Value, c *collation.Collation) (func(a, b bsoncore.Value) int, error) {
	if _, ok := number.Of(v); ok {
		direction, ok := sortDirection(v)
		if !ok {
			return nil, mongoerror.New(2942506, "Invalid sort specification: %s", brief(v))
		}
		return func(a, b bsoncore.Value) int { return direction * order.Compare(a, b, c) }, nil
	}
	if !isObject(v) {
		return nil, mongoerror.New(2942507, "The sortBy argument to $sortArray must be an object or a number, but was of type: %s", typeName(v))
	}
	var keys []sortKey
	it := elementsOf(v.Data)
	for {
		key, value, ok := it.next()
		if !ok {
			break
		}
		names := strings.Split(string(key), ".")
		direction, ok := sortDirection(value)
		if !ok || slices.Contains(names, "") {
			return nil, mongoerror.New(2942505, "Invalid sort clause: %s", brief(v))
		}
		keys = append(keys, sortKey{names, direction})
	}
	if len(keys) == 0 {
		return nil, mongoerror.New(2942505, "Invalid sort clause: %s", brief(v))
	}
	return func(a, b bsoncore.Value) int {
		for _, k := range keys {
			if r := order.Compare(sortValue(a, k.path), sortValue(b, k.path), c); r != 0 {
				return r * k.direction
			}
		}
		return 0
	}, nil
}

func sortDirection(v bsoncore.Value) (direction int, ok bool) {
	n, _ := number.Of(v)
	switch n.Float64() {
	case 1:
		return 1, true
	case -1:
		return -1, true
	}
	return 0, false
}

// sortValue is the value that an element of an array is sorted by: what is at the end of the path, an array as a whole, and null when
// there is nothing. On the way an array has its positions for names, and of an element that is no document nothing is looked at.
func sortValue(v bsoncore.Value, path []string) bsoncore.Value {
	if !isObject(v) {
		return null()
	}
	for _, name := range path {
		if !isObject(v) && !isArray(v) {
			return null()
		}
		if v = lookup(v.Data, name); v.Type == 0 {
			return null()
		}
	}
	return v
}

// zip is $zip.
type zip struct {
	inputs   []node
	defaults []node
	longest  bool
}

func (n *zip) children() []node {
	return append(n.inputs[:len(n.inputs):len(n.inputs)], n.defaults...)
}

// parseZip parses {inputs: [...], useLongestLength: ..., defaults: [...]}.
func parseZip(p *parser, name string, v bsoncore.Value) (node, error) {
	if !isObject(v) {
		return nil, mongoerror.New(34460, "%s only supports an object as an argument, found %s", name, typeName(v))
	}
	n := &zip{}
	it := elementsOf(v.Data)
	for {
		key, value, ok := it.next()
		if !ok {
			break
		}
		var err error
		switch string(key) {
		case "inputs":
			if !isArray(value) {
				return nil, mongoerror.New(34461, "inputs must be an array of expressions, found %s", typeName(value))
			}
			n.inputs, err = p.list(value)
		case "defaults":
			if !isArray(value) {
				return nil, mongoerror.New(34462, "defaults must be an array of expressions, found %s", typeName(value))
			}
			n.defaults, err = p.list(value)
		case "useLongestLength":
			if value.Type != bsoncore.TypeBoolean {
				return nil, mongoerror.New(34463, "useLongestLength must be a bool, found %s", typeName(value))
			}
			n.longest = Truthy(value)
		default:
			err = mongoerror.New(34464, "%s found an unknown argument: %s", name, key)
		}
		if err != nil {
			return nil, err
		}
	}
	switch {
	case len(n.inputs) == 0:
		return nil, mongoerror.New(34465, "%s requires at least one input array", name)
	case len(n.defaults) > 0 && !n.longest:
		return nil, mongoerror.New(34466, "cannot specify defaults unless useLongestLength is true")
	case len(n.defaults) > 0 && len(n.defaults) != len(n.inputs):
		return nil, mongoerror.New(34467, "defaults and inputs must have the same length")
	}
	return n, nil // not folded: the server does not
}

func (n *zip) eval(st *state) (bsoncore.Value, error) {
	base := len(st.stack)
	defer func() { st.stack = st.stack[:base] }()
	inputs := make([]elements, len(n.inputs))
	length := -1
	for i, input := range n.inputs {
		v, err := input.eval(st)
		switch {
		case err != nil:
			return bsoncore.Value{}, err
		case isNullish(v):
			return null(), nil
		case !isArray(v):
			return bsoncore.Value{}, mongoerror.New(34468, "$zip found a non-array expression in input: %s", brief(v))
		}
		inputs[i] = elementsOf(v.Data)
		size := count(v.Data)
		if length < 0 || (size > length) == n.longest {
			length = size
		}
	}
	defaults := make([]bsoncore.Value, len(n.inputs))
	for i, d := range n.defaults {
		var err error
		if defaults[i], err = d.eval(st); err != nil {
			return bsoncore.Value{}, err
		}
	}
	row := make([]bsoncore.Value, 0, len(inputs))
	for range length {
		row = row[:0]
		for i := range inputs {
			_, v, ok := inputs[i].next()
			if !ok {
				if v = defaults[i]; v.Type == 0 && len(n.defaults) > 0 {
					continue // a default that is missing takes no place, where null stands for one that is not given
				}
			}
			row = append(row, v)
		}
		v, err := st.array(row)
		if err != nil {
			return bsoncore.Value{}, err
		}
		if err := st.push(v); err != nil {
			return bsoncore.Value{}, err
		}
	}
	return st.array(st.stack[base:])
}
