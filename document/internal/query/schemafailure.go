package query

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/order"
	"github.com/pandodb/pando/document/internal/path"
)

// schema explains which rules of a $jsonSchema the document breaks.
func (x *explainer) schema(spec bsoncore.Document) details {
	d := newDetails("$jsonSchema")
	if stated := statedTypes(spec); stated != nil && !slices.ContainsFunc(stated, isObject) {
		return d.AppendDocument("specifiedAs", one("$jsonSchema", embedded(spec))).AppendString("reason", "expression always evaluates to false")
	}
	appendTitles(d, spec)
	return d.AppendArray("schemaRulesNotSatisfied", listOf(x.rules(spec, embedded(x.doc))))
}

func appendTitles(d details, spec bsoncore.Document) {
	for _, name := range []string{"title", "description"} {
		if v, ok := path.Lookup(spec, name); ok {
			d.AppendValue(name, v)
		}
	}
}

func listOf(docs []bsoncore.Document) bsoncore.Array {
	b := bsoncore.NewArrayBuilder()
	for _, doc := range docs {
		b.AppendDocument(doc)
	}
	return b.Build()
}

// satisfies reports whether a value satisfies a schema, which was parsed before.
func (x *explainer) satisfies(spec bsoncore.Document, v bsoncore.Value) bool {
	s, err := parseSchema(spec)
	if err == nil {
		var ok bool
		if ok, err = s.test(v, nil); err == nil {
			return ok
		}
	}
	if x.err == nil {
		x.err = err
	}
	return false
}

// rule is a keyword, the values that it is about, and how its failure is explained; detail returns nil when it is satisfied.
type rule struct {
	keyword string
	about   func(t bsoncore.Type) bool // nil: all values
	detail  func(x *explainer, spec bsoncore.Document, operand, v bsoncore.Value) details
}

func isText(t bsoncore.Type) bool   { return t == bsoncore.TypeString }
func isArray(t bsoncore.Type) bool  { return t == bsoncore.TypeArray }
func isObject(t bsoncore.Type) bool { return t == bsoncore.TypeEmbeddedDocument }

// schemaRules is the keywords, in the order in which MongoDB explains them.
func schemaRules() []rule {
	const length, size, properties = "specified string length was not satisfied", "array did not match specified length",
		"specified number of properties was not satisfied"
	return []rule{
		{"multipleOf", order.IsNumber, simple("multipleOf", "considered value is not a multiple of the specified value")},
		{"maximum", order.IsNumber, simple("maximum", "comparison failed")},
		{"minimum", order.IsNumber, simple("minimum", "comparison failed")},
		{"pattern", isText, simple("pattern", "regular expression did not match")},
		{"maxLength", isText, simple("maxLength", length)}, {"minLength", isText, simple("minLength", length)},
		{"minItems", isArray, simple("minItems", size)}, {"maxItems", isArray, simple("maxItems", size)},
		{"uniqueItems", isArray, simple("uniqueItems", "found a duplicate item")},
		{"items", isArray, (*explainer).items}, {"additionalItems", isArray, (*explainer).additionalItems},
		{"properties", isObject, (*explainer).properties}, {"additionalProperties", isObject, (*explainer).additionalProperties},
		{"patternProperties", isObject, (*explainer).patternProperties}, {"required", isObject, (*explainer).required},
		{"minProperties", isObject, simple("minProperties", properties)}, {"maxProperties", isObject, simple("maxProperties", properties)},
		{"dependencies", isObject, (*explainer).dependencies},
		{"allOf", nil, (*explainer).allOf}, {"anyOf", nil, (*explainer).anyOf}, {"oneOf", nil, (*explainer).oneOf},
		{"not", nil, (*explainer).not}, {"enum", nil, simple("enum", "value was not found in enum")},
		{"encrypt", nil, simple("encrypt", "value was not encrypted")},
		{"type", nil, simple("type", "type did not match")}, {"bsonType", nil, simple("bsonType", "type did not match")},
	}
}

// rules explains all rules of a schema that a value breaks.
func (x *explainer) rules(spec bsoncore.Document, v bsoncore.Value) (broken []bsoncore.Document) {
	stated := statedTypes(spec)
	for _, r := range schemaRules() {
		operand, ok := path.Lookup(spec, r.keyword)
		if !ok || r.about != nil && (!r.about(v.Type) || stated != nil && !slices.ContainsFunc(stated, r.about)) {
			continue
		}
		if d := r.detail(x, spec, operand, v); d != nil {
			broken = append(broken, d.Build())
		}
	}
	return broken
}

// statedTypes returns the types that a schema allows; nil: any. A keyword for none of them says nothing.
func statedTypes(spec bsoncore.Document) []bsoncore.Type {
	for _, name := range []string{"type", "bsonType"} {
		if v, ok := path.Lookup(spec, name); ok {
			if s, err := parseSchema(one(name, v)); err == nil {
				return s.types
			}
		}
	}
	return nil
}

// simple explains keywords without schemas in them.
func simple(keyword, reason string) func(*explainer, bsoncore.Document, bsoncore.Value, bsoncore.Value) details {
	return func(x *explainer, spec bsoncore.Document, operand, v bsoncore.Value) details {
		b := bsoncore.NewDocumentBuilder().AppendValue(keyword, operand)
		beside := map[string]string{"minimum": "exclusiveMinimum", "maximum": "exclusiveMaximum"}[keyword]
		if exclusive, ok := path.Lookup(spec, beside); ok && beside != "" && exclusive.Data[0] != 0 {
			b.AppendValue(beside, exclusive)
		}
		given := b.Build()
		if x.satisfies(given, v) {
			return nil
		}
		d := newDetails(keyword).AppendDocument("specifiedAs", given).AppendString("reason", reason)
		switch keyword {
		case "minProperties", "maxProperties":
			return d.AppendInt32("numberOfProperties", length(v))
		case "minItems", "maxItems":
			return d.AppendValue("consideredValue", v).AppendInt32("numberOfItems", length(v))
		case "uniqueItems":
			return d.AppendValue("consideredValue", v).AppendValue("duplicatedValue", duplicate(v))
		case "type", "bsonType":
			return d.AppendValue("consideredValue", v).AppendString("consideredType", mongoerror.TypeName(v.Type))
		}
		return d.AppendValue("consideredValue", v)
	}
}

// length counts the elements of a document or an array.
func length(v bsoncore.Value) (n int32) {
	for e := path.ElementsOf(v.Data); ; n++ {
		if _, _, ok := e.Next(); !ok {
			return n
		}
	}
}

// duplicate returns the first element that is there again.
func duplicate(array bsoncore.Value) bsoncore.Value {
	var seen []bsoncore.Value
	for e := path.ElementsOf(array.Data); ; {
		_, v, ok := e.Next()
		if !ok {
			return bsoncore.Value{Type: bsoncore.TypeNull}
		}
		if slices.ContainsFunc(seen, func(s bsoncore.Value) bool { return order.Equal(sorted(s), sorted(v), nil) }) {
			return v
		}
		seen = append(seen, v)
	}
}

func (x *explainer) items(_ bsoncore.Document, operand, v bsoncore.Value) details {
	if operand.Type == bsoncore.TypeEmbeddedDocument {
		return x.firstItem("items", "At least one item did not match the sub-schema", operand.Data, v, 0)
	}
	var broken []bsoncore.Document
	schemas, values := path.ElementsOf(operand.Data), path.ElementsOf(v.Data)
	for i := int64(0); ; i++ {
		_, s, more := schemas.Next()
		_, item, ok := values.Next()
		if !more || !ok {
			break
		}
		if rules := x.rules(s.Data, item); len(rules) > 0 {
			broken = append(broken, bsoncore.NewDocumentBuilder().AppendInt64("itemIndex", i).AppendArray("details", listOf(rules)).Build())
		}
	}
	if broken == nil {
		return nil
	}
	return newDetails("items").AppendArray("details", listOf(broken))
}

// firstItem explains the first element, from a position on, that does not satisfy a schema.
func (x *explainer) firstItem(keyword, reason string, schema bsoncore.Document, v bsoncore.Value, from int32) details {
	values := path.ElementsOf(v.Data)
	for i := int32(0); ; i++ {
		_, item, ok := values.Next()
		if !ok {
			return nil
		}
		if i < from || x.satisfies(schema, item) {
			continue
		}
		d := newDetails(keyword)
		appendTitles(d, schema)
		return d.AppendString("reason", reason).AppendInt32("itemIndex", i).AppendArray("details", listOf(x.rules(schema, item)))
	}
}

func (x *explainer) additionalItems(spec bsoncore.Document, operand, v bsoncore.Value) details {
	tuple, ok := path.Lookup(spec, "items")
	if !ok || tuple.Type != bsoncore.TypeArray {
		return nil
	}
	from := length(tuple)
	if operand.Type == bsoncore.TypeEmbeddedDocument {
		return x.firstItem("additionalItems", "At least one additional item did not match the sub-schema", operand.Data, v, from)
	}
	if truthy(operand) || length(v) <= from {
		return nil
	}
	rest := bsoncore.NewArrayBuilder()
	values := path.ElementsOf(v.Data)
	for i := int32(0); ; i++ {
		_, item, ok := values.Next()
		if !ok {
			break
		}
		if i >= from {
			rest.AppendValue(item)
		}
	}
	return newDetails("additionalItems").AppendDocument("specifiedAs", one("additionalItems", operand)).
		AppendString("reason", "found additional items").AppendArray("additionalItems", rest.Build())
}
