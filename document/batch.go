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
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document/internal/index"
)

const (
	exclusiveBatch = 256     // documents of a batch that keeps other writers waiting, instead of noting everything that it reads
	parallelBatch  = 256     // documents that are worth a goroutine
	maxForeseen    = 8 << 20 // bytes that a part takes because its first document is large
)

// batch is documents on their way into a collection, with everything computed that does not depend on what is there.
type batch struct {
	c              *collection
	ctx            context.Context // of the call
	all            bool            // those behind one that cannot be stored too
	skipValidation bool
	source         *[]*secondary
	settings       *settings // that were in force when it was prepared
	indexes        []*secondary
	malformed      error       // a WriteErrors: a document is not valid, so that none is stored
	refused        WriteErrors // before anything was read
	seed           maphash.Seed
	parts          []*part // in the order of the documents
}

// part is some documents of a batch, one behind the other, prepared by one goroutine. What belongs to a document is offsets into the
// slices of the part.
type part struct {
	number   int
	arena    []byte
	items    []item
	entries  []batchEntry
	multikey []uint64 // by index
	failed   WriteErrors
	bad      error // of the first document that is not valid: a WriteErrors
	fresh    bool  // an _id was made for the document at hand
	keys     index.Entries
	loose    bool // a measurement makes the order of its time series useless
}

// item is one document of a batch.
type item struct {
	number      int
	id          bsoncore.Value
	fresh       bool // its _id was made for it: no other document has it
	free        bool // no record has its key
	key, record span // in the arena
	entries     span // in the entries
	left        bool // it is not stored
}

type span struct{ from, to int }

// batchEntry is an entry of an item in the index with a place in batch.indexes.
type batchEntry struct {
	index int
	key   span
	hash  uint32 // of the entry, in an index that takes no duplicates
	exact bool
	free  bool // no record has it
}

func (p *part) bytes(s span) []byte { return p.arena[s.from:s.to:s.to] }

// prepare computes the stored form and the entries of all documents, on all processors.
func (b *batch) prepare(c *Collection, source *[]*secondary, list []document) {
	b.release() // what was prepared for another list of indexes
	b.source, b.indexes, b.seed, b.malformed = source, *source, maphash.MakeSeed(), nil
	newID := c.store.newIDs(len(list))
	n := max(1, min(runtime.GOMAXPROCS(0), len(list)/parallelBatch))
	for i := range n {
		p := spareParts.Get().(*part)
		p.number = i
		b.parts = append(b.parts, p)
	}
	b.each(func(p *part) { b.preparePart(c, p, list, len(list)*p.number/n, len(list)*(p.number+1)/n, newID) })
	for _, p := range b.parts {
		if b.malformed = p.bad; b.malformed != nil {
			return
		}
	}
	b.refused = b.parts[0].failed
	for i := 1; i < n; i++ {
		if !b.all && len(b.refused) > 0 {
			b.parts[i].items = b.parts[i].items[:0]
			continue
		}
		b.refused = append(b.refused, b.parts[i].failed...)
	}
}

// release gives the memory of the batch to later ones. Nothing of it may be used any more.
func (b *batch) release() {
	for _, p := range b.parts {
		p.release()
	}
	b.parts = b.parts[:0]
}

// spareParts is the memory of parts of earlier batches.
var spareParts = sync.Pool{New: func() any { return new(part) }}

// maxSpare is how much memory a part may have to be kept for the next one.
const maxSpare = 4 << 20

// release gives the memory of a part to later ones. Nothing of it may be used any more.
func (p *part) release() {
	if cap(p.arena) > maxSpare {
		return
	}
	clear(p.items[:cap(p.items)]) // which refer to documents
	spareParts.Put(&part{arena: p.arena[:0], items: p.items[:0], entries: p.entries[:0], keys: p.keys})
}

func (b *batch) preparePart(c *Collection, p *part, list []document, from, to int, newID func(i int) bson.ObjectID) {
	p.items, p.multikey = slices.Grow(p.items, to-from), make([]uint64, len(b.indexes))
	p.entries = slices.Grow(p.entries, (to-from)*len(b.indexes))
	for i := from; i < to; i++ {
		if i == from+1 {
			p.arena = slices.Grow(p.arena, min(len(p.arena)*(to-from)*5/4, maxForeseen))
		}
		err := b.add(c, p, i, list[i], newID)
		if p.bad != nil {
			return
		}
		if err != nil {
			p.failed = append(p.failed, WriteError{i, err})
			if !b.all {
				p.bad = checkSome(list, i+1, to)
				return
			}
		}
	}
}

// add checks a document, and computes its stored form and its entries.
func (b *batch) add(c *Collection, p *part, number int, doc document, newID func(i int) bson.ObjectID) error {
	it, given := item{number: number}, doc
	p.fresh = false
	record, err := b.admit(p, doc)
	if err != nil {
		p.bad = WriteErrors{{number, err}}
		return err
	}
	doc, id, err := c.prepareWith(doc, func() bson.ObjectID { p.fresh = true; return newID(number) })
	if err != nil {
		return err
	}
	it.id, it.fresh = id, p.fresh
	if s := b.c.settings.Load().series; s != nil {
		if doc, err = s.arrange(doc); err != nil {
			return err
		}
		it.fresh = true // what is new is the key
	}
	if !b.skipValidation {
		if err := b.c.validate(b.ctx, doc, nil); err != nil {
			return err
		}
	}
	it.key.from = len(p.arena)
	b.appendKey(p, id, doc)
	it.key.to, it.record = len(p.arena), record
	if record.from == record.to || &doc[0] != &given[0] { // it was not encoded, or not as it is now
		it.record.from = len(p.arena)
		if p.arena, err = b.c.codec.Encode(p.arena, doc); err != nil {
			return err
		}
		it.record.to = len(p.arena)
	}
	it.entries.from = len(p.entries)
	for i, x := range b.indexes {
		if err := x.def.AppendRaw(&p.keys, bsoncore.Document(doc)); err != nil {
			return indexError(b.c, x, err)
		}
		p.multikey[i] |= p.keys.Multikey
		for j, key := range p.keys.Keys {
			e := batchEntry{index: i, exact: p.keys.Exact[j]}
			e.key.from = len(p.arena)
			p.arena = append(p.arena, key...)
			if x.def.Distinct() {
				e.hash = b.hash(p.arena[e.key.from:])
			}
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

// admit checks a document that nobody has looked at yet. Where that can be done by encoding it, as it is, it returns the record. One
// that cannot be encoded for reasons of the store is encoded again, when it is its turn to be refused.
func (b *batch) admit(p *part, doc document) (record span, err error) {
	record.from = len(p.arena)
	var proven bool
	if p.arena, proven, err = b.c.codec.EncodeUnseen(p.arena, doc); err != nil || !proven {
		err = checkBSON(doc)
	}
	record.to = len(p.arena)
	return record, err
}

// check finds the documents whose _id or unique entries are there already, or twice in the batch.
func (b *batch) check(w *writer, failed WriteErrors) (WriteErrors, error) {
	var ids *keySet
	var empty bool
	if b.ascending() {
		var err error
		if empty, err = b.unoccupied(w); err != nil {
			return nil, err
		}
	} else { // then they are all over the place, most likely
		ids = newKeySet(b, b.count())
	}
	if w.exclusive {
		b.each(func(p *part) { b.probe(p, !empty) })
	}
	unique := b.uniqueSets()
	for _, p := range b.parts {
		for i := range p.items {
			it := &p.items[i]
			err := b.checkItem(w, p, it, empty, ids, unique)
			if err == nil {
				continue
			}
			if CodeOf(err) == 0 {
				return nil, err
			}
			failed = append(failed, WriteError{it.number, err})
			if !b.all {
				return failed, nil
			}
		}
	}
	return failed, nil
}

// each calls fn with all parts at once.
func (b *batch) each(fn func(p *part)) {
	var wg sync.WaitGroup
	for _, p := range b.parts[1:] {
		wg.Go(func() { fn(p) })
	}
	fn(b.parts[0])
	wg.Wait()
}

// count is how many documents are prepared.
func (b *batch) count() (n int) {
	for _, p := range b.parts {
		n += len(p.items)
	}
	return n
}

// uniqueSets makes a set of the entries of each index that takes no duplicates; nil for the others.
func (b *batch) uniqueSets() []*keySet {
	count := make([]int, len(b.indexes))
	for _, p := range b.parts {
		for _, e := range p.entries {
			count[e.index]++
		}
	}
	sets := make([]*keySet, len(b.indexes))
	for i, x := range b.indexes {
		if x.def.Distinct() {
			sets[i] = newKeySet(b, count[i])
		}
	}
	return sets
}

// ascending reports whether each record's key is above the one before it: then none is in the batch twice.
func (b *batch) ascending() bool {
	var last []byte
	for _, p := range b.parts {
		for i := range p.items {
			key := p.bytes(p.items[i].key)
			if last != nil && bytes.Compare(last, key) >= 0 {
				return false
			}
			last = key
		}
	}
	return true
}

// unoccupied reports whether no record at all has a key between the first and the last of the batch: then none needs to be looked
// up. A transaction, which depends on what it reads, does not ask.
func (b *batch) unoccupied(w *writer) (bool, error) {
	if !w.exclusive || b.count() == 0 {
		return false, nil
	}
	var first, last []byte
	for _, p := range b.parts {
		for i := range p.items {
			key := p.bytes(p.items[i].key)
			if first == nil || bytes.Compare(key, first) < 0 {
				first = key
			}
			if bytes.Compare(key, last) > 0 {
				last = key
			}
		}
	}
	it := w.tx.In(b.c.records).Iter(&pando.IterOptions{Lower: first, Upper: append(bytes.Clone(last), 0), KeysOnly: true})
	occupied := it.Next()
	return !occupied, errors.Join(it.Err(), it.Close())
}

func (b *batch) checkItem(w *writer, p *part, it *item, empty bool, ids *keySet, unique []*keySet) error {
	key := p.bytes(it.key)
	if err := w.claim(b.c, key); err != nil {
		return err
	}
	var hash uint32
	if ids != nil {
		hash = b.hash(key)
	}
	if !it.fresh {
		twice := ids.has(key, hash)
		if !twice && !empty && !it.free {
			var err error
			if twice, err = w.tx.In(b.c.records).Has(key); err != nil {
				return err
			}
		}
		if twice {
			return duplicateID(b.c, it.id)
		}
	}
	entries := p.entries[it.entries.from:it.entries.to]
	for _, e := range entries {
		x := b.indexes[e.index]
		if !x.def.Distinct() {
			continue
		}
		entry := p.bytes(b.entry(e, key))
		free := !unique[e.index].has(entry, e.hash)
		if free && !e.free {
			var err error
			if free, err = w.isFree(x, entry, key); err != nil {
				return err
			}
		}
		if !free {
			doc, err := b.c.codec.Decode(nil, p.bytes(it.record))
			if err != nil {
				return err
			}
			return duplicateKey(b.c, x, entry, doc)
		}
	}
	ids.add(p, it.key, hash)
	for _, e := range entries {
		unique[e.index].add(p, b.entry(e, key), e.hash)
	}
	return nil
}

// entry returns where an entry is, without the key of its record that it ends in where the index is not unique.
func (b *batch) entry(e batchEntry, record []byte) span {
	if !b.indexes[e.index].def.Unique {
		e.key.to -= len(record)
	}
	return e.key
}
