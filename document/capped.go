package document

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document/internal/index"
)

// A capped collection keys its records by a number that grows with each insert, so that they come back in the order of their
// insertion, and keeps a unique index of _id beside. Its inserts go one after the other.

// cappedState is what a capped collection counts. It is made from the records when the first insert comes.
type cappedState struct {
	turn    sync.Mutex    // held by an insert until its commit has ended
	counted uint64        // under turn: what follows is right as long as changes is one less
	changes atomic.Uint64 // those of others than inserts, before they commit; and failures
	pending atomic.Int64  // of these changes, those that have not ended
	next    uint64
	bytes   int64
	count   int64
	signal  signal
}

// inserting takes the turn of an insert. What it returns ends it.
func (s *cappedState) inserting() (end func()) {
	s.turn.Lock()
	return func() {
		s.signal.give()
		s.turn.Unlock()
	}
}

// signal wakes those who wait for inserts. It has a lock of its own, since those do not wait for an insert that the device keeps waiting.
type signal struct {
	mu sync.Mutex
	ch chan struct{} // closed when it is given; nil: nobody waits
}

// next returns a channel that is closed when the signal is given the next time.
func (s *signal) next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch == nil {
		s.ch = make(chan struct{})
	}
	return s.ch
}

func (s *signal) give() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch != nil {
		close(s.ch)
		s.ch = nil
	}
}

// cappedIDIndex is the name of the index of _id that a capped collection keeps.
const cappedIDIndex = "_id_"

// cappedIDs returns the definition of the index of _id, which is unique, though its specification does not say so.
func (c *collection) cappedIDs() (*index.Definition, error) {
	if c.ids != nil {
		return c.ids, nil
	}
	def, err := index.Parse(idSpec(), nil)
	if err == nil {
		def.Unique = true
	}
	return def, err
}

// makeCappedID makes the index of _id.
func (c *collection) makeCappedID() (*secondary, error) {
	def, err := c.cappedIDs()
	if err != nil {
		return nil, err
	}
	x := &secondary{number: c.nextIndex.Add(1), def: def, ready: true}
	x.ks, err = c.store.makeKeyspace(indexName(c.number, x.number), c.indexOptions())
	return x, err
}

// idIndex returns the index of _id of a capped collection.
func (c *collection) idIndex() *secondary {
	for _, x := range *c.indexes.Load() {
		if x.def.Name == cappedIDIndex {
			return x
		}
	}
	return nil
}

// getCapped is a read by _id: through its index.
func (c *Collection) getCapped(_ context.Context, x *collection, dst []byte, id bsoncore.Value) (bson.Raw, error) {
	var get func(ks *pando.Keyspace, key []byte) ([]byte, error)
	if c.tx != nil {
		get = func(ks *pando.Keyspace, key []byte) ([]byte, error) { return c.tx.reads.In(ks).Get(key) }
	} else {
		snap := c.store.db.Snapshot()
		defer snap.Close()
		get = func(ks *pando.Keyspace, key []byte) ([]byte, error) { return snap.In(ks).Get(key) }
	}
	value, err := get(x.idIndex().ks, x.key(nil, id))
	if c.tx == nil && errors.Is(err, pando.ErrDropped) {
		err = fmt.Errorf("%s, which was dropped meanwhile: %w", c.ns, ErrNotFound)
	}
	if err != nil {
		return dst, err
	}
	if len(value) == 0 {
		return dst, fmt.Errorf("%s: %w: an entry of the index of _id without a record", c.ns, pando.ErrCorrupt)
	}
	record, err := get(x.records, value[1:])
	if err != nil {
		return dst, err
	}
	return x.codec.Decode(dst, record)
}

// cappedInTransaction is the error of a write to a capped collection in a transaction, as on a mongod: how much there is in one is counted as
// commits come, and what an open transaction does to it is not known to others that make room.
func cappedInTransaction(c *collection) error {
	return NewError(Code(263), "Collection '%s' is a capped collection. Writes in transactions are not allowed on capped collections.", c.name.Load())
}

// insertCapped makes room for a document, and returns the key of its record. The caller has the turn.
func (w *writer) insertCapped(c *collection, doc document, id bsoncore.Value) ([]byte, error) {
	if w.owner != nil {
		return nil, cappedInTransaction(c)
	}
	entry := c.key(nil, id)
	if there, err := w.tx.In(c.idIndex().ks).Has(entry); err != nil || there {
		return nil, orError(err, func() error { return duplicateID(c, id) })
	}
	s, settings := &c.capped, c.settings.Load()
	if int64(len(doc)) > settings.maxBytes {
		return nil, NewError(BSONObjectTooLarge, "the document of %d bytes is larger than the capped collection %s", len(doc), c.name.Load())
	}
	w.touch(c) // a commit that fails forgets what is counted now
	if err := w.countCapped(c); err != nil {
		return nil, err
	}
	full := func() bool {
		return s.bytes+int64(len(doc)) > settings.maxBytes || settings.maxCount > 0 && s.count+1 > settings.maxCount
	}
	for s.count > 0 && full() {
		key, value, err := w.tx.In(c.records).Nth(nil, nil, 0)
		if err != nil {
			return nil, err
		}
		old, err := c.codec.Decode(nil, value)
		if err != nil {
			return nil, err
		}
		if err := w.erase(c, key, old); err != nil {
			return nil, err
		}
		s.bytes -= int64(len(old))
		s.count--
	}
	s.next++
	s.bytes += int64(len(doc))
	s.count++
	return binary.BigEndian.AppendUint64(nil, s.next), nil
}

// uncounted notes that a commit changes what a capped collection holds, which inserts count.
func (w *writer) uncounted(c *collection) {
	if !c.settings.Load().capped {
		return
	}
	c.capped.pending.Add(1)
	c.capped.changes.Add(1)
	w.pending = append(w.pending, c)
}

// countCapped finds out how much there is, and what number comes next.
func (w *writer) countCapped(c *collection) error {
	s := &c.capped
	now := s.changes.Load() + 1
	if s.counted == now {
		return nil
	}
	if s.counted = now; s.pending.Load() > 0 {
		s.counted = 0 // what a change is about to commit is not seen, and the next insert has to
	}
	s.bytes, s.count = 0, 0
	records := w.tx.In(c.records)
	it := records.Iter(nil)
	defer it.Close()
	view := c.codec.NewView()
	var buf []byte
	for it.Next() {
		if err := lookAt(view, it); err != nil {
			return err
		}
		var err error
		if buf, err = view.Document(buf[:0]); err != nil {
			return err
		}
		s.bytes += int64(len(buf))
		s.count++
		if len(it.Key()) == 8 {
			s.next = max(s.next, binary.BigEndian.Uint64(it.Key()))
		}
	}
	return it.Err()
}

// Tail returns a cursor on a capped collection that does not end: at its end it waits for what is inserted next. It ends when
// ctx does, or when the collection has forgotten the place where the cursor was (CappedPositionLost).
func (c *Collection) Tail(ctx context.Context, filter any, o *FindOptions) (*Cursor, error) {
	if c.store.isOplog(c.ns) {
		return c.tailOplog(ctx, filter, o)
	}
	x, err := c.useExisting()
	if err != nil {
		return nil, err
	}
	if !x.settings.Load().capped {
		return nil, NewError(BadValue, "error processing query: tailable cursor requested on non capped collection %s", c.ns)
	}
	q, err := c.parseFind(ctx, filter, o)
	if err != nil {
		return nil, err
	}
	t := &tail{c: x, query: q, view: x.codec.NewView(), window: windowOf(q.options.Skip, q.options.Limit)}
	return newCursor(ctx, t), nil
}

// tail walks over a capped collection, and goes on where it stopped.
type tail struct {
	c      *collection
	query  *findQuery
	view   viewer
	last   []byte // the key of the newest record that was seen
	it     *pando.Iterator
	out    []byte
	window window
}

// next implements source. It does not wait: ok is false when there is nothing yet.
func (t *tail) next(ctx context.Context) (doc document, ok bool, err error) {
	t.query.call.By(ctx)
	if t.it == nil {
		if err := t.reopen(); err != nil {
			return nil, false, err
		}
	}
	for !t.window.ended() && t.it.Next() {
		if err := ctx.Err(); err != nil {
			return nil, false, err
		}
		t.last = append(t.last[:0], t.it.Key()...)
		if err := lookAt(t.view, t.it); err != nil {
			return nil, false, err
		}
		match, err := t.query.Filter.Match(t.view)
		if err = cmp.Or(err, t.view.Err()); err != nil {
			return nil, false, err
		}
		if !match || !t.window.admits() {
			continue
		}
		if t.out, err = t.view.Document(t.out[:0]); err != nil {
			return nil, false, err
		}
		doc, err := t.query.project(t.out)
		return doc, err == nil, err
	}
	err = t.it.Err()
	err = errors.Join(err, t.it.Close())
	t.it = nil
	return nil, false, err
}

// reopen opens an iterator behind the last record, which must still be there.
func (t *tail) reopen() error {
	if t.c.dropped.Load() {
		return NewError(Code(175), "collection dropped: %s", t.c.name.Load())
	}
	o := &pando.IterOptions{}
	if t.last != nil {
		if there, err := t.c.records.Has(t.last); err != nil {
			return err
		} else if !there {
			return NewError(Code(136), "the capped collection %s has forgotten the place of this cursor", t.c.name.Load())
		}
		o.Lower = append(append([]byte{}, t.last...), 0)
	}
	t.it = t.c.records.Iter(o)
	return nil
}

func (t *tail) rest() {
	t.view.Release()
	t.out = nil
	if t.it != nil {
		t.it.ReleaseValue()
	}
}

func (t *tail) close() error {
	if t.it == nil {
		return nil
	}
	err := t.it.Close()
	t.it = nil
	return err
}

// wait waits until there may be more.
func (t *tail) wait(ctx context.Context) error {
	if t.window.ended() {
		<-ctx.Done()
		return ctx.Err()
	}
	ch := t.c.capped.signal.next()
	if t.it == nil { // look once more: something may have come between the end of the walk and the channel
		if err := t.reopen(); err != nil {
			return err
		}
		if t.it.Next() {
			err := t.it.Close()
			t.it = nil
			return err
		}
		if err := errors.Join(t.it.Err(), t.it.Close()); err != nil {
			return err
		}
		t.it = nil
	}
	select {
	case <-ch:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
