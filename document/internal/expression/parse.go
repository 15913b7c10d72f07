package expression

import (
	"errors"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/number"
	"github.com/pandodb/pando/document/internal/path"
)

// manyNames is from how many names on they are found by a map.
const manyNames = 16

// maxNesting bounds the nesting of an expression.
const maxNesting = 200

// binding is a variable that is in scope.
type binding struct {
	name string
	slot int // -1: a constant
	// value of a constant
	value bsoncore.Value
	outer int // the place in scope of the one that it hides, when they are found by a map; -1: none
}

// parser turns BSON into nodes.
type parser struct {
	options       *Options
	scope         []binding      // inner ones last
	innermost     map[string]int // where in scope a variable is, once there are many
	slots         int
	external      []string // the variables that EvalWith gives values, and their slots
	externalSlots []int
	redacted      int // the slot of what $redact looks at, which is $$CURRENT; -1: there is none
	depth         int
	metas         []string
	folding       error // the first error of a constant: errors of parsing come first, wherever they are
}

func newParser(o *Options) *parser {
	p := &parser{options: o, redacted: -1}
	for _, v := range o.Let {
		if v.Value.Type != 0 {
			p.enter(binding{name: v.Name, slot: -1, value: v.Value})
			continue
		}
		p.external, p.externalSlots = append(p.external, v.Name), append(p.externalSlots, p.declare(v.Name))
	}
	if o.Redact {
		p.redacted = p.declare("CURRENT")
	}
	return p
}

// declare brings a variable into scope and returns its slot.
func (p *parser) declare(name string) int {
	p.enter(binding{name: name, slot: p.slots})
	p.slots++
	return p.slots - 1
}

// enter brings a binding into scope.
func (p *parser) enter(b binding) {
	if p.innermost == nil && len(p.scope) == manyNames {
		p.innermost = map[string]int{}
		for i := range p.scope {
			p.index(i)
		}
	}
	p.scope = append(p.scope, b)
	if p.innermost != nil {
		p.index(len(p.scope) - 1)
	}
}

// index makes a binding one that is found by the map.
func (p *parser) index(i int) {
	b := &p.scope[i]
	b.outer = -1
	if hidden, ok := p.innermost[b.name]; ok {
		b.outer = hidden
	}
	p.innermost[b.name] = i
}

// leave takes the bindings behind the first n out of scope.
func (p *parser) leave(n int) {
	for i := len(p.scope) - 1; i >= n && p.innermost != nil; i-- {
		if b := &p.scope[i]; b.outer >= 0 {
			p.innermost[b.name] = b.outer
		} else {
			delete(p.innermost, b.name)
		}
	}
	p.scope = p.scope[:n]
}

// bound returns the binding of a variable, nil when there is none.
func (p *parser) bound(name string) *binding {
	if p.innermost != nil {
		if i, ok := p.innermost[name]; ok {
			return &p.scope[i]
		}
		return nil
	}
	for i := len(p.scope) - 1; i >= 0; i-- {
		if p.scope[i].name == name {
			return &p.scope[i]
		}
	}
	return nil
}

// operand parses anything that may stand for a value.
func (p *parser) operand(v bsoncore.Value) (node, error) {
	if p.depth++; p.depth > maxNesting {
		return nil, mongoerror.New(mongoerror.Overflow, "expression is nested more than %d levels deep", maxNesting)
	}
	defer func() { p.depth-- }()
	switch v.Type {
	case bsoncore.TypeString:
		if s := stringOf(v); len(s) > 0 && s[0] == '$' {
			return p.path(string(s))
		}
	case bsoncore.TypeEmbeddedDocument:
		return p.object(v)
	case bsoncore.TypeArray:
		values, err := p.list(v)
		if err != nil {
			return nil, err
		}
		return p.fold(&nary{values, func(st *state, values []bsoncore.Value) (bsoncore.Value, error) { return st.array(values) }})
	}
	return &constant{v}, nil
}

// list parses each element of an array.
func (p *parser) list(v bsoncore.Value) ([]node, error) {
	var list []node
	it := elementsOf(v.Data)
	for {
		_, element, ok := it.next()
		if !ok {
			return list, nil
		}
		n, err := p.operand(element)
		if err != nil {
			return nil, err
		}
		list = append(list, n)
	}
}

// object parses {$operator: ...} and {field: ...}.
func (p *parser) object(v bsoncore.Value) (node, error) {
	it := elementsOf(v.Data)
	key, first, ok := it.next()
	if !ok {
		return &constant{v}, nil
	}
	if len(key) > 0 && key[0] == '$' {
		if _, _, more := it.next(); more {
			return nil, mongoerror.New(15983, "an object representing an expression must have exactly one field: %s", brief(v))
		}
		return p.operator(string(key), first)
	}
	n := &object{}
	var many map[string]bool // the names, once there are many
	it = elementsOf(v.Data)
	for {
		key, value, ok := it.next()
		if !ok {
			return p.fold(n)
		}
		name := string(key)
		if err := path.CheckName(name); err != nil {
			return nil, err
		}
		if many == nil && len(n.names) == manyNames {
			many = make(map[string]bool, 2*manyNames)
			for _, s := range n.names {
				many[s] = true
			}
		}
		if many[name] || many == nil && slices.Contains(n.names, name) {
			return nil, mongoerror.New(16406, "duplicate field name specified in object literal: %s", brief(v))
		}
		if many != nil {
			many[name] = true
		}
		operand, err := p.operand(value)
		if err != nil {
			return nil, err
		}
		n.names, n.values = append(n.names, name), append(n.values, operand)
	}
}

// operator parses the operand of an operator.
func (p *parser) operator(name string, v bsoncore.Value) (node, error) {
	op, ok := find(name)
	if !ok {
		return nil, mongoerror.New(mongoerror.InvalidPipelineOperator, "Unrecognized expression '%s'", name)
	}
	if op.parse != nil {
		return op.parse(p, name, v)
	}
	var operands []node
	var err error
	if isArray(v) {
		operands, err = p.list(v)
	} else {
		var one node
		one, err = p.operand(v)
		operands = []node{one}
	}
	if err != nil {
		return nil, err
	}
	if err := checkArity(name, len(operands), op.least, op.most); err != nil {
		return nil, err
	}
	n, err := op.build(p, name, operands)
	if err != nil {
		return nil, err
	}
	return p.fold(n)
}

// anyNumber is the arity of operators that take as many operands as they get.
const anyNumber = -1

func checkArity(name string, have, least, most int) error {
	switch {
	case most == anyNumber || have >= least && have <= most:
		return nil
	case least == most:
		return mongoerror.New(16020, "Expression %s takes exactly %d arguments. %d were passed in.", name, least, have)
	default:
		return mongoerror.New(28667, "Expression %s takes at least %d arguments, and at most %d, but %d were passed in.", name, least, most, have)
	}
}

// fold evaluates n if all of its operands are constants.
func (p *parser) fold(n node) (node, error) {
	if _, ok := n.(*volatile); ok {
		return n, nil
	}
	for _, child := range n.children() {
		if _, ok := isConstant(child); !ok && child != nil {
			return n, nil
		}
	}
	switch n.(type) {
	case *constant, *fieldPath, *variable:
		return n, nil
	}
	if err := p.options.Call.err(); err != nil {
		p.later(err)
		return n, nil
	}
	if !p.options.Call.affords() {
		return n, nil
	}
	v, err := p.evalConstant(n)
	if mongoerror.CodeOf(err) == mongoerror.ExceededTimeLimit {
		return n, nil
	}
	if err != nil {
		p.later(err)
		return n, nil
	}
	if !p.options.Call.keeps(len(v.Data)) {
		return n, nil
	}
	return &constant{v}, nil
}

// later keeps an error about constants until everything is parsed.
func (p *parser) later(err error) {
	if p.folding == nil {
		p.folding = err
	}
}

// evalConstant evaluates what does not depend on anything.
func (p *parser) evalConstant(n node) (bsoncore.Value, error) {
	st := newState(nil, &Expression{})
	defer st.release()
	st.steps = maxFoldedSteps
	v, err := st.result(n)
	p.options.Call.spend(callWork - st.credit)
	if err == nil && v.Type == bsoncore.TypeBoolean { // its byte belongs to the state
		v.Data = append([]byte(nil), v.Data...)
	}
	return v, err
}

// path parses "$a.b" and "$$variable.a".
func (p *parser) path(s string) (node, error) {
	if strings.HasPrefix(s, "$$") {
		return p.variable(s[2:])
	}
	if s == "$" {
		return nil, mongoerror.New(16872, "'$' by itself is not a valid FieldPath")
	}
	segments, err := path.Split(s[1:])
	if err != nil {
		return nil, err
	}
	return p.current(segments)
}

// current is a path of $$CURRENT, which is the root where nothing gives that variable another value, as any other may be given one.
func (p *parser) current(segments []string) (node, error) {
	if b := p.bound("CURRENT"); b != nil {
		return p.pathOf(b, segments)
	}
	return &fieldPath{segments}, nil
}

// pathOf is a path of a variable.
func (p *parser) pathOf(b *binding, segments []string) (node, error) {
	if b.slot >= 0 {
		return &variable{b.slot, segments}, nil
	}
	return p.constantPath(b.value, segments)
}

// variable parses what comes behind "$$".
func (p *parser) variable(s string) (node, error) {
	name, rest, dotted := strings.Cut(s, ".")
	var segments []string
	if dotted {
		var err error
		if segments, err = path.Split(rest); err != nil {
			return nil, err
		}
	}
	if err := checkRead(name); err != nil {
		return nil, err
	}
	switch name {
	case "ROOT":
		return &fieldPath{segments}, nil
	case "CURRENT":
		return p.current(segments)
	case "REMOVE":
		return &constant{}, nil
	}
	if b := p.bound(name); b != nil {
		return p.pathOf(b, segments)
	}
	v, ok, err := p.builtin(name)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, mongoerror.New(17276, "Use of undefined variable: %s", name)
	}
	return p.constantPath(v, segments)
}

// builtin returns the variables that the system sets.
func (p *parser) builtin(name string) (v bsoncore.Value, ok bool, err error) {
	switch name {
	case "NOW":
		if p.options.Now.IsZero() {
			return v, false, mongoerror.New(51144, "Builtin variable '$$NOW' is not available")
		}
		v = number.Int64(p.options.Now.UnixMilli()).Value()
		v.Type = bsoncore.TypeDateTime
		return v, true, nil
	case "CLUSTER_TIME":
		if v, ok = p.options.Call.clusterTime(); !ok {
			return v, false, mongoerror.New(51144, "Builtin variable '$$CLUSTER_TIME' is not available")
		}
		return v, true, nil
	case "SEARCH_META":
		return v, true, nil
	case "DESCEND", "PRUNE", "KEEP":
		if p.options.Redact {
			return textValue(strings.ToLower(name)), true, nil
		}
	}
	return v, false, nil
}

// textValue makes a string of memory of its own.
func textValue(s string) bsoncore.Value {
	return bsoncore.Value{Type: bsoncore.TypeString, Data: bsoncore.AppendString(nil, s)}
}

// constantPath is a path of a constant.
func (p *parser) constantPath(v bsoncore.Value, segments []string) (node, error) {
	value, err := p.evalConstant(&lazy{apply: func(st *state, _ []node) (bsoncore.Value, error) { return resolve(st, v, segments) }})
	return &constant{value}, err
}

// checkRead checks the name of a variable that is used.
func checkRead(name string) error {
	switch {
	case name == "":
		return mongoerror.New(mongoerror.FailedToParse, "empty variable names are not allowed")
	case !isNameStart(name[0], true):
		return mongoerror.New(mongoerror.FailedToParse, "'%s' starts with an invalid character for a variable name", name)
	}
	return checkNameRest(name, "variable name")
}

// CheckVariable checks the name of a variable that is defined by a user, outside of an expression; nil: it is one.
func CheckVariable(name string) *mongoerror.Error {
	if e := (*mongoerror.Error)(nil); errors.As(checkWrite(name), &e) {
		return e
	}
	return nil
}

// checkWrite checks the name of a variable that is defined by a user.
func checkWrite(name string) error {
	switch {
	case name == "":
		return mongoerror.New(mongoerror.FailedToParse, "empty variable names are not allowed")
	case name == "CURRENT":
		return nil
	case !isNameStart(name[0], false):
		return mongoerror.New(mongoerror.FailedToParse, "'%s' starts with an invalid character for a user variable name", name)
	}
	return checkNameRest(name, "variable name")
}

func isNameStart(c byte, upper bool) bool {
	return c >= 'a' && c <= 'z' || c >= 0x80 || upper && c >= 'A' && c <= 'Z'
}

func checkNameRest(name, what string) error {
	for i := range len(name) {
		if c := name[i]; !isNameStart(c, true) && c != '_' && (c < '0' || c > '9') {
			return mongoerror.New(mongoerror.FailedToParse, "'%s' contains an invalid character for a %s: '%c'", name, what, c)
		}
	}
	return nil
}
