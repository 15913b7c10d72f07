package document

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document/internal/collation"
	"github.com/pandodb/pando/document/internal/index"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/notation"
	"github.com/pandodb/pando/document/internal/path"
	"github.com/pandodb/pando/document/internal/update"
)

// writer carries out the writes of one commit: documents with their entries in all indexes, and the notes for change streams.
type writer struct {
	store   *Store
	tx      *pando.Tx
	touched []touch
	moves   []*move // buffers, one for each index
	buf     []byte
	note    []byte
	diff    []byte
	owner   *Tx // nil: the commit is one call's own

	ctx       context.Context // of the call that writes
	unchecked bool            // validators are not asked
	exclusive bool            // no other writer is at work
	targets   update.Targets  // of the update that is being made

	statements        *statements // what to remember of the commit; nil: nothing
	entries           []byte
	run               bool // inserts that are still to be written into entries
	runFirst, runLast int64
}

// touch is a collection that a commit writes to, with the list of indexes for which it made entries.
type touch struct {
	c       *collection
	indexes *[]*secondary
}

// indexesOf returns the indexes of a collection for this commit: the same ones from its first write to its last.
func (w *writer) indexesOf(c *collection) []*secondary { return *w.touch(c) }

// touch is indexesOf, by which lists can be told apart.
func (w *writer) touch(c *collection) *[]*secondary {
	for _, t := range w.touched {
		if t.c == c {
			return t.indexes
		}
	}
	list := c.indexes.Load()
	w.touched = append(w.touched, touch{c, list})
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
		return &Error{Code: codeKeyTooLong, Message: fmt.Sprintf("%s: an _id or an entry of an index is longer than %d bytes", c.ns, pando.MaxKeyBytes), Cause: err}
	}
	return err
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
	tx, err := s.db.Begin(true)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	w := spareWriters.Get().(*writer)
	w.store, w.tx, w.ctx = s, tx, ctx
	defer func() {
		if err != nil {
			w.forgetCounts()
		}
		w.release()
	}()
	w.statements, _ = ctx.Value(statementsKey{}).(*statements)
	if err := fn(w); err != nil {
		return err
	}
	record, err := w.storeStatements()
	if err != nil {
		return err
	}
	if err := w.commit(); err != nil {
		return err
	}
	if record != nil {
		s.remember(w.statements.session, record)
	}
	return nil
}

// spareWriters is writers of earlier commits, for their buffers.
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

// forgetCounts is for a commit that failed: what it counted of capped collections was not written.
func (w *writer) forgetCounts() {
	for _, t := range w.touched {
		t.c.capped.known.Store(false)
	}
}

// commit makes sure that no list of indexes has changed, and commits.
func (w *writer) commit() error {
	for i, t := range w.touched {
		t.c.schema.RLock()
		err := error(nil)
		switch {
		case t.c.dropped.Load():
			err = errDropped
		case t.c.indexes.Load() != t.indexes:
			err = errSchemaChanged
		default:
			continue
		}
		for _, t := range w.touched[:i+1] {
			t.c.schema.RUnlock()
		}
		return err
	}
	err := w.tx.Commit()
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
	if err := w.validate(c, doc, nil); err != nil {
		return err
	}
	id := doc.Lookup("_id")
	key := c.key(nil, id)
	if settings := c.settings.Load(); settings.capped {
		var err error
		if key, err = w.insertCapped(c, doc, id); err != nil {
			return err
		}
	} else if settings.series != nil {
		var err error
		if doc, key, err = w.newMeasurement(c, settings.series, doc); err != nil {
			return err
		}
	} else if err := w.claim(c, key); err != nil {
		return err
	} else if there, err := w.tx.In(c.records).Has(key); err != nil || there {
		return orError(err, func() error { return duplicateID(c, id) })
	}
	if err := w.enter(c, key, nil, doc); err != nil {
		return err
	}
	var err error
	if w.buf, err = c.codec.Encode(w.buf[:0], doc); err != nil {
		return err
	}
	if err := w.tx.In(c.records).Put(key, w.buf); err != nil {
		return err
	}
	return w.noteChange(c, opInsert, id, nil, doc)
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
	if err := w.validate(c, doc, old); err != nil {
		return err
	}
	if s := c.settings.Load().series; s != nil {
		return w.replaceMeasurement(c, s, key, old, doc)
	}
	c.capped.known.Store(false)
	if err := w.claim(c, key); err != nil {
		return err
	}
	if err := w.enter(c, key, old, doc); err != nil {
		return err
	}
	var err error
	if w.buf, err = c.codec.Encode(w.buf[:0], doc); err != nil {
		return err
	}
	if err := w.tx.In(c.records).Put(key, w.buf); err != nil {
		return err
	}
	return w.noteChange(c, op, doc.Lookup("_id"), old, doc)
}

// remove deletes a document.
func (w *writer) remove(c *collection, key []byte, old document) error {
	if err := w.claim(c, key); err != nil {
		return err
	}
	if err := w.enter(c, key, old, nil); err != nil {
		return err
	}
	if err := w.tx.In(c.records).Delete(key); err != nil {
		return err
	}
	c.capped.known.Store(false)
	return w.noteChange(c, opDelete, old.Lookup("_id"), old, nil)
}

// enter brings all indexes up to date with a document that is new (old is nil), changed, or gone (doc is nil). First everything
// is read that may refuse the change, then it is written: a read behind a write has to look through what was written.
func (w *writer) enter(c *collection, key []byte, old, doc document) error {
	list := w.indexesOf(c)
	for len(w.moves) < len(list) {
		w.moves = append(w.moves, new(move))
	}
	for i, x := range list {
		m := w.moves[i]
		if err := m.entries(c, x, old, doc); err != nil {
			return err
		}
		if x.def.Unique {
			if err := w.checkUnique(c, x, m, key, doc); err != nil {
				return err
			}
		}
	}
	for i, x := range list {
		if err := w.raiseMultikey(c, x, w.moves[i].new.Multikey); err != nil {
			return err
		}
		if err := w.exchange(x, w.moves[i], key); err != nil {
			return err
		}
	}
	return nil
}

// move is what one change does to one index.
type move struct{ old, new index.Entries }

// entries computes the entries of a document before and after.
func (m *move) entries(c *collection, x *secondary, old, doc document) error {
	m.old.Keys, m.new.Keys, m.new.Multikey = m.old.Keys[:0], m.new.Keys[:0], 0
	if old != nil {
		if err := x.def.Append(&m.old, path.Document(old)); err != nil {
			return indexError(c, x, err)
		}
	}
	if doc != nil {
		if err := x.def.Append(&m.new, path.Document(doc)); err != nil {
			return indexError(c, x, err)
		}
	}
	return nil
}

// each calls remove and add for the entries that differ. Both lists are sorted.
func (m *move) each(remove func(i int) error, add func(j int, replaces bool) error) error {
	i, j := 0, 0
	for i < len(m.old.Keys) || j < len(m.new.Keys) {
		order := 1
		if j == len(m.new.Keys) {
			order = -1
		} else if i < len(m.old.Keys) {
			order = bytes.Compare(m.old.Keys[i], m.new.Keys[j])
		}
		var err error
		switch {
		case order < 0:
			err = remove(i)
		case order > 0 || m.old.Exact[i] != m.new.Exact[j]:
			err = add(j, order == 0)
		}
		if err != nil {
			return err
		}
		if order <= 0 {
			i++
		}
		if order >= 0 {
			j++
		}
	}
	return nil
}

// exchange removes the entries that are not needed any more, and adds those that are new.
func (w *writer) exchange(x *secondary, m *move, key []byte) error {
	ks := w.tx.In(x.ks)
	return m.each(func(i int) error {
		return ks.Delete(x.entryKey(m.old.Keys[i], key))
	}, func(j int, _ bool) error {
		return ks.Put(x.entryKey(m.new.Keys[j], key), x.entryValue(m.new.Exact[j], key))
	})
}

// entryKey returns the key of an entry in the index's keyspace: made unique by the record's key, unless it is so by itself.
func (x *secondary) entryKey(entry, record []byte) []byte {
	if x.def.Unique {
		return entry
	}
	return slices.Concat(entry, record)
}

// What the value of an entry begins with: whether the entry decodes to the very values of the document.
const (
	entryExact   = 0
	entryInexact = 1
)

// entryValue returns the value of an entry: see docs/format/collections.md.
func (x *secondary) entryValue(exact bool, record []byte) []byte {
	return x.appendEntryValue(nil, exact, record)
}

func (x *secondary) appendEntryValue(dst []byte, exact bool, record []byte) []byte {
	flag := byte(entryExact)
	if !exact {
		flag = entryInexact
	}
	switch {
	case x.def.Unique:
		return append(append(dst, flag), record...)
	case exact:
		return dst
	}
	return append(dst, flag)
}

// checkUnique fails when another record has one of the entries that a change adds; doc is the document behind it.
func (w *writer) checkUnique(c *collection, x *secondary, m *move, record []byte, doc document) error {
	return m.each(func(int) error { return nil }, func(j int, replaces bool) error {
		if replaces {
			return nil
		}
		free, err := w.isFree(x, m.new.Keys[j], record)
		if err != nil || free {
			return err
		}
		return duplicateKey(c, x, m.new.Keys[j], doc)
	})
}

// isFree reports whether no other record has an entry of a unique index.
func (w *writer) isFree(x *secondary, entry, record []byte) (bool, error) {
	value, err := w.tx.In(x.ks).GetTo(w.buf[:0], entry)
	if errors.Is(err, pando.ErrNotFound) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	w.buf = value
	return len(value) > 0 && bytes.Equal(value[1:], record), nil
}

// raiseMultikey notes that components of an index met arrays: at once in memory, where planners look, and with this commit in
// the catalogue.
func (w *writer) raiseMultikey(c *collection, x *secondary, bits uint64) error {
	before := x.multikey.Load()
	if bits&^before == 0 {
		return nil
	}
	x.multikey.Or(bits)
	return w.putEntry(c)
}

// putEntry writes a collection's entry in the catalogue.
func (w *writer) putEntry(c *collection) error {
	value, err := marshal(c.entry(*c.indexes.Load()))
	if err != nil {
		return err
	}
	ns := c.name.Load()
	return w.tx.In(w.store.meta).Put(nameKey(ns.database, ns.collection), value)
}

// duplicateID is the error of a document whose _id is there already.
func duplicateID(c *collection, id bsoncore.Value) error {
	value := bsoncore.NewDocumentBuilder().AppendValue("_id", id).Build()
	pattern := bsoncore.NewDocumentBuilder().AppendInt32("_id", 1).Build()
	return duplicate(c, "_id_", c.settings.Load().collation, pattern, value)
}

// duplicateKey is the error of a document whose entry in a unique index is there already. Of a collation's keys it shows the strings
// that the document has.
func duplicateKey(c *collection, x *secondary, entry []byte, doc document) error {
	values, ok := x.def.Values(doc, entry)
	if !ok {
		return fmt.Errorf("%s, index %s: a document does not have its own entry", c.name.Load(), x.def.Name)
	}
	value := bsoncore.NewDocumentBuilder()
	for i, part := range x.def.Components {
		value.AppendValue(part.Path, values[i])
	}
	return duplicate(c, x.def.Name, x.def.Collation, x.def.Keys, value.Build())
}

// duplicate is the error of a key that an index, of a collation or nil, has already.
func duplicate(c *collection, name string, by *collation.Collation, pattern, value document) error {
	var rules document
	if by != nil {
		rules = by.Document()
		name += " collation: " + notation.Document(rules)
	}
	return &Error{
		Code: mongoerror.DuplicateKey, KeyPattern: pattern, KeyValue: value, Collation: rules,
		Message: fmt.Sprintf("E11000 duplicate key error collection: %s index: %s dup key: %s", c.name.Load(), name, notation.Document(value)),
	}
}

// indexError says in which index a document could not be entered.
func indexError(c *collection, x *secondary, err error) error {
	return fmt.Errorf("%s, index %s: %w", c.name.Load(), x.def.Name, err)
}

// orError returns err if there is one, else what fn makes.
func orError(err error, fn func() error) error {
	if err != nil {
		return err
	}
	return fn()
}
