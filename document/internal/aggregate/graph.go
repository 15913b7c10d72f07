package aggregate

import (
	"context"
	"slices"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/expression"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/path"
	"github.com/pandodb/pando/document/internal/scratch"
)

// graphStage is $graphLookup.
type graphStage struct {
	o         *Options
	from      string
	as        []string
	startWith *expression.Expression
	connect   []string // connectFromField
	to        string   // connectToField
	maxDepth  int64    // -1: none
	depth     []string // depthField; nil: none
	restrict  document // nil: none
}

func (p *parser) graphLookup(spec value) (stage, error) {
	if spec.Type != bsoncore.TypeEmbeddedDocument {
		return nil, mongoerror.New(mongoerror.FailedToParse, "the $graphLookup stage specification must be an object, but found %s", mongoerror.TypeName(spec.Type))
	}
	elements, err := spec.Document().Elements()
	if err != nil {
		return nil, err
	}
	s := &graphStage{maxDepth: -1}
	for _, e := range elements {
		if err := s.option(p, e.Key(), e.Value()); err != nil {
			return nil, err
		}
	}
	if s.from == "" {
		if _, err := spec.Document().LookupErr("from"); err == nil {
			return nil, mongoerror.New(mongoerror.InvalidNamespace, "invalid $graphLookup namespace: the name of the collection is empty")
		}
		return nil, mongoerror.New(mongoerror.FailedToParse, "missing 'from' option to $graphLookup stage specification: %s", spec)
	}
	if s.as == nil || s.startWith == nil || s.connect == nil || s.to == "" {
		return nil, mongoerror.New(mongoerror.Code(40105), "$graphLookup requires 'from', 'as', 'startWith', 'connectFromField', and 'connectToField' to be specified.")
	}
	s.o = p.o.inCollection(s.from)
	if s.restrict != nil {
		if err := checkFilter(s.restrict); err != nil {
			return nil, err
		}
		_, err := newMatch(s.restrict, s.o)
		return s, err
	}
	return s, nil
}

func (s *graphStage) option(p *parser, name string, v value) (err error) {
	switch name {
	case "startWith":
		s.startWith, err = expression.Parse(v, p.o.expression())
		return err
	case "maxDepth":
		if !isNumber(v) {
			return mongoerror.New(mongoerror.Code(40100), "maxDepth must be numeric, found type: %s", mongoerror.TypeName(v.Type))
		}
		n, exact := integer(v)
		switch {
		case n < 0:
			return mongoerror.New(mongoerror.Code(40101), "maxDepth requires a nonnegative argument, found: %s", v)
		case !exact:
			return mongoerror.New(mongoerror.Code(40102), "maxDepth could not be represented as a long long: %s", v)
		}
		s.maxDepth = n
		return nil
	case "restrictSearchWithMatch":
		if v.Type != bsoncore.TypeEmbeddedDocument {
			return mongoerror.New(mongoerror.Code(40185), "restrictSearchWithMatch must be an object, found %s", mongoerror.TypeName(v.Type))
		}
		s.restrict = v.Document()
		return nil
	case "from", "as", "connectFromField", "connectToField", "depthField":
	default:
		return mongoerror.New(mongoerror.Code(40104), "Unknown argument to $graphLookup: %s", name)
	}
	text, ok := v.StringValueOK()
	if !ok && name == "from" {
		return mongoerror.New(mongoerror.FailedToParse, "$graphLookup 'from' field must be a string, but found %s", mongoerror.TypeName(v.Type))
	}
	if !ok {
		return mongoerror.New(mongoerror.Code(40103), "expected string as argument for %s, found: %s", name, mongoerror.TypeName(v.Type))
	}
	if name == "from" {
		s.from = text
		return nil
	}
	if text == "" && name != "depthField" {
		return nil // counts as not given
	}
	segments, err := path.Split(text)
	switch name {
	case "as":
		s.as = segments
	case "connectFromField":
		s.connect = segments
	case "connectToField":
		s.to = text
	case "depthField":
		s.depth = segments
	}
	return err
}

func (s *graphStage) open(_ context.Context, x *run, in Cursor) (Cursor, error) {
	return &graphCursor{s: s, x: x, in: in, share: x.o.unspillable().Share()}, nil
}

// graphCursor searches breadth first for each document of its input.
type graphCursor struct {
	s     *graphStage
	x     *run
	in    Cursor
	share scratch.Share // of one search
	buf   []byte
}

// search is what one search has found.
type search struct {
	asked    wantedTable // values that were looked for
	visited  wantedTable // _ids of the documents found
	docs     []document
	held     int64 // bytes of docs, their _ids, and what was asked for
	frontier []value
}

// wantedCost is about how many bytes a value takes in a wantedTable, beside its own, with a place in a list.
const wantedCost = 200

// Next implements Cursor.
func (c *graphCursor) Next(ctx context.Context) (document, error) {
	doc, err := c.in.Next(ctx)
	if err != nil {
		return nil, err
	}
	defer c.share.Shrink(0) // nothing of a search is kept
	g := &search{asked: newWantedTable(0), visited: newWantedTable(0)}
	start, err := c.s.startWith.Eval(doc)
	if err != nil {
		return nil, err
	}
	visitAll(start, nil, func(v value) { g.ask(v, c.s.o) })
	if err := c.within(g); err != nil {
		return nil, err
	}
	for depth := int64(0); len(g.frontier) > 0; depth++ {
		if err := c.level(ctx, g, depth); err != nil {
			return nil, err
		}
		if depth == c.s.maxDepth {
			break
		}
	}
	list, at := begin(nil)
	for i, found := range g.docs {
		list = appendItem(list, i, documentValue(found))
	}
	c.buf = appendSet(c.buf[:0], doc, c.s.as, value{Type: bsoncore.TypeArray, Data: end(list, at)})
	if len(c.buf) > maxBetween {
		return nil, tooLarge(len(c.buf))
	}
	return c.buf, nil
}

// ask puts a value into the next level, unless it has been looked for.
func (g *search) ask(v value, o *Options) {
	n := len(g.asked.values)
	v = clone(v)
	if g.asked.add(v, o) == n {
		g.frontier = append(g.frontier, v)
		g.held += wantedCost + int64(len(v.Data))
	}
}

// within is the error of a search that takes more memory than it may. It cannot spill, whether that is allowed or not.
func (c *graphCursor) within(g *search) error {
	if c.share.Fits(g.held) {
		return nil
	}
	return mongoerror.New(mongoerror.Code(40099), "$graphLookup reached maximum memory consumption: a search needs %d bytes", g.held)
}

// level finds the documents that the frontier leads to, and the next frontier.
func (c *graphCursor) level(ctx context.Context, g *search, depth int64) error {
	conditions := []value{documentValue(equals(c.s.to, g.frontier))}
	if slices.ContainsFunc(g.frontier, isNullish) {
		// A null leads to nulls, but not to documents without the field.
		conditions = append(conditions, object(c.s.to, object("$exists", int32Value(1))))
	}
	g.frontier = nil
	if c.s.restrict != nil {
		conditions = append(conditions, documentValue(c.s.restrict))
	}
	filter := fields("$and", array(conditions...))
	found, err := c.x.env.Find(ctx, c.s.o.Database, c.s.from, &Request{Filter: filter, Collation: c.s.o.Collation, Let: c.s.o.Let, Now: c.s.o.Now})
	if err != nil {
		return err
	}
	err = drain(ctx, found, func(doc document) error {
		id, _ := path.Lookup(doc, "_id")
		n := len(g.visited.values)
		if g.visited.add(clone(id), c.s.o) < n {
			return nil
		}
		visitAll(documentValue(doc), c.s.connect, func(v value) { g.ask(v, c.s.o) })
		var kept document
		if c.s.depth != nil {
			kept = appendSet(nil, doc, c.s.depth, int64Value(depth))
		} else {
			kept = append(document(nil), doc...)
		}
		g.docs = append(g.docs, kept)
		g.held += wantedCost + int64(len(kept)+len(id.Data))
		return c.within(g)
	})
	if err != nil {
		return joinClose(err, found)
	}
	return nil
}

// Close implements Cursor.
func (c *graphCursor) Close() error { return c.in.Close() }
