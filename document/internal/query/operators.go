package query

import (
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/notation"
	"github.com/pandodb/pando/document/internal/path"
)

// operators parses {$gt: 1, $lt: 5}, what is asked of one field.
func (p *parser) operators(name string, doc bsoncore.Document, depth int) (Node, error) {
	if depth > maxDepth {
		return nil, badValue("exceeded maximum query tree depth of %d at %s", maxDepth,
			notation.Document(doc))
	}
	if isNear(doc) {
		return p.near(name, doc)
	}
	and := &And{}
	around := siblings{doc: doc}
	_, around.regex = path.Lookup(doc, "$regex")
	around.options, _ = path.Lookup(doc, "$options")
	for e := path.ElementsOf(doc); ; {
		op, v, ok := e.Next()
		if !ok {
			break
		}
		n, err := p.operator(name, string(op), v, &around, depth)
		if err != nil {
			return nil, err
		}
		if n != nil {
			and.Children = append(and.Children, n)
		}
	}
	if len(and.Children) == 1 {
		return and.Children[0], nil
	}
	return and, nil
}

// siblings is what an operator may have to know of those beside it.
type siblings struct {
	doc     bsoncore.Document
	regex   bool           // there is $regex
	options bsoncore.Value // $options
}

// operator parses one operator.
func (p *parser) operator(name, op string, v bsoncore.Value, around *siblings, depth int) (Node, error) {
	switch op {
	case "$eq":
		return p.comparison(name, Eq, v)
	case "$gt":
		return p.comparison(name, Gt, v)
	case "$gte":
		return p.comparison(name, Gte, v)
	case "$lt":
		return p.comparison(name, Lt, v)
	case "$lte":
		return p.comparison(name, Lte, v)
	case "$ne":
		if v.Type == bsoncore.TypeRegex {
			return nil, badValue("Can't have regex as arg to $ne.")
		}
		return negate(p.comparison(name, Eq, v))
	case "$in":
		return p.in(name, op, v)
	case "$nin":
		return negate(p.in(name, op, v))
	case "$not":
		return p.not(name, v, depth)
	case "$exists":
		if truthy(v) {
			return &Exists{name}, nil
		}
		return &Not{&Exists{name}}, nil
	case "$type":
		return parseType(name, v)
	case "$regex":
		return p.regex(name, v, around.options)
	case "$options":
		if !around.regex {
			return nil, badValue("$options needs a $regex")
		}
		return nil, nil
	case "$mod":
		return parseMod(name, v)
	case "$size":
		return parseSize(name, v)
	case "$all":
		return p.all(name, v, depth)
	case "$elemMatch":
		return p.elemMatch(name, v, depth)
	case "$bitsAllSet":
		return parseBits(name, op, BitsAllSet, v)
	case "$bitsAllClear":
		return parseBits(name, op, BitsAllClear, v)
	case "$bitsAnySet":
		return parseBits(name, op, BitsAnySet, v)
	case "$bitsAnyClear":
		return parseBits(name, op, BitsAnyClear, v)
	case "$geoWithin", "$within", "$geoIntersects":
		return parseGeo(name, op, v)
	case "$near", "$nearSphere", "$geoNear":
		return nil, badValue("near must be first in: %s", notation.Document(around.doc))
	case "$where":
		return nil, badValue("$where cannot be applied to a field")
	}
	return nil, unknownOperator(name, op)
}

// unknownOperator is MongoDB's error, and where the operator stands.
func unknownOperator(name, op string) error {
	if name == "" {
		return badValue("unknown operator: %s", op)
	}
	return badValue("unknown operator: %s (in the condition of '%s')", op, name)
}

func negate(n Node, err error) (Node, error) {
	if err != nil {
		return nil, err
	}
	return &Not{n}, nil
}

// comparison parses a value to compare with.
func (p *parser) comparison(name string, op Op, v bsoncore.Value) (Node, error) {
	if v.Type == bsoncore.TypeUndefined {
		return nil, badValue("cannot compare to undefined")
	}
	if v.Type == bsoncore.TypeRegex && op != Eq {
		return nil, badValue("Can't have RegEx as arg to predicate over field '%s'.", name)
	}
	return &Comparison{Path: name, Op: op, Value: v}, nil
}

// in parses the operand of $in and $nin.
func (p *parser) in(name, op string, v bsoncore.Value) (Node, error) {
	if v.Type != bsoncore.TypeArray {
		return nil, badValue("%s needs an array", op)
	}
	in := &In{Path: name}
	for e := path.ElementsOf(v.Data); ; {
		_, v, ok := e.Next()
		switch {
		case !ok:
			return in, nil
		case isOperators(v):
			return nil, badValue("cannot nest $ under $in")
		case v.Type == bsoncore.TypeUndefined:
			return nil, badValue("InMatchExpression equality cannot be undefined")
		case v.Type == bsoncore.TypeRegex:
			pattern, options := v.Regex()
			r, err := newRegex(name, pattern, options)
			if err != nil {
				return nil, err
			}
			in.Regexes = append(in.Regexes, r)
		default:
			in.Values = append(in.Values, v)
		}
	}
}

func (p *parser) not(name string, v bsoncore.Value, depth int) (Node, error) {
	switch v.Type {
	case bsoncore.TypeRegex:
		pattern, options := v.Regex()
		r, err := newRegex(name, pattern, options)
		if err != nil {
			return nil, err
		}
		return &Not{r}, nil
	case bsoncore.TypeEmbeddedDocument:
		if len(v.Data) <= bsoncore.EmptyDocumentLength {
			return nil, badValue("$not cannot be empty")
		}
		if isNear(v.Data) {
			return nil, errNearInside()
		}
		return negate(p.operators(name, v.Data, depth+1))
	}
	return nil, badValue("$not needs a regex or a document")
}

// regex parses $regex with its $options.
func (p *parser) regex(name string, v, o bsoncore.Value) (Node, error) {
	var pattern, options string
	switch v.Type {
	case bsoncore.TypeString:
		pattern = v.StringValue()
	case bsoncore.TypeRegex:
		pattern, options = v.Regex()
	default:
		return nil, badValue("$regex has to be a string")
	}
	switch {
	case o.Type == bsoncore.TypeString && options != "":
		return nil, mongoerror.New(bothOptions, "options set in both $regex and $options")
	case o.Type == bsoncore.TypeString:
		options = o.StringValue()
	case o.Type != 0:
		return nil, badValue("$options has to be a string")
	}
	return newRegex(name, pattern, options)
}

// all parses $all: all of its values, or all of its $elemMatch.
func (p *parser) all(name string, v bsoncore.Value, depth int) (Node, error) {
	if v.Type != bsoncore.TypeArray {
		return nil, badValue("$all needs an array")
	}
	and := &And{}
	elemMatch := false
	for e := path.ElementsOf(v.Data); ; {
		_, v, ok := e.Next()
		if !ok {
			break
		}
		operand, isElemMatch := firstIs(v, "$elemMatch")
		if len(and.Children) == 0 {
			elemMatch = isElemMatch
		}
		var n Node
		var err error
		switch {
		case elemMatch && !isElemMatch:
			return nil, badValue("$all/$elemMatch has to be consistent")
		case elemMatch:
			n, err = p.elemMatch(name, operand, depth+1)
		case isOperators(v):
			return nil, badValue("no $ expressions in $all")
		case v.Type == bsoncore.TypeRegex:
			pattern, options := v.Regex()
			n, err = newRegex(name, pattern, options)
		default:
			n, err = p.comparison(name, Eq, v)
		}
		if err != nil {
			return nil, err
		}
		and.Children = append(and.Children, n)
	}
	if len(and.Children) == 0 {
		return &Always{}, nil
	}
	return and, nil
}

// firstIs returns the value of a document's first field when that has the name.
func firstIs(v bsoncore.Value, name string) (bsoncore.Value, bool) {
	if v.Type != bsoncore.TypeEmbeddedDocument {
		return bsoncore.Value{}, false
	}
	e := path.ElementsOf(v.Data)
	first, operand, ok := e.Next()
	return operand, ok && string(first) == name
}

// elemMatch parses $elemMatch: of operators when the first name is one that stands at a path, else of a filter.
func (p *parser) elemMatch(name string, v bsoncore.Value, depth int) (Node, error) {
	if v.Type != bsoncore.TypeEmbeddedDocument {
		return nil, badValue("$elemMatch needs an Object")
	}
	p.inner++
	defer func() { p.inner-- }()
	if isElement(v) {
		n, err := p.operators("", v.Data, depth+1)
		if err != nil {
			return nil, err
		}
		if and, ok := n.(*And); ok {
			return &ElemMatchValue{Path: name, Children: and.Children}, nil
		}
		return &ElemMatchValue{Path: name, Children: []Node{n}}, nil
	}
	n, err := p.document(v.Data, depth+1)
	if err != nil {
		return nil, err
	}
	return &ElemMatch{Path: name, Child: n}, nil
}

// isElement reports whether a value has operators that are about an element itself, and not about its fields.
func isElement(v bsoncore.Value) bool {
	if !isOperators(v) {
		return false
	}
	e := path.ElementsOf(v.Data)
	switch name, _, _ := e.Next(); string(name) {
	case "$and", "$or", "$nor", "$expr", "$where", "$text", "$jsonSchema", "$comment", "$alwaysTrue", "$alwaysFalse", "$sampleRate",
		"$ref", "$id", "$db":
		return false
	}
	return true
}
