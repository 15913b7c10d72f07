package document

import (
	"context"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/index"
	"github.com/pandodb/pando/document/internal/path"
)

// Insert stores a document and returns its _id, which is made when there is none and is the first field in any case. It fails
// with DuplicateKey when the _id, or an entry of a unique index, is there already.
func (c *Collection) Insert(ctx context.Context, doc any) (bson.RawValue, error) {
	raw, err := toDocument(doc)
	if err != nil {
		return bson.RawValue{}, err
	}
	return c.insertWith(ctx, raw, func(bson.RawValue) (Outcome, error) { return Outcome{N: 1}, nil })
}

// insertWith is Insert, with what those who send the statement again are told.
func (c *Collection) insertWith(ctx context.Context, raw document, outcome func(id bson.RawValue) (Outcome, error)) (bson.RawValue, error) {
	raw, v, err := c.prepare(raw)
	if err != nil {
		return bson.RawValue{}, err
	}
	id := bson.RawValue{Type: bson.Type(v.Type), Value: v.Data}
	told, err := outcome(id)
	if err != nil {
		return bson.RawValue{}, err
	}
	err = c.withCollection(ctx, func(x *collection) error {
		if x.settings.Load().capped {
			return c.insertOne(ctx, x, raw)
		}
		return c.write(ctx, func(w *writer) error {
			w.did(0, told)
			return w.insert(x, raw)
		})
	})
	return id, err
}

// prepare makes a document ready to be stored.
func (c *Collection) prepare(raw document) (document, bsoncore.Value, error) {
	raw, id, err := identify(raw, c.store.newID)
	if err != nil {
		return nil, id, err
	}
	if len(raw) > MaxDocumentBytes {
		err = tooLarge(len(raw))
	}
	return stampTimestamps(raw, c.store.timestamp), id, err
}

// InsertOptions says how InsertMany deals with documents that cannot be stored. nil: one that cannot be makes all fail, and
// nothing is stored.
type InsertOptions struct {
	// Ordered stores the documents before the first that cannot be, as MongoDB's ordered inserts do.
	Ordered bool
	// Unordered stores all documents that can be.
	Unordered bool
	// SkipValidation stores documents that the collection's validator refuses.
	SkipValidation bool
}

// WriteError is the error of one document, or statement, of several.
type WriteError struct {
	Index int // which one
	Err   error
}

func (e WriteError) Error() string { return fmt.Sprintf("document %d: %v", e.Index, e.Err) }

// Unwrap returns the error itself.
func (e WriteError) Unwrap() error { return e.Err }

// WriteErrors is what InsertMany returns when it stored some documents, but not all.
type WriteErrors []WriteError

func (e WriteErrors) Error() string {
	if len(e) == 1 {
		return e[0].Error()
	}
	return fmt.Sprintf("%v, and %d more errors", e[0], len(e)-1)
}

// Unwrap returns the errors.
func (e WriteErrors) Unwrap() []error {
	list := make([]error, len(e))
	for i := range e {
		list[i] = e[i]
	}
	return list
}

// InsertMany stores documents with one commit and returns how many it stored. docs is a slice of whatever Insert takes. With nil
// options all are stored or none, and the error is a WriteErrors with the first document that could not be.
func (c *Collection) InsertMany(ctx context.Context, docs any, o *InsertOptions) (int, error) {
	if o == nil {
		o = new(InsertOptions)
	}
	list, err := toDocuments(docs)
	if err != nil {
		return 0, err
	}
	if len(list) == 0 {
		return 0, nil
	}
	n := 0
	err = c.withCollection(ctx, func(x *collection) (err error) {
		if x.settings.Load().capped {
			n, err = c.insertEach(ctx, x, list, o)
		} else {
			n, err = c.insertBatch(ctx, x, list, o)
		}
		return err
	})
	return n, err
}

// insertBatch stores documents as one commit.
func (c *Collection) insertBatch(ctx context.Context, x *collection, list []document, o *InsertOptions) (int, error) {
	var failed WriteErrors
	b := &batch{c: x, skipValidation: o.SkipValidation}
	stored := 0
	err := c.write(ctx, func(w *writer) error {
		failed = failed[:0]
		if b.indexes == nil || b.source != x.indexes.Load() {
			b.reset(x.indexes.Load(), len(list))
			w.indexesOf(x)
			for i, doc := range list {
				if err := b.add(c, i, doc); err != nil {
					failed = append(failed, WriteError{i, err})
					if !o.Unordered {
						break
					}
				}
			}
			b.refused = append(WriteErrors(nil), failed...)
		} else {
			w.indexesOf(x)
			failed = append(failed, b.refused...)
		}
		var err error
		if failed, err = b.check(w, failed, o.Unordered); err != nil {
			return err
		}
		slices.SortFunc(failed, func(x, y WriteError) int { return x.Index - y.Index })
		if len(failed) > 0 && !o.Ordered && !o.Unordered {
			return failed[:1]
		}
		stored, err = b.put(w, failed, o.Unordered)
		return err
	})
	if err != nil {
		return 0, err
	}
	if len(failed) > 0 {
		if !o.Unordered {
			failed = failed[:1]
		}
		return stored, failed
	}
	return stored, nil
}

// insertOne stores a document in a capped collection.
func (c *Collection) insertOne(ctx context.Context, x *collection, doc document) error {
	done := x.capped.inserting()
	err := c.write(ctx, func(w *writer) error { return w.insert(x, doc) })
	done(err)
	return err
}

// insertEach stores documents one after the other: a capped collection decides with each what it forgets.
func (c *Collection) insertEach(ctx context.Context, x *collection, list []document, o *InsertOptions) (int, error) {
	var failed WriteErrors
	n := 0
	for i, doc := range list {
		doc, _, err := c.prepare(doc)
		if err == nil {
			err = c.insertOne(ctx, x, doc)
		}
		if err == nil {
			n++
			continue
		}
		failed = append(failed, WriteError{i, err})
		if !o.Unordered {
			break
		}
	}
	if len(failed) > 0 {
		return n, failed
	}
	return n, nil
}

// batch is documents on their way into a collection, with everything computed that does not depend on what is there.
type batch struct {
	c              *collection
	skipValidation bool
	source         *[]*secondary
	indexes        []*secondary
	arena          []byte
	items          []item
	refused        WriteErrors // before anything was read
	entries        index.Entries
	multikey       []uint64 // by index
}

// item is one document of a batch. Its slices are offsets into the arena, which moves as it grows.
type item struct {
	number      int
	doc         document
	key, record span
	entries     []batchEntry
}

type span struct{ from, to int }

// batchEntry is an entry of an item in the index with a place in batch.indexes.
type batchEntry struct {
	index int
	key   span
	exact bool
}

func (b *batch) reset(source *[]*secondary, n int) {
	b.source, b.indexes = source, *source
	b.arena, b.items, b.refused = b.arena[:0], make([]item, 0, n), nil
	b.multikey = make([]uint64, len(b.indexes))
}

func (b *batch) bytes(s span) []byte { return b.arena[s.from:s.to:s.to] }

// add computes the stored form and the entries of a document.
func (b *batch) add(c *Collection, number int, doc document) error {
	doc, id, err := c.prepare(doc)
	if err != nil {
		return err
	}
	if !b.skipValidation {
		if err := b.c.validate(doc, nil); err != nil {
			return err
		}
	}
	it := item{number: number, doc: doc}
	it.key.from = len(b.arena)
	b.arena = b.c.key(b.arena, id)
	it.key.to, it.record.from = len(b.arena), len(b.arena)
	if b.arena, err = b.c.codec.Encode(b.arena, doc); err != nil {
		return err
	}
	it.record.to = len(b.arena)
	for i, x := range b.indexes {
		if err := x.def.Append(&b.entries, path.Document(doc)); err != nil {
			return indexError(b.c, x, err)
		}
		b.multikey[i] |= b.entries.Multikey
		for j, key := range b.entries.Keys {
			e := batchEntry{index: i, exact: b.entries.Exact[j]}
			e.key.from = len(b.arena)
			b.arena = append(b.arena, key...)
			if !x.def.Unique {
				b.arena = append(b.arena, b.bytes(it.key)...)
			}
			e.key.to = len(b.arena)
			it.entries = append(it.entries, e)
		}
	}
	b.items = append(b.items, it)
	return nil
}

// check finds the documents whose _id or unique entries are there already, or twice in the batch.
func (b *batch) check(w *writer, failed WriteErrors, all bool) (WriteErrors, error) {
	seen := make(map[string]struct{}, len(b.items))
	unique := make([]map[string]struct{}, len(b.indexes))
	for i, x := range b.indexes {
		if x.def.Unique {
			unique[i] = make(map[string]struct{}, len(b.items))
		}
	}
	for i := range b.items {
		it := &b.items[i]
		err := b.checkItem(w, it, seen, unique)
		if err == nil {
			continue
		}
		if CodeOf(err) == 0 {
			return nil, err
		}
		failed = append(failed, WriteError{it.number, err})
		if !all {
			break
		}
	}
	return failed, nil
}

func (b *batch) checkItem(w *writer, it *item, seen map[string]struct{}, unique []map[string]struct{}) error {
	key := b.bytes(it.key)
	if err := w.claim(b.c, key); err != nil {
		return err
	}
	_, twice := seen[string(key)]
	if !twice {
		var err error
		if twice, err = w.tx.In(b.c.records).Has(key); err != nil {
			return err
		}
	}
	if twice {
		return duplicateID(b.c, it.doc.Lookup("_id"))
	}
	for _, e := range it.entries {
		x := b.indexes[e.index]
		if !x.def.Unique {
			continue
		}
		entry := b.bytes(e.key)
		if _, twice := unique[e.index][string(entry)]; twice {
			return duplicateKey(b.c, x, entry)
		}
		if err := w.checkFree(b.c, x, entry, key); err != nil {
			return err
		}
	}
	seen[string(key)] = struct{}{}
	for _, e := range it.entries {
		if unique[e.index] != nil {
			unique[e.index][string(b.bytes(e.key))] = struct{}{}
		}
	}
	return nil
}

// put writes what has not failed: everything before the first failure, or everything else. Records come first, then one index
// after the other.
func (b *batch) put(w *writer, failed WriteErrors, all bool) (int, error) {
	bad := map[int]bool{}
	stop := len(b.items)
	for _, f := range failed {
		bad[f.Index] = true
	}
	stored := make([]*item, 0, len(b.items))
	for i := range b.items[:stop] {
		it := &b.items[i]
		if bad[it.number] {
			if !all {
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
		if err := w.raiseMultikey(b.c, x, b.multikey[i]); err != nil {
			return 0, err
		}
		ks := w.tx.In(x.ks)
		for _, it := range stored {
			for _, e := range it.entries {
				if e.index != i {
					continue
				}
				if err := ks.Put(b.bytes(e.key), x.entryValue(e.exact, b.bytes(it.key))); err != nil {
					return 0, err
				}
			}
		}
	}
	return len(stored), nil
}
