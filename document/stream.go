package document

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document/internal/aggregate"
	"github.com/pandodb/pando/document/internal/expression"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/path"
	"github.com/pandodb/pando/document/internal/query"
)

// A change stream reads the storage's log: each commit has a note for each change (oplog.go), behind the record that it stored.
// A goroutine reads ahead by a few events; stages behind $changeStream are run on each event by itself.

// tokenKind begins every resume token; the others say what follows the number of the change.
const (
	tokenKind       = 0x82
	tokenInvalidate = 1
	tokenFragment   = 2
)

func (t token) hex() string {
	b := binary.BigEndian.AppendUint64([]byte{tokenKind}, t.seq)
	b = binary.BigEndian.AppendUint64(b, t.newest)
	switch {
	case t.invalidate:
		b = append(b, tokenInvalidate)
	case t.fragment > 0:
		b = binary.BigEndian.AppendUint32(append(b, tokenFragment), t.fragment)
	}
	return hex.EncodeToString(b)
}

// MongoDB's codes for tokens without text, and with none in it.
const (
	codeTokenType  = mongoerror.Code(40647)
	codeTokenEmpty = mongoerror.Code(40649)
)

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
	if !ok {
		return token{}, mongoerror.New(codeTokenType, "Bad resume token: _data of missing or of wrong type %s", doc)
	}
	if text == "" {
		return token{}, mongoerror.New(codeTokenEmpty, "Bad resume token: _data is empty")
	}
	b, err := hex.DecodeString(text)
	if err != nil {
		return token{}, mongoerror.New(mongoerror.FailedToParse, "Bad resume token: _data is not hexadecimal: %s", text)
	}
	bad := mongoerror.New(mongoerror.InvalidResumeToken, "Bad resume token: %s is of no stream of this server", text)
	if len(b) < 9 || b[0] != tokenKind {
		return token{}, bad
	}
	t, rest := token{seq: binary.BigEndian.Uint64(b[1:])}, b[9:]
	if len(rest) >= 8 {
		t.newest, rest = binary.BigEndian.Uint64(rest), rest[8:]
	}
	switch {
	case len(rest) == 0:
	case len(rest) == 1 && rest[0] == tokenInvalidate:
		t.invalidate = true
	case len(rest) == 5 && rest[0] == tokenFragment:
		t.fragment = binary.BigEndian.Uint32(rest[1:])
	default:
		return token{}, bad
	}
	return t, nil
}

// stream is a change stream. It implements source and waiter.
type stream struct {
	feed
	store  *Store
	ns     namespace
	o      *WatchOptions
	stages []document
	from   oplogPlace
	begin  uint64 // the change from which on to tell
	after  uint64 // a timestamp: earlier events are left out
	told   uint64 // the change whose first event is known already
	last   token
	ended  bool
	split  bool       // large events are told in fragments
	parts  []fragment // of an event, that are still to be told
	behind token      // the fragment up to which the first event was told before
}

// openStream opens a change stream.
func (s *Store) openStream(ctx context.Context, ns namespace, stages []document, o *WatchOptions) (*Cursor, error) {
	if err := errors.Join(s.usable(), ctx.Err(), o.check()); err != nil {
		return nil, err
	}
	if s.options.History < 0 { // no write says what it does
		return nil, mongoerror.New(mongoerror.Code(40573), "The $changeStream stage is only supported on replica sets; Options.History is negative")
	}
	if ns.database == "admin" || ns.database == "config" || ns.database == localDatabase {
		return nil, mongoerror.New(mongoerror.InvalidNamespace, "$changeStream may not be opened on the internal %s database", ns.database)
	}
	if strings.HasPrefix(ns.collection, "system.") {
		return nil, mongoerror.New(mongoerror.InvalidNamespace, "$changeStream may not be opened on the internal %s.%s collection", ns.database, ns.collection)
	}
	if ns.collection != "" {
		if err := s.Database(ns.database).Lookup(ns.collection).notSeries(); err != nil {
			return nil, err
		}
	}
	stages, split, err := takeSplitStage(stages)
	if err != nil {
		return nil, err
	}
	now := s.db.LastSeq()
	newest := (*clusterClock)(s).ClusterTime()
	st := &stream{store: s, ns: ns, o: o, stages: stages, split: split, from: oplogPlace{seq: now}, last: token{seq: now, newest: newest}}
	if err := st.start(ctx); err != nil {
		return nil, err
	}
	if _, err := st.transform(ctx, nil); err != nil {
		return nil, err
	}
	if err := checkStreamStages(stages); err != nil {
		return nil, err
	}
	events := &eventMaker{stream: st}
	r := &logReader{store: s, deliver: events.take, time: st.from.time, noted: st.last.newest, begin: st.begin, told: st.told}
	st.follow(s, r, pando.ChangesOptions{From: st.from.seq + 1, Follow: true})
	return newCursor(ctx, st), nil
}

// start finds out from which change on the stream tells.
func (st *stream) start(ctx context.Context) error {
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
		return st.resume(ctx, t)
	case st.o.StartAtOperationTime != nil:
		at := st.o.StartAtOperationTime
		st.after = uint64(at.T)<<32 | uint64(at.I)
		places, _, err := st.store.oplog.upToDate(ctx, st.store)
		if err != nil {
			return err
		}
		st.from = places[placeBefore(places, st.after)]
		return st.store.reaches(ctx, places[0], st.after)
	}
	return nil
}

// reaches refuses a moment from which on the log does not tell everything any more: it lies before the oldest entry, and there were others.
func (s *Store) reaches(ctx context.Context, oldest oplogPlace, time uint64) error {
	if oldest.seq == 0 { // the log begins with the store
		return nil
	}
	first := (*clusterClock)(s).ClusterTime() + 1 // of what comes next, where the log has nothing to tell of
	found := errors.New("the oldest entry")
	r := &logReader{store: s, skim: true, time: oldest.time, deliver: func(_ context.Context, c *committed) error {
		if len(c.changes) == 0 {
			return nil
		}
		first = c.changes[0].time
		return found
	}}
	for c, err := range s.db.Changes(ctx, pando.ChangesOptions{From: oldest.seq + 1}) {
		if err == nil {
			err = r.take(ctx, c)
		}
		if errors.Is(err, found) {
			break
		}
		if errors.Is(err, pando.ErrChangesGone) {
			return historyLost(err)
		}
		if err != nil {
			return err
		}
	}
	if time < first {
		return historyLost(nil)
	}
	return nil
}

// resume makes the stream go on behind an event. It reads the log from a place in front of the commit: what an event needs may stand
// before it.
func (st *stream) resume(ctx context.Context, t token) error {
	st.from, st.last = oplogPlace{seq: t.seq}, t
	if t.invalidate && st.o.ResumeAfter != nil {
		return mongoerror.New(mongoerror.InvalidResumeToken, "Attempting to resume a change stream using 'resumeAfter' is not allowed from an invalidate notification.")
	}
	if t.fragment > 0 && !st.split {
		return fatalStream("Expected split event fragment " + strconv.Itoa(int(t.fragment)) + ", but the pipeline does not have the stage " + splitStage)
	}
	if t.seq > st.store.db.LastSeq() { // a power cut took it, or a backup was restored: what comes to be there is something else
		return historyLost(nil)
	}
	if t.invalidate || t.seq+1 < st.store.db.OldestChange() {
		return nil
	}
	places, _, err := st.store.oplog.upToDate(ctx, st.store)
	if err != nil {
		return err
	}
	i := sort.Search(len(places), func(i int) bool { return places[i].seq >= t.seq }) - 1
	switch {
	case i < 0 && t.fragment > 0:
		return historyLost(nil)
	case i < 0:
		return nil
	}
	if err := st.store.verify(ctx, places[i], t); err != nil {
		return err
	}
	st.from, st.begin = places[i], t.seq
	if t.fragment > 0 {
		st.behind = t
	} else {
		st.told = t.seq // it may have a second event
	}
	return nil
}

// verify refuses a token of a future that a power cut has taken, or a backup does not have: what came to stand in its place has later
// times. It reads the log from a place before.
func (s *Store) verify(ctx context.Context, from oplogPlace, t token) error {
	if t.newest == 0 {
		return nil
	}
	r := &logReader{store: s, skim: true, deliver: func(context.Context, *committed) error { return nil }}
	for c, err := range s.db.Changes(ctx, pando.ChangesOptions{From: from.seq + 1}) {
		if err == nil && c.Seq <= t.seq {
			err = r.take(ctx, c)
		}
		if errors.Is(err, pando.ErrChangesGone) {
			return historyLost(err)
		}
		if err != nil {
			return err
		}
		if c.Seq >= t.seq {
			break
		}
	}
	if r.noted > t.newest { // of those before, concurrent ones may say anything
		return historyLost(nil)
	}
	return nil
}

// checkStreamStages refuses stages that need more than one event at a time.
func checkStreamStages(stages []document) error {
	for _, stage := range stages {
		e, err := stage.IndexErr(0)
		if err != nil {
			return mongoerror.StageOfManyFields()
		}
		switch e.Key() {
		case "$match", "$project", "$addFields", "$set", "$unset", "$replaceRoot", "$replaceWith", "$redact":
		default:
			return mongoerror.New(mongoerror.IllegalOperation, "%s is not permitted in a $changeStream pipeline", e.Key())
		}
	}
	return nil
}

// transform runs the stages on an event, as long as ctx lasts. nil checks the stages only.
func (st *stream) transform(ctx context.Context, doc document) (document, error) {
	if len(st.stages) == 0 {
		return doc, nil
	}
	c, err := (&Collection{store: st.store, ns: st.ns}).collation(st.o.Collation)
	if err != nil {
		return nil, err
	}
	call := st.store.newCall(ctx)
	p, err := aggregate.Parse(st.stages, &aggregate.Options{
		Database: st.ns.database, Collection: "changes", Collation: c, Now: st.store.clock.Now(), Call: call,
	})
	if err != nil || doc == nil {
		return nil, err
	}
	run, err := p.Run(st.store.work, oneEvent{doc: doc, call: call})
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
	call         *expression.Call
}

// Find implements aggregate.Environment.
func (e oneEvent) Find(_ context.Context, _, _ string, r *aggregate.Request) (aggregate.Cursor, error) {
	if r != nil && r.Filter != nil {
		f, err := query.Parse(r.Filter, &query.Options{Collation: r.Collation, Let: r.Let, Now: r.Now, Call: e.call})
		if err != nil {
			return nil, err
		}
		if match, err := f.Match(path.Document(e.doc)); err != nil || !match {
			return &rows{}, err
		}
	}
	return &rows{list: []document{e.doc}}, nil
}

// next implements source.
func (st *stream) next(ctx context.Context) (document, bool, error) {
	for {
		if len(st.parts) > 0 {
			part := st.parts[0]
			st.parts = st.parts[1:]
			if part.at.seq == st.behind.seq && part.at.fragment <= st.behind.fragment {
				continue
			}
			st.last = part.at
			return part.doc, true, nil
		}
		e, err := st.take(ctx)
		switch {
		case errors.Is(err, errFeedEnded):
			return nil, false, st.closedBelow()
		case errors.Is(err, pando.ErrChangesGone):
			return nil, false, historyLost(err)
		case err != nil || e == nil:
			return nil, false, err
		}
		st.last, st.ended = e.at, e.end
		if err := st.tell(ctx, e); err != nil {
			return nil, false, err
		}
	}
}

// tell makes of an event, if it is one, what is told of it.
func (st *stream) tell(ctx context.Context, e *event) error {
	if e.doc == nil {
		return nil
	}
	doc, err := st.transform(ctx, e.doc)
	if err != nil || doc == nil {
		return err
	}
	if id, _ := doc.Lookup("_id").DocumentOK(); !bytes.Equal(id, e.at.document()) {
		return fatalStream("Encountered an event whose _id field, which contains the resume token, was modified by the pipeline. Modifying the _id field of an event makes it impossible to resume the stream from that point.")
	}
	st.parts, err = st.fragmentsOf(doc, e.at)
	return err
}

// wait implements waiter.
func (st *stream) wait(ctx context.Context) error {
	err := st.await(ctx)
	if errors.Is(err, errFeedEnded) {
		return st.closedBelow()
	}
	return err
}

func (st *stream) closedBelow() error {
	if st.ended {
		return errEnded
	}
	return fmt.Errorf("change stream: %w", ErrClosed)
}

// close implements source.
func (st *stream) close() error { return st.leave() }

// ResumeToken returns where a change stream stands: the _id of the last event, or of a place behind it where nothing was told. It
// is nil for other cursors.
func (c *Cursor) ResumeToken() bson.Raw {
	st, ok := c.src.(*stream)
	if !ok {
		return nil
	}
	return bson.Raw(st.last.document())
}

// historyLost is the error of a stream whose place the log has not any more.
func historyLost(err error) error {
	return &Error{
		Code: mongoerror.ChangeStreamHistoryLost, Cause: err, Labels: []string{"NonResumableChangeStreamError"},
		Message: "Resume of change stream was not possible, as the resume point may no longer be in the log",
	}
}

// fatalStream is the error of a stream that would fail again if it was resumed.
func fatalStream(text string) error {
	return &Error{Code: mongoerror.ChangeStreamFatalError, Labels: []string{"NonResumableChangeStreamError"}, Message: text}
}
