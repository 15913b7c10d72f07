package aggregate

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/expression"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/order"
)

// together parses the stages that a stage stands for.
func (p *parser) together(stages ...document) ([]step, error) { return p.steps(stages) }

// count parses $count: a $group and a $project.
func (p *parser) count(spec value) ([]step, error) {
	name, ok := spec.StringValueOK()
	switch {
	case !ok:
		return nil, mongoerror.New(mongoerror.Code(40156), "the count field must be a non-empty string")
	case name == "":
		return nil, mongoerror.New(mongoerror.Code(40157), "the count field must be a non-empty string")
	case name[0] == '$':
		return nil, mongoerror.New(mongoerror.Code(40158), "the count field cannot be a $-prefixed path")
	case strings.IndexByte(name, 0) >= 0:
		return nil, mongoerror.New(mongoerror.Code(40159), "the count field cannot contain a null byte")
	case strings.Contains(name, "."):
		return nil, mongoerror.New(mongoerror.Code(40160), "the count field cannot contain '.'")
	case name == "_id":
		return nil, mongoerror.New(mongoerror.Code(15948), "a group's _id may only be specified once")
	}
	return p.together(
		fields("$group", object("_id", null(), name, object("$sum", int32Value(1)))),
		fields("$project", object("_id", value{Type: bsoncore.TypeBoolean, Data: []byte{0}})),
	)
}

// sortByCount parses $sortByCount: a $group and a $sort.
func (p *parser) sortByCount(spec value) ([]step, error) {
	switch spec.Type {
	case bsoncore.TypeString:
		if !strings.HasPrefix(spec.StringValue(), "$") {
			return nil, mongoerror.New(mongoerror.Code(40148), "the sortByCount field must be defined as a $-prefixed path or an expression inside an object")
		}
	case bsoncore.TypeEmbeddedDocument:
		e, err := spec.Document().IndexErr(0)
		if err != nil || !strings.HasPrefix(e.Key(), "$") {
			return nil, mongoerror.New(mongoerror.Code(40147), "the sortByCount field must be defined as a $-prefixed path or an expression inside an object")
		}
	default:
		return nil, mongoerror.New(mongoerror.Code(40149), "the sortByCount field must be specified as a string or as an object")
	}
	return p.together(
		fields("$group", object("_id", spec, "count", object("$sum", int32Value(1)))),
		fields("$sort", object("count", int32Value(-1))),
	)
}

// bucket parses $bucket: a $group by a $switch over the boundaries, and a $sort.
func (p *parser) bucket(spec value) ([]step, error) {
	if spec.Type != bsoncore.TypeEmbeddedDocument {
		return nil, mongoerror.New(mongoerror.Code(40201), "Argument to $bucket stage must be an object, but found type: %s.", mongoerror.TypeName(spec.Type))
	}
	elements, err := spec.Document().Elements()
	if err != nil {
		return nil, err
	}
	var by, fallback, output value
	var boundaries []value
	for _, e := range elements {
		v := e.Value()
		switch e.Key() {
		case "groupBy":
			by = v
			err = checkGroupBy(v, 40202, "$bucket")
		case "boundaries":
			boundaries, err = p.boundaries(v)
		case "default":
			fallback, err = p.constant(v, 40195)
		case "output":
			if output = v; v.Type != bsoncore.TypeEmbeddedDocument {
				err = mongoerror.New(mongoerror.Code(40196), "The $bucket 'output' field must be an object, but found type: %s.", mongoerror.TypeName(v.Type))
			}
		default:
			err = mongoerror.New(mongoerror.Code(40197), "Unrecognized option to $bucket: %s.", e.Key())
		}
		if err != nil {
			return nil, err
		}
	}
	if by.Type == 0 || boundaries == nil {
		return nil, mongoerror.New(mongoerror.Code(40198), "$bucket requires 'groupBy' and 'boundaries' to be specified.")
	}
	if fallback.Type != 0 && order.Compare(fallback, boundaries[0], p.o.Collation) >= 0 &&
		order.Compare(fallback, boundaries[len(boundaries)-1], p.o.Collation) < 0 {
		return nil, mongoerror.New(mongoerror.Code(40199), "The $bucket 'default' field must be less than the lowest boundary or greater than or equal to the highest boundary.")
	}
	return p.together(bucketGroup(by, fallback, output, boundaries), fields("$sort", object("_id", int32Value(1))))
}

// longestRepeated is how long a $group may get by writing the expression of $bucket for each of its boundaries. Beyond that it is
// evaluated once, for a variable.
const longestRepeated = 1 << 20

func bucketGroup(by, fallback, output value, boundaries []value) document {
	var branches []value
	whole := by
	if int64(len(by.Data))*int64(len(boundaries)) > longestRepeated {
		by = text("$$value")
	}
	for i := range boundaries[1:] {
		within := array(object("$gte", array(by, literal(boundaries[i]))), object("$lt", array(by, literal(boundaries[i+1]))))
		branches = append(branches, object("case", object("$and", within), "then", literal(boundaries[i])))
	}
	choose := []any{"branches", array(branches...)}
	if fallback.Type != 0 {
		choose = append(choose, "default", literal(fallback))
	}
	b, start := begin(nil)
	id := object("$switch", object(choose...))
	if !by.Equal(whole) {
		id = object("$let", object("vars", object("value", whole), "in", id))
	}
	b = appendField(b, "_id", id)
	b = append(b, outputFields(output)...)
	return fields("$group", documentValue(end(b, start)))
}

// outputFields returns the elements of an output specification; without one they are a count.
func outputFields(output value) []byte {
	if output.Type == 0 || len(output.Data) <= bsoncore.EmptyDocumentLength {
		output = object("count", object("$sum", int32Value(1)))
	}
	return output.Data[4 : len(output.Data)-1]
}

func checkGroupBy(v value, code mongoerror.Code, stage string) error {
	if s, ok := v.StringValueOK(); ok && strings.HasPrefix(s, "$") {
		return nil
	}
	if v.Type == bsoncore.TypeEmbeddedDocument {
		if e, err := v.Document().IndexErr(0); err == nil && strings.HasPrefix(e.Key(), "$") {
			return nil
		}
	}
	return mongoerror.New(code, "The %s 'groupBy' field must be defined as a $-prefixed path or an expression, but found: %s.", stage, v)
}

// constant evaluates an expression that must be one.
func (p *parser) constant(v value, code mongoerror.Code) (value, error) {
	e, err := expression.Parse(v, p.o.expression())
	if err != nil {
		return value{}, err
	}
	c, ok := e.Constant()
	if !ok {
		return value{}, mongoerror.New(code, "must be able to be evaluated to a constant: %s", v)
	}
	return c, nil
}

func (p *parser) boundaries(v value) ([]value, error) {
	if v.Type != bsoncore.TypeArray {
		return nil, mongoerror.New(mongoerror.Code(40200), "The $bucket 'boundaries' field must be an array, but found type: %s.", mongoerror.TypeName(v.Type))
	}
	values, err := v.Array().Values()
	if err != nil {
		return nil, err
	}
	var list []value
	for _, v := range values {
		c, err := p.constant(v, 40191)
		if err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	if len(list) < 2 {
		return nil, mongoerror.New(mongoerror.Code(40192), "The $bucket 'boundaries' field must have at least 2 values, but found %d value(s).", len(list))
	}
	for i := range list[1:] {
		a, b := list[i], list[i+1]
		if order.ClassOf(a.Type) != order.ClassOf(b.Type) {
			return nil, mongoerror.New(mongoerror.Code(40193), "All values in the the 'boundaries' option to $bucket must have the same type. Found conflicting types %s and %s.", mongoerror.TypeName(a.Type), mongoerror.TypeName(b.Type))
		}
		if order.Compare(a, b, p.o.Collation) >= 0 {
			return nil, mongoerror.New(mongoerror.Code(40194), "The 'boundaries' option to $bucket must be sorted, but elements %d and %d are not in ascending order (%s is not less than %s).", i, i+1, a, b)
		}
	}
	return list, nil
}
