package document

import (
	"bytes"
	"cmp"
	"context"
	"iter"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/collation"
	"github.com/pandodb/pando/document/internal/expression"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/path"
	"github.com/pandodb/pando/document/internal/plan"
	"github.com/pandodb/pando/document/internal/projection"
	"github.com/pandodb/pando/document/internal/query"
	"github.com/pandodb/pando/document/internal/sortkey"
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
	// ReturnKey gives of a document only what the index that was used has of it.
	ReturnKey bool
	// ShowRecordID adds the key of a document's record, as $recordId.
	ShowRecordID bool
	// MaxBytes makes Distinct fail, with code 17217, when its values take more as elements of an array; 0: no bound.
	MaxBytes int
	// Verbosity of Explain: "queryPlanner" (the default), "executionStats" or "allPlansExecution".
	Verbosity string

	now time.Time // of the update whose filter this is; zero: see nowIn
}

// findQuery is a query, parsed.
type findQuery struct {
	plan.Query
	spec    document
	project func(doc document) (document, error)
	options FindOptions
	let     []expression.Variable
	call    *expression.Call // who waits for what its expressions make
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
	// The function is small enough to become part of the loop, which then allocates nothing for it.
	return func(yield func(bson.Raw, error) bool) { c.each(ctx, filter, o, yield) }
}

// each is the loop over what a filter finds.
func (c *Collection) each(ctx context.Context, filter any, o *FindOptions, yield func(bson.Raw, error) bool) {
	cursor, err := c.OpenFind(ctx, filter, o)
	if err != nil {
		yield(nil, err)
		return
	}
	cursor.each(ctx, yield)
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
	if (o == nil || !o.ReturnKey && !o.ShowRecordID) && !isBuckets(c.ns) {
		if cursor, err := c.openDirect(ctx, spec, o); cursor != nil || err != nil {
			return cursor, err
		}
	}
	q, err := c.parseFind(ctx, spec, o)
	if err != nil {
		return nil, err
	}
	if open := c.virtual(); open != nil {
		return open(ctx, q)
	}
	x, err := c.use()
	if err != nil {
		return nil, err
	}
	if x == nil {
		return newCursor(ctx, empty{}), nil
	}
	if q.options.ReturnKey || q.options.ShowRecordID {
		return c.openKeyed(ctx, x, q)
	}
	if q.wantsMeta() {
		return c.openMeta(ctx, x, q)
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
	var ok bool
	var err error
	f.buf, ok, err = f.nextTo(ctx, f.buf[:0])
	return f.buf, ok, err
}

func (f *found) nextTo(ctx context.Context, dst []byte) ([]byte, bool, error) {
	f.q.call.By(ctx)
	if !f.m.next() {
		return dst, false, f.m.err()
	}
	out, err := f.m.document(dst) // the plan has made the projection
	return out, err == nil, err
}

func (f *found) rest() {
	f.buf = nil
	f.m.Rest()
}

func (f *found) close() error { return f.m.close() }

// parseFind parses a query.
func (c *Collection) parseFind(ctx context.Context, filter any, o *FindOptions) (*findQuery, error) {
	q := &findQuery{call: c.store.newCall(ctx)}
	if o != nil {
		q.options = *o
	}
	q.Now = c.store.nowIn(q.options.now)
	var err error
	if q.spec, err = toDocument(filter); err != nil {
		return nil, err
	}
	if q.Sort, err = toOptional(q.options.Sort); err != nil {
		return nil, err
	}
	if err := checkSort(q.Sort); err != nil {
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
	if len(q.Min) > len(emptyDocument()) && len(q.Max) > len(emptyDocument()) && !sameFields(q.Min, q.Max) {
		return nil, mongoerror.New(mongoerror.Code(51176), "min and max must have the same field names")
	}
	if q.Skip, q.Limit = q.options.Skip, q.options.Limit; q.Skip < 0 {
		return nil, mongoerror.New(mongoerror.BadValue, "Skip value must be non-negative, but received: %d", q.Skip)
	}
	if q.Limit < 0 {
		return nil, mongoerror.New(mongoerror.BadValue, "Limit value must be non-negative, but received: %d", q.Limit)
	}
	asked, err := toOptional(q.options.Collation)
	if err != nil {
		return nil, err
	}
	if q.Collation, err = c.parseCollation(asked); err != nil {
		return nil, err
	}
	if q.let, err = toVariables(q.options.Let, q.Now, q.call); err != nil {
		return nil, err
	}
	q.FilterSpec, q.Let = q.spec, q.let
	if q.Filter, err = query.Parse(q.spec, &query.Options{Collation: q.Collation, Let: q.let, Now: q.Now, Call: q.call}); err != nil {
		return nil, err
	}
	if err := c.parseProjection(q); err != nil {
		return nil, err
	}
	if err := q.checkMeta(); err != nil {
		return nil, err
	}
	return q, c.checkCollation(asked, q.Collation) // of which MongoDB learns after it has read the query
}

// fewKeys is how many keys an order has that is checked without being parsed.
const fewKeys = 8

// checkSort refuses an order that nothing sorts by. Where an index gives an order nobody else reads it.
func checkSort(order document) error {
	if len(order) <= len(emptyDocument()) {
		return nil
	}
	var room [fewKeys][]byte
	names := room[:0]
	for i, rest := 0, order[4:len(order)-1]; len(rest) > 0; i++ {
		e, after, ok := bsoncore.ReadElement(rest)
		if rest = after; !ok {
			return malformed("sort: %s", order)
		}
		if e.Key() == "$natural" {
			if i > 0 || len(rest) > 0 {
				return mongoerror.New(mongoerror.BadValue, "Cannot include '$natural' in compound sort: %s", order)
			}
			return nil
		}
		again := slices.ContainsFunc(names, func(name []byte) bool { return bytes.Equal(name, e.KeyBytes()) })
		if n, ok := e.Value().Int32OK(); !ok || n != 1 && n != -1 || again || i == fewKeys {
			_, err := sortkey.Parse(order, nil)
			return err
		}
		names = append(names, e.KeyBytes())
		if _, err := path.Split(e.Key()); err != nil {
			return err
		}
	}
	return nil
}

// whole is the projection of who wants documents as they are.
func whole(doc document) (document, error) { return doc, nil }

// parseProjection makes the function that turns a document into what is wanted of it.
func (c *Collection) parseProjection(q *findQuery) error {
	spec, err := toOptional(q.options.Projection)
	if err != nil {
		return err
	}
	q.project = whole
	if spec == nil {
		return nil
	}
	o := &projection.Options{
		Filter:     q.Filter,
		Expression: &expression.Options{Collation: q.Collation, Let: q.let, Now: q.Now, Call: q.call},
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

// collation returns the collation that a call asks for, which a view may refuse, or that of the collection.
func (c *Collection) collation(v any) (*collation.Collation, error) {
	asked, err := toOptional(v)
	if err != nil {
		return nil, err
	}
	parsed, err := c.parseCollation(asked)
	return parsed, cmp.Or(err, c.checkCollation(asked, parsed))
}

// checkCollation refuses what a call asks for where that is another collation than the view's.
func (c *Collection) checkCollation(asked document, parsed *collation.Collation) error {
	if asked == nil {
		return nil
	}
	return c.view().checkCollation(parsed)
}

// parseCollation parses the collation that a call asks for; nil is that of the collection.
func (c *Collection) parseCollation(asked document) (*collation.Collation, error) {
	if asked != nil {
		return collation.Parse(asked)
	}
	if x, err := c.names().named(c.ns); err != nil {
		return nil, err
	} else if x != nil {
		return x.settings.Load().collation, nil
	}
	if v := c.view(); v != nil {
		return v.settings.collation, nil
	}
	return nil, nil
}

// toVariables reads a document of variables, which are computed for a call before it looks at a document: each may use those in front of it.
func toVariables(v any, now time.Time, call *expression.Call) ([]expression.Variable, error) {
	doc, err := toOptional(v)
	if doc == nil || err != nil {
		return nil, err
	}
	var list []expression.Variable
	for _, e := range elementsOf(doc) {
		value := e.Value()
		x, err := expression.Parse(value, &expression.Options{Let: list, Now: now, Call: call})
		if err != nil {
			return nil, err
		}
		if fields, whole := x.Fields(); whole || len(fields) > 0 {
			return nil, mongoerror.New(mongoerror.Code(4890500), "Command let Expression tried to access a field, but this is not allowed because "+
				"Command let Expressions run before the query examines any documents.")
		}
		if value, err = x.Eval(emptyDocument()); err != nil {
			return nil, err
		}
		switch e.Key() {
		case "NOW", "CLUSTER_TIME":
			return nil, mongoerror.New(mongoerror.Code(4738901), "Attempt to set internal constant: %s", e.Key())
		}
		if err := expression.CheckVariable(e.Key()); err != nil {
			return nil, mongoerror.New(mongoerror.FailedToParse, "Invalid 'let' parameter :: caused by :: %s", err.Message)
		}
		list = append(list, expression.Variable{Name: e.Key(), Value: value})
	}
	return list, nil
}

// parseCount parses the query of Count. MongoDB does so behind its look at the collation.
func (c *Collection) parseCount(ctx context.Context, filter any, o *FindOptions) (*findQuery, error) {
	if o != nil {
		if _, err := c.collation(o.Collation); err != nil {
			return nil, err
		}
	}
	return c.parseFind(ctx, filter, o)
}

// Count returns how many documents match. nil counts all, without looking at them.
func (c *Collection) Count(ctx context.Context, filter any, o *FindOptions) (int64, error) {
	q, err := c.parseCount(ctx, filter, o)
	if err != nil {
		return 0, err
	}
	if open := c.virtual(); open != nil {
		cursor, err := open(ctx, q)
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
