package document

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"math"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document/internal/aggregate"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/number"
	"github.com/pandodb/pando/document/internal/path"
	"github.com/pandodb/pando/document/internal/query"
	"github.com/pandodb/pando/document/internal/sortkey"
)

// The database local has one collection, oplog.rs: the storage's log, as far back as it is kept, in the shape of MongoDB's oplog. It
// can be read like a capped collection, and not be written to.

// The oplog's namespace.
const (
	localDatabase = "local"
	oplogName     = "oplog.rs"
)

// isOplog reports whether a namespace is the oplog's, in a store that has one.
func (s *Store) isOplog(ns namespace) bool {
	return s.options.History >= 0 && ns.database == localDatabase && ns.collection == oplogName
}

// onOplog refuses a write to the oplog.
func (s *Store) onOplog(ns namespace) error {
	if !s.isOplog(ns) {
		return nil
	}
	return mongoerror.New(mongoerror.InvalidNamespace, "cannot write to %s", ns)
}

// oplogSpan is the times between which a query wants entries.
type oplogSpan struct{ from, to uint64 }

// spanOf finds out which times a filter allows: it may allow fewer.
func spanOf(filter document) oplogSpan {
	span := oplogSpan{0, math.MaxUint64}
	for _, e := range elementsOf(filter) {
		switch e.Key() {
		case "ts":
			span.narrow("$eq", e.Value())
			if doc, ok := e.Value().DocumentOK(); ok {
				for _, op := range elementsOf(doc) {
					span.narrow(op.Key(), op.Value())
				}
			}
		case "$and":
			list, _ := e.Value().ArrayOK()
			for _, part := range elementsOf(document(list)) {
				if doc, ok := part.Value().DocumentOK(); ok {
					inner := spanOf(doc)
					span.from, span.to = max(span.from, inner.from), min(span.to, inner.to)
				}
			}
		}
	}
	return span
}

// narrow takes in a comparison.
func (p *oplogSpan) narrow(op string, v bsoncore.Value) {
	seconds, counter, ok := v.TimestampOK()
	if !ok {
		return
	}
	at := uint64(seconds)<<32 | uint64(counter)
	switch op {
	case "$eq":
		p.from, p.to = max(p.from, at), min(p.to, at)
	case "$gt", "$gte":
		p.from = max(p.from, at)
	case "$lt", "$lte":
		p.to = min(p.to, at)
	}
}

// oplogScan is entries of the oplog from the oldest to the newest. It implements source.
type oplogScan struct {
	feed
	query  *findQuery
	window window
}

// openOplog opens a scan of the oplog, which goes on with follow.
func (s *Store) openOplog(ctx context.Context, q *findQuery, follow bool) (*oplogScan, error) {
	places, _, err := s.oplog.upToDate(ctx, s)
	if err != nil {
		return nil, positionLost(err)
	}
	// The filter runs in the goroutine of the feed, and ends with it: so it has a call of its own.
	reading := s.newCall(ctx)
	filter, err := query.Parse(q.spec, &query.Options{Collation: q.Collation, Let: q.Let, Now: q.Now, Call: reading})
	if err != nil {
		return nil, err
	}
	span := spanOf(q.spec)
	at := places[placeBefore(places, span.from)]
	scan := &oplogScan{query: q, window: windowOf(q.Skip, q.Limit)}
	entries := &entryMaker{add: func(ctx context.Context, time uint64, entry document) error {
		if time > span.to && !follow {
			return errFeedEnded
		}
		reading.By(ctx)
		match, err := filter.Match(path.Document(entry))
		if err != nil || !match {
			return err
		}
		return scan.send(ctx, event{doc: entry})
	}}
	r := &logReader{store: s, deliver: entries.take, time: at.time}
	scan.follow(s, r, pando.ChangesOptions{From: at.seq + 1, Follow: follow})
	return scan, nil
}

// next implements source.
func (o *oplogScan) next(ctx context.Context) (document, bool, error) {
	o.query.call.By(ctx)
	for !o.window.ended() {
		e, err := o.take(ctx)
		if err != nil {
			return nil, false, positionLost(err)
		}
		if e == nil {
			return nil, false, nil
		}
		if !o.window.admits() {
			continue
		}
		doc, err := o.query.project(e.doc)
		return doc, err == nil, err
	}
	return nil, false, errEnded
}

// close implements source.
func (o *oplogScan) close() error { return o.leave() }

// oplogEnd is an oplogScan that ends at the newest entry.
type oplogEnd struct{ scan *oplogScan }

func (o oplogEnd) next(ctx context.Context) (document, bool, error) {
	for {
		doc, ok, err := o.scan.next(ctx)
		if errors.Is(err, errFeedEnded) || errors.Is(err, errEnded) {
			return nil, false, nil
		}
		if ok || err != nil {
			return doc, ok, err
		}
		if err := o.scan.await(ctx); err != nil && !errors.Is(err, errFeedEnded) {
			return nil, false, err
		}
	}
}

func (o oplogEnd) close() error { return o.scan.close() }

// oplogTail is an oplogScan that does not end. It implements source and waiter.
type oplogTail struct{ *oplogScan }

// next implements source.
func (o oplogTail) next(ctx context.Context) (document, bool, error) {
	doc, ok, err := o.oplogScan.next(ctx)
	if errors.Is(err, errFeedEnded) {
		err = ErrClosed
	}
	return doc, ok, err
}

// wait implements waiter.
func (o oplogTail) wait(ctx context.Context) error {
	if err := o.await(ctx); err != nil && !errors.Is(err, errFeedEnded) {
		return err
	}
	return nil // next says what there is
}

// positionLost is the error of a cursor whose place the log has not any more.
func positionLost(err error) error {
	if !errors.Is(err, pando.ErrChangesGone) {
		return err
	}
	return &Error{
		Code: Code(136), Cause: err,
		Message: "CollectionScan died due to position in capped collection being deleted: " + localDatabase + "." + oplogName,
	}
}

// oplogBack is entries of the oplog from the newest to the oldest. It implements source.
type oplogBack struct {
	store  *Store
	query  *findQuery
	span   oplogSpan
	places []oplogPlace // that are still to be read from
	to     uint64       // the last change of the part to be read next
	step   int          // how many places at once
	list   []document
	window window
}

// openOplogBack opens a scan of the oplog from its end.
func (s *Store) openOplogBack(ctx context.Context, q *findQuery) (source, error) {
	places, head, err := s.oplog.upToDate(ctx, s)
	if err != nil {
		return nil, positionLost(err)
	}
	o := &oplogBack{store: s, query: q, span: spanOf(q.spec), places: places, to: head.seq, step: 1, window: windowOf(q.Skip, q.Limit)}
	return o, nil
}

// next implements source.
func (o *oplogBack) next(ctx context.Context) (document, bool, error) {
	o.query.call.By(ctx)
	for !o.window.ended() {
		for len(o.list) == 0 {
			if len(o.places) == 0 {
				return nil, false, nil
			}
			if err := o.read(ctx); err != nil {
				return nil, false, positionLost(err)
			}
		}
		last := len(o.list) - 1
		doc := o.list[last]
		if o.list = o.list[:last]; !o.window.admits() {
			continue
		}
		doc, err := o.query.project(doc)
		return doc, err == nil, err
	}
	return nil, false, nil
}

// maxBackStep is how many places are read at once: finding one in the log costs a walk over a segment.
const maxBackStep = 32

// read reads the next part.
func (o *oplogBack) read(ctx context.Context) error {
	first := max(0, len(o.places)-o.step)
	at, end := o.places[first], o.to
	o.places, o.to, o.step = o.places[:first], at.seq, min(o.step*2, maxBackStep)
	if at.seq >= end {
		return nil
	}
	entries := &entryMaker{add: func(_ context.Context, time uint64, entry document) error {
		if time < o.span.from || time > o.span.to {
			return nil
		}
		match, err := o.query.Filter.Match(path.Document(entry))
		if match {
			o.list = append(o.list, entry)
		}
		return err
	}}
	r := &logReader{store: o.store, deliver: entries.take, time: at.time}
	for c, err := range o.store.db.Changes(ctx, pando.ChangesOptions{From: at.seq + 1}) {
		if err == nil {
			err = r.take(ctx, c)
		}
		if err != nil {
			return err
		}
		if c.Seq >= end {
			break
		}
	}
	if at.time < o.span.from {
		o.places = nil // all before is older
	}
	return nil
}

// close implements source.
func (o *oplogBack) close() error { return nil }

// findInOplog is OpenFind on the oplog.
func (c *Collection) findInOplog(ctx context.Context, q *findQuery) (*Cursor, error) {
	order, natural := oplogOrder(q)
	switch {
	case c.tx != nil:
		return nil, mongoerror.New(mongoerror.OperationNotSupportedInTransaction, "Cannot run 'find' against the local database in a multi-document transaction.")
	case !natural:
		return c.findInView(ctx, q)
	case order < 0:
		src, err := c.store.openOplogBack(ctx, q)
		if err != nil {
			return nil, err
		}
		return newCursor(ctx, src), nil
	}
	scan, err := c.store.openOplog(ctx, q, false)
	if err != nil {
		return nil, err
	}
	return newCursor(ctx, oplogEnd{scan}), nil
}

// oplogOrder returns the direction in which a query walks over the oplog, and whether that gives the order that it wants.
func oplogOrder(q *findQuery) (int, bool) {
	spec := q.Sort
	if len(elementsOf(spec)) == 0 {
		spec, _ = q.Hint.DocumentOK()
		if _, err := spec.LookupErr("$natural"); err != nil {
			return 1, true
		}
	}
	first := elementsOf(spec)[0]
	direction, ok := number.Truncated(first.Value())
	if first.Key() != "$natural" && first.Key() != "ts" || !ok { // times are different, so nothing behind matters
		return 0, false
	}
	if direction < 0 {
		return -1, true
	}
	return 1, true
}

// tailOplog is Tail on the oplog.
func (c *Collection) tailOplog(ctx context.Context, filter any, options *FindOptions) (*Cursor, error) {
	q, err := c.parseFind(ctx, filter, options)
	if err != nil {
		return nil, err
	}
	if order, natural := oplogOrder(q); !natural || order < 0 || len(elementsOf(q.Sort)) > 0 && elementsOf(q.Sort)[0].Key() != "$natural" {
		return nil, mongoerror.New(mongoerror.BadValue, "cannot use tailable option with a sort other than {$natural: 1}")
	}
	scan, err := c.store.openOplog(ctx, q, true)
	if err != nil {
		return nil, err
	}
	return newCursor(ctx, oplogTail{scan}), nil
}

// cursorRows is a cursor for a pipeline. It implements aggregate.Cursor.
type cursorRows struct{ cursor *Cursor }

// Next implements aggregate.Cursor.
func (o cursorRows) Next(ctx context.Context) (document, error) {
	if !o.cursor.Next(ctx) {
		return nil, orError(o.cursor.Err(), func() error { return io.EOF })
	}
	return o.cursor.current, nil
}

// Close implements aggregate.Cursor.
func (o cursorRows) Close() error { return o.cursor.Close() }

// aggregateOplog opens the oplog for a pipeline.
func (e *environment) aggregateOplog(ctx context.Context, r *aggregate.Request) (aggregate.Cursor, error) {
	q, err := e.query(r)
	if err != nil {
		return nil, err
	}
	c := e.store.Database(localDatabase).Lookup(oplogName)
	open := func(q *findQuery) (*Cursor, error) { return c.findInOplog(ctx, q) }
	if _, natural := oplogOrder(q); !natural {
		return e.store.sortedRows(ctx, q, open)
	}
	cursor, err := open(q)
	return cursorRows{cursor}, err
}

// sortedRows is what open finds in another order than its own, in memory.
func (s *Store) sortedRows(ctx context.Context, q *findQuery, open func(q *findQuery) (*Cursor, error)) (aggregate.Cursor, error) {
	order, err := sortkey.Parse(q.Sort, q.Collation)
	if err != nil {
		return nil, err
	}
	all := *q
	all.Sort, all.Skip, all.Limit = nil, 0, 0
	cursor, err := open(&all)
	if err != nil {
		return nil, err
	}
	defer cursor.Close()
	type entry struct {
		key []byte
		doc document
	}
	var list []entry
	for size := int64(0); cursor.Next(ctx); {
		if size += int64(len(cursor.current)); size > s.options.QueryMemoryBytes {
			return nil, mongoerror.New(mongoerror.QueryExceededMemoryLimitNoDiskUseAllowed, "Sort exceeded memory limit of %d bytes", s.options.QueryMemoryBytes)
		}
		e := entry{doc: slices.Clone(cursor.current)}
		if e.key, err = order.Append(nil, path.Document(e.doc)); err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	slices.SortStableFunc(list, func(a, b entry) int { return bytes.Compare(a.key, b.key) })
	list = list[min(q.Skip, int64(len(list))):]
	if q.Limit > 0 {
		list = list[:min(q.Limit, int64(len(list)))]
	}
	out := &rows{}
	for _, e := range list {
		out.list = append(out.list, e.doc)
	}
	return out, cursor.Err()
}

// Noop puts an entry into the oplog that says something and changes nothing.
func (s *Store) Noop(ctx context.Context, message bson.Raw) error {
	if err := errors.Join(s.usable(), checkBSON(message)); err != nil || s.options.History < 0 {
		return err
	}
	return s.write(ctx, func(w *writer) error {
		w.startNote(opNoop)
		return w.noteLong(document(message))
	})
}

// oplogInfo describes the oplog as that of a collection.
func (s *Store) oplogInfo() CollectionInfo {
	options := bsoncore.NewDocumentBuilder().AppendBoolean("capped", true).AppendInt64("size", s.oplogBytes()).AppendBoolean("autoIndexId", false)
	id := sha256.Sum256([]byte(localDatabase + "." + oplogName))
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return CollectionInfo{Name: oplogName, UUID: bson.Binary{Subtype: bson.TypeBinaryUUID, Data: id[:16]}, Options: bson.Raw(options.Build())}
}

// oplogBytes is how much of the log is kept.
func (s *Store) oplogBytes() int64 { return max(s.options.History, s.options.Storage.KeepChanges) }

// oplogStats is about how many entries the oplog has, and how large they are.
func (s *Store) oplogStats(ctx context.Context) (*Stats, error) {
	places, head, err := s.oplog.upToDate(ctx, s)
	if err != nil {
		return nil, err
	}
	return &Stats{Documents: head.entries - places[0].entries, Capped: true, Bytes: head.bytes - places[0].bytes}, nil
}
