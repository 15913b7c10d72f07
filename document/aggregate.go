package document

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/aggregate"
	"github.com/pandodb/pando/document/internal/expression"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/plan"
	"github.com/pandodb/pando/document/internal/query"
)

// AggregateOptions says how to run a pipeline.
type AggregateOptions struct {
	// Hint, Collation, Let: see FindOptions.
	Hint, Collation, Let any
	// NoSpill makes stages that need more than QueryMemoryBytes fail instead of spilling.
	NoSpill bool
	// SkipValidation lets $merge and $out store documents that the validator of their collection refuses.
	SkipValidation bool
	// Special, if set, answers first stages whose rows come from outside of the store ($currentOp, $listSessions, ...). It returns
	// ok false for those that it does not know.
	Special func(ctx context.Context, stage string, spec bson.RawValue) (rows []bson.Raw, ok bool, err error)
	// Host, if set, is what $collStats and $indexStats say of where they ran.
	Host string
	// Usage, if set, returns what $collStats says of the time that a collection's commands took.
	Usage func(namespace string) bson.D

	now time.Time // of the find whose view this is; zero: see nowIn
}

// Aggregate runs a pipeline over the collection, for a range loop. A document is valid for its step only.
func (c *Collection) Aggregate(ctx context.Context, pipeline any, o *AggregateOptions) iter.Seq2[bson.Raw, error] {
	return loop(ctx, func() (*Cursor, error) { return c.OpenAggregate(ctx, pipeline, o) })
}

// OpenAggregate is Aggregate with a cursor, which must be closed. A pipeline that writes ($out, $merge) has done so when it
// returns. One that begins with $changeStream gives a cursor that does not end.
func (c *Collection) OpenAggregate(ctx context.Context, pipeline any, o *AggregateOptions) (*Cursor, error) {
	return c.store.aggregate(ctx, c, pipeline, o)
}

// Aggregate runs a pipeline that begins with a stage of its own rows, such as $documents, for a range loop.
func (d *Database) Aggregate(ctx context.Context, pipeline any, o *AggregateOptions) iter.Seq2[bson.Raw, error] {
	return loop(ctx, func() (*Cursor, error) { return d.OpenAggregate(ctx, pipeline, o) })
}

// OpenAggregate is Aggregate with a cursor, which must be closed.
func (d *Database) OpenAggregate(ctx context.Context, pipeline any, o *AggregateOptions) (*Cursor, error) {
	return d.store.aggregate(ctx, d.Lookup(""), pipeline, o)
}

// aggregate opens a pipeline. An empty collection name means none.
func (s *Store) aggregate(ctx context.Context, c *Collection, pipeline any, o *AggregateOptions) (*Cursor, error) {
	ns := c.ns
	if err := s.usable(); err != nil {
		return nil, err
	}
	if o == nil {
		o = new(AggregateOptions)
	}
	stages, err := toPipeline(pipeline)
	if err != nil {
		return nil, err
	}
	if c.view() != nil && begins(stages, "$changeStream") {
		return nil, onView(ns)
	}
	if begins(stages, "$changeStream") {
		spec, err := changeStreamStage(stages)
		if err != nil {
			return nil, err
		}
		return s.openChangeStream(ctx, ns, spec, stages[1:], o)
	}
	call := s.newCall(ctx)
	p, _, err := c.parsePipeline(stages, o, call)
	if err != nil {
		return nil, err
	}
	env := c.environment()
	env.special, env.call, env.unchecked = o.Special, call, o.SkipValidation
	env.host, env.usage = o.Host, o.Usage
	run, err := p.Run(ctx, env)
	if err != nil {
		return nil, errors.Join(err, env.close())
	}
	if _, _, writes := p.Writes(); !writes {
		return newCursor(ctx, &piped{cursor: run, call: call, done: env.close}), nil
	}
	all := newCursor(ctx, &piped{cursor: run, call: call, done: env.close})
	defer all.Close()
	for all.Next(ctx) {
		continue // the pipeline writes while it is read
	}
	if all.Err() != nil {
		return nil, all.Err()
	}
	return newCursor(ctx, empty{}), nil
}

// parsePipeline parses a pipeline, with the stages of the views in front over which it runs.
func (c *Collection) parsePipeline(stages []document, o *AggregateOptions, call *expression.Call) (*aggregate.Pipeline, namespace, error) {
	s, ns, names := c.store, c.ns, c.names()
	collation, err := c.collation(o.Collation)
	if err != nil {
		return nil, ns, err
	}
	now := s.nowIn(o.now)
	let, err := toVariables(o.Let, now, call)
	if err != nil {
		return nil, ns, err
	}
	hint, err := toValue(o.Hint)
	if err != nil {
		return nil, ns, err
	}
	below, prefix, err := names.resolve(ns)
	if err != nil {
		return nil, ns, err
	}
	if c.view() != nil && begins(stages, "$collStats") {
		below, prefix = ns, nil // it is about the view itself
	}
	options := &aggregate.Options{
		Database: below.database, Collection: below.collection, Collation: collation, Let: let, Now: now, Call: call, Hint: hint,
		Scratch: s.scratch, MemoryBytes: s.options.QueryMemoryBytes, Shared: s.held,
	}
	if o.NoSpill {
		options.Scratch = nil
	}
	p, err := aggregate.Parse(slices.Concat(prefix, stages), options)
	if err == nil {
		err = names.checkJoined(ns.database, stages, collation)
	}
	return p, below, err
}

// findInView is a find on a view: the view's pipeline with the query's stages behind.
func (c *Collection) findInView(ctx context.Context, q *findQuery) (*Cursor, error) {
	for _, option := range []struct {
		name  string
		given bool
	}{
		{"min", q.options.Min != nil},
		{"max", q.options.Max != nil},
		{"returnKey", q.options.ReturnKey},
		{"showRecordId", q.options.ShowRecordID},
	} {
		if option.given {
			return nil, mongoerror.New(mongoerror.InvalidPipelineOperator, "Option %s not supported in aggregation.", option.name)
		}
	}
	var stages []bson.D
	stage := func(name string, v any) { stages = append(stages, bson.D{{Key: name, Value: v}}) }
	stage("$match", bson.Raw(q.spec))
	hint := q.options.Hint
	if len(q.Sort) > len(emptyDocument()) {
		if elementsOf(q.Sort)[0].Key() != "$natural" {
			stage("$sort", bson.Raw(q.Sort))
		} else if hint == nil {
			hint = bson.Raw(q.Sort) // in which direction the collection below is read
		}
	}
	if q.Skip > 0 {
		stage("$skip", q.Skip)
	}
	if q.Limit > 0 {
		stage("$limit", q.Limit)
	}
	o := &AggregateOptions{Collation: q.options.Collation, Let: q.options.Let, NoSpill: q.options.NoSpill, Hint: hint, now: q.Now}
	inner, err := c.OpenAggregate(ctx, stages, o)
	if err != nil {
		return nil, err
	}
	return newCursor(ctx, &projected{inner: inner, q: q}), nil
}

// projected is a find's projection over another cursor.
type projected struct {
	inner *Cursor
	q     *findQuery
}

func (p *projected) next(ctx context.Context) (document, bool, error) {
	if !p.inner.Next(ctx) {
		return nil, false, p.inner.Err()
	}
	p.q.call.By(ctx)
	doc, err := p.q.project(p.inner.current)
	return doc, err == nil, err
}

func (p *projected) rest() { p.inner.Rest() }

func (p *projected) close() error { return p.inner.Close() }

// ExplainAggregate returns how a pipeline would be carried out.
func (c *Collection) ExplainAggregate(ctx context.Context, pipeline any, o *AggregateOptions, verbosity string) (bson.Raw, error) {
	if o == nil {
		o = new(AggregateOptions)
	}
	stages, err := toPipeline(pipeline)
	if err != nil {
		return nil, err
	}
	p, below, err := c.parsePipeline(stages, o, c.store.newCall(ctx))
	if err != nil {
		return nil, err
	}
	lead := p.Leading()
	options := &FindOptions{Skip: lead.Skip, Limit: lead.Limit, Collation: o.Collation, Let: o.Let, Hint: o.Hint, Verbosity: verbosity}
	if lead.Sort != nil {
		options.Sort = bson.Raw(lead.Sort)
	}
	inner := &Collection{store: c.store, ns: below, tx: c.tx}
	q, err := inner.parseFind(ctx, bson.Raw(lead.Filter), options)
	if err != nil {
		return nil, err
	}
	purpose(&q.Query, lead)
	x, err := inner.use()
	if err != nil {
		return nil, err
	}
	first, root, err := inner.explainPlan(ctx, x, q)
	if err != nil {
		return nil, err
	}
	rest := elementsOf(p.Explain(lead.Distinct != "" && plan.IsDistinct(root)))
	if len(rest) == 0 {
		return first, nil
	}
	list, lower := bsoncore.NewArrayBuilder(), bsoncore.NewDocumentBuilder()
	for _, e := range elementsOf(document(first)) {
		if e.Key() != "explainVersion" && e.Key() != "ok" {
			lower.AppendValue(e.Key(), e.Value())
		}
	}
	list.AppendDocument(bsoncore.NewDocumentBuilder().AppendDocument("$cursor", lower.Build()).Build())
	for _, e := range rest {
		list.AppendDocument(bsoncore.NewDocumentBuilder().AppendValue(e.Key(), e.Value()).Build())
	}
	out := bsoncore.NewDocumentBuilder().AppendString("explainVersion", "1").AppendArray("stages", list.Build()).AppendDouble("ok", 1).Build()
	return bson.Raw(out), nil
}

// environment is the store as of one moment, as pipelines see it. It implements aggregate.Environment.
type environment struct {
	store  *Store
	tx     *Tx
	moment *moment
	at     *moment // of a snapshot: the collections are those of its moment; nil: those of the present
	// unchecked: $merge and $out leave validators out.
	unchecked bool
	call      *expression.Call
	special   func(ctx context.Context, stage string, spec bson.RawValue) ([]bson.Raw, bool, error)
	host      string
	usage     func(namespace string) bson.D
}

func (c *Collection) environment() *environment {
	return &environment{store: c.store, tx: c.tx, at: c.at, moment: c.moment()}
}

// names returns the catalogue that the pipeline goes by.
func (e *environment) names() *catalogue { return (&Collection{store: e.store, at: e.at}).names() }

// lookup returns a collection as the pipeline sees it, and nil when it is not there.
func (e *environment) lookup(ns namespace) (*collection, error) {
	if e.tx == nil {
		return e.names().named(ns)
	}
	x, err := e.tx.find(ns)
	if x == nil || err != nil {
		return nil, err
	}
	return x, x.open()
}

func (e *environment) close() error { return e.moment.close() }

// Find implements aggregate.Environment.
func (e *environment) Find(ctx context.Context, database, collection string, r *aggregate.Request) (aggregate.Cursor, error) {
	if r == nil {
		r = new(aggregate.Request)
	}
	ns := namespace{database, collection}
	below, stages, err := e.names().resolve(ns)
	if err != nil {
		return nil, err
	}
	if below != ns {
		return e.findInView(ctx, below, stages, r)
	}
	if e.store.isOplog(ns) {
		return e.aggregateOplog(ctx, r)
	}
	if _, series := e.store.Database(database).Lookup(collection).bucketsOf(); series != nil {
		return e.aggregateBuckets(ctx, series, r)
	}
	x, err := e.lookup(ns)
	if err != nil {
		return nil, err
	}
	if x == nil {
		return &rows{}, nil
	}
	if r.Sample > 0 {
		d, err := e.moment.draw(ctx, x, r.Sample)
		if err != nil {
			return nil, err
		}
		if d != nil {
			return d, nil
		}
	}
	q, err := e.query(r)
	if err != nil {
		return nil, err
	}
	m, err := e.moment.open(ctx, x, q)
	if err != nil {
		return nil, err
	}
	return &matchRows{m: m}, nil
}

// query makes a query of a request.
func (e *environment) query(r *aggregate.Request) (q *findQuery, err error) {
	q = &findQuery{let: r.Let, call: e.call, project: whole}
	q.spec = r.Filter
	if q.spec == nil {
		q.spec = emptyDocument()
	}
	q.Let, q.Now = r.Let, r.Now
	q.FilterSpec, q.Sort, q.Skip, q.Limit, q.Hint, q.Collation = q.spec, r.Sort, r.Skip, r.Limit, r.Hint, r.Collation
	if q.Filter, err = query.Parse(q.spec, &query.Options{Collation: r.Collation, Let: r.Let, Now: q.Now, Call: q.call}); err != nil {
		return nil, err
	}
	purpose(&q.Query, r)
	return q, nil
}

// purpose tells the planner what the documents are for.
func purpose(q *plan.Query, r *aggregate.Request) {
	if r.Grouped {
		q.Fields = r.Fields
	} else {
		q.Needs = r.Fields
	}
	switch {
	case r.Counted:
		q.Goal = plan.Counting
	case r.Distinct != "":
		q.Goal, q.Field, q.First = plan.Distinct, r.Distinct, r.First
	}
}

// findInView runs the pipeline of a view with what is asked of it behind.
func (e *environment) findInView(ctx context.Context, below namespace, stages []document, r *aggregate.Request) (aggregate.Cursor, error) {
	add := func(name string, v bsoncore.Value) {
		stages = append(stages, bsoncore.NewDocumentBuilder().AppendValue(name, v).Build())
	}
	stages = slices.Clone(stages)
	if r.Filter != nil {
		add("$match", bsoncore.Value{Type: bsoncore.TypeEmbeddedDocument, Data: r.Filter})
	}
	if r.Sort != nil {
		add("$sort", bsoncore.Value{Type: bsoncore.TypeEmbeddedDocument, Data: r.Sort})
	}
	if r.Skip > 0 {
		add("$skip", bsoncore.Value{Type: bsoncore.TypeInt64, Data: bsoncore.AppendInt64(nil, r.Skip)})
	}
	if r.Limit > 0 {
		add("$limit", bsoncore.Value{Type: bsoncore.TypeInt64, Data: bsoncore.AppendInt64(nil, r.Limit)})
	}
	p, err := aggregate.Parse(stages, &aggregate.Options{
		Database: below.database, Collection: below.collection, Collation: r.Collation, Let: r.Let, Now: r.Now, Call: e.call,
		Scratch: e.store.scratch, MemoryBytes: e.store.options.QueryMemoryBytes, Shared: e.store.held,
	})
	if err != nil {
		return nil, err
	}
	return p.Run(ctx, e)
}

// Count implements aggregate.Environment.
func (e *environment) Count(ctx context.Context, database, collection string, r *aggregate.Request) (int64, bool, error) {
	ns := namespace{database, collection}
	if e.names().views[ns.String()] != nil || e.store.isOplog(ns) || isBuckets(ns) {
		return 0, false, nil
	}
	x, err := e.lookup(ns)
	if err != nil || x == nil {
		return 0, err == nil, err
	}
	q, err := e.query(r)
	if err != nil {
		return 0, false, err
	}
	n, err := e.moment.count(ctx, x, q)
	return n, err == nil, err
}

// Replace implements aggregate.Environment: $out.
func (e *environment) Replace(ctx context.Context, database, collection string, docs aggregate.Cursor) error {
	if e.tx != nil {
		return mongoerror.New(mongoerror.OperationNotSupportedInTransaction, "Stage not supported inside of a multi-document transaction: $out")
	}
	ns := namespace{database, collection}
	if err := ns.check(); err != nil {
		return err
	}
	return e.store.replaceCollection(ctx, ns, docs, e.unchecked)
}

// rows is documents that are there already. It implements aggregate.Cursor.
type rows struct{ list []document }

// matchRows is the documents of a query. It implements aggregate.Cursor.
type matchRows struct {
	m   *matches
	buf []byte
}
