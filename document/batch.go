package document

import (
	"bytes"
	"context"
	"errors"
	"hash/maphash"
	"runtime"
	"slices"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document/internal/index"
	"github.com/pandodb/pando/document/internal/path"
)

const (
	exclusiveBatch = 256     // documents of a batch that keeps other writers waiting, instead of noting everything that it reads
	parallelBatch  = 256     // documents that are worth a goroutine
	maxForeseen    = 8 << 20 // bytes that a part takes because its first document is large
)

// batch is documents on their way into a collection, with everything computed that does not depend on what is there.
type batch struct {
	c              *collection
	all            bool // those behind one that cannot be stored too
	skipValidation bool
	source         *[]*secondary
	indexes        []*secondary
	refused        WriteErrors // before anything was read
	part
}

// part is some documents of a batch, one behind the other, prepared by one goroutine. What belongs to a document is offsets into the
// slices of the part.
type part struct {
	arena    []byte
	items    []item
	entries  []batchEntry
	multikey []uint64 // by index
	failed   WriteErrors
	keys     index.Entries
}

// item is one document of a batch.
type item struct {
	number      int
	doc         document
	fresh       bool // its _id was made for it: no other document has it
	key, record span // in the arena
	entries     span // in the entries
}

type span struct{ from, to int }

// batchEntry is an entry of an item in the index with a place in batch.indexes.
type batchEntry struct {
	index int
	key   span
	exact bool
}

func (p *part) bytes(s span) []byte { return p.arena[s.from:s.to:s.to] }

// prepare computes the stored form and the entries of all documents, on all processors.
func (b *batch) prepare(c *Collection, source *[]*secondary, list []document) {
	b.source, b.indexes = source, *source
	newID := c.store.newIDs(len(list))
	n := max(1, min(runtime.GOMAXPROCS(0), len(list)/parallelBatch))
	parts := make([]part, n)
	var wg sync.WaitGroup
	for i := 1; i < n; i++ {
		wg.Go(func() { b.preparePart(c, &parts[i], list, len(list)*i/n, len(list)*(i+1)/n, newID) })
	}
	b.preparePart(c, &parts[0], list, 0, len(list)/n, newID)
	wg.Wait()
	b.part, b.refused = parts[0], parts[0].failed
	for i := 1; i < n && (b.all || len(b.refused) == 0); i++ {
		b.join(&parts[i])
		b.refused = append(b.refused, parts[i].failed...)
	}
}

func (b *batch) preparePart(c *Collection, p *part, list []document, from, to int, newID func(i int) bson.ObjectID) {
	p.items, p.multikey = make([]item, 0, to-from), make([]uint64, len(b.indexes))
	p.entries = make([]batchEntry, 0, (to-from)*len(b.indexes))
	for i := from; i < to; i++ {
		if i == from+1 {
			p.arena = slices.Grow(p.arena, min(len(p.arena)*(to-from)*5/4, maxForeseen))
		}
		if err := b.add(c, p, i, list[i], newID); err != nil {
			p.failed = append(p.failed, WriteError{i, err})
			if !b.all {
				break
			}
		}
	}
}

// join appends a part.
func (b *batch) join(p *part) {
	bytes, entries := len(b.arena), len(b.entries)
	b.arena = append(b.arena, p.arena...)
	for _, e := range p.entries {
		e.key = e.key.shifted(bytes)
		b.entries = append(b.entries, e)
	}
	for _, it := range p.items {
		it.key, it.record, it.entries = it.key.shifted(bytes), it.record.shifted(bytes), it.entries.shifted(entries)
		b.items = append(b.items, it)
	}
	for i, bits := range p.multikey {
		b.multikey[i] |= bits
	}
}

func (s span) shifted(by int) span { return span{s.from + by, s.to + by} }

// add computes the stored form and the entries of a document.
func (b *batch) add(c *Collection, p *part, number int, doc document, newID func(i int) bson.ObjectID) error {
	it := item{number: number}
	doc, id, err := c.prepareWith(doc, func() bson.ObjectID { it.fresh = true; return newID(number) })
	if err != nil {
		return err
	}
	if !b.skipValidation {
		if err := b.c.validate(doc, nil); err != nil {
			return err
		}
	}
	it.doc = doc
	it.key.from = len(p.arena)
	p.arena = b.c.key(p.arena, id)
	it.key.to, it.record.from = len(p.arena), len(p.arena)
	if p.arena, err = b.c.codec.Encode(p.arena, doc); err != nil {
		return err
	}
	it.record.to, it.entries.from = len(p.arena), len(p.entries)
	for i, x := range b.indexes {
		if err := x.def.Append(&p.keys, path.Document(doc)); err != nil {
			return indexError(b.c, x, err)
		}
		p.multikey[i] |= p.keys.Multikey
		for j, key := range p.keys.Keys {
			e := batchEntry{index: i, exact: p.keys.Exact[j]}
			e.key.from = len(p.arena)
			p.arena = append(p.arena, key...)
			if !x.def.Unique {
				p.arena = append(p.arena, p.bytes(it.key)...)
			}
			e.key.to = len(p.arena)
			p.entries = append(p.entries, e)
		}
	}
	it.entries.to = len(p.entries)
	p.items = append(p.items, it)
	return nil
}

// newIDs reserves ObjectIDs for the documents of a batch, so that they are in its order whoever asks first.
func (s *Store) newIDs(n int) func(i int) bson.ObjectID {
	last := s.ids.counter.Add(uint32(n))
	first, t := last-uint32(n)+1, uint32(s.clock.Now().Unix())
	return func(i int) bson.ObjectID { return s.ids.id(t, first+uint32(i)) }
}

// id makes an ObjectID.
func (s *idSource) id(t, n uint32) (id bson.ObjectID) {
	id[0], id[1], id[2], id[3] = byte(t>>24), byte(t>>16), byte(t>>8), byte(t)
	copy(id[4:9], s.process[:])
	id[9], id[10], id[11] = byte(n>>16), byte(n>>8), byte(n)
	return id
}

// check finds the documents whose _id or unique entries are there already, or twice in the batch.
func (b *batch) check(w *writer, failed WriteErrors) (WriteErrors, error) {
	empty, err := b.unoccupied(w)
	if err != nil {
		return nil, err
	}
	ids := newSpans(&b.part, len(b.items))
	count := make([]int, len(b.indexes))
	for _, e := range b.entries {
		count[e.index]++
	}
	unique := make([]*spans, len(b.indexes))
	for i, x := range b.indexes {
		if x.def.Unique {
			unique[i] = newSpans(&b.part, count[i])
		}
	}
	for i := range b.items {
		it := &b.items[i]
		err := b.checkItem(w, it, empty, ids, unique)
		if err == nil {
			continue
		}
		if CodeOf(err) == 0 {
			return nil, err
		}
		failed = append(failed, WriteError{it.number, err})
		if !b.all {
			break
		}
	}
	return failed, nil
}

// unoccupied reports whether no record at all has a key between the first and the last of the batch: then none needs to be looked
// up. A transaction, which depends on what it reads, does not ask.
func (b *batch) unoccupied(w *writer) (bool, error) {
	if !w.exclusive || len(b.items) == 0 {
		return false, nil
	}
	first, last := b.bytes(b.items[0].key), b.bytes(b.items[0].key)
	for i := range b.items {
		key := b.bytes(b.items[i].key)
		if bytes.Compare(key, first) < 0 {
			first = key
		}
		if bytes.Compare(key, last) > 0 {
			last = key
		}
	}
	it := w.tx.In(b.c.records).Iter(&pando.IterOptions{Lower: first, Upper: append(bytes.Clone(last), 0), KeysOnly: true})
	occupied := it.Next()
	return !occupied, errors.Join(it.Err(), it.Close())
}

func (b *batch) checkItem(w *writer, it *item, empty bool, ids *spans, unique []*spans) error {
	key := b.bytes(it.key)
	if err := w.claim(b.c, key); err != nil {
		return err
	}
	if !it.fresh {
		twice := ids.has(key)
		if !twice && !empty {
			var err error
			if twice, err = w.tx.In(b.c.records).Has(key); err != nil {
				return err
			}
		}
		if twice {
			return duplicateID(b.c, it.doc.Lookup("_id"))
		}
	}
	entries := b.entries[it.entries.from:it.entries.to]
	for _, e := range entries {
		x := b.indexes[e.index]
		if !x.def.Unique {
			continue
		}
		entry := b.bytes(e.key)
		if unique[e.index].has(entry) {
			return duplicateKey(b.c, x, entry)
		}
		if err := w.checkFree(b.c, x, entry, key); err != nil {
			return err
		}
	}
	ids.add(it.key)
	for _, e := range entries {
		if unique[e.index] != nil {
			unique[e.index].add(e.key)
		}
	}
	return nil
}

// put writes what has not failed: everything before the first failure, or everything else. Records come first, then one index
// after the other.
func (b *batch) put(w *writer, failed WriteErrors) (int, error) {
	bad := map[int]bool{}
	for _, f := range failed {
		bad[f.Index] = true
	}
	stored := make([]*item, 0, len(b.items))
	for i := range b.items {
		it := &b.items[i]
		if len(bad) > 0 && bad[it.number] {
			if !b.all {
				break
			}
			continue
		}
		stored = append(stored, it)
	}
	records := w.tx.In(b.c.records)
	for _, it := range stored {
		if err := records.Put(b.bytes(it.key), b.bytes(it.record)); err != nil {
			return 0, err
		}
		if err := w.noteChange(b.c, opInsert, it.doc.Lookup("_id"), nil, it.doc); err != nil {
			return 0, err
		}
		w.did(it.number, Outcome{N: 1})
	}
	for i, x := range b.indexes {
		if err := b.putIndex(w, i, x, stored); err != nil {
			return 0, err
		}
	}
	return len(stored), nil
}

func (b *batch) putIndex(w *writer, i int, x *secondary, stored []*item) error {
	if err := w.raiseMultikey(b.c, x, b.multikey[i]); err != nil {
		return err
	}
	ks := w.tx.In(x.ks)
	for _, it := range stored {
		for _, e := range b.entries[it.entries.from:it.entries.to] {
			if e.index != i {
				continue
			}
			w.buf = x.appendEntryValue(w.buf[:0], e.exact, b.bytes(it.key))
			if err := ks.Put(b.bytes(e.key), w.buf); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeBatch commits a batch that is prepared first, without keeping anybody waiting, and then stored while no other writer is at
// work: nothing can overtake it. It is prepared again when the list of indexes has changed meanwhile.
func (s *Store) writeBatch(ctx context.Context, x *collection, prepare func(indexes *[]*secondary), store func(w *writer) error) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		indexes := x.indexes.Load()
		prepare(indexes)
		err := s.storeBatch(ctx, x, indexes, store)
		if errors.Is(err, pando.ErrDropped) {
			return errDropped
		}
		if !errors.Is(err, errSchemaChanged) {
			return err
		}
	}
}

func (s *Store) storeBatch(ctx context.Context, x *collection, indexes *[]*secondary, store func(w *writer) error) error {
	x.schema.RLock() // before other writers are kept out: those who change the list write while they hold it
	defer x.schema.RUnlock()
	switch {
	case x.dropped.Load():
		return errDropped
	case x.indexes.Load() != indexes:
		return errSchemaChanged
	}
	w := &writer{store: s, touched: []touch{{x, indexes}}, exclusive: true}
	w.statements, _ = ctx.Value(statementsKey{}).(*statements)
	var record *sessionRecord
	err := s.db.Update(func(tx *pando.Tx) (err error) {
		w.tx = tx
		if err = store(w); err == nil {
			record, err = w.storeStatements()
		}
		return err
	})
	if err == nil && record != nil {
		s.remember(w.statements.session, record)
	}
	return err
}

// spans is a set of keys that lie in the arena of a part: a table of hashes with open addressing.
type spans struct {
	p     *part
	seed  maphash.Seed
	slots []slot
}

type slot struct {
	hash uint64 // 0: free
	key  span
}

// newSpans makes a set for n keys.
func newSpans(p *part, n int) *spans {
	size := 16
	for size < 2*n {
		size *= 2
	}
	return &spans{p: p, seed: maphash.MakeSeed(), slots: make([]slot, size)}
}

// place returns where a key is, or belongs.
func (s *spans) place(key []byte) (at *slot, hash uint64) {
	hash = maphash.Bytes(s.seed, key) | 1
	for i := int(hash >> 8); ; i++ {
		at = &s.slots[i&(len(s.slots)-1)]
		if at.hash == 0 || at.hash == hash && bytes.Equal(s.p.bytes(at.key), key) {
			return at, hash
		}
	}
}

func (s *spans) has(key []byte) bool {
	at, _ := s.place(key)
	return at.hash != 0
}

// add puts a key in. There must not be more of them than the set was made for.
func (s *spans) add(key span) {
	at, hash := s.place(s.p.bytes(key))
	if at.hash == 0 {
		*at = slot{hash, key}
	}
}
