package aggregate

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/expression"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/number"
	"github.com/pandodb/pando/document/internal/order"
	"github.com/pandodb/pando/document/internal/path"
	"github.com/pandodb/pando/document/internal/sortkey"
)

// wrongType is the error of an argument of the wrong type.
func wrongType(field string, v value, expected string) error {
	return mongoerror.New(mongoerror.TypeMismatch, "BSON field '%s' is the wrong type '%s', expected type '%s'", field, mongoerror.TypeName(v.Type), expected)
}

func unknownField(field string) error {
	return mongoerror.New(mongoerror.Code(40415), "BSON field '%s' is an unknown field.", field)
}

func missingField(field string) error {
	return mongoerror.New(mongoerror.Code(40414), "BSON field '%s' is missing but a required field", field)
}

func (p *parser) densify(spec value) (stage, error) {
	if spec.Type != bsoncore.TypeEmbeddedDocument {
		return nil, mongoerror.New(mongoerror.FailedToParse, "The $densify stage specification must be an object, found %s", mongoerror.TypeName(spec.Type))
	}
	elements, err := spec.Document().Elements()
	if err != nil {
		return nil, err
	}
	s := new(densifyStage)
	var field, ranged, partition value
	for _, e := range elements {
		v := e.Value()
		switch e.Key() {
		case "field":
			if field = v; !isString(v) {
				return nil, wrongType("$densify.field", v, "string")
			}
		case "range":
			if ranged = v; v.Type != bsoncore.TypeEmbeddedDocument {
				return nil, wrongType("$densify.range", v, "object")
			}
		case "partitionByFields":
			if partition = v; v.Type != bsoncore.TypeArray {
				return nil, wrongType("$densify.partitionByFields", v, "array")
			}
		default:
			return nil, unknownField("$densify." + e.Key())
		}
	}
	if field.Type == 0 {
		return nil, missingField("$densify.field")
	}
	if ranged.Type == 0 {
		return nil, missingField("$densify.range")
	}
	if s.field, err = path.Split(field.StringValue()); err != nil {
		return nil, err
	}
	if err := s.parsePartition(p, partition); err != nil {
		return nil, err
	}
	if err := s.parseRange(ranged.Document()); err != nil {
		return nil, err
	}
	b, start := begin(nil)
	if s.extent != full {
		for _, f := range s.partition {
			b = appendField(b, strings.Join(f.segments, "."), int32Value(1))
		}
	}
	b = end(appendField(b, field.StringValue(), int32Value(1)), start)
	s.sort, err = sortkey.Parse(b, p.o.Collation)
	return s, err
}

func (s *densifyStage) parsePartition(p *parser, v value) error {
	if v.Type == 0 {
		return nil
	}
	values, err := v.Array().Values()
	if err != nil {
		return err
	}
	for _, v := range values {
		name, ok := v.StringValueOK()
		if !ok {
			return wrongType("$densify.partitionByFields.0", v, "string")
		}
		segments, err := path.Split(name)
		if err != nil {
			return err
		}
		if a, b := strings.Join(s.field, ".")+".", name+"."; strings.HasPrefix(a, b) || strings.HasPrefix(b, a) {
			return mongoerror.New(mongoerror.Code(5733306), "DocGenerator cannot include field that is being densified")
		}
		e, err := expression.Parse(text("$"+name), p.o.expression())
		if err != nil {
			return err
		}
		s.partition = append(s.partition, partitionField{segments, e})
	}
	return nil
}

func (s *densifyStage) parseRange(spec document) error {
	elements, err := spec.Elements()
	if err != nil {
		return err
	}
	var step, bounds, unit value
	for _, e := range elements {
		switch v := e.Value(); e.Key() {
		case "step":
			if step = v; !isNumber(v) {
				return wrongType("$densify.range.step", v, "[int, decimal, double, long]")
			}
		case "bounds":
			bounds = v
		case "unit":
			if unit = v; !isString(v) {
				return wrongType("$densify.range.unit", v, "string")
			}
		default:
			return unknownField("$densify.range." + e.Key())
		}
	}
	switch {
	case step.Type == 0:
		return missingField("$densify.range.step")
	case bounds.Type == 0:
		return missingField("$densify.range.bounds")
	}
	if s.step, _ = number.Of(step); s.step.Sign() <= 0 {
		return mongoerror.New(mongoerror.Code(5733401), "The step parameter in a range statement must be a strictly positive numeric value")
	}
	if unit.Type != 0 {
		s.unit = unit.StringValue()
		if err := checkUnit(s.unit); err != nil {
			return err
		}
		if _, exact := s.step.Int64(); !exact {
			return mongoerror.New(mongoerror.Code(6586400), "The step parameter in a range statement must be a whole number when densifying a date range")
		}
	}
	return s.parseBounds(bounds)
}

func (s *densifyStage) parseBounds(v value) error {
	if name, ok := v.StringValueOK(); ok {
		switch {
		case name == "full":
			s.extent = full
		case name != "partition":
			return mongoerror.New(mongoerror.Code(5946802), "Bounds string must either be 'full' or 'partition'")
		case len(s.partition) == 0:
			return mongoerror.New(mongoerror.Code(5733408), "One cannot specify the bounds as 'partition' without specifying a non-empty array of partitionByFields. You may have meant to specify 'full' bounds.")
		default:
			s.extent = byPartition
		}
		return nil
	}
	if v.Type != bsoncore.TypeArray {
		return mongoerror.New(mongoerror.Code(5733404), "The bounds in a range statement must be the string 'full', 'partition', or an ascending array of two numbers or two dates")
	}
	values, err := v.Array().Values()
	if err != nil {
		return err
	}
	if len(values) != 2 {
		return mongoerror.New(mongoerror.Code(5733403), "A bounding array in a range statement must have exactly two elements")
	}
	s.extent, s.low, s.high = explicitEnds, values[0], values[1]
	dates := 0
	for _, v := range values {
		if v.Type == bsoncore.TypeDateTime {
			dates++
		}
	}
	ascending := order.Compare(s.low, s.high, nil) <= 0
	switch {
	case !ascending:
		return mongoerror.New(mongoerror.Code(5733402), "A bounding array must be an ascending array of either two dates or two numbers")
	case s.low.Type != bsoncore.TypeDateTime && !isNumber(s.low):
		return mongoerror.New(mongoerror.Code(5946800), "Explicit bounds must be numeric or dates")
	case dates == 1 || dates == 0 && !isNumber(s.high):
		return mongoerror.New(mongoerror.Code(5733406), "A bounding array must contain either both dates or both numeric types")
	case dates == 2 && s.unit == "":
		return mongoerror.New(mongoerror.Code(5733410), "A bounding array of dates must specify a unit")
	case dates == 0 && s.unit != "":
		return mongoerror.New(mongoerror.Code(5733409), "Numeric bounds may not have unit parameter")
	case dates == 0 && (s.low.Type != s.high.Type || s.low.Type != s.step.Type()):
		return mongoerror.New(mongoerror.Code(5876900), "Upper bound, lower bound, and step must all have the same type")
	}
	return nil
}
