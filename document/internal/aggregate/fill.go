package aggregate

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
)

// fillSpec is the arguments of $fill.
type fillSpec struct {
	sortBy, partitionBy, partitionByFields, output value
}

// fill parses $fill: a $setWindowFields for the methods, and an $addFields for the values.
func (p *parser) fill(spec value) ([]step, error) {
	s, err := parseFillSpec(spec)
	if err != nil {
		return nil, err
	}
	partition := s.partitionBy
	if s.partitionByFields.Type != 0 {
		if partition, err = partitionFields(s.partitionByFields); err != nil {
			return nil, err
		}
	}
	elements, err := s.output.Document().Elements()
	if err != nil {
		return nil, err
	}
	window, start := begin(nil)
	values, from := begin(nil)
	for _, e := range elements {
		name, operand, err := s.fillMethod(e)
		if err != nil {
			return nil, err
		}
		current := text("$" + e.Key())
		if name == "" && operand.Type == 0 {
			continue
		}
		if name == "" {
			values = appendField(values, e.Key(), object("$ifNull", array(current, operand)))
		} else {
			window = appendField(window, e.Key(), object(name, current))
		}
	}
	window, values = end(window, start), end(values, from)
	var stages []document
	if len(window) > bsoncore.EmptyDocumentLength {
		list := []any{"output", documentValue(window)}
		if partition.Type != 0 {
			list = append(list, "partitionBy", partition)
		}
		if s.sortBy.Type != 0 {
			list = append(list, "sortBy", s.sortBy)
		}
		stages = append(stages, fields("$setWindowFields", object(list...)))
	}
	if len(values) > bsoncore.EmptyDocumentLength {
		stages = append(stages, fields("$addFields", documentValue(values)))
	}
	return p.together(stages...)
}

func parseFillSpec(spec value) (*fillSpec, error) {
	if spec.Type != bsoncore.TypeEmbeddedDocument {
		return nil, mongoerror.New(mongoerror.FailedToParse, "The $fill stage specification must be an object, found %s", mongoerror.TypeName(spec.Type))
	}
	elements, err := spec.Document().Elements()
	if err != nil {
		return nil, err
	}
	s := new(fillSpec)
	for _, e := range elements {
		v, want := e.Value(), bsoncore.TypeEmbeddedDocument
		switch e.Key() {
		case "sortBy":
			s.sortBy = v
		case "partitionBy":
			if s.partitionBy = v; isString(v) {
				want = bsoncore.TypeString
			}
		case "partitionByFields":
			s.partitionByFields, want = v, bsoncore.TypeArray
		case "output":
			s.output = v
		default:
			return nil, mongoerror.New(mongoerror.Code(40415), "BSON field '$fill.%s' is an unknown field.", e.Key())
		}
		if v.Type != want {
			return nil, mongoerror.New(mongoerror.TypeMismatch, "BSON field '$fill.%s' is the wrong type '%s', expected type '%s'", e.Key(), mongoerror.TypeName(v.Type), mongoerror.TypeName(want))
		}
	}
	switch {
	case s.output.Type == 0:
		return nil, mongoerror.New(mongoerror.Code(40414), "BSON field '$fill.output' is missing but a required field")
	case s.partitionBy.Type != 0 && s.partitionByFields.Type != 0:
		return nil, mongoerror.New(mongoerror.Code(6050204), "Maximum one of 'partitionBy' and 'partitionByFields can be specified in '$fill'")
	case len(s.output.Data) <= bsoncore.EmptyDocumentLength:
		return nil, mongoerror.New(mongoerror.Code(6050203), "The $fill 'output' must have at least one field")
	}
	return s, nil
}

// partitionFields makes an expression of a list of fields.
func partitionFields(v value) (value, error) {
	values, err := v.Array().Values()
	if err != nil {
		return value{}, err
	}
	b, start := begin(nil)
	for _, v := range values {
		name, ok := v.StringValueOK()
		if !ok {
			return value{}, mongoerror.New(mongoerror.TypeMismatch, "BSON field '$fill.partitionByFields' must be an array of strings")
		}
		if strings.IndexByte(name, 0) >= 0 {
			return value{}, mongoerror.New(mongoerror.Code(16411), "FieldPath field names may not contain '\\0'.")
		}
		b = appendField(b, name, text("$"+name)) // which is not taken when the name is a path, as in MongoDB
	}
	return documentValue(end(b, start)), nil
}

// fillMethod reads {method: ...} or {value: ...}. It returns the window function's name, or the value; neither of nothing.
func (s *fillSpec) fillMethod(e bsoncore.Element) (function string, operand value, err error) {
	if e.Value().Type != bsoncore.TypeEmbeddedDocument {
		return "", value{}, mongoerror.New(mongoerror.Code(6050200), "Each fill output specification must be an object with exactly one field")
	}
	elements, err := e.Value().Document().Elements()
	if err != nil {
		return "", value{}, err
	}
	for _, e := range elements {
		switch v := e.Value(); e.Key() {
		case "value":
			operand = v
		case "method":
			if function, err = methodFunction(v); err != nil {
				return "", value{}, err
			}
		default:
			return "", value{}, unknownField("$fill.output." + e.Key())
		}
	}
	if function != "" && operand.Type != 0 {
		return "", value{}, mongoerror.New(mongoerror.Code(6050201), "Each fill output specification must have exactly one of 'method' or 'value' fields, not both")
	}
	return function, operand, nil
}

func methodFunction(v value) (string, error) {
	if !isString(v) {
		return "", wrongType("$fill.method", v, "string")
	}
	switch v.StringValue() {
	case "linear":
		return "$linearFill", nil
	case "locf":
		return "$locf", nil
	}
	return "", mongoerror.New(mongoerror.Code(6050202), "Method must be either locf or linear, found: %s", v)
}
