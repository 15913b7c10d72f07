package expression

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/number"
	"github.com/pandodb/pando/document/internal/order"
)

func numberIsTrue(v bsoncore.Value) bool {
	n, ok := number.Of(v)
	return ok && !n.IsZero()
}

// buildComparison makes $eq and its like. Their results are constants of the node.
func buildComparison(p *parser, name string, operands []node) (node, error) {
	collation := p.options.Collation
	var wanted func(c int) bool
	switch name {
	case "$eq":
		wanted = func(c int) bool { return c == 0 }
	case "$ne":
		wanted = func(c int) bool { return c != 0 }
	case "$gt":
		wanted = func(c int) bool { return c > 0 }
	case "$gte":
		wanted = func(c int) bool { return c >= 0 }
	case "$lt":
		wanted = func(c int) bool { return c < 0 }
	case "$lte":
		wanted = func(c int) bool { return c <= 0 }
	default:
		return &dyadic{operands[0], operands[1], func(st *state, a, b bsoncore.Value) (bsoncore.Value, error) {
			return st.int32(order.Compare(a, b, collation))
		}}, nil
	}
	return &dyadic{operands[0], operands[1], func(st *state, a, b bsoncore.Value) (bsoncore.Value, error) {
		return st.boolean(wanted(order.Compare(a, b, collation))), nil
	}}, nil
}

// buildAnd makes $and. A constant that is false decides, and nothing else is evaluated; so one that is true decides $or.
func buildAnd(_ *parser, _ string, operands []node) (node, error) { return junction(operands, false) }

func buildOr(_ *parser, _ string, operands []node) (node, error) { return junction(operands, true) }

func junction(operands []node, decisive bool) (node, error) {
	for _, n := range operands {
		if v, ok := isConstant(n); ok && Truthy(v) == decisive {
			return &lazy{nil, func(st *state, _ []node) (bsoncore.Value, error) { return st.boolean(decisive), nil }}, nil
		}
	}
	return &lazy{operands, func(st *state, operands []node) (bsoncore.Value, error) {
		for _, n := range operands {
			v, err := n.eval(st)
			if err != nil {
				return bsoncore.Value{}, err
			}
			if Truthy(v) == decisive {
				return st.boolean(decisive), nil
			}
		}
		return st.boolean(!decisive), nil
	}}, nil
}

func evalNot(st *state, _ string, v bsoncore.Value) (bsoncore.Value, error) {
	return st.boolean(!Truthy(v)), nil
}

func evalCond(st *state, operands []node) (bsoncore.Value, error) {
	v, err := operands[0].eval(st)
	if err != nil {
		return bsoncore.Value{}, err
	}
	if Truthy(v) {
		return operands[1].eval(st)
	}
	return operands[2].eval(st)
}

// parseCond parses [if, then, else] and {if: ..., then: ..., else: ...}.
func parseCond(p *parser, name string, v bsoncore.Value) (node, error) {
	var operands []node
	var err error
	if isObject(v) {
		operands, err = p.fields(v, parameterSpec(name, 17083, []string{"if", "then", "else"}, 17080, 17081, 17082))
	} else {
		if operands, err = p.arguments(v); err == nil {
			err = checkArity(name, len(operands), 3, 3)
		}
	}
	if err != nil {
		return nil, err
	}
	return p.fold(&lazy{operands, evalCond})
}

// arguments parses the operands of an operator: a list, or one.
func (p *parser) arguments(v bsoncore.Value) ([]node, error) {
	if isArray(v) {
		return p.list(v)
	}
	n, err := p.operand(v)
	return []node{n}, err
}

// fieldSpec describes the fields of an operator's specification.
type fieldSpec struct {
	names    []string
	required int // so many of the first names
	unknown  func(field string) error
	missing  func(field string) error
}

// parameterSpec describes fields of which messages speak as parameters. missing are the codes for the first names, which have to be there.
func parameterSpec(operator string, unknown mongoerror.Code, names []string, missing ...mongoerror.Code) *fieldSpec {
	return newFieldSpec(operator, unknown, "Unrecognized parameter to %[1]s: %[2]s", names, missing, "Missing '%[2]s' parameter to %[1]s")
}

// argumentSpec is parameterSpec where messages speak of arguments.
func argumentSpec(operator string, unknown mongoerror.Code, names []string, missing ...mongoerror.Code) *fieldSpec {
	return newFieldSpec(operator, unknown, "%s found an unknown argument: %s", names, missing, "%s requires '%s' to be specified")
}

// newFieldSpec makes a specification of texts for messages, into which go the operator and the field.
func newFieldSpec(operator string, unknown mongoerror.Code, unknownText string, names []string, missing []mongoerror.Code, missingText string) *fieldSpec {
	return &fieldSpec{
		names: names, required: len(missing),
		unknown: func(field string) error { return mongoerror.New(unknown, unknownText, operator, field) },
		missing: func(field string) error {
			return mongoerror.New(missing[slices.Index(names, field)], missingText, operator, field)
		},
	}
}

// fields parses the operands in the fields of a specification; those that are left out are nil.
func (p *parser) fields(v bsoncore.Value, spec *fieldSpec) ([]node, error) {
	raw, err := rawFields(v, spec)
	if err != nil {
		return nil, err
	}
	operands := make([]node, len(raw))
	for i, value := range raw {
		if value.Type == 0 {
			continue
		}
		if operands[i], err = p.operand(value); err != nil {
			return nil, err
		}
	}
	return operands, nil
}

// rawFields returns the fields of a specification in the order of its names.
func rawFields(v bsoncore.Value, spec *fieldSpec) ([]bsoncore.Value, error) {
	raw := make([]bsoncore.Value, len(spec.names))
	it := elementsOf(v.Data)
next:
	for {
		key, value, ok := it.next()
		if !ok {
			break
		}
		for i, name := range spec.names {
			if string(key) == name {
				raw[i] = value
				continue next
			}
		}
		return nil, spec.unknown(string(key))
	}
	for i := range spec.required {
		if raw[i].Type == 0 {
			return nil, spec.missing(spec.names[i])
		}
	}
	return raw, nil
}

// buildIfNull makes $ifNull, which is a constant where one decides before anything else is looked at.
func buildIfNull(_ *parser, name string, operands []node) (node, error) {
	if len(operands) < 2 {
		return nil, mongoerror.New(1257300, "%s needs at least two arguments, had: %d", name, len(operands))
	}
	for _, n := range operands {
		v, ok := isConstant(n)
		if !ok {
			break
		}
		if !isNullish(v) {
			return n, nil
		}
	}
	return &lazy{operands, func(st *state, operands []node) (bsoncore.Value, error) {
		for _, n := range operands[:len(operands)-1] {
			if v, err := n.eval(st); err != nil || !isNullish(v) {
				return v, err
			}
		}
		return operands[len(operands)-1].eval(st)
	}}, nil
}

// parseSwitch parses {branches: [{case: ..., then: ...}, ...], default: ...}. The operands of the node are the pairs of the
// branches and, last, the default or nil.
func parseSwitch(p *parser, name string, v bsoncore.Value) (node, error) {
	if !isObject(v) {
		return nil, mongoerror.New(40060, "%s requires an object as an argument, found: %s", name, typeName(v))
	}
	var operands []node
	var byDefault node
	it := elementsOf(v.Data)
	for {
		key, value, ok := it.next()
		if !ok {
			break
		}
		var err error
		switch string(key) {
		case "branches":
			operands, err = p.branches(name, value)
		case "default":
			byDefault, err = p.operand(value)
		default:
			err = mongoerror.New(40067, "%s found an unknown argument: %s", name, key)
		}
		if err != nil {
			return nil, err
		}
	}
	if len(operands) == 0 {
		return nil, mongoerror.New(40068, "%s requires at least one branch.", name)
	}
	if byDefault == nil && neverTrue(operands) {
		p.later(mongoerror.New(40069, "Cannot execute a switch statement where all the cases evaluate to false without a default"))
	}
	return p.fold(&lazy{append(operands, byDefault), func(st *state, operands []node) (bsoncore.Value, error) {
		last := len(operands) - 1
		for i := 0; i < last; i += 2 {
			v, err := operands[i].eval(st)
			if err != nil {
				return bsoncore.Value{}, err
			}
			if Truthy(v) {
				return operands[i+1].eval(st)
			}
		}
		if operands[last] == nil {
			return bsoncore.Value{}, mongoerror.New(40066,
				"%s could not find a matching branch for an input, and no default was specified.", name)
		}
		return operands[last].eval(st)
	}})
}

// neverTrue reports whether the cases of all branches are constants, and false.
func neverTrue(branches []node) bool {
	for i := 0; i < len(branches); i += 2 {
		if v, ok := isConstant(branches[i]); !ok || Truthy(v) {
			return false
		}
	}
	return true
}

func (p *parser) branches(name string, v bsoncore.Value) ([]node, error) {
	if !isArray(v) {
		return nil, mongoerror.New(40061, "%s expected an array for 'branches', found: %s", name, typeName(v))
	}
	var operands []node
	it := elementsOf(v.Data)
	for {
		_, branch, ok := it.next()
		if !ok {
			return operands, nil
		}
		if !isObject(branch) {
			return nil, mongoerror.New(40062, "%s expected each branch to be an object, found: %s", name, typeName(branch))
		}
		pair, err := p.fields(branch, &fieldSpec{
			names: []string{"case", "then"}, required: 2,
			unknown: func(field string) error {
				return mongoerror.New(40063, "%s found an unknown argument to a branch: %s", name, field)
			},
			missing: func(field string) error {
				code := map[string]mongoerror.Code{"case": 40064, "then": 40065}[field]
				return mongoerror.New(code, "%s requires each branch have a '%s' expression", name, field)
			},
		})
		if err != nil {
			return nil, err
		}
		operands = append(operands, pair...)
	}
}
