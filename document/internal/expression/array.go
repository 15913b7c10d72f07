package expression

import (
	"math"
	"slices"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/number"
	"github.com/pandodb/pando/document/internal/order"
)

func evalIsArray(st *state, _ string, v bsoncore.Value) (bsoncore.Value, error) {
	return st.boolean(isArray(v)), nil
}

func evalSize(st *state, name string, v bsoncore.Value) (bsoncore.Value, error) {
	if !isArray(v) {
		return bsoncore.Value{}, mongoerror.New(17124, "The argument to %s must be an array, but was of type: %s", name, typeName(v))
	}
	return st.int32(count(v.Data))
}

func evalArrayElemAt(_ *state, name string, a, b bsoncore.Value) (bsoncore.Value, error) {
	switch {
	case isNullish(a) || isNullish(b):
		return null(), nil
	case !isArray(a):
		return bsoncore.Value{}, mongoerror.New(28689, "%s's first argument must be an array, but is %s", name, typeName(a))
	}
	if _, ok := number.Of(b); !ok {
		return bsoncore.Value{}, mongoerror.New(28690, "%s's second argument must be a numeric value, but is %s", name, typeName(b))
	}
	i, ok := integral(b)
	if !ok {
		return bsoncore.Value{}, mongoerror.New(28691, "%s's second argument must be representable as a 32-bit integer: %s", name, brief(b))
	}
	if i < 0 {
		i += int64(count(a.Data))
	}
	if i < 0 {
		return bsoncore.Value{}, nil
	}
	v, _ := elementAt(a.Data, int(i))
	return v, nil
}

func evalFirst(_ *state, name string, v bsoncore.Value) (bsoncore.Value, error) {
	if isNullish(v) {
		return null(), nil
	}
	if !isArray(v) {
		return bsoncore.Value{}, mongoerror.New(28689, "%s's argument must be an array, but is %s", name, typeName(v))
	}
	first, _ := elementAt(v.Data, 0)
	return first, nil
}

func evalLast(_ *state, name string, v bsoncore.Value) (bsoncore.Value, error) {
	if isNullish(v) {
		return null(), nil
	}
	if !isArray(v) {
		return bsoncore.Value{}, mongoerror.New(28689, "%s's argument must be an array, but is %s", name, typeName(v))
	}
	var last bsoncore.Value
	it := elementsOf(v.Data)
	for {
		_, element, ok := it.next()
		if !ok {
			return last, nil
		}
		last = element
	}
}

func evalConcatArrays(st *state, name string, operands []node) (bsoncore.Value, error) {
	base := len(st.stack)
	defer func() { st.stack = st.stack[:base] }()
	for _, n := range operands {
		v, err := n.eval(st)
		switch {
		case err != nil:
			return bsoncore.Value{}, err
		case isNullish(v):
			return null(), nil
		case !isArray(v):
			return bsoncore.Value{}, mongoerror.New(28664, "%s only supports arrays, not %s", name, typeName(v))
		}
		if err := st.pushAll(v.Data); err != nil {
			return bsoncore.Value{}, err
		}
	}
	return st.array(st.stack[base:])
}

func evalReverseArray(st *state, name string, v bsoncore.Value) (bsoncore.Value, error) {
	if isNullish(v) {
		return null(), nil
	}
	if !isArray(v) {
		return bsoncore.Value{}, mongoerror.New(34435, "The argument to %s must be an array, but was of type: %s", name, typeName(v))
	}
	return st.reordered(v.Data, slices.Reverse)
}

// reordered returns an array whose elements change has put into another order.
func (st *state) reordered(array []byte, change func(elements []bsoncore.Value)) (bsoncore.Value, error) {
	base := len(st.stack)
	defer func() { st.stack = st.stack[:base] }()
	if err := st.pushAll(array); err != nil {
		return bsoncore.Value{}, err
	}
	change(st.stack[base:])
	return st.array(st.stack[base:])
}

func buildIn(p *parser, name string, operands []node) (node, error) {
	collation := p.options.Collation
	return &dyadic{operands[0], operands[1], func(st *state, a, b bsoncore.Value) (bsoncore.Value, error) {
		if !isArray(b) {
			return bsoncore.Value{}, mongoerror.New(40081, "%s requires an array as a second argument, found: %s", name, typeName(b))
		}
		it := elementsOf(b.Data)
		for {
			_, element, ok := it.next()
			if !ok || order.Equal(a, element, collation) {
				return st.boolean(ok), nil
			}
		}
	}}, nil
}

func buildIndexOfArray(p *parser, name string, operands []node) (node, error) {
	collation := p.options.Collation
	if c, ok := isConstant(operands[0]); ok && !isArray(c) && !isNullish(c) && !allConstant(operands) {
		p.later(mongoerror.New(50809, "First operand of %s must be an array. First argument is of type: %s", name, typeName(c)))
	}
	return &nary{operands, func(st *state, values []bsoncore.Value) (bsoncore.Value, error) {
		if isNullish(values[0]) {
			return null(), nil
		}
		if !isArray(values[0]) {
			return bsoncore.Value{}, mongoerror.New(40090, "%s requires an array as a first argument, found: %s", name, typeName(values[0]))
		}
		start, end, err := indexRange(name, values[2:], math.MaxInt32)
		if err != nil {
			return bsoncore.Value{}, err
		}
		it := elementsOf(values[0].Data)
		for i := 0; i < end; i++ {
			_, element, ok := it.next()
			if !ok {
				break
			}
			if i >= start && order.Equal(element, values[1], collation) {
				return st.int32(i)
			}
		}
		return st.int32(-1)
	}}, nil
}

func allConstant(operands []node) bool {
	for _, n := range operands {
		if _, ok := isConstant(n); !ok {
			return false
		}
	}
	return true
}

func evalRange(st *state, name string, values []bsoncore.Value) (bsoncore.Value, error) {
	codes := [][2]mongoerror.Code{{34443, 34444}, {34445, 34446}, {34447, 34448}}
	numbers := [3]int64{0, 0, 1}
	for i, v := range values {
		what := []string{"starting", "ending", "step"}[i]
		if _, ok := number.Of(v); !ok {
			return bsoncore.Value{}, mongoerror.New(codes[i][0], "%s requires a numeric %s value, found value of type: %s", name, what, typeName(v))
		}
		var ok bool
		if numbers[i], ok = integral(v); !ok {
			return bsoncore.Value{}, mongoerror.New(codes[i][1], "%s requires a %s value that can be represented as a 32-bit integer, found value: %s", name, what, brief(v))
		}
	}
	start, end, step := numbers[0], numbers[1], numbers[2]
	if step == 0 {
		return bsoncore.Value{}, mongoerror.New(34449, "%s requires a non-zero step value", name)
	}
	steps := max(0, (end-start+step-sign(step))/step)
	if steps*elementCost > maxBuilt {
		return bsoncore.Value{}, errMemory(steps * elementCost)
	}
	base := len(st.stack)
	defer func() { st.stack = st.stack[:base] }()
	for i := range steps {
		v, err := st.int32(int(start + i*step))
		if err != nil {
			return bsoncore.Value{}, err
		}
		if err := st.push(v); err != nil {
			return bsoncore.Value{}, err
		}
	}
	return st.array(st.stack[base:])
}

func sign(i int64) int64 {
	if i < 0 {
		return -1
	}
	return 1
}

func evalSlice(st *state, name string, values []bsoncore.Value) (bsoncore.Value, error) {
	if isNullish(values[0]) || isNullish(values[1]) {
		return null(), nil
	}
	if !isArray(values[0]) {
		return bsoncore.Value{}, mongoerror.New(28724, "First argument to %s must be an array, but is of type: %s", name, typeName(values[0]))
	}
	codes := [][2]mongoerror.Code{{28725, 28726}, {28727, 28728}}
	var numbers [2]int64
	for i, v := range values[1:] {
		if isNullish(v) {
			return null(), nil
		}
		what := []string{"Second", "Third"}[i]
		if _, ok := number.Of(v); !ok {
			return bsoncore.Value{}, mongoerror.New(codes[i][0], "%s argument to %s must be a numeric value, but is of type: %s", what, name, typeName(v))
		}
		var ok bool
		if numbers[i], ok = integral(v); !ok {
			return bsoncore.Value{}, mongoerror.New(codes[i][1], "%s argument to %s can't be represented as a 32-bit integer: %s", what, name, brief(v))
		}
	}
	length := int64(count(values[0].Data))
	start, end := int64(0), numbers[0]
	switch {
	case len(values) == 3 && numbers[1] <= 0:
		return bsoncore.Value{}, mongoerror.New(28729, "Third argument to %s must be positive: %d", name, numbers[1])
	case len(values) == 3 && numbers[0] < 0:
		start = max(0, length+numbers[0])
		end = start + numbers[1]
	case len(values) == 3:
		start = min(numbers[0], length)
		end = start + numbers[1]
	case numbers[0] < 0:
		start, end = max(0, length+numbers[0]), length
	}
	base := len(st.stack)
	defer func() { st.stack = st.stack[:base] }()
	it := elementsOf(values[0].Data)
	for i := int64(0); i < end; i++ {
		_, element, ok := it.next()
		if !ok {
			break
		}
		if i < start {
			continue
		}
		if err := st.push(element); err != nil {
			return bsoncore.Value{}, err
		}
	}
	return st.array(st.stack[base:])
}

// evalElementsTrue is $allElementsTrue and $anyElementTrue.
func evalElementsTrue(st *state, name string, v bsoncore.Value) (bsoncore.Value, error) {
	all := name == "$allElementsTrue"
	if !isArray(v) {
		code := mongoerror.Code(17041)
		if all {
			code = 17040
		}
		return bsoncore.Value{}, mongoerror.New(code, "%s's argument must be an array, but is %s", name, typeName(v))
	}
	it := elementsOf(v.Data)
	for {
		_, element, ok := it.next()
		if !ok {
			return st.boolean(all), nil
		}
		if Truthy(element) != all {
			return st.boolean(!all), nil
		}
	}
}
