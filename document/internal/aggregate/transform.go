package aggregate

import (
	"context"
	"slices"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/expression"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/notation"
	"github.com/pandodb/pando/document/internal/path"
	"github.com/pandodb/pando/document/internal/projection"
	"github.com/pandodb/pando/document/internal/query"
)

// matchStage is $match.
type matchStage struct {
	o      *Options
	spec   document
	filter *query.Filter
	text   bool // it searches text
}

func (p *parser) match(spec value) (stage, error) {
	if spec.Type != bsoncore.TypeEmbeddedDocument {
		return nil, mongoerror.New(mongoerror.Code(15959), "the match filter must be an expression in an object")
	}
	if err := checkFilter(spec.Document()); err != nil {
		return nil, err
	}
	return newMatch(spec.Document(), p.o)
}

// checkFilter refuses the operators that only find has.
func checkFilter(filter []byte) error {
	it := path.ElementsOf(filter)
	for name, v, ok := it.Next(); ok; name, v, ok = it.Next() {
		switch string(name) {
		case "$near", "$nearSphere", "$geoNear":
			if v.Type != bsoncore.TypeEmbeddedDocument && v.Type != bsoncore.TypeArray {
				return mongoerror.New(mongoerror.BadValue, "near must be first in: %s", notation.Element(string(name), v))
			}
			return mongoerror.New(mongoerror.Code(5626500), "$geoNear, $near, and $nearSphere are not allowed in this context")
		case "$where":
			return mongoerror.New(mongoerror.BadValue, "$where is not allowed in this context")
		case "$expr", "$jsonSchema":
			continue
		}
		if v.Type == bsoncore.TypeEmbeddedDocument || v.Type == bsoncore.TypeArray {
			if err := checkFilter(v.Data); err != nil {
				return err
			}
		}
	}
	return nil
}

// searchesIn reports whether a filter has $text.
func searchesIn(filter []byte) bool {
	it := path.ElementsOf(filter)
	for name, v, ok := it.Next(); ok; name, v, ok = it.Next() {
		logical := string(name) == "$and" || string(name) == "$or" || isIndex(string(name))
		if string(name) == "$text" || logical && (v.Type == bsoncore.TypeArray || v.Type == bsoncore.TypeEmbeddedDocument) && searchesIn(v.Data) {
			return true
		}
	}
	return false
}

func newMatch(spec document, o *Options) (*matchStage, error) {
	f, err := query.Parse(spec, &query.Options{Collation: o.Collation, Let: o.Let, Now: o.Now, Call: o.Call})
	if err != nil {
		return nil, err
	}
	return &matchStage{o: o, spec: spec, filter: f, text: searchesIn(spec)}, nil
}

func (s *matchStage) open(_ context.Context, _ *run, in Cursor) (Cursor, error) {
	return &mapCursor{in: in, apply: func(_ []byte, doc document) (document, bool, error) {
		ok, err := s.filter.Match(path.Document(doc))
		return doc, ok, err
	}}, nil
}

// projectStage is each of $project, $addFields, $set, $unset, $replaceRoot and $replaceWith.
type projectStage struct {
	projection *projection.Projection
	kind       projectKind
}

// projectKind is what the optimiser may know of a projection.
type projectKind uint8

const (
	project projectKind = iota
	addFields
	unset
	replaceRoot
)

func (p *parser) projectionOptions() *projection.Options {
	return &projection.Options{Expression: p.o.expression()}
}

func (p *parser) project(spec value) (stage, error) {
	if spec.Type != bsoncore.TypeEmbeddedDocument {
		return nil, mongoerror.New(mongoerror.Code(15969), "$project specification must be an object")
	}
	if len(spec.Data) <= bsoncore.EmptyDocumentLength {
		return nil, mongoerror.New(mongoerror.Code(51272), "Invalid $project :: caused by :: projection specification must have at least one field")
	}
	x, err := projection.ParseProject(spec.Document(), p.projectionOptions())
	return &projectStage{x, project}, err
}

func (p *parser) addFields(name string, spec value) (stage, error) {
	if spec.Type != bsoncore.TypeEmbeddedDocument {
		return nil, mongoerror.New(mongoerror.Code(40272), "%s specification stage must be an object, got %s", name, mongoerror.TypeName(spec.Type))
	}
	o := p.projectionOptions()
	o.Stage = name
	x, err := projection.ParseAddFields(spec.Document(), o)
	return &projectStage{x, addFields}, err
}

func (p *parser) unset(spec value) (stage, error) {
	x, err := projection.ParseUnset(spec)
	return &projectStage{x, unset}, err
}

func (p *parser) replaceRoot(spec value) (stage, error) {
	if spec.Type != bsoncore.TypeEmbeddedDocument {
		return nil, mongoerror.New(mongoerror.Code(40229), "expected an object as specification for $replaceRoot stage, got %s", mongoerror.TypeName(spec.Type))
	}
	elements, err := spec.Document().Elements()
	if err != nil {
		return nil, err
	}
	var root value
	for _, e := range elements {
		if e.Key() != "newRoot" {
			return nil, mongoerror.New(mongoerror.Code(40415), "BSON field '$replaceRoot.%s' is an unknown field.", e.Key())
		}
		root = e.Value()
	}
	if root.Type == 0 {
		return nil, mongoerror.New(mongoerror.Code(40414), "BSON field '$replaceRoot.newRoot' is missing but a required field")
	}
	return p.replaceWith(root)
}

func (p *parser) replaceWith(spec value) (stage, error) {
	x, err := projection.ParseReplaceRoot(spec, p.projectionOptions())
	return &projectStage{x, replaceRoot}, err
}

func (s *projectStage) open(_ context.Context, _ *run, in Cursor) (Cursor, error) {
	c := &mapCursor{in: in, source: in, before: makersBefore(in)}
	c.apply = func(dst []byte, doc document) (document, bool, error) {
		out, err := s.projection.Apply(dst, doc)
		c.made(out)
		return out, true, err
	}
	var before *projection.Sequence
	if prior, ok := in.(*mapCursor); ok && prior.sequence != nil {
		before, c.source = prior.sequence, prior.source
	}
	sequence, ok := before.Then(s.projection)
	if c.sequence = sequence; ok && sequence.Remembers() { // it takes the place of the cursors before
		c.in = c.source
		c.apply = func(dst []byte, doc document) (document, bool, error) {
			out, err := sequence.Apply(dst, doc)
			c.made(out)
			return out, true, err
		}
	}
	return c, nil
}

// redactStage is $redact.
type redactStage struct{ expression *expression.Expression }

func (p *parser) redact(spec value) (stage, error) {
	o := p.o.expression()
	o.Redact = true
	e, err := expression.Parse(spec, o)
	return &redactStage{e}, err
}

func (s *redactStage) open(_ context.Context, _ *run, in Cursor) (Cursor, error) {
	return &mapCursor{in: in, apply: func(_ []byte, doc document) (document, bool, error) {
		return s.expression.Redact(doc, nil)
	}}, nil
}

// identityStage is a stage that changes nothing: events that are too large are not split here.
type identityStage struct{}

func (identityStage) open(_ context.Context, _ *run, in Cursor) (Cursor, error) { return in, nil }

// sizeStage lets pass what is no longer than a document may be.
type sizeStage struct{}

func (sizeStage) open(_ context.Context, _ *run, in Cursor) (Cursor, error) {
	return &mapCursor{in: in, apply: func(_ []byte, doc document) (document, bool, error) {
		if len(doc) > maxDocument {
			return nil, false, tooLarge(len(doc))
		}
		return doc, true, nil
	}}, nil
}

// sized puts the stage that bounds documents behind those that may make larger ones, but in front of one that writes them. Between stages they
// may be larger.
func sized(steps []step) []step {
	n := len(steps)
	if n > 0 && writes(steps[n-1].stage) {
		n--
	}
	if !slices.ContainsFunc(steps[:n], func(s step) bool { return grows(s.stage) }) {
		return steps
	}
	return slices.Insert(slices.Clone(steps), n, step{stage: sizeStage{}})
}

func writes(s stage) bool {
	switch s.(type) {
	case *outStage, *mergeStage:
		return true
	}
	return false
}

// grows reports whether a stage may make larger documents than it is given.
func grows(s stage) bool {
	switch s.(type) {
	case *matchStage, *sortStage, *limitStage, *skipStage, *sampleStage, *redactStage, identityStage:
		return false
	}
	return true
}
