package query

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/path"
)

func (p *schemaParser) arrays(name string, v bsoncore.Value) error {
	switch {
	case name == "uniqueItems":
		if v.Type != bsoncore.TypeBoolean {
			return mismatch("$jsonSchema keyword 'uniqueItems' must be a boolean")
		}
		p.s.unique = v.Boolean()
		return nil
	case name == "items" && v.Type == bsoncore.TypeArray:
		p.s.hasTuple = true
		return p.tuple(v)
	case name == "items" && v.Type == bsoncore.TypeEmbeddedDocument:
		inner, err := parseSchemaAt(v.Data, p.depth+1)
		p.s.items = inner
		return err
	case name == "items":
		return mismatch("$jsonSchema keyword 'items' must be an array or an object, not %s", mongoerror.TypeName(v.Type))
	}
	inner, err := p.others(v)
	if inner == nil && err == nil {
		return mismatch("$jsonSchema keyword 'additionalItems' must be either an object or a boolean, but got a %s", mongoerror.TypeName(v.Type))
	}
	p.s.additionalItems = inner
	return err
}

func (p *schemaParser) tuple(v bsoncore.Value) error {
	for e := path.ElementsOf(v.Data); ; {
		_, v, ok := e.Next()
		if !ok {
			return nil
		}
		if v.Type != bsoncore.TypeEmbeddedDocument {
			return mismatch("$jsonSchema keyword 'items' requires that each element of the array is an object, but found a %s", mongoerror.TypeName(v.Type))
		}
		inner, err := parseSchemaAt(v.Data, p.depth+1)
		if err != nil {
			return err
		}
		p.s.tuple = append(p.s.tuple, inner)
	}
}

// others parses what is asked of elements or properties that are not listed: a schema, or whether they are allowed. It returns nil
// for anything else.
func (p *schemaParser) others(v bsoncore.Value) (*schema, error) {
	switch v.Type {
	case bsoncore.TypeEmbeddedDocument:
		return parseSchemaAt(v.Data, p.depth+1)
	case bsoncore.TypeBoolean:
		s, err := parseSchemaAt(nil, p.depth+1)
		if err == nil && !v.Boolean() {
			s.types = []bsoncore.Type{}
		}
		return s, err
	}
	return nil, nil
}

func (p *schemaParser) objects(name string, v bsoncore.Value) error {
	switch name {
	case "required":
		return p.required(v)
	case "additionalProperties":
		inner, err := p.others(v)
		if inner == nil && err == nil {
			return mismatch("$jsonSchema keyword 'additionalProperties' must be an object or a boolean")
		}
		p.s.additional = inner
		return err
	}
	if v.Type != bsoncore.TypeEmbeddedDocument {
		return mismatch("$jsonSchema keyword '%s' must be an object", name)
	}
	for e := path.ElementsOf(v.Data); ; {
		key, v, ok := e.Next()
		if !ok {
			return nil
		}
		var err error
		switch name {
		case "properties":
			err = p.property(string(key), v)
		case "patternProperties":
			err = p.patternProperty(string(key), v)
		default:
			err = p.dependency(string(key), v)
		}
		if err != nil {
			return err
		}
	}
}

func (p *schemaParser) required(v bsoncore.Value) error {
	if v.Type != bsoncore.TypeArray {
		return mismatch("$jsonSchema keyword 'required' must be an array, but found an element of type %s", mongoerror.TypeName(v.Type))
	}
	names, err := distinctNames(v, func(typeName string) error {
		return mismatch("$jsonSchema keyword 'required' must be an array of strings, but found an element of type: %s", typeName)
	}, func(string) error {
		return failedToParse("$jsonSchema keyword 'required' array cannot contain duplicate values")
	})
	if err != nil {
		return err
	}
	p.s.required = append(p.s.required, names...)
	if len(p.s.required) == 0 {
		return failedToParse("$jsonSchema keyword 'required' cannot be an empty array")
	}
	return nil
}

// distinctNames returns the strings of an array; wrong and twice make the errors of what is none, and of what comes again.
func distinctNames(list bsoncore.Value, wrong, twice func(what string) error) (names []string, err error) {
	seen := map[string]bool{}
	for e := path.ElementsOf(list.Data); ; {
		_, v, ok := e.Next()
		if !ok {
			return names, nil
		}
		if v.Type != bsoncore.TypeString {
			return nil, wrong(mongoerror.TypeName(v.Type))
		}
		name := v.StringValue()
		if seen[name] {
			return nil, twice(name)
		}
		seen[name] = true
		names = append(names, name)
	}
}

func (p *schemaParser) property(name string, v bsoncore.Value) error {
	if v.Type != bsoncore.TypeEmbeddedDocument {
		return mismatch("Nested schema for $jsonSchema property '%s' must be an object", name)
	}
	inner, err := parseSchemaAt(v.Data, p.depth+1)
	p.s.properties = append(p.s.properties, property{name, inner})
	return err
}

func (p *schemaParser) patternProperty(name string, v bsoncore.Value) error {
	if v.Type != bsoncore.TypeEmbeddedDocument {
		return mismatch("$jsonSchema keyword 'patternProperties' has property '%s' which is not an object", name)
	}
	r, err := newRegex("", name, "")
	if err != nil {
		return badValue("Invalid regular expression: %s", strings.TrimPrefix(messageOf(err), "Regular expression is invalid: "))
	}
	inner, err := parseSchemaAt(v.Data, p.depth+1)
	p.s.patterns = append(p.s.patterns, patternProperty{r, inner})
	return err
}

func (p *schemaParser) dependency(name string, v bsoncore.Value) (err error) {
	d := dependency{name: name}
	switch v.Type {
	case bsoncore.TypeEmbeddedDocument:
		inner, err := parseSchemaAt(v.Data, p.depth+1)
		d.schema = inner
		p.s.dependencies = append(p.s.dependencies, d)
		return err
	case bsoncore.TypeArray:
	default:
		return mismatch("property '%s' in $jsonSchema keyword 'dependencies' must be either an object or an array", name)
	}
	d.others, err = distinctNames(v, func(typeName string) error {
		return mismatch("array '%s' in $jsonSchema keyword 'dependencies' can only contain strings, but found element of type: %s", name, typeName)
	}, func(other string) error {
		return failedToParse("array '%s' in $jsonSchema keyword 'dependencies' contains duplicate element: %s", name, other)
	})
	if err != nil {
		return err
	}
	if len(d.others) == 0 {
		return failedToParse("property '%s' in $jsonSchema keyword 'dependencies' cannot be an empty array", name)
	}
	p.s.dependencies = append(p.s.dependencies, d)
	return nil
}
