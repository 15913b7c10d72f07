package query

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/expression"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/path"
)

// Failure tells why a document does not match a filter, in the form that MongoDB has for the details of a failed validation: each
// operator with what it was given, why it failed, and the values it looked at.
func Failure(filter bsoncore.Document, o *Options, doc bsoncore.Document) (bsoncore.Document, error) {
	if o == nil {
		o = new(Options)
	}
	x := &explainer{options: o, doc: doc}
	d := x.filter(filter, false)
	return d.Build(), x.err
}

// explainer walks over a filter. What inverted means everywhere: the part at hand is within a negation, and it matches.
type explainer struct {
	options *Options
	doc     bsoncore.Document
	err     error // the first
}

type details = *bsoncore.DocumentBuilder

func newDetails(operator string) details {
	return bsoncore.NewDocumentBuilder().AppendString("operatorName", operator)
}

func (x *explainer) matches(filter bsoncore.Document) bool {
	f, err := Parse(filter, x.options)
	if err == nil {
		var ok bool
		if ok, err = f.Match(path.Document(x.doc)); err == nil {
			return ok
		}
	}
	if x.err == nil {
		x.err = err
	}
	return false
}

// clausesOf splits a filter into conditions of one operator each.
func clausesOf(filter bsoncore.Document) (clauses []bsoncore.Document) {
	for e := path.ElementsOf(filter); ; {
		name, v, ok := e.Next()
		switch {
		case !ok:
			return clauses
		case string(name) == "$comment":
		case len(name) > 0 && name[0] == '$' && !isReference(string(name)) || !isOperators(v):
			clauses = append(clauses, one(string(name), v))
		default:
			for _, condition := range conditionsOf(v.Data) {
				clauses = append(clauses, one(string(name), embedded(condition)))
			}
		}
	}
}

// conditionsOf splits {$gt: 1, $lt: 5}; $regex keeps its $options.
func conditionsOf(operators bsoncore.Document) (conditions []bsoncore.Document) {
	options, _ := path.Lookup(operators, "$options")
	for e := path.ElementsOf(operators); ; {
		name, v, ok := e.Next()
		switch {
		case !ok:
			return conditions
		case string(name) == "$options":
		case string(name) == "$regex" && options.Type != 0:
			b := bsoncore.NewDocumentBuilder().AppendValue("$regex", v).AppendValue("$options", options)
			conditions = append(conditions, b.Build())
		default:
			conditions = append(conditions, one(string(name), v))
		}
	}
}

func one(name string, v bsoncore.Value) bsoncore.Document {
	return bsoncore.NewDocumentBuilder().AppendValue(name, v).Build()
}

func embedded(doc bsoncore.Document) bsoncore.Value {
	return bsoncore.Value{Type: bsoncore.TypeEmbeddedDocument, Data: doc}
}

func (x *explainer) filter(filter bsoncore.Document, inverted bool) details {
	clauses := clausesOf(filter)
	if len(clauses) == 1 {
		return x.clause(clauses[0], inverted)
	}
	return x.junction("$and", clauses, inverted)
}

// junction is $and, $or or $nor of clauses: those that have caused the result.
func (x *explainer) junction(operator string, clauses []bsoncore.Document, inverted bool) details {
	d := newDetails(operator)
	wanted := inverted != (operator == "$nor")
	list := bsoncore.NewArrayBuilder()
	for i, clause := range clauses {
		if x.matches(clause) == wanted {
			list.AppendDocument(bsoncore.NewDocumentBuilder().AppendInt32("index", int32(i)).
				AppendDocument("details", x.filter(clause, wanted).Build()).Build())
		}
	}
	name := "clausesNotSatisfied"
	if wanted {
		name = "clausesSatisfied"
	}
	return d.AppendArray(name, list.Build())
}

// clause explains a condition of one operator.
func (x *explainer) clause(clause bsoncore.Document, inverted bool) details {
	e := path.ElementsOf(clause)
	key, v, _ := e.Next()
	switch name := string(key); name {
	case "$and", "$or", "$nor":
		var clauses []bsoncore.Document
		for list := path.ElementsOf(v.Data); ; {
			_, item, ok := list.Next()
			if !ok {
				return x.junction(name, clauses, inverted)
			}
			clauses = append(clauses, item.Data)
		}
	case "$jsonSchema":
		if inverted {
			return newDetails(name).AppendString("reason", "schema matched")
		}
		return x.schema(v.Data)
	case "$expr":
		return x.expression(clause, v, inverted)
	case "$sampleRate":
		return newDetails(name).AppendDocument("specifiedAs", clause).
			AppendString("reason", reasonOf(name, inverted)).AppendBoolean("expressionResult", inverted)
	default:
		if name != "" && name[0] == '$' && !isReference(name) {
			return newDetails(name).AppendDocument("specifiedAs", clause)
		}
		return x.field(name, clause, v, inverted)
	}
}

func (x *explainer) expression(clause bsoncore.Document, v bsoncore.Value, inverted bool) details {
	d := newDetails("$expr").AppendDocument("specifiedAs", clause)
	e, err := expression.Parse(v, &expression.Options{Collation: x.options.Collation, Let: x.options.Let, Now: x.options.Now})
	var result bsoncore.Value
	if err == nil {
		result, err = e.Eval(x.doc)
	}
	if err != nil && x.err == nil {
		x.err = err
	}
	if d.AppendString("reason", reasonOf("$expr", inverted)); result.Type != 0 {
		d.AppendValue("expressionResult", result)
	}
	return d
}

// field explains what is asked of one field.
func (x *explainer) field(name string, clause bsoncore.Document, v bsoncore.Value, inverted bool) details {
	operator := "$eq"
	switch {
	case isOperators(v):
		e := path.ElementsOf(v.Data)
		first, operand, _ := e.Next()
		if operator = string(first); operator == "$not" {
			inner := one(name, operand)
			return newDetails("$not").AppendDocument("details", x.filter(inner, !inverted).Build())
		}
		v = operand
	case v.Type == bsoncore.TypeRegex:
		operator = "$regex"
	}
	d := newDetails(operator).AppendDocument("specifiedAs", clause)
	if operator == "$all" && len(v.Data) <= bsoncore.EmptyDocumentLength {
		return d.AppendString("reason", "expression always evaluates to false")
	}
	if operator == "$exists" {
		if truthy(v) == inverted {
			return d.AppendString("reason", "path does exist")
		}
		return d.AppendString("reason", "path does not exist")
	}
	values, found := x.considered(name, operator)
	if !found {
		return d.AppendString("reason", "field was missing")
	}
	if expected := expectedTypes(operator); expected != nil && !inverted && !anyOfTypes(values, expected) {
		appendTypes(d.AppendString("reason", "type did not match"), values)
		if len(expected) == 1 {
			d.AppendString("expectedType", expected[0])
		} else {
			d.AppendArray("expectedTypes", texts(expected))
		}
		return appendConsidered(d, values)
	}
	appendConsidered(d.AppendString("reason", reasonOf(operator, inverted)), values)
	if operator == "$type" {
		appendTypes(d, values)
	}
	return d
}

// considered returns the values that an operator looks at; found is false when the path leads nowhere first.
func (x *explainer) considered(name, operator string) (values []bsoncore.Value, found bool) {
	c := &collector{whole: operator == "$size" || operator == "$elemMatch" || operator == "$all"}
	c.walk(embedded(x.doc), strings.Split(name, "."))
	return c.values, c.found
}

// collector gathers the values at a path.
type collector struct {
	whole        bool // arrays are values too, and not their elements
	values       []bsoncore.Value
	found, ended bool
}

// missing ends the walk where the path leads nowhere: what comes behind does not count.
func (c *collector) missing() { c.ended = true }

func (c *collector) walk(v bsoncore.Value, segments []string) {
	v, ok := path.Lookup(v.Data, segments[0])
	if segments = segments[1:]; !ok {
		c.missing()
	} else {
		c.below(v, segments)
	}
}

// below goes on from a value: through the elements of an array that are documents, and to the one that the path names by its position.
func (c *collector) below(v bsoncore.Value, segments []string) {
	switch {
	case c.ended:
	case len(segments) == 0:
		c.take(v)
	case v.Type == bsoncore.TypeEmbeddedDocument:
		c.walk(v, segments)
	case v.Type == bsoncore.TypeArray:
		for e := path.ElementsOf(v.Data); !c.ended; {
			position, item, ok := e.Next()
			if !ok {
				break
			}
			if item.Type == bsoncore.TypeEmbeddedDocument {
				c.walk(item, segments)
			}
			switch {
			case c.ended || string(position) != segments[0]:
			case len(segments) == 1:
				c.found, c.values = true, append(c.values, item)
			default:
				c.below(item, segments[1:])
			}
		}
	default:
		c.missing()
	}
}

func (c *collector) take(v bsoncore.Value) {
	c.found = true
	if v.Type != bsoncore.TypeArray || c.whole {
		c.values = append(c.values, v)
		return
	}
	for e := path.ElementsOf(v.Data); ; {
		_, item, ok := e.Next()
		if !ok {
			return
		}
		c.values = append(c.values, item)
	}
}

// expectedTypes returns the names of the types that an operator is for; nil: all.
func expectedTypes(operator string) []string {
	switch operator {
	case "$size", "$elemMatch":
		return []string{"array"}
	case "$mod":
		return []string{"decimal", "double", "int", "long"}
	case "$bitsAllSet", "$bitsAllClear", "$bitsAnySet", "$bitsAnyClear":
		return []string{"binData", "decimal", "double", "int", "long"}
	case "$regex":
		return []string{"regex", "string", "symbol"}
	}
	return nil
}

func anyOfTypes(values []bsoncore.Value, names []string) bool {
	return slices.ContainsFunc(values, func(v bsoncore.Value) bool { return slices.Contains(names, mongoerror.TypeName(v.Type)) })
}

func texts(list []string) bsoncore.Array {
	b := bsoncore.NewArrayBuilder()
	for _, s := range list {
		b.AppendString(s)
	}
	return b.Build()
}

func appendTypes(d details, values []bsoncore.Value) {
	var names []string
	for _, v := range values {
		names = append(names, mongoerror.TypeName(v.Type))
	}
	slices.Sort(names)
	switch names = slices.Compact(names); len(names) {
	case 0:
	case 1:
		d.AppendString("consideredType", names[0])
	default:
		d.AppendArray("consideredTypes", texts(names))
	}
}

func appendConsidered(d details, values []bsoncore.Value) details {
	if len(values) == 1 {
		return d.AppendValue("consideredValue", values[0])
	}
	list := bsoncore.NewArrayBuilder()
	for _, v := range values {
		list.AppendValue(v)
	}
	return d.AppendArray("consideredValues", list.Build())
}

// reasonOf says why an operator does not match, or inverted why it does.
func reasonOf(operator string, inverted bool) string {
	fails, matches := reasonsOf(operator)
	if inverted {
		return matches
	}
	return fails
}

func reasonsOf(operator string) (fails, matches string) {
	switch operator {
	case "$in":
		return "no matching value found in array", "matching value found in array"
	case "$nin":
		return "matching value found in array", "no matching value found in array"
	case "$ne":
		return "comparison succeeded", "comparison failed"
	case "$type":
		return "type did not match", "type did match"
	case "$size":
		return "array length was not equal to given size", "array length was equal to given size"
	case "$mod":
		return "$mod did not evaluate to expected remainder", "$mod did evaluate to expected remainder"
	case "$regex":
		return "regular expression did not match", "regular expression did match"
	case "$all":
		return "array did not contain all specified values", "array did contain all specified values"
	case "$elemMatch":
		return "array did not satisfy the child predicate", "array did satisfy the child predicate"
	case "$expr", "$sampleRate":
		return "expression did not match", "expression did match"
	case "$bitsAllSet", "$bitsAllClear", "$bitsAnySet", "$bitsAnyClear":
		return "bitwise operator failed to match", "bitwise operator matched successfully"
	case "$geoWithin", "$within":
		return "none of the considered geometries were contained within the expression\u2019s geometry",
			"at least one of considered geometries was contained within the expression\u2019s geometry"
	case "$geoIntersects":
		return "none of the considered geometries intersected the expression\u2019s geometry",
			"at least one of considered geometries intersected the expression\u2019s geometry"
	}
	return "comparison failed", "comparison succeeded"
}
