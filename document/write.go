package document

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/update"
)

// writer carries out the writes of one commit: documents with their entries in all indexes, and the notes for change streams.
type writer struct {
	store   *Store
	tx      *pando.Tx
	began   uint64 // the transaction sees this change and all before it; whether it sees later ones is not known
	touched []touch
	moves   []*move // buffers, one for each index
	buf     []byte
	note    []byte
	diff    []byte
	owner   *Tx // nil: the commit is one call's own

	ctx       context.Context // of the call that writes
	unchecked bool            // validators are not asked
	exclusive bool            // no other writer is at work
	late      bool            // the commit does not wait for a sync
	targets   update.Targets  // of the update that is being made

	raised  []raised      // what the commit makes known of its collections
	pending []*collection // capped ones, once for each change that is no insert

	statements        *statements // what to remember of the commit; nil: nothing
	entries           []byte
	run               bool // inserts that are still to be written into entries
	runFirst, runLast int64
}

// touch is a collection that a commit writes to, with the list of indexes that it makes entries for and the options that it heeds.
type touch struct {
	c        *collection
	indexes  *[]*secondary
	settings *settings
}

// indexesOf returns the indexes of a collection for this commit: the same ones from its first write to its last.
func (w *writer) indexesOf(c *collection) []*secondary { return *w.touch(c) }

// touch notes that the commit writes to a collection, with the indexes and options that this has at the first time, and returns
// the list of these indexes. Lists are told apart by their addresses: see commit.
func (w *writer) touch(c *collection) *[]*secondary {
	for _, t := range w.touched {
		if t.c == c {
			return t.indexes
		}
	}
	list := c.indexes.Load()
	w.touched = append(w.touched, touch{c, list, c.settings.Load()})
	return list
}

// write runs fn with a writer and commits what it wrote. A call of its own is run again when another commit overtakes it; in a
// transaction what fn wrote is taken back when it fails.
func (c *Collection) write(ctx context.Context, fn func(w *writer) error) error {
	if c.at != nil {
		return onSnapshot()
	}
	var err error
	if c.tx != nil {
		c.tx.w.ctx = ctx
		err = c.tx.write(fn)
	} else {
		err = c.store.write(ctx, fn)
	}
	switch {
	case errors.Is(err, pando.ErrDropped):
		return errDropped
	case errors.Is(err, pando.ErrKeyTooLarge):
		return keyTooLong(c.ns, err)
	}
	return err
}

func keyTooLong(ns namespace, err error) error {
	return &Error{Code: codeKeyTooLong, Message: fmt.Sprintf("%s: an _id or an entry of an index is longer than %d bytes", ns, pando.MaxKeyBytes), Cause: err}
}

// codeKeyTooLong is what MongoDB answered when its index keys had a limit.
const codeKeyTooLong Code = 17280

// withCollection calls fn with the collection, which is made if need be, and again when it was dropped meanwhile. A context that
// has ended makes and writes nothing.
func (c *Collection) withCollection(ctx context.Context, fn func(x *collection) error) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		x, err := c.make(ctx)
		if err != nil {
			return err
		}
		err = fn(x)
		if !errors.Is(err, errDropped) {
			return err
		}
		if c.tx != nil {
			return conflict(err)
		}
	}
}

// write commits what fn writes as one. It is run again until no other commit overtakes it.
func (s *Store) write(ctx context.Context, fn func(w *writer) error) error {
	for attempt := 0; ; attempt++ {
		err := s.writeOnce(ctx, fn)
		if !isConflict(err) {
			return err
		}
		if err := s.pause(ctx, attempt); err != nil {
			return err
		}
	}
}

// pause waits before another attempt: not at all at first, then longer and longer, so that many who want the same document get
// it one after the other.
func (s *Store) pause(ctx context.Context, attempt int) error {
	if attempt < 3 {
		return ctx.Err()
	}
	return s.clock.Sleep(ctx, time.Duration(min(attempt*attempt, 400))*10*time.Microsecond)
}

func (s *Store) writeOnce(ctx context.Context, fn func(w *writer) error) (err error) {
	w, err := s.newWriter(ctx)
	if err != nil {
		return err
	}
	defer w.tx.Rollback()
	defer func() {
		w.settleCounts(err)
		w.release()
	}()
	w.statements, _ = ctx.Value(statementsKey{}).(*statements)
	if err := fn(w); err != nil {
		return w.whatIsGone(err)
	}
	record, err := w.storeStatements()
	if err != nil {
		return err
	}
	w.late = !s.waits(ctx)
	if err := w.commit(); err != nil {
		return err
	}
	if record != nil {
		s.remember(w.statements.session, record)
	}
	return nil
}

// newWriter returns a writer with a transaction of its own, which the caller rolls back in the end.
func (s *Store) newWriter(ctx context.Context) (*writer, error) {
	began := s.db.LastSeq()
	tx, err := s.db.Begin(true)
	if err != nil {
		return nil, err
	}
	w := spareWriters.Get().(*writer)
	w.store, w.tx, w.ctx, w.began = s, tx, ctx, began
	return w, nil
}

// spareWriters holds the writers of earlier commits, for the sake of their buffers.
var spareWriters = sync.Pool{New: func() any { return new(writer) }}

// maxSpareBuffer is how large a buffer may be to be kept for the next commit.
const maxSpareBuffer = 64 << 10

// release gives the buffers to later commits. The writer must not be used any more.
func (w *writer) release() {
	if max(cap(w.buf), cap(w.note), cap(w.diff), cap(w.entries)) > maxSpareBuffer {
		return
	}
	clear(w.touched)
	*w = writer{touched: w.touched[:0], buf: w.buf[:0], note: w.note[:0], diff: w.diff[:0], entries: w.entries[:0]}
	spareWriters.Put(w)
}

// whatIsGone tells apart the errors of a write that has met a dropped keyspace: either the collection is gone, or only an index
// of it. In the latter case its list of indexes is another one already, for that is changed before what an index holds is dropped.
func (w *writer) whatIsGone(err error) error {
	if !errors.Is(err, pando.ErrDropped) {
		return err
	}
	for _, t := range w.touched {
		if !t.c.dropped.Load() && t.c.indexes.Load() != t.indexes {
			return errSchemaChanged
		}
	}
	return err
}

// settleCounts is told of the end of a commit. What one that failed has counted of capped collections was not written.
func (w *writer) settleCounts(err error) {
	for _, c := range w.pending {
		c.capped.pending.Add(-1)
	}
	if err == nil {
		return
	}
	for _, t := range w.touched {
		t.c.capped.changes.Add(1)
	}
}

// commit makes sure that no list of indexes has changed, and no options, and commits.
func (w *writer) commit() error {
	slices.SortFunc(w.touched, func(a, b touch) int { return cmp.Compare(a.c.number, b.c.number) }) // the order of collection.schema
	for i, t := range w.touched {
		t.c.schema.RLock()
		err := error(nil)
		switch {
		case t.c.dropped.Load():
			err = errDropped
		case t.c.indexes.Load() != t.indexes, t.c.settings.Load() != t.settings:
			err = errSchemaChanged
		default:
			continue
		}
		for _, t := range w.touched[:i+1] {
			t.c.schema.RUnlock()
		}
		return err
	}
	var err error
	switch {
	case slices.ContainsFunc(w.raised, func(r raised) bool { return r.undone != r.c.undone.Load() }):
		err = errSchemaChanged
	case w.late:
		err = w.tx.CommitUnsynced()
	default:
		err = w.tx.Commit()
	}
	if err == nil {
		w.keepRaised()
	}
	for _, t := range w.touched {
		t.c.schema.RUnlock()
	}
	return err
}

// validate asks the collection's validator, unless the caller does not want it asked.
func (w *writer) validate(c *collection, doc, old document) error {
	if w.unchecked {
		return nil
	}
	return c.validate(w.ctx, doc, old)
}

// claim takes a document for the transaction that writes, if it is one.
func (w *writer) claim(c *collection, key []byte) error {
	if w.owner == nil {
		return nil
	}
	return w.owner.claim(c, key)
}

// insert stores a new document, of which _id is the first field.
func (w *writer) insert(c *collection, doc document) error {
	w.touch(c) // before anything depends on its options
	if err := w.validate(c, doc, nil); err != nil {
		return err
	}
	id := doc.Lookup("_id")
	doc, key, err := w.place(c, doc, id)
	if err != nil {
		return err
	}
	if err := w.put(c, key, nil, doc); err != nil {
		return err
	}
	return w.noteChange(c, opInsert, id, nil, doc)
}

// place finds the key for a new document, and refuses one whose _id is taken. It returns the document as it is to be stored: a
// time series arranges its fields.
func (w *writer) place(c *collection, doc document, id bsoncore.Value) (arranged document, key []byte, err error) {
	settings := c.settings.Load()
	switch {
	case settings.capped:
		key, err = w.insertCapped(c, doc, id)
		return doc, key, err
	case settings.series != nil:
		return w.newMeasurement(c, settings.series, doc)
	}
	key = c.key(nil, id)
	if err := w.claim(c, key); err != nil {
		return nil, nil, err
	}
	there, err := w.tx.In(c.records).Has(key)
	if err == nil && there {
		err = duplicateID(c, id)
	}
	return doc, key, err
}

// put stores a document under its key, in place of old if there was one, and its entries into the indexes.
func (w *writer) put(c *collection, key []byte, old, doc document) error {
	if err := w.enter(c, key, old, doc); err != nil {
		return err
	}
	var err error
	if w.buf, err = c.codec.Encode(w.buf[:0], doc); err != nil {
		return err
	}
	return w.tx.In(c.records).Put(key, w.buf)
}

// MongoDB's codes of an update that makes a document too large, and of an upsert that does.
const (
	codeGrownTooLarge  = mongoerror.Code(17419)
	codeUpsertTooLarge = mongoerror.Code(17420)
)

// replace stores another document under the key of an old one. op says to change streams how it came about.
func (w *writer) replace(c *collection, key []byte, old, doc document, op operation) error {
	if len(doc) > MaxDocumentBytes {
		return mongoerror.New(codeGrownTooLarge, "Resulting document after update is larger than %d", MaxDocumentBytes)
	}
	w.touch(c) // as in insert
	if err := w.validate(c, doc, old); err != nil {
		return err
	}
	if s := c.settings.Load().series; s != nil {
		return w.replaceMeasurement(c, s, key, old, doc)
	}
	if w.owner != nil && c.settings.Load().capped {
		return cappedInTransaction(c)
	}
	w.uncounted(c)
	if err := w.claim(c, key); err != nil {
		return err
	}
	if err := w.put(c, key, old, doc); err != nil {
		return err
	}
	return w.noteChange(c, op, doc.Lookup("_id"), old, doc)
}

// remove deletes a document.
func (w *writer) remove(c *collection, key []byte, old document) error {
	if err := w.erase(c, key, old); err != nil {
		return err
	}
	w.uncounted(c)
	return nil
}

// erase is remove of a document that whoever counts knows of.
func (w *writer) erase(c *collection, key []byte, old document) error {
	if w.owner != nil && c.settings.Load().capped {
		return NewError(Code(20), "Cannot remove from capped collection '%s' in a transaction.", c.name.Load())
	}
	if err := w.claim(c, key); err != nil {
		return err
	}
	if err := w.enter(c, key, old, nil); err != nil {
		return err
	}
	if err := w.tx.In(c.records).Delete(key); err != nil {
		return err
	}
	return w.noteChange(c, opDelete, old.Lookup("_id"), old, nil)
}

// orError returns err if there is one, else what fn makes.
func orError(err error, fn func() error) error {
	if err != nil {
		return err
	}
	return fn()
}
