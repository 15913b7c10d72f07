package update

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/notation"
	"github.com/pandodb/pando/document/internal/number"
	"github.com/pandodb/pando/document/internal/order"
	"github.com/pandodb/pando/document/internal/path"
)

// parseOperators parses {$set: {a: 1}, ...} into the tree.
func (u *Update) parseOperators(doc bsoncore.Document, o *Options) error {
	u.root = new(node)
	for s := path.PlacesOf(doc); ; {
		e, ok := s.Next()
		if !ok {
			break
		}
		kind, known := operatorOf(string(e.Name))
		if !known {
			return mongoerror.New(mongoerror.FailedToParse, "Unknown modifier: %s. Expected a valid update modifier or pipeline-style "+
				"update specified as an array", e.Name)
		}
		if e.Value.Type != bsoncore.TypeEmbeddedDocument {
			return mongoerror.New(mongoerror.FailedToParse, "Modifiers operate on fields but we found type %s instead. "+
				"For example: {$mod: {<field>: ...}} not {%s}", mongoerror.TypeName(e.Value.Type), notation.Element(string(e.Name), e.Value))
		}
		for s := path.PlacesOf(e.Value.Data); ; {
			field, ok := s.Next()
			if !ok {
				break
			}
			if err := u.parseOperator(kind, string(field.Name), field.Value, o); err != nil {
				return err
			}
		}
	}
	u.root.arrange()
	return u.checkFiltersUsed(doc)
}

// parseOperator adds one operator at one path.
func (u *Update) parseOperator(kind opKind, path string, v bsoncore.Value, o *Options) error {
	op := &operation{kind: kind, value: v, depth: depthOf(v)}
	if kind == opRename {
		return u.parseRename(op, path, v)
	}
	components, err := parsePath(path)
	if err != nil {
		return err
	}
	if err := op.parse(path, v, o); err != nil {
		return err
	}
	for _, component := range components {
		identifier, isFilter := isIdentifier(component)
		if !isFilter || identifier == "" {
			continue
		}
		f, ok := u.filters[identifier]
		if !ok {
			return mongoerror.New(mongoerror.BadValue, "No array filter found for identifier '%s' in path '%s'", identifier, path)
		}
		f.used = true
	}
	return u.root.insert(components, op)
}

// maxComponents is how long a path may be. Beyond maxDepth nothing can be created, but something might be unset that is not there.
const maxComponents = 2 * maxDepth

// parsePath splits a path, and refuses empty names and positional operators where they cannot be.
func parsePath(path string) ([]string, error) {
	if path == "" {
		return nil, mongoerror.New(mongoerror.EmptyFieldName, "An empty update path is not valid.")
	}
	components := strings.Split(path, ".")
	if len(components) > maxComponents {
		return nil, tooDeep()
	}
	positional := 0
	for _, component := range components {
		if component == "" {
			return nil, mongoerror.New(mongoerror.EmptyFieldName,
				"The update path '%s' contains an empty field name, which is not allowed.", path)
		}
		if component == "$" {
			positional++
		}
	}
	if components[0] == "$" {
		return nil, mongoerror.New(mongoerror.BadValue,
			"Cannot have positional (i.e. '$') element in the first position in path '%s'", path)
	}
	if positional > 1 {
		return nil, mongoerror.New(mongoerror.BadValue, "Too many positional (i.e. '$') elements found in path '%s'", path)
	}
	if _, ok := isIdentifier(components[0]); ok {
		return nil, mongoerror.New(mongoerror.BadValue,
			"Cannot have array filter identifier (i.e. '$[<id>]') element in the first position in path '%s'", path)
	}
	return components, nil
}

// parseRename adds both ends of a $rename.
func (u *Update) parseRename(op *operation, path string, v bsoncore.Value) error {
	if v.Type != bsoncore.TypeString {
		return mongoerror.New(mongoerror.BadValue, "The 'to' field for $rename must be a string: %s", notation.Element(path, v))
	}
	u.renames++
	target := v.StringValue()
	if strings.ContainsRune(target, 0) {
		return mongoerror.New(mongoerror.BadValue, "The 'to' field for $rename cannot contain an embedded null byte")
	}
	var err error
	if op.source, err = parsePath(path); err != nil {
		return err
	}
	if err := u.root.insert(op.source, &operation{kind: opRenameSource}); err != nil {
		return err
	}
	if op.target, err = parsePath(target); err != nil {
		return err
	}
	if path == target {
		return mongoerror.New(mongoerror.BadValue, "The source and target field for $rename must differ: %s", notation.Element(path, v))
	}
	if strings.HasPrefix(target, path+".") || strings.HasPrefix(path, target+".") {
		return mongoerror.New(mongoerror.BadValue, "The source and target field for $rename must not be on the same path: %s",
			notation.Element(path, v))
	}
	if dynamic(op.source) {
		return mongoerror.New(mongoerror.BadValue, "The source field for $rename may not be dynamic: %s", path)
	}
	if dynamic(op.target) {
		return mongoerror.New(mongoerror.BadValue, "The destination field for $rename may not be dynamic: %s", target)
	}
	return u.root.insert(op.target, op)
}

func dynamic(components []string) bool {
	for _, c := range components {
		if _, ok := isIdentifier(c); ok || c == "$" {
			return true
		}
	}
	return false
}

// parse reads the operand.
func (op *operation) parse(path string, v bsoncore.Value, o *Options) error {
	switch op.kind {
	case opInc, opMul:
		verb := "increment"
		if op.kind == opMul {
			verb = "multiply"
		}
		if !order.IsNumber(v.Type) {
			return mongoerror.New(mongoerror.TypeMismatch, "Cannot %s with non-numeric argument: {%s}", verb, notation.Element(path, v))
		}
	case opCurrentDate:
		return op.parseCurrentDate(v, o)
	case opPush:
		return op.parsePush(v)
	case opAddToSet:
		return op.parseAddToSet(v)
	case opPop:
		return op.parsePop(path, v)
	case opPull:
		return op.parsePull(v, o)
	case opPullAll:
		if v.Type != bsoncore.TypeArray {
			return mongoerror.New(mongoerror.BadValue, "$pullAll requires an array argument but was given a %s", mongoerror.TypeName(v.Type))
		}
		op.values = elementsOf(v)
	case opBit:
		return op.parseBit(v)
	}
	return nil
}

// integer returns a number that has no fraction and fits an int64.
func integer(v bsoncore.Value) (int64, bool) {
	n, ok := number.Of(v)
	if !ok {
		return 0, false
	}
	return n.Int64()
}

func (op *operation) parsePop(path string, v bsoncore.Value) error {
	if !order.IsNumber(v.Type) {
		return mongoerror.New(mongoerror.FailedToParse, "Expected a number in: %s", notation.Element(path, v))
	}
	n, ok := integer(v)
	if !ok {
		return mongoerror.New(mongoerror.FailedToParse, "Expected an integer: %s", notation.Element(path, v))
	}
	if n != 1 && n != -1 {
		return mongoerror.New(mongoerror.FailedToParse, "$pop expects 1 or -1, found: %d", n)
	}
	op.first = n == -1
	return nil
}

func (op *operation) parseCurrentDate(v bsoncore.Value, o *Options) error {
	const wanted = "The '$type' string field is required to be 'date' or 'timestamp': {$currentDate: {field : {$type: 'date'}}}"
	date := bsoncore.Value{Type: bsoncore.TypeDateTime, Data: bsoncore.AppendDateTime(nil, o.Now.UnixMilli())}
	op.depth = 0
	switch v.Type {
	case bsoncore.TypeBoolean:
		op.value = date
		return nil
	case bsoncore.TypeEmbeddedDocument:
	default:
		return mongoerror.New(mongoerror.BadValue, "%s is not valid type for $currentDate. Please use a boolean ('true') or a $type "+
			"expression ({$type: 'timestamp/date'}).", mongoerror.TypeName(v.Type))
	}
	found := false
	for s := path.PlacesOf(v.Data); ; {
		e, ok := s.Next()
		if !ok {
			break
		}
		if string(e.Name) != "$type" {
			return mongoerror.New(mongoerror.BadValue, "Unrecognized $currentDate option: %s", e.Name)
		}
		kind, _ := e.Value.StringValueOK()
		switch {
		case kind == "date":
			op.value = date
		case kind == "timestamp":
			op.value = bsoncore.Value{Type: bsoncore.TypeTimestamp, Data: bsoncore.AppendTimestamp(nil, uint32(o.Now.Unix()), 1)}
		default:
			return mongoerror.New(mongoerror.BadValue, "%s", wanted)
		}
		found = true
	}
	if !found {
		return mongoerror.New(mongoerror.BadValue, "%s", wanted)
	}
	return nil
}

func (op *operation) parseBit(v bsoncore.Value) error {
	if v.Type != bsoncore.TypeEmbeddedDocument {
		return mongoerror.New(mongoerror.BadValue, "The $bit modifier is not compatible with a %s. You must pass in an embedded "+
			"document: {$bit: {field: {and/or/xor: #}}", mongoerror.TypeName(v.Type))
	}
	for s := path.PlacesOf(v.Data); ; {
		e, ok := s.Next()
		if !ok {
			break
		}
		b := bitwise{wide: e.Value.Type == bsoncore.TypeInt64}
		switch string(e.Name) {
		case "and":
			b.kind = '&'
		case "or":
			b.kind = '|'
		case "xor":
			b.kind = '^'
		default:
			return mongoerror.New(mongoerror.BadValue, "The $bit modifier only supports 'and', 'or', and 'xor', not '%s' which is "+
				"an unknown operator: {%s}", e.Name, notation.Element(string(e.Name), e.Value))
		}
		if e.Value.Type != bsoncore.TypeInt32 && e.Value.Type != bsoncore.TypeInt64 {
			return mongoerror.New(mongoerror.BadValue, "The $bit modifier field must be an Integer(32/64 bit); a '%s' is not "+
				"supported here: {%s}", mongoerror.TypeName(e.Value.Type), notation.Element(string(e.Name), e.Value))
		}
		b.value = e.Value.AsInt64()
		op.bits = append(op.bits, b)
	}
	if len(op.bits) == 0 {
		return mongoerror.New(mongoerror.BadValue,
			"You must pass in at least one bitwise operation. The format is: {$bit: {field: {and/or/xor: #}}")
	}
	return nil
}
