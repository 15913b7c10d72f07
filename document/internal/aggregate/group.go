package aggregate

import (
	"context"
	"io"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/expression"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/number"
)

// groupStage is $group.
type groupStage struct {
	o      *Options
	id     operand
	empty  value // what an _id is that came out as an empty document, when it is {name: expression}; Type 0: itself
	fields []*accumulation
	x      *extractor // names only
}

func (p *parser) group(spec value) (stage, error) {
	if spec.Type != bsoncore.TypeEmbeddedDocument {
		return nil, mongoerror.New(mongoerror.Code(15947), "a group's fields must be specified in an object")
	}
	elements, err := spec.Document().Elements()
	if err != nil {
		return nil, err
	}
	s := &groupStage{o: p.o, x: new(extractor)}
	have := false
	for _, e := range elements {
		if e.Key() == "_id" {
			switch {
			case have:
				return nil, mongoerror.New(mongoerror.Code(15948), "a group's _id may only be specified once")
			case includes(e.Value()):
				return nil, mongoerror.New(mongoerror.Code(17390), "$group does not support inclusion-style expressions")
			}
			have = true
			id, err := expression.Parse(e.Value(), p.o.expression())
			if err != nil {
				return nil, err
			}
			s.id = s.x.operand(id)
			s.empty = emptyID(e.Value())
			continue
		}
		a, err := p.groupField(e.Key(), e.Value())
		if err != nil {
			return nil, err
		}
		a.input = s.x.operand(a.argument)
		s.fields = append(s.fields, a)
	}
	if !have {
		return nil, mongoerror.New(mongoerror.Code(15955), "a group specification must include an _id")
	}
	return s, nil
}

// includes reports whether an _id is written like a projection that takes fields over, which would be one constant for all documents.
func includes(spec value) bool {
	if spec.Type != bsoncore.TypeEmbeddedDocument {
		return false
	}
	elements, err := spec.Document().Elements()
	if err != nil || len(elements) == 0 || strings.HasPrefix(elements[0].Key(), "$") {
		return false
	}
	return slices.ContainsFunc(elements, func(e bsoncore.Element) bool {
		v := e.Value()
		return isNumber(v) || v.Type == bsoncore.TypeBoolean
	})
}

// emptyID returns the _id of documents without a value for an _id of one field: null, which is missing from those of several fields.
func emptyID(spec value) value {
	if spec.Type != bsoncore.TypeEmbeddedDocument {
		return value{}
	}
	elements, err := spec.Document().Elements()
	if err != nil || len(elements) != 1 || strings.HasPrefix(elements[0].Key(), "$") {
		return value{}
	}
	return object(elements[0].Key(), null())
}

func (p *parser) groupField(name string, v value) (*accumulation, error) {
	switch {
	case v.Type != bsoncore.TypeEmbeddedDocument || len(v.Data) <= bsoncore.EmptyDocumentLength:
		return nil, mongoerror.New(mongoerror.Code(40234), "The field '%s' must be an accumulator object", name)
	case strings.Contains(name, "."):
		return nil, mongoerror.New(mongoerror.Code(40235), "The field name '%s' cannot contain '.'", name)
	case strings.HasPrefix(name, "$"):
		return nil, mongoerror.New(mongoerror.Code(40236), "The field name '%s' cannot be an operator name", name)
	}
	elements, err := v.Document().Elements()
	if err != nil {
		return nil, err
	}
	if len(elements) != 1 {
		return nil, mongoerror.New(mongoerror.Code(40238), "The field '%s' must specify one accumulator", name)
	}
	if !strings.HasPrefix(elements[0].Key(), "$") {
		return nil, mongoerror.New(mongoerror.Code(40234), "The field '%s' must be an accumulator object", name)
	}
	return p.accumulation(name, elements[0].Key(), elements[0].Value(), false)
}

// countsOnly reports whether the result depends on nothing but the number of documents, and what each of them adds.
func (s *groupStage) countsOnly() (each []number.Number, ok bool) {
	if !s.id.constant {
		return nil, false
	}
	for _, a := range s.fields {
		n, ok := number.Of(a.input.value)
		if !a.input.constant || !ok || a.op != "$sum" && a.op != "$count" {
			return nil, false
		}
		each = append(each, n)
	}
	return each, true
}

// byFirst returns the path by whose values the groups are made, when one document of each tells all that is asked: with accumulators,
// the first one.
func (s *groupStage) byFirst() (path string, ok bool) {
	for _, a := range s.fields {
		if a.op != "$first" {
			return "", false
		}
	}
	return s.id.expression.FieldPath()
}

// newRoot returns the document that is made of the one document of a group, as explain shows it.
func (s *groupStage) newRoot(spec value) value {
	b, start := begin(nil)
	elements, _ := spec.Document().Elements()
	for _, e := range elements {
		v := e.Value()
		if e.Key() != "_id" {
			if inner, err := v.Document().IndexErr(0); err == nil {
				v = inner.Value()
			}
		}
		b = appendField(b, e.Key(), v)
	}
	return documentValue(end(b, start))
}

// countDocument is the result for n documents.
func (s *groupStage) countDocument(n int64, each []number.Number) document {
	b, start := begin(nil)
	id := s.id.value
	if id.Type == 0 {
		id = null()
	}
	b = appendField(b, "_id", id)
	for i, a := range s.fields {
		b = appendField(b, a.field, number.Multiply(number.Int(n), each[i]).Value())
	}
	return end(b, start)
}

func (s *groupStage) open(_ context.Context, x *run, in Cursor) (Cursor, error) {
	return &groupCursor{in: in, table: newGroupTable(s, x.o)}, nil
}

// groupCursor gives the groups that stayed in memory first, then those that were spilled.
type groupCursor struct {
	in     Cursor
	table  *groupTable
	filled bool
	next   int
	buf    []byte
}

// Next implements Cursor.
func (c *groupCursor) Next(ctx context.Context) (document, error) {
	if !c.filled {
		if err := drain(ctx, c.in, c.table.add); err != nil {
			return nil, err
		}
		if err := c.table.done(); err != nil {
			return nil, err
		}
		c.filled = true
	}
	for c.next < len(c.table.groups) {
		g := &c.table.groups[c.next]
		if c.next++; c.next%pollEvery == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if g.evicted {
			continue
		}
		return c.emit(g)
	}
	g, err := c.table.nextSpilled(ctx)
	if err != nil {
		return nil, err
	}
	if g == nil {
		return nil, io.EOF
	}
	return c.emit(g)
}

func (c *groupCursor) emit(g *group) (document, error) {
	b, start := begin(c.buf[:0])
	b = appendField(b, "_id", g.id)
	for i, a := range g.accumulators {
		v, err := a.result()
		if err != nil {
			return nil, err
		}
		if v.Type == 0 {
			v = null()
		}
		if b = appendField(b, c.table.s.fields[i].field, v); len(b) > maxBetween {
			return nil, tooLarge(len(b))
		}
	}
	c.buf = end(b, start)
	return c.buf, nil
}

// Close implements Cursor.
func (c *groupCursor) Close() error {
	if err := c.table.close(); err != nil {
		return joinClose(err, c.in)
	}
	return c.in.Close()
}
