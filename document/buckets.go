package document

import (
	"context"
	"errors"
	"hash/fnv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/aggregate"
	"github.com/pandodb/pando/document/internal/bucket"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/path"
	"github.com/pandodb/pando/document/internal/query"
)

// A time series X has no buckets, but tools that copy one (mongodump, mongorestore) read and insert those of MongoDB, as the documents of
// system.buckets.X. So reading this name packs the measurements, in the order of their records, into buckets, and inserting a bucket
// inserts what is in it. Nothing else can be done with it.

// bucketsPrefix begins the name under which MongoDB keeps the buckets of a time series.
const bucketsPrefix = "system.buckets."

// isBuckets reports whether a name may be that of the buckets of a time series.
func isBuckets(ns namespace) bool { return strings.HasPrefix(ns.collection, bucketsPrefix) }

// bucketsOf returns the time series whose buckets a handle names; nil when it names something else.
func (c *Collection) bucketsOf() (*Collection, *collection) {
	name, ok := strings.CutPrefix(c.ns.collection, bucketsPrefix)
	if !ok || c.names().byName[c.ns.String()] != nil {
		return nil, nil
	}
	inner := &Collection{store: c.store, ns: namespace{c.ns.database, name}, tx: c.tx, at: c.at}
	x, err := inner.use()
	if x == nil || err != nil || x.settings.Load().series == nil {
		return nil, nil
	}
	return inner, x
}

// notBuckets refuses what cannot be done with the buckets of a time series.
func (c *Collection) notBuckets() error {
	inner, x := c.bucketsOf()
	if x == nil {
		return nil
	}
	return mongoerror.New(mongoerror.CommandNotSupported, "%s can only be read and inserted into, as measurements are not kept in buckets here: use %s", c.ns, inner.ns)
}

// virtual returns what opens a query on something that is read, but is no collection: a view, the oplog, or the buckets of a time
// series. It is nil for collections.
func (c *Collection) virtual() func(ctx context.Context, q *findQuery) (*Cursor, error) {
	switch _, series := c.bucketsOf(); {
	case c.view() != nil:
		return c.findInView
	case c.store.isOplog(c.ns):
		return c.findInOplog
	case series != nil:
		return c.findInBuckets
	}
	return nil
}

// fields says what the series calls its fields, as buckets need it.
func (s *series) fields() bucket.Fields { return bucket.Fields{Time: s.timeField, Meta: s.metaField} }

// packer makes buckets of the series.
func (s *series) packer(settings *settings) bucket.Packer {
	rounding := s.maxSpan
	if g, ok := granularities()[s.granularity]; ok {
		rounding = g.rounding
	}
	return bucket.Packer{
		Fields: s.fields(), Span: time.Duration(s.maxSpan) * time.Second, Rounding: time.Duration(rounding) * time.Second, Collation: settings.collation,
	}
}

// bucketScan is the buckets of a time series. It implements source and aggregate.Cursor.
type bucketScan struct {
	m      *matches
	packer bucket.Packer
	number uint64   // of the bucket that is being made
	held   document // a measurement that did not fit into the last bucket; nil: none
	query  *findQuery
	window window
}

// openBuckets opens the measurements of a series on a moment.
func (m *moment) openBuckets(ctx context.Context, x *collection, q *findQuery) (*bucketScan, error) {
	all := &findQuery{spec: emptyDocument()}
	all.Now = q.Now
	var err error
	if all.Filter, err = query.Parse(all.spec, &query.Options{Now: q.Now}); err != nil {
		return nil, err
	}
	all.FilterSpec = all.spec
	natural := bsoncore.NewDocumentBuilder().AppendInt32("$natural", 1).Build()
	all.Hint = bsoncore.Value{Type: bsoncore.TypeEmbeddedDocument, Data: natural}
	matches, err := m.open(ctx, x, all)
	if err != nil {
		return nil, err
	}
	settings := x.settings.Load()
	packer := settings.series.packer(settings)
	return &bucketScan{m: matches, packer: packer, query: q, window: windowOf(q.Skip, q.Limit)}, nil
}

// next implements source.
func (b *bucketScan) next(ctx context.Context) (document, bool, error) {
	b.query.call.By(ctx)
	for !b.window.ended() {
		doc, err := b.pack()
		if doc == nil || err != nil {
			return nil, false, errors.Join(err, ctx.Err())
		}
		match, err := b.query.Filter.Match(path.Document(doc))
		if err = errors.Join(err, ctx.Err()); err != nil {
			return nil, false, err
		}
		if !match || !b.window.admits() {
			continue
		}
		if doc, err = b.query.project(doc); err != nil {
			return nil, false, err
		}
		return doc, true, nil
	}
	return nil, false, nil
}

// close implements source.
func (b *bucketScan) close() error { return b.m.close() }

// pack makes the next bucket; nil at the end.
func (b *bucketScan) pack() (document, error) {
	for {
		if b.held == nil {
			if !b.m.next() {
				if err := b.m.err(); err != nil || b.packer.Empty() {
					return nil, err
				}
				return b.finish()
			}
			var err error
			if b.held, err = b.m.document(nil); err != nil {
				return nil, err
			}
		}
		if !b.packer.Fits(b.held) {
			return b.finish()
		}
		if b.packer.Empty() {
			hash := fnv.New64a()
			_, _ = hash.Write(b.m.key()) // it does not fail
			b.number = hash.Sum64()
		}
		if err := b.packer.Add(b.held); err != nil {
			return nil, err
		}
		b.held = nil
	}
}

// finish returns the bucket that is full.
func (b *bucketScan) finish() (document, error) {
	doc := b.packer.Finish(b.number)
	if len(doc) > MaxDocumentBytes {
		return nil, tooLarge(len(doc))
	}
	return doc, nil
}

// findInBuckets is OpenFind on the buckets of a time series.
func (c *Collection) findInBuckets(ctx context.Context, q *findQuery) (*Cursor, error) {
	switch order, natural := oplogOrder(q); {
	case !natural || len(elementsOf(q.Sort)) > 0 && elementsOf(q.Sort)[0].Key() != "$natural":
		return c.findInView(ctx, q)
	case order < 0:
		return nil, mongoerror.New(mongoerror.CommandNotSupported, "%s is read in its natural order only", c.ns)
	}
	inner, x := c.bucketsOf()
	if x == nil { // it was dropped meanwhile
		return newCursor(ctx, empty{}), nil
	}
	at := inner.moment()
	scan, err := at.openBuckets(ctx, x, q)
	if err != nil {
		return nil, errors.Join(err, at.close())
	}
	scan.m.done = at.close
	return newCursor(ctx, scan), nil
}

// aggregateBuckets opens the buckets of a time series for a pipeline.
func (e *environment) aggregateBuckets(ctx context.Context, x *collection, r *aggregate.Request) (aggregate.Cursor, error) {
	q, err := e.query(r)
	if err != nil {
		return nil, err
	}
	open := func(q *findQuery) (*Cursor, error) {
		scan, err := e.moment.openBuckets(ctx, x, q)
		if err != nil {
			return nil, err
		}
		return newCursor(ctx, scan), nil
	}
	if len(elementsOf(q.Sort)) > 0 {
		return e.store.sortedRows(ctx, q, open)
	}
	cursor, err := open(q)
	return cursorRows{cursor}, err
}

// Limits of what is inserted as one commit: a few bytes of a bucket can stand for many measurements.
const (
	commitMeasurements = 20_000
	commitBytes        = 16 << 20
)

// bucketInsert is buckets on their way into a time series. Each is stored as a whole or not at all.
type bucketInsert struct {
	into    *Collection
	options InsertOptions
	pending []unpacked
	count   int // of measurements that are pending
	bytes   int
	stored  int
	failed  WriteErrors
}

// unpacked is the measurements of one bucket.
type unpacked struct {
	number int
	docs   []bson.Raw
}

// insertBuckets is InsertMany into the buckets of a time series. Those in front of one that cannot be stored are stored, with any
// options.
func (c *Collection) insertBuckets(ctx context.Context, inner *Collection, s *series, list []document, o *InsertOptions) (int, error) {
	b := &bucketInsert{into: inner, options: *o}
	for i, doc := range list {
		measurements, err := s.fields().Unpack(doc)
		if err != nil {
			if err := b.flush(ctx); err != nil {
				return b.stored, err
			}
			if !b.ended() {
				b.fail(i, err)
			}
		} else {
			b.add(i, measurements)
		}
		if b.ended() {
			break
		}
		if b.count >= commitMeasurements || b.bytes >= commitBytes || i == len(list)-1 {
			if err := b.flush(ctx); err != nil {
				return b.stored, err
			}
		}
	}
	if len(b.failed) > 0 {
		return b.stored, b.failed
	}
	return b.stored, nil
}

// ended reports whether a bucket could not be stored, and those behind it are not to be.
func (b *bucketInsert) ended() bool { return len(b.failed) > 0 && !b.options.Unordered }

func (b *bucketInsert) fail(number int, err error) {
	b.failed = append(b.failed, WriteError{number, err})
}

func (b *bucketInsert) add(number int, measurements []document) {
	u := unpacked{number: number}
	for _, m := range measurements {
		u.docs = append(u.docs, bson.Raw(m))
		b.bytes += len(m)
	}
	b.pending, b.count = append(b.pending, u), b.count+len(measurements)
}

// flush stores what is pending: as one commit, or, where that fails, bucket by bucket.
func (b *bucketInsert) flush(ctx context.Context) error {
	pending := b.pending
	b.pending, b.count, b.bytes = nil, 0, 0
	err := b.store(ctx, pending)
	var list WriteErrors
	if !errors.As(err, &list) {
		return err
	}
	for i := 0; i < len(pending) && !b.ended(); i++ {
		if err = b.store(ctx, pending[i:i+1]); errors.As(err, &list) {
			b.fail(pending[i].number, list[0].Err)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// store stores buckets as one commit.
func (b *bucketInsert) store(ctx context.Context, list []unpacked) error {
	var docs []bson.Raw
	var ids []int32 // of the statements: that of a bucket stands at its first measurement
	told, _ := ctx.Value(statementsKey{}).(*statements)
	for _, u := range list {
		for i := range u.docs {
			id := int32(noStatement)
			if told != nil && i == 0 {
				id = told.ids[u.number]
			}
			ids = append(ids, id)
		}
		docs = append(docs, u.docs...)
	}
	if told != nil {
		ctx = WithStatements(ctx, told.session, told.number, ids...)
	}
	_, err := b.into.InsertMany(ctx, docs, &InsertOptions{SkipValidation: b.options.SkipValidation})
	if err == nil {
		b.stored += len(list)
	}
	return err
}
