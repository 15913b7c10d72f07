package document

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document/internal/aggregate"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/path"
	"github.com/pandodb/pando/document/internal/query"
)

// A change stream reads the storage's log: each commit has a note for each change (oplog.go), behind the record that it stored.
// A goroutine reads ahead by a few events; stages behind $changeStream are run on each event by itself.

// tokenKind begins every resume token.
const tokenKind = 0x82

func (t token) hex() string {
	b := append([]byte{tokenKind}, binary.BigEndian.AppendUint64(nil, t.seq)...)
	if t.invalidate {
		b = append(b, 1)
	}
	return hex.EncodeToString(b)
}

// parseToken reads a resume token.
func parseToken(v any) (token, error) {
	raw, err := toValue(v)
	if err != nil {
		return token{}, err
	}
	doc, ok := raw.DocumentOK()
	if !ok {
		return token{}, wrongType("$changeStream.resumeAfter", raw, "an object")
	}
	text, ok := doc.Lookup("_data").StringValueOK()
	b, err := hex.DecodeString(text)
	if !ok || err != nil || len(b) < 9 || len(b) > 10 || b[0] != tokenKind {
		return token{}, mongoerror.New(mongoerror.InvalidResumeToken, "Bad resume token: _data of missing or of wrong type %s", doc)
	}
	return token{seq: binary.BigEndian.Uint64(b[1:]), invalidate: len(b) == 10}, nil
}

// stream is a change stream. It implements source and waiter.
type stream struct {
	store   *Store
	ns      namespace
	o       *WatchOptions
	stages  []document
	from    uint64
	after   uint64 // a timestamp: earlier events are left out
	told    uint64 // the change whose first event is known already
	stop    context.CancelFunc
	events  chan event
	wait_   sync.WaitGroup
	pending *event
	last    token
	ended   bool
	until   uint64        // the newest change when the stream was opened
	caught  chan struct{} // closed when everything up to it has been read
}

// event is a change on its way to a stream's reader, or the error that ended it.
type event struct {
	doc document
	at  token
	end bool // the stream is invalid behind it
	err error
}

// readAhead is how many events a stream holds.
const readAhead = 64

// openStream opens a change stream.
func (s *Store) openStream(ctx context.Context, ns namespace, stages []document, o *WatchOptions) (*Cursor, error) {
	if err := errors.Join(s.usable(), ctx.Err(), o.check()); err != nil {
		return nil, err
	}
	st := &stream{store: s, ns: ns, o: o, stages: stages, events: make(chan event, readAhead), from: s.db.LastSeq() + 1}
	st.until, st.caught = s.db.LastSeq(), make(chan struct{})
	st.last = token{seq: st.until}
	if err := st.start(); err != nil {
		return nil, err
	}
	if _, err := st.transform(nil); err != nil {
		return nil, err
	}
	if err := checkStreamStages(stages); err != nil {
		return nil, err
	}
	run, stop := context.WithCancel(s.work)
	st.stop = stop
	st.wait_.Add(1)
	s.wait.Go(func() {
		defer st.wait_.Done()
		defer close(st.events)
		st.read(run)
	})
	return newCursor(ctx, st), nil
}

// start finds out from which change on the stream tells.
func (st *stream) start() error {
	v := st.o.ResumeAfter
	if v == nil {
		v = st.o.StartAfter
	}
	switch {
	case v != nil:
		t, err := parseToken(v)
		if err != nil {
			return err
		}
		if t.invalidate && st.o.ResumeAfter != nil {
			return mongoerror.New(mongoerror.InvalidResumeToken, "Attempting to resume a change stream using 'resumeAfter' is not allowed from an invalidate notification.")
		}
		st.from, st.last = t.seq+1, t
		if !t.invalidate && t.seq >= st.store.db.OldestChange() {
			st.from, st.told = t.seq, t.seq // the change that was told may have a second event
		}
	case st.o.StartAtOperationTime != nil:
		at := st.o.StartAtOperationTime
		st.after = uint64(at.T)<<32 | uint64(at.I)
		st.from = 1
		if oldest := st.store.db.OldestChange(); oldest > 0 {
			st.from = oldest
		}
	}
	return nil
}

// checkStreamStages refuses stages that need more than one event at a time.
func checkStreamStages(stages []document) error {
	for _, stage := range stages {
		e, err := stage.IndexErr(0)
		if err != nil {
			return mongoerror.New(mongoerror.Code(40323), "A pipeline stage specification object must contain exactly one field.")
		}
		switch e.Key() {
		case "$match", "$project", "$addFields", "$set", "$unset", "$replaceRoot", "$replaceWith", "$redact", "$changeStreamSplitLargeEvent":
		default:
			return mongoerror.New(mongoerror.IllegalOperation, "%s is not permitted in a $changeStream pipeline", e.Key())
		}
	}
	return nil
}

// transform runs the stages on an event. nil checks the stages only.
func (st *stream) transform(doc document) (document, error) {
	if len(st.stages) == 0 {
		return doc, nil
	}
	c, err := (&Collection{store: st.store, ns: st.ns}).collation(st.o.Collation)
	if err != nil {
		return nil, err
	}
	p, err := aggregate.Parse(st.stages, &aggregate.Options{Database: st.ns.database, Collection: "changes", Collation: c, Now: st.store.clock.Now()})
	if err != nil || doc == nil {
		return nil, err
	}
	run, err := p.Run(st.store.work, oneEvent{doc: doc})
	if err != nil {
		return nil, err
	}
	out, err := run.Next(st.store.work)
	if errors.Is(err, io.EOF) {
		return nil, run.Close()
	}
	return slices.Clone(out), errors.Join(err, run.Close())
}

// oneEvent is a collection with one document. It implements aggregate.Environment.
type oneEvent struct {
	*environment // which is asked for nothing but Find, by the stages that are allowed
	doc          document
}

// Find implements aggregate.Environment.
func (e oneEvent) Find(_ context.Context, _, _ string, r *aggregate.Request) (aggregate.Cursor, error) {
	if r != nil && r.Filter != nil {
		f, err := query.Parse(r.Filter, &query.Options{Collation: r.Collation, Let: r.Let})
		if err != nil {
			return nil, err
		}
		if match, err := f.Match(path.Document(e.doc)); err != nil || !match {
			return &rows{}, err
		}
	}
	return &rows{list: []document{e.doc}}, nil
}

// read follows the log until the stream ends.
func (st *stream) read(ctx context.Context) {
	r := &logReader{stream: st, ctx: ctx}
	caught := st.caught
	catchUp := func(seq uint64) {
		if caught != nil && seq >= st.until {
			close(caught)
			caught = nil
		}
	}
	defer catchUp(st.until)
	catchUp(st.from - 1)
	for c, err := range st.store.db.Changes(ctx, pando.ChangesOptions{From: st.from, Follow: true}) {
		if err == nil {
			err = r.take(c)
			catchUp(c.Seq)
		}
		if err != nil {
			st.fail(ctx, err)
			return
		}
		if r.done {
			return
		}
	}
}

// fail ends the stream with an error.
func (st *stream) fail(ctx context.Context, err error) {
	if errors.Is(err, pando.ErrChangesGone) {
		err = &Error{
			Code: mongoerror.ChangeStreamHistoryLost, Cause: err, Labels: []string{"NonResumableChangeStreamError"},
			Message: "Resume of change stream was not possible, as the resume point may no longer be in the log",
		}
	}
	if ctx.Err() != nil {
		return
	}
	st.send(ctx, event{err: err})
}

func (st *stream) send(ctx context.Context, e event) {
	if e.err == nil && e.at == (token{seq: st.told}) {
		return
	}
	select {
	case st.events <- e:
	case <-ctx.Done():
	}
}

// next implements source.
func (st *stream) next(ctx context.Context) (document, bool, error) {
	for {
		e := st.pending
		st.pending = nil
		if e == nil {
			var err error
			if e, err = st.take(ctx); e == nil {
				return nil, false, err
			}
		}
		if e.err != nil {
			return nil, false, e.err
		}
		st.last, st.ended = e.at, e.end
		if e.doc == nil {
			continue
		}
		doc, err := st.transform(e.doc)
		if err != nil {
			return nil, false, err
		}
		if doc == nil {
			continue
		}
		if _, err := doc.LookupErr("_id"); err != nil {
			return nil, false, fatalStream("Encountered an event whose _id field, which contains the resume token, was modified by the pipeline. Modifying the _id field of an event makes it impossible to resume the stream from that point.")
		}
		return doc, true, nil
	}
}

// take returns the next event, nil when there is none yet. What happened before the stream was opened is waited for.
func (st *stream) take(ctx context.Context) (*event, error) {
	received := func(e event, ok bool) (*event, error) {
		if !ok {
			return nil, st.closedBelow()
		}
		return &e, nil
	}
	select {
	case e, ok := <-st.events:
		return received(e, ok)
	default:
	}
	select {
	case e, ok := <-st.events:
		return received(e, ok)
	case <-st.caught:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case e, ok := <-st.events:
		return received(e, ok)
	default:
		return nil, nil
	}
}

func (st *stream) closedBelow() error {
	if st.ended {
		return errEnded
	}
	return fmt.Errorf("change stream: %w", ErrClosed)
}

// wait implements waiter.
func (st *stream) wait(ctx context.Context) error {
	if st.pending != nil {
		return nil
	}
	select {
	case e, ok := <-st.events:
		if !ok {
			return st.closedBelow()
		}
		st.pending = &e
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// close implements source.
func (st *stream) close() error {
	st.stop()
	st.wait_.Wait()
	return nil
}

// ResumeToken returns where a change stream stands: the _id of the last event, or of a place behind it where nothing was told. It
// is nil for other cursors.
func (c *Cursor) ResumeToken() bson.Raw {
	st, ok := c.src.(*stream)
	if !ok {
		return nil
	}
	return bson.Raw(st.last.document())
}

// fatalStream is the error of a stream that would fail again if it was resumed.
func fatalStream(text string) error {
	return &Error{Code: mongoerror.ChangeStreamFatalError, Labels: []string{"NonResumableChangeStreamError"}, Message: text}
}
