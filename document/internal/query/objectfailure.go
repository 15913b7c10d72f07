package query

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/path"
)

func (x *explainer) properties(_ bsoncore.Document, operand, v bsoncore.Value) details {
	var broken []bsoncore.Document
	for e := path.ElementsOf(operand.Data); ; {
		name, schema, ok := e.Next()
		if !ok {
			break
		}
		value, there := path.Lookup(v.Data, string(name))
		if !there {
			continue
		}
		if rules := x.rules(schema.Data, value); len(rules) > 0 {
			d := bsoncore.NewDocumentBuilder().AppendString("propertyName", string(name))
			appendTitles(d, schema.Data)
			broken = append(broken, d.AppendArray("details", listOf(rules)).Build())
		}
	}
	if broken == nil {
		return nil
	}
	return newDetails("properties").AppendArray("propertiesNotSatisfied", listOf(broken))
}

// patternsOf returns the parsed names of patternProperties.
func patternsOf(operand bsoncore.Value) (patterns []*Regex) {
	for e := path.ElementsOf(operand.Data); ; {
		name, _, ok := e.Next()
		if !ok {
			return patterns
		}
		if r, err := newRegex("", string(name), ""); err == nil {
			patterns = append(patterns, r)
		}
	}
}

func (x *explainer) fits(r *Regex, name []byte) bool {
	ok, err := r.test(stringValue(string(name)), nil)
	if err != nil && x.err == nil {
		x.err = err
	}
	return ok
}

func (x *explainer) patternProperties(_ bsoncore.Document, operand, v bsoncore.Value) details {
	patterns := patternsOf(operand)
	var broken []bsoncore.Document
	for fields := path.ElementsOf(v.Data); broken == nil; { // the first property that fails is told
		name, value, ok := fields.Next()
		if !ok {
			break
		}
		schemas := path.ElementsOf(operand.Data)
		for _, p := range patterns {
			pattern, schema, _ := schemas.Next()
			if !x.fits(p, name) {
				continue
			}
			if rules := x.rules(schema.Data, value); len(rules) > 0 {
				d := bsoncore.NewDocumentBuilder().AppendString("propertyName", string(name))
				appendTitles(d, schema.Data)
				broken = append(broken, d.AppendString("regexMatched", string(pattern)).AppendArray("details", listOf(rules)).Build())
			}
		}
	}
	if broken == nil {
		return nil
	}
	return newDetails("patternProperties").AppendArray("details", listOf(broken))
}

func (x *explainer) additionalProperties(spec bsoncore.Document, operand, v bsoncore.Value) details {
	known, _ := path.Lookup(spec, "properties")
	named, _ := path.Lookup(spec, "patternProperties")
	patterns := patternsOf(named)
	var names []string
	for fields := path.ElementsOf(v.Data); ; {
		name, value, ok := fields.Next()
		if !ok {
			break
		}
		if _, there := path.Lookup(known.Data, string(name)); there ||
			slices.ContainsFunc(patterns, func(p *Regex) bool { return x.fits(p, name) }) {
			continue
		}
		if operand.Type != bsoncore.TypeEmbeddedDocument {
			names = append(names, string(name))
		} else if rules := x.rules(operand.Data, value); len(rules) > 0 {
			d := newDetails("additionalProperties")
			appendTitles(d, operand.Data)
			return d.AppendString("reason", "at least one additional property did not match the subschema").
				AppendString("failingProperty", string(name)).AppendArray("details", listOf(rules))
		}
	}
	if names == nil || truthy(operand) {
		return nil
	}
	return newDetails("additionalProperties").AppendDocument("specifiedAs", one("additionalProperties", operand)).
		AppendArray("additionalProperties", texts(names))
}

// missing returns those of the names that are no fields of a document.
func missing(names, v bsoncore.Value) (list []string) {
	for e := path.ElementsOf(names.Data); ; {
		_, name, ok := e.Next()
		if !ok {
			return list
		}
		if _, there := path.Lookup(v.Data, name.StringValue()); !there {
			list = append(list, name.StringValue())
		}
	}
}

func (x *explainer) required(_ bsoncore.Document, operand, v bsoncore.Value) details {
	names := missing(operand, v)
	if names == nil {
		return nil
	}
	slices.Sort(names)
	return newDetails("required").AppendDocument("specifiedAs", one("required", operand)).AppendArray("missingProperties", texts(names))
}

func (x *explainer) dependencies(_ bsoncore.Document, operand, v bsoncore.Value) details {
	var broken []bsoncore.Document
	for e := path.ElementsOf(operand.Data); ; {
		name, asked, ok := e.Next()
		if !ok {
			break
		}
		if _, there := path.Lookup(v.Data, string(name)); !there {
			continue
		}
		d := bsoncore.NewDocumentBuilder().AppendString("conditionalProperty", string(name))
		if asked.Type == bsoncore.TypeArray {
			if names := missing(asked, v); names != nil {
				broken = append(broken, d.AppendArray("missingProperties", texts(names)).Build())
			}
		} else if rules := x.rules(asked.Data, v); len(rules) > 0 {
			broken = append(broken, d.AppendArray("details", listOf(rules)).Build())
		}
	}
	if broken == nil {
		return nil
	}
	return newDetails("dependencies").AppendArray("failingDependencies", listOf(broken))
}

// schemas explains those of a list of schemas that a value does not satisfy, and returns the positions of the others.
func (x *explainer) schemas(list, v bsoncore.Value) (broken []bsoncore.Document, satisfied []int32) {
	e := path.ElementsOf(list.Data)
	for i := int32(0); ; i++ {
		_, schema, ok := e.Next()
		if !ok {
			return broken, satisfied
		}
		if x.satisfies(schema.Data, v) {
			satisfied = append(satisfied, i)
			continue
		}
		d := bsoncore.NewDocumentBuilder().AppendInt32("index", i)
		appendTitles(d, schema.Data)
		broken = append(broken, d.AppendArray("details", listOf(x.rules(schema.Data, v))).Build())
	}
}

func (x *explainer) allOf(_ bsoncore.Document, operand, v bsoncore.Value) details {
	broken, _ := x.schemas(operand, v)
	if broken == nil {
		return nil
	}
	return newDetails("allOf").AppendArray("schemasNotSatisfied", listOf(broken))
}

func (x *explainer) anyOf(_ bsoncore.Document, operand, v bsoncore.Value) details {
	broken, satisfied := x.schemas(operand, v)
	if satisfied != nil {
		return nil
	}
	return newDetails("anyOf").AppendArray("schemasNotSatisfied", listOf(broken))
}

func (x *explainer) oneOf(_ bsoncore.Document, operand, v bsoncore.Value) details {
	broken, satisfied := x.schemas(operand, v)
	switch len(satisfied) {
	case 0:
		return newDetails("oneOf").AppendArray("schemasNotSatisfied", listOf(broken))
	case 1:
		return nil
	}
	list := bsoncore.NewArrayBuilder()
	for _, i := range satisfied {
		list.AppendInt32(i)
	}
	return newDetails("oneOf").AppendString("reason", "more than one subschema matched").AppendArray("matchingSchemaIndexes", list.Build())
}

func (x *explainer) not(_ bsoncore.Document, operand, v bsoncore.Value) details {
	if !x.satisfies(operand.Data, v) {
		return nil
	}
	return newDetails("not").AppendString("reason", "child expression matched")
}
