package document

import (
	"context"
	"iter"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document/internal/collation"
	"github.com/pandodb/pando/document/internal/expression"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/plan"
	"github.com/pandodb/pando/document/internal/projection"
	"github.com/pandodb/pando/document/internal/query"
)

// FindOptions says how to find. nil means all of a matching document, in any order.
type FindOptions struct {
	// Sort is the order: fields with 1 or -1. {"$natural": 1} is the order of the records.
	Sort any
	// Skip leaves out the first ones.
	Skip int64
	// Limit ends after so many; 0: no limit.
	Limit int64
	// Projection says what of a document is wanted.
	Projection any
	// Hint names the index to use, or gives its keys; {"$natural": 1} means none.
	Hint any
	// Min and Max bound the entries of the index that Hint names; Max is excluded.
	Min, Max any
	// Collation of the strings. Default: that of the collection.
	Collation any
	// Let is a document of variables for $expr.
	Let any
	// NoSpill makes a sort that needs more than QueryMemoryBytes fail instead of spilling.
	NoSpill bool
	// Verbosity of Explain: "queryPlanner" (the default), "executionStats" or "allPlansExecution".
	Verbosity string
}

// findQuery is a query, parsed.
type findQuery struct {
	plan.Query
	spec    document
	project func(doc document) (document, error)
	options FindOptions
	let     []expression.Variable
	now     time.Time
}

// Find returns the documents that match a filter, for a range loop. A document is valid for its step only.
//
//	for doc, err := range c.Find(ctx, bson.D{{Key: "carrier", Value: "UA"}}, nil) {
//		if err != nil {
//			return err
//		}
//		...
//	}
func (c *Collection) Find(ctx context.Context, filter any, o *FindOptions) iter.Seq2[bson.Raw, error] {
	return loop(ctx, func() (*Cursor, error) { return c.OpenFind(ctx, filter, o) })
}

// FindOne returns a copy of the first document that matches, or ErrNotFound.
func (c *Collection) FindOne(ctx context.Context, filter any, o *FindOptions) (bson.Raw, error) {
	one := FindOptions{}
	if o != nil {
		one = *o
	}
	one.Limit = 1
	for doc, err := range c.Find(ctx, filter, &one) {
		if err != nil {
			return nil, err
		}
		return append(bson.Raw(nil), doc...), nil
	}
	return nil, ErrNotFound
}

// OpenFind is Find with a cursor, which must be closed.
func (c *Collection) OpenFind(ctx context.Context, filter any, o *FindOptions) (*Cursor, error) {
	spec, err := toDocument(filter)
	if err != nil {
		return nil, err
	}
	if cursor, err := c.openDirect(ctx, spec, o); cursor != nil || err != nil {
		return cursor, err
	}
	q, err := c.parseFind(spec, o)
	if err != nil {
		return nil, err
	}
	if c.view() != nil {
		return c.findInView(ctx, q)
	}
	x, err := c.use()
	if err != nil {
		return nil, err
	}
	if x == nil {
		return newCursor(ctx, empty{}), nil
	}
	m, err := c.open(ctx, x, q)
	if err != nil {
		return nil, err
	}
	return newCursor(ctx, &found{m: m, q: q}), nil
}

// found is the documents of a query.
type found struct {
	m   *matches
	q   *findQuery
	buf []byte
}

func (f *found) next(ctx context.Context) (document, bool, error) {
	if !f.m.next() {
		return nil, false, f.m.err()
	}
	var err error
	if f.buf, err = f.m.document(f.buf[:0]); err != nil {
		return nil, false, err
	}
	return f.buf, true, nil // the plan has made the projection
}

func (f *found) close() error { return f.m.close() }

// parseFind parses a query.
func (c *Collection) parseFind(filter any, o *FindOptions) (*findQuery, error) {
	q := &findQuery{now: c.store.clock.Now()}
	if o != nil {
		q.options = *o
	}
	var err error
	if q.spec, err = toDocument(filter); err != nil {
		return nil, err
	}
	if q.Sort, err = toOptional(q.options.Sort); err != nil {
		return nil, err
	}
	if q.Hint, err = toValue(q.options.Hint); err != nil {
		return nil, err
	}
	if q.Min, err = toOptional(q.options.Min); err != nil {
		return nil, err
	}
	if q.Max, err = toOptional(q.options.Max); err != nil {
		return nil, err
	}
	if q.Skip, q.Limit = q.options.Skip, q.options.Limit; q.Skip < 0 {
		return nil, mongoerror.New(mongoerror.BadValue, "Skip value must be non-negative, but received: %d", q.Skip)
	}
	if q.Limit < 0 {
		return nil, mongoerror.New(mongoerror.BadValue, "Limit value must be non-negative, but received: %d", q.Limit)
	}
	if q.Collation, err = c.collation(q.options.Collation); err != nil {
		return nil, err
	}
	if q.let, err = toVariables(q.options.Let); err != nil {
		return nil, err
	}
	q.FilterSpec, q.Let = q.spec, q.let
	if q.Filter, err = query.Parse(q.spec, &query.Options{Collation: q.Collation, Let: q.let, Now: q.now}); err != nil {
		return nil, err
	}
	return q, c.parseProjection(q)
}

// parseProjection makes the function that turns a document into what is wanted of it.
func (c *Collection) parseProjection(q *findQuery) error {
	spec, err := toOptional(q.options.Projection)
	if err != nil {
		return err
	}
	q.project = func(doc document) (document, error) { return doc, nil }
	if spec == nil {
		return nil
	}
	o := &projection.Options{
		Filter:     q.Filter,
		Expression: &expression.Options{Collation: q.Collation, Let: q.let, Now: q.now},
	}
	q.Project = spec
	if q.Projection, err = projection.Parse(spec, o); err != nil || q.Projection == nil {
		return err
	}
	var buf []byte
	apply := q.Projection // which the plan may not get
	q.project = func(doc document) (document, error) {
		var err error
		buf, err = apply.Apply(buf[:0], doc)
		return buf, err
	}
	return nil
}

// collation returns the collation that a call asks for, or that of the collection.
func (c *Collection) collation(v any) (*collation.Collation, error) {
	spec, err := toOptional(v)
	if err != nil {
		return nil, err
	}
	if spec != nil {
		return collation.Parse(spec)
	}
	if x := c.store.current.Load().byName[c.ns.String()]; x != nil {
		return x.settings.Load().collation, nil
	}
	if v := c.view(); v != nil {
		return v.settings.collation, nil
	}
	return nil, nil
}

// toVariables reads a document of variables.
func toVariables(v any) ([]expression.Variable, error) {
	doc, err := toOptional(v)
	if doc == nil || err != nil {
		return nil, err
	}
	var list []expression.Variable
	for _, e := range elementsOf(doc) {
		value := e.Value()
		x, err := expression.Parse(value, nil)
		if err != nil {
			return nil, err
		}
		if value, err = x.Eval(emptyDocument()); err != nil {
			return nil, err
		}
		list = append(list, expression.Variable{Name: e.Key(), Value: value})
	}
	return list, nil
}

// Count returns how many documents match. nil counts all, without looking at them.
func (c *Collection) Count(ctx context.Context, filter any, o *FindOptions) (int64, error) {
	q, err := c.parseFind(filter, o)
	if err != nil {
		return 0, err
	}
	if c.view() != nil {
		cursor, err := c.findInView(ctx, q)
		if err != nil {
			return 0, err
		}
		defer cursor.Close()
		n := int64(0)
		for cursor.Next(ctx) {
			n++
		}
		return n, cursor.Err()
	}
	x, err := c.use()
	if x == nil || err != nil {
		return 0, err
	}
	return c.count(ctx, x, q)
}

// Distinct returns the different values of a field among the documents that match, elements of arrays one by one, in their order.
func (c *Collection) Distinct(ctx context.Context, field string, filter any, o *FindOptions) ([]bson.RawValue, error) {
	q, err := c.parseFind(filter, o)
	if err != nil {
		return nil, err
	}
	set := newValueSet(q.Collation)
	add := func(doc document) { eachLeaf(doc, field, set.add) }
	var cursor *Cursor
	if c.view() != nil {
		cursor, err = c.findInView(ctx, q)
	} else {
		cursor, err = c.OpenFind(ctx, bson.Raw(q.spec), &FindOptions{Hint: q.options.Hint, Collation: q.options.Collation, Let: q.options.Let})
	}
	if err != nil {
		return nil, err
	}
	defer cursor.Close()
	for cursor.Next(ctx) {
		add(cursor.current)
	}
	return set.values(), cursor.Err()
}

// Explain returns how a query would be carried out, or, with a Verbosity above queryPlanner, how it was, in the shape of MongoDB's
// explain.
func (c *Collection) Explain(ctx context.Context, filter any, o *FindOptions) (bson.Raw, error) {
	q, err := c.parseFind(filter, o)
	if err != nil {
		return nil, err
	}
	x, err := c.use()
	if err != nil {
		return nil, err
	}
	return c.explain(ctx, x, q)
}
