package aggregate

import (
	"context"
	"errors"
	"io"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/expression"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/path"
	"github.com/pandodb/pando/document/internal/scratch"
)

// specialStage is a first stage whose rows come from the environment.
type specialStage struct {
	name string
	spec value
}

func (s *specialStage) source() {}

func (s *specialStage) open(ctx context.Context, x *run, _ Cursor) (Cursor, error) {
	return x.env.Special(ctx, s.name, s.spec, x.o.Database, x.o.Collection)
}

// documentsStage is $documents.
type documentsStage struct{ list *expression.Expression }

func (s *documentsStage) source() {}

func (p *parser) documents(spec value) (stage, error) {
	e, err := expression.Parse(spec, p.o.expression())
	return &documentsStage{e}, err
}

func (s *documentsStage) open(context.Context, *run, Cursor) (Cursor, error) {
	v, err := s.list.Eval(fields())
	if err != nil {
		return nil, err
	}
	if v.Type != bsoncore.TypeArray {
		return nil, mongoerror.New(mongoerror.Code(5858203), "an array is expected")
	}
	c := new(listCursor)
	it := path.ElementsOf(v.Data)
	for _, item, ok := it.Next(); ok; _, item, ok = it.Next() {
		if item.Type != bsoncore.TypeEmbeddedDocument {
			return nil, mongoerror.New(mongoerror.Code(40228), "$documents requires array of documents")
		}
		c.docs = append(c.docs, item.Document())
	}
	return c, nil
}

// unionStage is $unionWith.
type unionStage struct{ pipeline *Pipeline }

func (p *parser) unionWith(spec value) (stage, error) {
	collection, named := "", false
	var list []document
	switch spec.Type {
	case bsoncore.TypeString:
		collection, named = spec.StringValue(), true
	case bsoncore.TypeEmbeddedDocument:
		elements, err := spec.Document().Elements()
		if err != nil {
			return nil, err
		}
		for _, e := range elements {
			switch e.Key() {
			case "coll":
				name, ok := e.Value().StringValueOK()
				if !ok {
					return nil, mongoerror.New(mongoerror.TypeMismatch, "BSON field '$unionWith.coll' is the wrong type '%s', expected type 'string'", mongoerror.TypeName(e.Value().Type))
				}
				collection, named = name, true
			case "pipeline":
				if list, err = pipelineOf(e.Value()); err != nil {
					return nil, err
				}
			default:
				return nil, mongoerror.New(mongoerror.Code(40415), "BSON field '$unionWith.%s' is an unknown field.", e.Key())
			}
		}
	default:
		return nil, mongoerror.New(mongoerror.FailedToParse, "the $unionWith stage specification must be an object or string, but found %s", mongoerror.TypeName(spec.Type))
	}
	if startsWithDocuments(list) {
		collection = "" // may be given all the same, and is not read
	} else if collection == "" && named {
		return nil, mongoerror.New(mongoerror.InvalidNamespace, "invalid $unionWith namespace: the name of the collection is empty")
	} else if collection == "" {
		return nil, mongoerror.New(mongoerror.FailedToParse, "$unionWith stage without explicit collection must have a pipeline with $documents as first stage")
	}
	inner, err := parsePipeline(list, p.o.inCollection(collection), "$unionWith")
	return &unionStage{inner}, err
}

func startsWithDocuments(list []document) bool {
	if len(list) == 0 {
		return false
	}
	e, err := list[0].IndexErr(0)
	return err == nil && e.Key() == "$documents"
}

func (s *unionStage) open(_ context.Context, x *run, in Cursor) (Cursor, error) {
	second := &lazyCursor{start: func(ctx context.Context) (Cursor, error) { return s.pipeline.Run(ctx, x.env) }}
	return &unionCursor{first: in, second: second}, nil
}

// unionCursor is two cursors, one behind the other.
type unionCursor struct {
	first, second Cursor
	done          bool
}

// Next implements Cursor.
func (c *unionCursor) Next(ctx context.Context) (document, error) {
	if !c.done {
		doc, err := c.first.Next(ctx)
		if !errors.Is(err, io.EOF) {
			return doc, err
		}
		c.done = true
	}
	return c.second.Next(ctx)
}

// Close implements Cursor.
func (c *unionCursor) Close() error {
	return errors.Join(c.first.Close(), c.second.Close())
}

// facetStage is $facet.
type facetStage struct {
	names     []string
	pipelines [][]step
}

func (p *parser) facet(spec value) (stage, error) {
	if spec.Type != bsoncore.TypeEmbeddedDocument || len(spec.Data) <= bsoncore.EmptyDocumentLength {
		return nil, mongoerror.New(mongoerror.Code(40169), "the $facet specification must be a non-empty object, but found: %s", spec)
	}
	elements, err := spec.Document().Elements()
	if err != nil {
		return nil, err
	}
	s := new(facetStage)
	inner := &parser{o: p.o, inside: "$facet"}
	for _, e := range elements {
		if err := path.CheckName(e.Key()); err != nil {
			return nil, err
		}
		if e.Value().Type != bsoncore.TypeArray {
			return nil, mongoerror.New(mongoerror.Code(40170), "arguments to $facet must be arrays, %s is type %s", e.Key(), mongoerror.TypeName(e.Value().Type))
		}
		list, err := facetPipeline(e)
		if err != nil {
			return nil, err
		}
		steps, err := inner.steps(list)
		if err != nil {
			return nil, err
		}
		if err := checkPositions(steps, p.o, "$facet"); err != nil {
			return nil, err
		}
		s.names, s.pipelines = append(s.names, e.Key()), append(s.pipelines, optimise(steps))
	}
	return s, nil
}

func facetPipeline(e bsoncore.Element) ([]document, error) {
	values, err := e.Value().Array().Values()
	if err != nil {
		return nil, err
	}
	var list []document
	for _, v := range values {
		if v.Type != bsoncore.TypeEmbeddedDocument {
			return nil, mongoerror.New(mongoerror.Code(40171), "elements of arrays in $facet spec must be non-empty objects, %s argument contained an element of type %s", e.Key(), mongoerror.TypeName(v.Type))
		}
		list = append(list, v.Document())
	}
	return list, nil
}

func (s *facetStage) open(_ context.Context, x *run, in Cursor) (Cursor, error) {
	c := &lazyCursor{in: in}
	c.start = func(ctx context.Context) (Cursor, error) {
		tape := scratch.NewTape(x.o.allowance(), "$facet")
		doc, err := s.run(ctx, x, in, tape)
		if closed := tape.Close(); err == nil {
			err = closed
		}
		if err != nil {
			return nil, err
		}
		return &listCursor{docs: []document{doc}}, nil
	}
	return c, nil
}

// run gives the same input to each of the pipelines.
func (s *facetStage) run(ctx context.Context, x *run, in Cursor, tape *scratch.Tape) (document, error) {
	if err := drain(ctx, in, func(doc document) error { return tape.Append(doc) }); err != nil {
		return nil, err
	}
	b, start := begin(nil)
	for i, name := range s.names {
		c, err := openSteps(ctx, x, s.pipelines[i], &tapeCursor{tape: tape})
		if err != nil {
			return nil, err
		}
		b = append(append(append(b, byte(bsoncore.TypeArray)), name...), 0)
		var list int
		b, list = begin(b)
		n := 0
		err = drain(ctx, c, func(doc document) error {
			if b = appendItem(b, n, documentValue(doc)); len(b) > maxAccumulated {
				return mongoerror.New(mongoerror.Code(4031700), "document constructed by $facet is %d bytes, which exceeds the limit of %d bytes", len(b), maxAccumulated)
			}
			n++
			return nil
		})
		if err != nil {
			return nil, joinClose(err, c)
		}
		b = end(b, list)
	}
	return end(b, start), nil
}
