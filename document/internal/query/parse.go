package query

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/expression"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/notation"
	"github.com/pandodb/pando/document/internal/path"
)

// maxDepth is how deep the operators of a filter may nest.
const maxDepth = 100

// parser parses one filter.
type parser struct {
	options *Options
	inner   int // how many $elemMatch are around: there are conditions that concern whole documents only
}

func badValue(format string, args ...any) error {
	return mongoerror.New(mongoerror.BadValue, format, args...)
}

// document parses a filter, or one that is part of it.
func (p *parser) document(doc bsoncore.Document, depth int) (Node, error) {
	if depth > maxDepth {
		return nil, badValue("exceeded maximum query tree depth of %d at %s", maxDepth,
			notation.Document(doc))
	}
	and := &And{}
	for e := path.ElementsOf(doc); ; {
		name, v, ok := e.Next()
		if !ok {
			return and, nil
		}
		n, err := p.field(string(name), v, depth)
		if err != nil {
			return nil, err
		}
		if n != nil {
			and.Children = append(and.Children, n)
		}
	}
}

// field parses a field of a filter: an operator about the document, or a path with what is asked of it.
func (p *parser) field(name string, v bsoncore.Value, depth int) (Node, error) {
	switch {
	case isReference(name):
		return p.comparison(name, Eq, v)
	case strings.HasPrefix(name, "$"):
		return p.whole(name, v, depth)
	case isOperators(v):
		return p.operators(name, v.Data, depth)
	case v.Type == bsoncore.TypeRegex:
		pattern, options := v.Regex()
		return newRegex(name, pattern, options)
	}
	return p.comparison(name, Eq, v)
}

// isReference reports whether the name is one that references to other documents have, as a filter's field too.
func isReference(name string) bool { return name == "$ref" || name == "$id" || name == "$db" }

// isOperators reports whether a value is a document of operators: its first name begins with $, and it is no reference.
func isOperators(v bsoncore.Value) bool {
	if v.Type != bsoncore.TypeEmbeddedDocument {
		return false
	}
	e := path.ElementsOf(v.Data)
	name, _, ok := e.Next()
	if !ok || len(name) == 0 || name[0] != '$' {
		return false
	}
	_, ref := path.Lookup(v.Data, "$ref")
	_, id := path.Lookup(v.Data, "$id")
	return !ref || !id
}

// whole parses an operator that is about the document.
func (p *parser) whole(name string, v bsoncore.Value, depth int) (Node, error) {
	switch name {
	case "$and", "$or", "$nor":
		children, err := p.list(name, v, depth)
		if err != nil {
			return nil, err
		}
		switch name {
		case "$and":
			return &And{children}, nil
		case "$or":
			return &Or{children}, nil
		}
		return &Nor{children}, nil
	case "$comment":
		return nil, nil
	case "$expr":
		return p.expr(v)
	case "$jsonSchema":
		if v.Type != bsoncore.TypeEmbeddedDocument {
			return nil, mongoerror.New(mongoerror.TypeMismatch, "$jsonSchema must be an object")
		}
		s, err := parseSchema(v.Data)
		if err != nil {
			return nil, err
		}
		return &JSONSchema{Spec: v.Data, schema: s}, nil
	case "$alwaysTrue", "$alwaysFalse":
		return always(name, v)
	case "$sampleRate":
		if p.inner > 0 {
			return nil, badValue("$sampleRate can only be applied to the top-level document")
		}
		return p.sample(v)
	case "$where", "$text":
		return nil, p.unsupported(name, v)
	case "$not":
		return nil, badValue("unknown top level operator: $not. If you are trying to negate an entire expression, use $nor.")
	}
	return nil, badValue("unknown top level operator: %s. If you have a field name that starts with a '$' symbol, "+
		"consider using $getField or $setField.", name)
}

// unsupported returns the error of an operator that this server does not have, as far as MongoDB would know it at all.
func (p *parser) unsupported(name string, v bsoncore.Value) error {
	if p.inner > 0 {
		return badValue("%s can only be applied to the top-level document", name)
	}
	if name == "$where" {
		if v.Type != bsoncore.TypeString && v.Type != bsoncore.TypeJavaScript && v.Type != bsoncore.TypeCodeWithScope {
			return badValue("$where got bad type")
		}
		return badValue("$where is not supported: there is no JavaScript engine; use $expr")
	}
	if v.Type != bsoncore.TypeEmbeddedDocument {
		return badValue("$text expects an object")
	}
	return mongoerror.New(mongoerror.IndexNotFound, "text index required for $text query: there are no text indexes")
}

// list parses the filters of $and, $or and $nor.
func (p *parser) list(name string, v bsoncore.Value, depth int) ([]Node, error) {
	if v.Type != bsoncore.TypeArray {
		return nil, badValue("%s must be an array", name)
	}
	var nodes []Node
	for e := path.ElementsOf(v.Data); ; {
		_, v, ok := e.Next()
		if !ok {
			break
		}
		if v.Type != bsoncore.TypeEmbeddedDocument {
			return nil, badValue("$or/$and/$nor entries need to be full objects")
		}
		n, err := p.document(v.Data, depth+1)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
	}
	if len(nodes) == 0 {
		return nil, badValue("$and/$or/$nor must be a nonempty array")
	}
	return nodes, nil
}

func (p *parser) expr(v bsoncore.Value) (Node, error) {
	if p.inner > 0 {
		return nil, badValue("$expr can only be applied to the top-level document")
	}
	e, err := expression.Parse(v, &expression.Options{Collation: p.options.Collation, Let: p.options.Let, Now: p.options.Now, Call: p.options.Call,
		Validator: p.options.Validator})
	if err != nil {
		return nil, err
	}
	return &Expr{Spec: v, Expression: e, implied: implied(v, p.options.Let)}, nil
}

func always(name string, v bsoncore.Value) (Node, error) {
	n, problem := integerOf(name, v)
	if problem != "" {
		return nil, mongoerror.New(mongoerror.FailedToParse, "%s", problem)
	}
	if n != 1 {
		return nil, mongoerror.New(mongoerror.FailedToParse, "%s must be an integer value of 1", name)
	}
	return &Always{Value: name == "$alwaysTrue"}, nil
}

func (p *parser) sample(v bsoncore.Value) (Node, error) {
	rate, ok := floatOf(v)
	if !ok {
		return nil, badValue("argument to $sampleRate must be a numeric type")
	}
	if !(rate >= 0 && rate <= 1) {
		return nil, badValue("numeric argument to $sampleRate must be in [0, 1]")
	}
	if p.options.Validator && rate > 0 && rate < 1 {
		return nil, mongoerror.New(mongoerror.Code(3040500), "$rand not allowed inside collection validators")
	}
	return &Sample{Rate: rate}, nil
}
