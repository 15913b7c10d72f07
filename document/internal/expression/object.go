package expression

import (
	"bytes"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/path"
)

// merged is a document under construction, of which fields are replaced where they are.
type merged struct {
	names  []string
	values []bsoncore.Value
	places map[string]int
}

func (m *merged) set(name string, v bsoncore.Value) {
	if m.places == nil {
		m.places = map[string]int{}
	}
	if i, ok := m.places[name]; ok {
		m.values[i] = v
		return
	}
	m.places[name] = len(m.names)
	m.names, m.values = append(m.names, name), append(m.values, v)
}

func (m *merged) setAll(document []byte) {
	it := elementsOf(document)
	for {
		key, v, ok := it.next()
		if !ok {
			return
		}
		m.set(string(key), v)
	}
}

func evalMergeObjects(st *state, name string, operands []node) (bsoncore.Value, error) {
	var m merged
	for i, n := range operands {
		v, err := n.eval(st)
		switch {
		case err != nil:
			return bsoncore.Value{}, err
		case isNullish(v):
		case isArray(v) && len(operands) == 1 && i == 0: // one operand that is an array is the list of the objects
			if err := m.setEach(name, v.Data); err != nil {
				return bsoncore.Value{}, err
			}
		case !isObject(v):
			return bsoncore.Value{}, errMerge(name, v)
		default:
			m.setAll(v.Data)
		}
	}
	return st.document(m.names, m.values)
}

func errMerge(name string, v bsoncore.Value) error {
	return mongoerror.New(40400, "%s requires object inputs, but input %s is of type %s", name, brief(v), typeName(v))
}

func (m *merged) setEach(name string, array []byte) error {
	it := elementsOf(array)
	for {
		_, v, ok := it.next()
		switch {
		case !ok:
			return nil
		case isNullish(v):
		case !isObject(v):
			return errMerge(name, v)
		default:
			m.setAll(v.Data)
		}
	}
}

func evalObjectToArray(st *state, name string, v bsoncore.Value) (bsoncore.Value, error) {
	if isNullish(v) {
		return null(), nil
	}
	if !isObject(v) {
		return bsoncore.Value{}, mongoerror.New(40390, "%s requires a document input, found: %s", name, typeName(v))
	}
	base := len(st.stack)
	defer func() { st.stack = st.stack[:base] }()
	it := elementsOf(v.Data)
	for {
		key, value, ok := it.next()
		if !ok {
			return st.array(st.stack[base:])
		}
		k, err := text(st, key)
		if err != nil {
			return bsoncore.Value{}, err
		}
		pair, err := st.document([]string{"k", "v"}, []bsoncore.Value{k, value})
		if err != nil {
			return bsoncore.Value{}, err
		}
		if err := st.push(pair); err != nil {
			return bsoncore.Value{}, err
		}
	}
}

// evalArrayToObject takes [[key, value], ...] or [{k: key, v: value}, ...].
func evalArrayToObject(st *state, name string, v bsoncore.Value) (bsoncore.Value, error) {
	if isNullish(v) {
		return null(), nil
	}
	if !isArray(v) {
		return bsoncore.Value{}, mongoerror.New(40386, "%s requires an array input, found: %s", name, typeName(v))
	}
	var m merged
	var firstType bsoncore.Type
	it := elementsOf(v.Data)
	for {
		_, element, ok := it.next()
		if !ok {
			return st.document(m.names, m.values)
		}
		if firstType == 0 {
			firstType = element.Type
			if !isArray(element) && !isObject(element) {
				return bsoncore.Value{}, mongoerror.New(40398, "Unrecognised input type format for %s: %s", name, typeName(element))
			}
		}
		var key, value bsoncore.Value
		var err error
		if firstType == bsoncore.TypeArray {
			key, value, err = pairOfArray(name, element)
		} else {
			key, value, err = pairOfObject(name, element)
		}
		if err != nil {
			return bsoncore.Value{}, err
		}
		k := stringOf(key)
		if bytes.IndexByte(k, 0) >= 0 {
			code := mongoerror.Code(4940401)
			if firstType == bsoncore.TypeArray {
				code = 4940400
			}
			return bsoncore.Value{}, mongoerror.New(code, "Key field cannot contain an embedded null byte")
		}
		m.set(string(k), value)
	}
}

func pairOfArray(name string, v bsoncore.Value) (key, value bsoncore.Value, err error) {
	if !isArray(v) {
		return key, value, mongoerror.New(40396,
			"%s requires a consistent input format. Elements must all be arrays or all be objects. Array was detected, now found: %s", name, typeName(v))
	}
	if n := count(v.Data); n != 2 {
		return key, value, mongoerror.New(40397, "%s requires an array of size 2 arrays,found array of size: %d", name, n)
	}
	it := elementsOf(v.Data)
	_, key, _ = it.next()
	_, value, _ = it.next()
	if !isString(key) {
		return key, value, mongoerror.New(40395,
			"%s requires an array of key-value pairs, where the key must be of type string. Found key type: %s", name, typeName(key))
	}
	return key, value, nil
}

func pairOfObject(name string, v bsoncore.Value) (key, value bsoncore.Value, err error) {
	if !isObject(v) {
		return key, value, mongoerror.New(40391,
			"%s requires a consistent input format. Elements must all be arrays or all be objects. Object was detected, now found: %s", name, typeName(v))
	}
	if n := count(v.Data); n != 2 {
		return key, value, mongoerror.New(40392, "%s requires an object keys of 'k' and 'v'. Found incorrect number of keys:%d", name, n)
	}
	key, value = lookup(v.Data, "k"), lookup(v.Data, "v")
	switch {
	case key.Type == 0 || value.Type == 0:
		return key, value, mongoerror.New(40393, "%s requires an object with keys 'k' and 'v'. Missing either or both keys from: %s", name, brief(v))
	case !isString(key):
		return key, value, mongoerror.New(40394,
			"%s requires an object with keys 'k' and 'v', where the value of 'k' must be of type string. Found type: %s", name, typeName(key))
	}
	return key, value, nil
}

func evalBSONSize(st *state, name string, v bsoncore.Value) (bsoncore.Value, error) {
	switch {
	case isNullish(v):
		return null(), nil
	case !isObject(v):
		return bsoncore.Value{}, mongoerror.New(31393, "%s requires a document input, found: %s", name, typeName(v))
	}
	return st.int32(len(v.Data))
}

// fieldName reads a constant name of a field, which must be a string.
// The codes are those for a path, for what is no constant, and for what is no string.
func (p *parser) fieldName(v bsoncore.Value, name string, codes [3]mongoerror.Code) (string, error) {
	if isString(v) && string(stringOf(v)) == "$" {
		_, err := p.path("$")
		return "", err
	}
	if isString(v) && bytes.HasPrefix(stringOf(v), []byte("$")) {
		return "", mongoerror.New(codes[0], "%s is a field path reference which is not allowed in this context. Did you mean {$literal: %s}?", brief(v), brief(v))
	}
	n, err := p.operand(v)
	if err != nil {
		return "", err
	}
	c, ok := isConstant(n)
	if isArray(v) || isObject(v) && lookup(v.Data, "$literal").Type == 0 && lookup(v.Data, "$const").Type == 0 || !ok {
		return "", mongoerror.New(codes[1], "%s requires 'field' to evaluate to a constant, but got a non-constant argument", name)
	}
	if !isString(c) {
		return "", mongoerror.New(codes[2], "%s requires 'field' to evaluate to type String, but got %s", name, typeName(c))
	}
	return string(stringOf(c)), nil
}

// parseGetField parses a name, or {field: name, input: ...}.
func parseGetField(p *parser, name string, v bsoncore.Value) (node, error) {
	field, input := v, bsoncore.Value{}
	if isObject(v) && !isOperator(v) {
		raw, err := rawFields(v, argumentSpec(name, 3041701, []string{"field", "input"}, 3041702, 3041703))
		if err != nil {
			return nil, err
		}
		field, input = raw[0], raw[1]
	}
	key, err := p.fieldName(field, name, [3]mongoerror.Code{5654600, 5654601, 5654602})
	if err != nil {
		return nil, err
	}
	var inputNode node
	if input.Type != 0 {
		inputNode, err = p.operand(input)
	} else {
		inputNode, err = p.current(nil)
	}
	if err != nil {
		return nil, err
	}
	return p.fold(&unary{inputNode, func(_ *state, v bsoncore.Value) (bsoncore.Value, error) {
		switch {
		case v.Type == bsoncore.TypeNull:
			return null(), nil
		case isObject(v):
			return lookup(v.Data, key), nil
		}
		return bsoncore.Value{}, nil
	}})
}

// isOperator reports whether a document is {$operator: ...}.
func isOperator(v bsoncore.Value) bool {
	it := elementsOf(v.Data)
	key, _, ok := it.next()
	return ok && len(key) > 0 && key[0] == '$'
}

// parseSetField parses {field: name, input: ..., value: ...}; $unsetField has no value.
func parseSetField(p *parser, name string, v bsoncore.Value) (node, error) {
	if !isObject(v) {
		return nil, mongoerror.New(4161100, "%s only supports an object as its argument", name)
	}
	names := []string{"field", "input", "value"}
	if name == "$unsetField" {
		names = names[:2]
	}
	raw, err := rawFields(v, argumentSpec(name, 4161101, names, []mongoerror.Code{4161102, 4161109, 4161103}[:len(names)]...))
	if err != nil {
		return nil, err
	}
	key, err := p.fieldName(raw[0], name, [3]mongoerror.Code{4161108, 4161106, 4161107})
	if err != nil {
		return nil, err
	}
	if name == "$setField" && strings.IndexByte(key, 0) >= 0 { // mongod 6.0.5 makes a document of it that is none
		return nil, path.ZeroByte()
	}
	input, err := p.operand(raw[1])
	if err != nil {
		return nil, err
	}
	value := node(&constant{})
	if len(names) == 3 {
		if value, err = p.operand(raw[2]); err != nil {
			return nil, err
		}
	}
	// Not folded: the server does not.
	return &dyadic{input, value, func(st *state, input, value bsoncore.Value) (bsoncore.Value, error) {
		switch {
		case isNullish(input):
			return null(), nil
		case !isObject(input):
			return bsoncore.Value{}, mongoerror.New(4161105, "%s requires 'input' to evaluate to type Object", name)
		}
		return st.withField(input.Data, key, value)
	}}, nil
}

// withField returns a document with one field replaced, added, or, when the value is missing, removed.
func (st *state) withField(document []byte, name string, value bsoncore.Value) (bsoncore.Value, error) {
	b, err := st.alloc(len(document) + len(name) + len(value.Data) + 2)
	if err != nil {
		return bsoncore.Value{}, err
	}
	element := slices.Concat([]byte{byte(value.Type)}, []byte(name), []byte{0}, value.Data)
	if value.Type == 0 {
		element = nil
	}
	b = append(b[:0], 0, 0, 0, 0)
	it, done := elementsOf(document), false
	for {
		key, v, ok := it.next()
		switch {
		case !ok && !done:
			b = append(b, element...)
			return finish(bsoncore.TypeEmbeddedDocument, append(b, 0)), nil
		case !ok:
			return finish(bsoncore.TypeEmbeddedDocument, append(b, 0)), nil
		case string(key) == name:
			if !done {
				b = append(b, element...)
			}
			done = true
		default:
			b = append(append(append(append(b, byte(v.Type)), key...), 0), v.Data...)
		}
	}
}
