package expression

import (
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/number"
)

// scoped parses an operand in which the names are variables, and returns their slots.
func (p *parser) scoped(v bsoncore.Value, names ...string) (n node, slots []int, err error) {
	outer := len(p.scope)
	defer p.leave(outer)
	for _, name := range names {
		slots = append(slots, p.declare(name))
	}
	n, err = p.operand(v)
	return n, slots, err
}

// variableName reads the `as` of $map and $filter. To MongoDB what is no string is an empty one here.
func variableName(v bsoncore.Value) (string, error) {
	if v.Type == 0 {
		return "this", nil
	}
	name := ""
	if isString(v) {
		name = string(stringOf(v))
	}
	return name, checkWrite(name)
}

// loop is $map, $filter or $reduce: input is an array, body is evaluated for each of its elements.
type loop struct {
	name        string
	input, body node
	more        node // $filter: limit; $reduce: initialValue
	slot, value int  // the variables of the element and, for $reduce, of what came before
	apply       func(n *loop, st *state, array []byte) (bsoncore.Value, error)
	wrongInput  mongoerror.Code
}

func (n *loop) children() []node {
	if n.more == nil {
		return []node{n.input, n.body}
	}
	return []node{n.input, n.body, n.more}
}

func (n *loop) eval(st *state) (bsoncore.Value, error) {
	v, err := n.input.eval(st)
	if err != nil {
		return bsoncore.Value{}, err
	}
	if isNullish(v) {
		return null(), nil
	}
	if !isArray(v) {
		return bsoncore.Value{}, mongoerror.New(n.wrongInput, "input to %s must be an array not %s", n.name, typeName(v))
	}
	return n.apply(n, st, v.Data)
}

// parseMap parses {input: ..., as: ..., in: ...}.
func parseMap(p *parser, name string, v bsoncore.Value) (node, error) {
	if !isObject(v) {
		return nil, mongoerror.New(16878, "%s only supports an object as its argument", name)
	}
	raw, err := rawFields(v, parameterSpec(name, 16879, []string{"input", "in", "as"}, 16880, 16882))
	if err != nil {
		return nil, err
	}
	n := &loop{name: name, apply: evalMap, wrongInput: 16883}
	return n, n.parse(p, raw[0], raw[1], raw[2])
}

// parse parses input and body.
func (n *loop) parse(p *parser, input, body, as bsoncore.Value) error {
	variable, err := variableName(as)
	if err != nil {
		return err
	}
	if n.input, err = p.operand(input); err != nil {
		return err
	}
	var slots []int
	if n.body, slots, err = p.scoped(body, variable); err != nil {
		return err
	}
	n.slot = slots[0]
	return nil
}

func evalMap(n *loop, st *state, array []byte) (bsoncore.Value, error) {
	base := len(st.stack)
	defer func() { st.stack = st.stack[:base] }()
	it := elementsOf(array)
	for {
		_, element, ok := it.next()
		if !ok {
			return st.array(st.stack[base:])
		}
		if err := st.step(); err != nil {
			return bsoncore.Value{}, err
		}
		st.variables[n.slot] = element
		m := st.mark()
		v, err := n.body.eval(st)
		if err != nil {
			return bsoncore.Value{}, err
		}
		if err := st.push(st.compact(m, v)); err != nil {
			return bsoncore.Value{}, err
		}
	}
}

// parseFilter parses {input: ..., as: ..., cond: ..., limit: ...}.
func parseFilter(p *parser, name string, v bsoncore.Value) (node, error) {
	if !isObject(v) {
		return nil, mongoerror.New(28646, "%s only supports an object as its argument", name)
	}
	raw, err := rawFields(v, parameterSpec(name, 28647, []string{"input", "cond", "as", "limit"}, 28648, 28650))
	if err != nil {
		return nil, err
	}
	n := &loop{name: name, apply: evalFilter, wrongInput: 28651}
	if raw[3].Type != 0 {
		if n.more, err = p.operand(raw[3]); err != nil {
			return nil, err
		}
	}
	return n, n.parse(p, raw[0], raw[1], raw[2])
}

// noLimit is the limit of a $filter that has none.
const noLimit = -1

func (n *loop) limit(st *state) (int64, error) {
	v, err := optional(st, n.more)
	if err != nil || isNullish(v) {
		return noLimit, err
	}
	i, ok := integral(v)
	switch {
	case !ok:
		return 0, mongoerror.New(327391, "%s: limit must be represented as a 32-bit integral value: %s", n.name, brief(v))
	case i <= 0:
		return 0, mongoerror.New(327392, "%s: limit must be greater than 0: %d", n.name, i)
	}
	return i, nil
}

func evalFilter(n *loop, st *state, array []byte) (bsoncore.Value, error) {
	if len(array) <= bsoncore.EmptyDocumentLength {
		return st.array(nil) // whatever the limit is
	}
	limit, err := n.limit(st)
	if err != nil {
		return bsoncore.Value{}, err
	}
	base, m := len(st.stack), st.mark()
	defer func() { st.stack = st.stack[:base] }()
	it := elementsOf(array)
	for {
		_, element, ok := it.next()
		if !ok || int64(len(st.stack)-base) == limit {
			return st.array(st.stack[base:])
		}
		if err := st.step(); err != nil {
			return bsoncore.Value{}, err
		}
		st.variables[n.slot] = element
		v, err := n.body.eval(st)
		if err != nil {
			return bsoncore.Value{}, err
		}
		keep := Truthy(v)
		st.settle(m, bsoncore.Value{})
		if !keep {
			continue
		}
		if err := st.push(element); err != nil {
			return bsoncore.Value{}, err
		}
	}
}

// parseReduce parses {input: ..., initialValue: ..., in: ...}.
func parseReduce(p *parser, name string, v bsoncore.Value) (node, error) {
	if !isObject(v) {
		return nil, mongoerror.New(40075, "%s requires an object as an argument, found: %s", name, typeName(v))
	}
	raw, err := rawFields(v, argumentSpec(name, 40076, []string{"input", "initialValue", "in"}, 40077, 40078, 40079))
	if err != nil {
		return nil, err
	}
	n := &loop{name: name, apply: evalReduce, wrongInput: 40080}
	if n.input, err = p.operand(raw[0]); err != nil {
		return nil, err
	}
	if n.more, err = p.operand(raw[1]); err != nil {
		return nil, err
	}
	var slots []int
	if n.body, slots, err = p.scoped(raw[2], "this", "value"); err != nil {
		return nil, err
	}
	n.slot, n.value = slots[0], slots[1]
	return n, nil
}

// depthInterval is after how many steps $reduce looks how deep its result has become.
const depthInterval = 16

func evalReduce(n *loop, st *state, array []byte) (bsoncore.Value, error) {
	result, err := n.more.eval(st)
	if err != nil {
		return bsoncore.Value{}, err
	}
	m := st.mark()
	it := elementsOf(array)
	for i := 1; ; i++ {
		_, element, ok := it.next()
		if !ok || i%depthInterval == 0 {
			if nesting(result, maxResultDepth) > maxResultDepth {
				return bsoncore.Value{}, mongoerror.New(mongoerror.Overflow, "%s: the result is nested more than %d levels deep", n.name, maxResultDepth)
			}
		}
		if !ok {
			return result, nil
		}
		if err := st.step(); err != nil {
			return bsoncore.Value{}, err
		}
		st.variables[n.slot], st.variables[n.value] = element, result
		if result, err = n.body.eval(st); err != nil {
			return bsoncore.Value{}, err
		}
		result = st.settle(m, result)
	}
}

// parseLet parses {vars: {name: ...}, in: ...}.
func parseLet(p *parser, name string, v bsoncore.Value) (node, error) {
	if !isObject(v) {
		return nil, mongoerror.New(16874, "%s only supports an object as its argument", name)
	}
	raw, err := rawFields(v, parameterSpec(name, 16875, []string{"vars", "in"}, 16876, 16877))
	if err != nil {
		return nil, err
	}
	if !isObject(raw[0]) {
		return nil, mongoerror.New(10065, "invalid parameter: expected an object (vars)")
	}
	n := &let{}
	var names []string
	it := elementsOf(raw[0].Data)
	for {
		key, value, ok := it.next()
		if !ok {
			break
		}
		variable := string(key)
		if err := checkWrite(variable); err != nil {
			return nil, err
		}
		operand, err := p.operand(value)
		if err != nil {
			return nil, err
		}
		names, n.values = append(names, variable), append(n.values, operand)
	}
	outer := len(p.scope)
	defer func() { p.leave(outer) }()
	for _, variable := range names {
		n.slots = append(n.slots, p.declare(variable))
	}
	n.in, err = p.operand(raw[1])
	return n, err
}

// let is $let.
type let struct {
	slots  []int
	values []node
	in     node
}

func (n *let) children() []node { return append(n.values[:len(n.values):len(n.values)], n.in) }
func (n *let) eval(st *state) (bsoncore.Value, error) {
	for i, value := range n.values {
		v, err := value.eval(st)
		if err != nil {
			return bsoncore.Value{}, err
		}
		st.variables[n.slots[i]] = v
	}
	return n.in.eval(st)
}

// parseN parses {input: ..., n: ...} of $firstN, $lastN, $minN and $maxN.
func parseN(p *parser, name string, v bsoncore.Value) (node, error) {
	if !isObject(v) {
		code := mongoerror.Code(5787801)
		if name == "$minN" || name == "$maxN" {
			code = 5787900
		}
		return nil, mongoerror.New(code, "specification must be an object; found %s :%s", name, brief(v))
	}
	operands, err := p.fields(v, &fieldSpec{
		names: []string{"n", "input"}, required: 2,
		unknown: func(field string) error {
			return mongoerror.New(5787901, "Unknown argument for 'n' operator: %s", field)
		},
		missing: func(field string) error {
			code := map[string]mongoerror.Code{"input": 5787907, "n": 5787906}[field]
			return mongoerror.New(code, "Missing value for '%s'", field)
		},
	})
	if err != nil {
		return nil, err
	}
	collation := p.options.Collation
	return &dyadic{operands[0], operands[1], func(st *state, n, input bsoncore.Value) (bsoncore.Value, error) {
		if _, ok := number.Of(n); !ok {
			return bsoncore.Value{}, mongoerror.New(5787902, "Value for 'n' must be of integral type, but found %s", brief(n))
		}
		i, exact := number64(n)
		switch {
		case !exact:
			return bsoncore.Value{}, mongoerror.New(5787903, "Value for 'n' must be of integral type, but found %s", brief(n))
		case i <= 0:
			return bsoncore.Value{}, mongoerror.New(5787908, "'n' must be greater than 0, found %d", i)
		case !isArray(input):
			return bsoncore.Value{}, mongoerror.New(5788200, "Input must be an array")
		}
		return nOf(st, name, i, input.Data, collation)
	}}, nil // not folded: the server does not
}

// number64 returns a number as an integer if it is one.
func number64(v bsoncore.Value) (int64, bool) {
	n, ok := number.Of(v)
	if !ok {
		return 0, false
	}
	return n.Int64()
}
