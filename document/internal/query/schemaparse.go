package query

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/number"
	"github.com/pandodb/pando/document/internal/order"
	"github.com/pandodb/pando/document/internal/path"
)

func failedToParse(format string, args ...any) error {
	return mongoerror.New(mongoerror.FailedToParse, format, args...)
}

func mismatch(format string, args ...any) error {
	return mongoerror.New(mongoerror.TypeMismatch, format, args...)
}

// parseSchema parses a $jsonSchema.
func parseSchema(doc bsoncore.Document) (*schema, error) { return parseSchemaAt(doc, 0) }

func parseSchemaAt(doc bsoncore.Document, depth int) (*schema, error) {
	if depth > maxDepth {
		return nil, badValue("exceeded maximum query tree depth of %d in $jsonSchema", maxDepth)
	}
	p := &schemaParser{doc: doc, depth: depth, s: &schema{
		minLength: -1, maxLength: -1, minItems: -1, maxItems: -1, minProperties: -1, maxProperties: -1,
	}}
	if err := p.checkKeywords(); err != nil {
		return nil, err
	}
	p.above, p.below = p.set("exclusiveMinimum"), p.set("exclusiveMaximum")
	for e := path.ElementsOf(doc); ; {
		name, v, ok := e.Next()
		if !ok {
			return p.s, p.finish()
		}
		if err := p.keyword(string(name), v); err != nil {
			return nil, err
		}
	}
}

// schemaParser parses one level of a schema.
type schemaParser struct {
	doc   bsoncore.Document
	depth int
	s     *schema

	above, below bool // exclusiveMinimum, exclusiveMaximum
}

// keyword parses one keyword.
func (p *schemaParser) keyword(name string, v bsoncore.Value) error {
	switch name {
	case "type", "bsonType":
		return p.types(name, v)
	case "enum":
		return p.enum(v)
	case "allOf", "anyOf", "oneOf", "not":
		return p.combination(name, v)
	case "title", "description":
		if v.Type != bsoncore.TypeString {
			return mismatch("$jsonSchema keyword '%s' must be of type string", name)
		}
		return nil
	case "encrypt", "encryptMetadata":
		return p.encrypt(name, v)
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf":
		p.s.about |= aboutNumbers
		return p.numbers(name, v)
	case "minLength":
		return p.natural(&p.s.minLength, aboutStrings, name, v)
	case "maxLength":
		return p.natural(&p.s.maxLength, aboutStrings, name, v)
	case "pattern":
		return p.pattern(v)
	case "minItems":
		return p.natural(&p.s.minItems, aboutArrays, name, v)
	case "maxItems":
		return p.natural(&p.s.maxItems, aboutArrays, name, v)
	case "uniqueItems", "items", "additionalItems":
		p.s.about |= aboutArrays
		return p.arrays(name, v)
	case "minProperties":
		return p.natural(&p.s.minProperties, aboutObjects, name, v)
	case "maxProperties":
		return p.natural(&p.s.maxProperties, aboutObjects, name, v)
	case "required", "properties", "patternProperties", "additionalProperties", "dependencies":
		p.s.about |= aboutObjects
		return p.objects(name, v)
	}
	return nil
}

// checkKeywords refuses keywords that there are not, before any of the others is looked at.
func (p *schemaParser) checkKeywords() error {
	for e := path.ElementsOf(p.doc); ; {
		name, _, ok := e.Next()
		if !ok {
			return nil
		}
		switch string(name) {
		case "$ref", "$schema", "default", "definitions", "format", "id":
			return failedToParse("$jsonSchema keyword '%s' is not currently supported", name)
		case "type", "bsonType", "enum", "allOf", "anyOf", "oneOf", "not", "title", "description", "encrypt", "encryptMetadata",
			"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern", "minItems",
			"maxItems", "uniqueItems", "items", "additionalItems", "minProperties", "maxProperties", "required", "properties",
			"patternProperties", "additionalProperties", "dependencies":
		default:
			return failedToParse("Unknown $jsonSchema keyword: %s", name)
		}
	}
}

// finish checks what concerns several keywords.
func (p *schemaParser) finish() error {
	_, both := path.Lookup(p.doc, "type")
	if _, bson := path.Lookup(p.doc, "bsonType"); both && bson {
		return failedToParse("Cannot specify both $jsonSchema keywords 'type' and 'bsonType'")
	}
	p.s.known = make(map[string]bool, len(p.s.properties))
	for _, property := range p.s.properties {
		p.s.known[property.name] = true
	}
	return nil
}

func (p *schemaParser) natural(to *int64, about keywords, name string, v bsoncore.Value) error {
	n, problem := naturalOf(name, v)
	if problem != "" {
		return failedToParse("%s", problem)
	}
	*to = n
	p.s.about |= about
	return nil
}

func (p *schemaParser) types(keyword string, v bsoncore.Value) error {
	var names []string
	seen := map[string]bool{}
	switch v.Type {
	case bsoncore.TypeString:
		names = []string{v.StringValue()}
	case bsoncore.TypeArray:
		for e := path.ElementsOf(v.Data); ; {
			_, v, ok := e.Next()
			if !ok {
				break
			}
			if v.Type != bsoncore.TypeString {
				return mismatch("$jsonSchema keyword '%s' array elements must be strings", keyword)
			}
			name := v.StringValue()
			if seen[name] {
				return failedToParse("$jsonSchema keyword '%s' has duplicate value: %s", keyword, name)
			}
			seen[name] = true
			names = append(names, name)
		}
	default:
		return mismatch("$jsonSchema keyword '%s' must be either a string or an array of strings", keyword)
	}
	if len(names) == 0 {
		return failedToParse("$jsonSchema keyword '%s' must name at least one type", keyword)
	}
	set := &Type{}
	for _, name := range names {
		if name == "integer" {
			return failedToParse("$jsonSchema type 'integer' is not currently supported.")
		}
		if keyword == "type" {
			alias, ok := jsonType(name)
			if !ok {
				return badValue("Unknown type name alias: %s", name)
			}
			name = alias
		}
		if err := set.add(stringValue(name)); err != nil {
			return err
		}
	}
	p.s.types = set.Types
	return nil
}

// jsonType returns the alias of a type that JSON has.
func jsonType(name string) (string, bool) {
	switch name {
	case "array", "null", "number", "object", "string":
		return name, true
	case "boolean":
		return "bool", true
	}
	return "", false
}

func stringValue(s string) bsoncore.Value {
	return bsoncore.Value{Type: bsoncore.TypeString, Data: bsoncore.AppendString(nil, s)}
}

func (p *schemaParser) enum(v bsoncore.Value) error {
	if v.Type != bsoncore.TypeArray {
		return mismatch("$jsonSchema keyword 'enum' must be an array, but found an element of type %s", mongoerror.TypeName(v.Type))
	}
	for e := path.ElementsOf(v.Data); ; {
		_, v, ok := e.Next()
		if !ok {
			break
		}
		p.s.enum = append(p.s.enum, sorted(v))
	}
	if len(p.s.enum) == 0 {
		return failedToParse("$jsonSchema keyword 'enum' cannot be an empty array")
	}
	slices.SortFunc(p.s.enum, func(a, b bsoncore.Value) int { return order.Compare(a, b, nil) })
	for i := 1; i < len(p.s.enum); i++ {
		if order.Equal(p.s.enum[i-1], p.s.enum[i], nil) {
			return failedToParse("$jsonSchema keyword 'enum' array cannot contain duplicate values.")
		}
	}
	return nil
}

func (p *schemaParser) combination(name string, v bsoncore.Value) error {
	if name == "not" {
		if v.Type != bsoncore.TypeEmbeddedDocument {
			return mismatch("$jsonSchema keyword 'not' must be an object, but found an element of type %s", mongoerror.TypeName(v.Type))
		}
		inner, err := parseSchemaAt(v.Data, p.depth+1)
		p.s.not = append(p.s.not, inner)
		return err
	}
	if v.Type != bsoncore.TypeArray {
		return mismatch("$jsonSchema keyword '%s' must be an array", name)
	}
	var schemas []*schema
	for e := path.ElementsOf(v.Data); ; {
		_, v, ok := e.Next()
		if !ok {
			break
		}
		if v.Type != bsoncore.TypeEmbeddedDocument {
			return mismatch("$jsonSchema keyword '%s' must be an array of objects, but found an element of type %s", name, mongoerror.TypeName(v.Type))
		}
		inner, err := parseSchemaAt(v.Data, p.depth+1)
		if err != nil {
			return err
		}
		schemas = append(schemas, inner)
	}
	if len(schemas) == 0 {
		return badValue("$jsonSchema keyword '%s' must be a non-empty array", name)
	}
	switch name {
	case "allOf":
		p.s.all = append(p.s.all, schemas...)
	case "anyOf":
		p.s.any = append(p.s.any, schemas)
	default:
		p.s.one = append(p.s.one, schemas)
	}
	return nil
}

// encrypt parses the keywords of client-side encryption: the client has used them already, and what is left is the type.
func (p *schemaParser) encrypt(name string, v bsoncore.Value) error {
	if v.Type != bsoncore.TypeEmbeddedDocument {
		return mismatch("$jsonSchema keyword '%s' must be an object", name)
	}
	if name == "encryptMetadata" && len(v.Data) <= bsoncore.EmptyDocumentLength {
		return failedToParse("$jsonSchema keyword 'encryptMetadata' cannot be an empty object")
	}
	p.s.encrypted = p.s.encrypted || name == "encrypt"
	for e := path.ElementsOf(v.Data); ; {
		field, _, ok := e.Next()
		switch {
		case !ok:
			return nil
		case string(field) != "bsonType" && string(field) != "keyId" && string(field) != "algorithm":
			return mongoerror.New(unknownField, "BSON field '%s.%s' is an unknown field.", name, field)
		}
	}
}

// unknownField is the code, which has no name, of a field that a specification cannot have.
const unknownField mongoerror.Code = 40415

func (p *schemaParser) numbers(name string, v bsoncore.Value) error {
	n, isNumber := number.Of(v)
	switch name {
	case "exclusiveMinimum", "exclusiveMaximum":
		bound := strings.ToLower(strings.TrimPrefix(name, "exclusive"))
		if _, ok := path.Lookup(p.doc, bound); !ok {
			return failedToParse("$jsonSchema keyword '%s' must be a present if %s is present", bound, name)
		}
		if v.Type != bsoncore.TypeBoolean {
			return mismatch("$jsonSchema keyword '%s' must be a boolean", name)
		}
		return nil
	}
	if !isNumber {
		return mismatch("$jsonSchema keyword '%s' must be a number", name)
	}
	switch name {
	case "minimum":
		op := Gte
		if p.above {
			op = Gt
		}
		p.s.comparesMin = newCompareTest(&Comparison{Op: op, Value: v}, nil)
	case "maximum":
		op := Lte
		if p.below {
			op = Lt
		}
		p.s.comparesMax = newCompareTest(&Comparison{Op: op, Value: v}, nil)
	default:
		return p.multipleOf(n)
	}
	return nil
}

// set reports whether a keyword is there and true.
func (p *schemaParser) set(name string) bool {
	v, _ := path.Lookup(p.doc, name)
	return v.Type == bsoncore.TypeBoolean && v.Boolean()
}

func (p *schemaParser) multipleOf(n number.Number) error {
	switch {
	case n.IsNaN():
		return badValue("divisor cannot be NaN")
	case n.IsInf() && n.Float64() > 0:
		return badValue("divisor cannot be infinite")
	case n.Sign() <= 0:
		return failedToParse("$jsonSchema keyword 'multipleOf' must have a positive value")
	}
	d := n.Decimal()
	p.s.multipleOf = &d
	return nil
}

func (p *schemaParser) pattern(v bsoncore.Value) error {
	if v.Type != bsoncore.TypeString {
		return mismatch("$jsonSchema keyword 'pattern' must be a string")
	}
	r, err := newRegex("", v.StringValue(), "")
	p.s.pattern = r
	p.s.about |= aboutStrings
	return err
}

// messageOf returns the message of an error without its code.
func messageOf(err error) string {
	if e, ok := err.(*mongoerror.Error); ok {
		return e.Message
	}
	return err.Error()
}
