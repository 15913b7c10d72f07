package projection

import (
	"errors"
	"slices"
	"strings"

	"github.com/pandodb/pando/document/internal/expression"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/number"
	"github.com/pandodb/pando/document/internal/path"
	"github.com/pandodb/pando/document/internal/query"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// parser parses a specification of find or of $project.
type parser struct {
	options  Options
	find     bool
	result   *Projection
	id       byte // what is said of _id itself: 0 nothing, 'i' included, 'e' excluded
	neutral  bool // there is a $slice or a $meta, which leave open what the others do
	matching bool // there is an $elemMatch, which leaves it open too
}

func newParser(o *Options) *parser {
	p := &parser{result: &Projection{tree: new(node)}}
	if o != nil {
		p.options = *o
	}
	return p
}

func (p *parser) parse(spec bsoncore.Document) (*Projection, error) {
	if err := p.fields(spec, nil); err != nil {
		return nil, err
	}
	r := p.result
	if r.kind == undecided {
		r.kind = exclusion
		if p.id == 'i' || p.matching && !p.neutral {
			r.kind = inclusion
		}
	}
	at := r.tree.names.Find([]byte("_id"))
	switch {
	case r.kind == inclusion && p.id == 0 && at < 0:
		return r, r.tree.insert([]string{"_id"}, new(node))
	case r.kind == inclusion && p.id == 'e' || r.kind == exclusion && p.id == 'i':
		r.tree.drop(at)
	}
	return r, nil
}

// drop removes a child.
func (n *node) drop(at int) {
	if at < 0 {
		return
	}
	names, children := n.names.List, n.children
	n.names, n.children = path.Names{}, nil
	for i, name := range names {
		if i != at {
			n.add(name, children[i])
		}
	}
}

// fields parses the fields of a specification, or of a document within it at prefix.
func (p *parser) fields(spec bsoncore.Document, prefix []string) error {
	if len(prefix) > maxDepth {
		return mongoerror.New(mongoerror.Overflow, "FieldPath is too long")
	}
	for s := path.PlacesOf(spec); ; {
		e, ok := s.Next()
		if !ok {
			return nil
		}
		name := string(e.Name)
		if isPositional(name) {
			if err := p.positional(name, prefix, e.Value); err != nil {
				return err
			}
			continue
		}
		components, err := parsePath(name)
		if err != nil {
			return err
		}
		path := append(slices.Clone(prefix), components...)
		if err := p.field(path, name, e.Value); err != nil {
			return err
		}
	}
}

// isPositional reports whether a path has the positional $.
func isPositional(path string) bool {
	return strings.HasSuffix(path, ".$") || strings.Contains(path, ".$.")
}

// field parses what is said of one path, which ends as written.
func (p *parser) field(names []string, written string, v bsoncore.Value) error {
	switch {
	case isFlag(v.Type):
		return p.flag(names, written, truthy(v))
	case v.Type == bsoncore.TypeEmbeddedDocument:
		s := path.PlacesOf(v.Data)
		e, ok := s.Next()
		if !ok {
			return newError(errEmptySubProjection, "An empty sub-projection is not a valid value. Found empty object at path")
		}
		if _, more := s.Next(); !more && strings.HasPrefix(string(e.Name), "$") {
			return p.operator(names, string(e.Name), e.Value, v)
		}
		return p.fields(v.Data, names)
	}
	return p.compute(names, v)
}

// truthy is what a flag says: everything but false and zero.
func truthy(v bsoncore.Value) bool {
	if n, ok := number.Of(v); ok {
		return !n.IsZero()
	}
	return v.Boolean()
}

func isID(path []string) bool { return len(path) == 1 && path[0] == "_id" }

// flag includes or excludes a field. _id alone may go against the others.
func (p *parser) flag(path []string, written string, include bool) error {
	if err := p.result.tree.insert(path, new(node)); err != nil {
		return err
	}
	switch {
	case isID(path) && include:
		p.id = 'i'
	case isID(path):
		p.id = 'e'
	case include && p.result.kind == exclusion:
		return newError(errInclusionInExclusion, "Cannot do inclusion on field "+written+" in exclusion projection")
	case include:
		p.result.kind = inclusion
	case p.result.kind == inclusion:
		return newError(errExclusionInInclusion, "Cannot do exclusion on field "+written+" in inclusion projection")
	default:
		p.result.kind = exclusion
	}
	return nil
}

// compute adds a computed field.
func (p *parser) compute(names []string, v bsoncore.Value) error {
	parsed, err := expression.Parse(v, p.options.Expression)
	if v.Type == bsoncore.TypeEmbeddedDocument {
		s := path.PlacesOf(v.Data)
		operator, _ := s.Next()
		var e *mongoerror.Error
		if errors.As(err, &e) && e.Code == mongoerror.InvalidPipelineOperator &&
			e.Message == "Unrecognized expression '"+string(operator.Name)+"'" {
			return mongoerror.New(errUnknownExpression, "Unknown expression %s", operator.Name)
		}
		if p.result.kind == exclusion {
			return newError(errOperatorExclusion, "Cannot use expression other than $meta in exclusion projection")
		}
	}
	if err != nil {
		return err
	}
	if err := p.result.tree.insert(names, &node{computed: parsed}); err != nil {
		return err
	}
	if p.result.kind == exclusion {
		return newError(errExpressionExclusion,
			"Cannot use an expression "+showElement(joined(names), v)+" in an exclusion projection")
	}
	p.result.kind = inclusion
	return nil
}

// operator parses {$name: argument}.
func (p *parser) operator(path []string, name string, argument, whole bsoncore.Value) error {
	switch name {
	case "$meta":
		return p.meta(path, argument)
	case "$slice":
		if p.find {
			return p.slice(path, argument, whole)
		}
	case "$elemMatch":
		if !p.find {
			return newError(mongoerror.InvalidPipelineOperator, "Cannot use $elemMatch in this context")
		}
		return p.elemMatch(path, argument)
	}
	return p.compute(path, whole)
}

// isMetaKeyword reports whether $meta knows a keyword.
func isMetaKeyword(keyword string) bool {
	switch keyword {
	case "geoNearDistance", "geoNearPoint", "indexKey", "randVal", "recordId", "searchHighlights", "searchScore",
		"searchScoreDetails", "searchSequenceToken", "sortKey", "textScore", "timeseriesBucketMaxTime", "timeseriesBucketMinTime",
		"vectorSearchScore":
		return true
	}
	return false
}

func (p *parser) meta(path []string, argument bsoncore.Value) error {
	keyword, ok := argument.StringValueOK()
	if !ok {
		return mongoerror.New(17307, "$meta only supports string arguments")
	}
	if !isMetaKeyword(keyword) {
		return mongoerror.New(errUnknownMeta, "Unsupported argument to $meta: %s", keyword)
	}
	if err := p.options.Expression.CheckMeta(keyword); err != nil {
		return err
	}
	if !p.find {
		p.result.kind = inclusion
	}
	p.neutral = true
	return p.result.tree.insert(path, &node{meta: keyword})
}

// slice is {$slice: count} or {$slice: [skip, limit]}. What is neither may be the expression of that name.
func (p *parser) slice(path []string, argument, whole bsoncore.Value) error {
	s, err := parseSlice(argument)
	if err == nil {
		err = p.result.tree.insert(path, &node{slice: s})
	}
	if err == nil {
		p.neutral = true
		return nil
	}
	reason := err.Error()
	var e *mongoerror.Error
	if errors.As(err, &e) {
		reason = e.Code.String() + ": " + e.Message
	}
	err = p.compute(path, whole)
	if mongoerror.CodeOf(err) == errSliceOfNone { // the expression parses, and fails only when it is evaluated
		collision := p.result.tree.insert(path, new(node))
		if collision == nil {
			return err
		}
		err = collision
	}
	return mongoerror.Prefix(err, "Invalid $slice syntax. The given syntax "+showDocument(whole.Data)+" did not match the find() syntax "+
		"because :: "+reason+" :: The given syntax did not match the expression $slice syntax. :: caused by :: ")
}

func (p *parser) elemMatch(path []string, argument bsoncore.Value) error {
	if argument.Type != bsoncore.TypeEmbeddedDocument {
		return mongoerror.New(errElemMatchArgument, "elemMatch: Invalid argument, object required, but got %s", mongoerror.TypeName(argument.Type))
	}
	if p.result.positional != nil {
		return newError(errPositionalElemMatch, "Cannot specify positional operator and $elemMatch.")
	}
	if len(path) > 1 {
		return newError(errElemMatchNested, "Cannot use $elemMatch projection on a nested field.")
	}
	condition := bsoncore.NewDocumentBuilder().AppendValue("$elemMatch", argument).Build()
	doc := bsoncore.NewDocumentBuilder().AppendDocument(path[0], condition).Build()
	o := new(query.Options)
	if e := p.options.Expression; e != nil {
		o = &query.Options{Collation: e.Collation, Let: e.Let, Now: e.Now, Call: e.Call}
	}
	filter, err := query.Parse(doc, o)
	if err != nil {
		return err
	}
	p.matching = true
	return p.result.tree.insert(path, &node{elemMatch: &elemMatch{path[0], filter}})
}

// positional is {"a.$": 1}.
func (p *parser) positional(name string, prefix []string, v bsoncore.Value) error {
	if !p.find {
		return newError(errPositionalProject, "Cannot use positional projection in aggregation projection")
	}
	array := strings.TrimSuffix(name, ".$")
	if isPositional(array) {
		return newError(errPositionalMiddle, "As of 4.4, it's illegal to specify positional operator in the middle of a path."+
			"Positional projection may only be used at the end, for example: a.b.$. If the query previously used a form like a.b.$.d, "+
			"remove the parts following the '$' and the results will be equivalent.")
	}
	switch {
	case v.Type == bsoncore.TypeEmbeddedDocument:
		return newError(errPositionalExpression, "positional projection cannot be used with an expression or sub object")
	case !isFlag(v.Type):
		return newError(errPositionalLiteral, "positional projection cannot be used with a literal")
	case !truthy(v):
		return newError(errPositionalExclusion, "positional projection cannot be used with exclusion")
	}
	components, err := parsePath(array)
	if err != nil {
		return err
	}
	path := append(slices.Clone(prefix), components...)
	switch {
	case p.result.positional != nil:
		return newError(errPositionalTwice, "Cannot specify more than one positional projection per query.")
	case p.matching:
		return newError(errElemMatchPositional, "Cannot specify positional operator and $elemMatch.")
	}
	if f := p.options.Filter; f != nil {
		if p.result.filter, err = f.Positional(); err != nil {
			return err
		}
	}
	p.result.positional = path
	return p.flag(path, name, true)
}
