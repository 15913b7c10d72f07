package document

import (
	"context"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// Insert stores a document and returns its _id, which is made when there is none and is the first field in any case. It fails
// with DuplicateKey when the _id, or an entry of a unique index, is there already, and with BadValue when doc is nil.
func (c *Collection) Insert(ctx context.Context, doc any) (bson.RawValue, error) {
	raw, err := toStored(doc)
	if err != nil {
		return bson.RawValue{}, err
	}
	id, err := c.insertWith(ctx, raw, false, func(bson.RawValue) (Outcome, error) { return Outcome{N: 1}, nil })
	id.Value = slices.Clone(id.Value) // the document may be that of a loop, which is valid for its step only
	return id, err
}

// insertWith is Insert, with what those who send the statement again are told. unchecked leaves the validator out.
func (c *Collection) insertWith(ctx context.Context, raw document, unchecked bool, outcome func(id bson.RawValue) (Outcome, error)) (bson.RawValue, error) {
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
		return c.insertOne(ctx, x, raw, func(w *writer) {
			w.unchecked = unchecked
			w.did(0, told)
		})
	})
	return id, err
}

// prepare makes a document ready to be stored.
func (c *Collection) prepare(raw document) (document, bsoncore.Value, error) {
	return c.prepareWith(raw, c.store.newID)
}

func (c *Collection) prepareWith(raw document, newID func() bson.ObjectID) (document, bsoncore.Value, error) {
	raw, id, err := identify(raw, newID)
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

// Error implements error.
func (e WriteError) Error() string { return fmt.Sprintf("document %d: %v", e.Index, e.Err) }

// Unwrap returns the error itself.
func (e WriteError) Unwrap() error { return e.Err }

// WriteErrors is what InsertMany returns when it did not store all documents: one for each that could not be, as far as it went.
type WriteErrors []WriteError

// Error implements error.
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
	list, err := encodeDocuments(docs)
	if err != nil {
		return 0, err
	}
	if len(list) == 0 {
		return 0, nil
	}
	if inner, x := c.bucketsOf(); x != nil {
		return c.insertBuckets(ctx, inner, x.settings.Load().series, list, o)
	}
	if !c.checksAsItStores() {
		if err := checkAll(list); err != nil {
			return 0, err
		}
	}
	n := 0
	err = c.withCollection(ctx, func(x *collection) (err error) {
		if c.tx != nil && x.settings.Load().series != nil {
			return seriesInTransaction(c.ns, "insert into")
		}
		if x.settings.Load().capped {
			n, err = c.insertEach(ctx, x, list, o)
		} else {
			n, err = c.insertBatch(ctx, x, list, o)
		}
		return err
	})
	return n, err
}

// checksAsItStores reports whether documents for the collection go the way of insertBatch, which checks them while it encodes them. Else
// they are checked before anything is done: before the collection is made for them, for instance.
func (c *Collection) checksAsItStores() bool {
	x, err := c.use()
	return err == nil && x != nil && !x.settings.Load().capped
}

// insertBatch stores documents, which it checks, as one commit.
func (c *Collection) insertBatch(ctx context.Context, x *collection, list []document, o *InsertOptions) (int, error) {
	var failed WriteErrors
	b := &batch{c: x, ctx: ctx, all: o.Unordered, skipValidation: o.SkipValidation}
	defer b.release()
	stored := 0
	prepare := func(indexes *[]*secondary) {
		if now := x.settings.Load(); b.source != indexes || b.settings != now {
			b.prepare(c, indexes, list)
			b.settings = now
		}
	}
	store := func(w *writer) error {
		err := b.malformed
		if err != nil {
			return err
		}
		if failed, err = b.check(w, append(failed[:0], b.refused...)); err != nil {
			return err
		}
		slices.SortFunc(failed, func(x, y WriteError) int { return x.Index - y.Index })
		if len(failed) > 0 && !o.Ordered && !o.Unordered {
			return failed[:1]
		}
		stored, err = b.put(w, failed)
		return err
	}
	var err error
	if c.tx == nil && c.at == nil && len(list) >= exclusiveBatch {
		err = c.store.writeBatch(ctx, x, prepare, store)
	} else {
		err = c.write(ctx, func(w *writer) error {
			prepare(w.touch(x))
			return store(w)
		})
	}
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

// insertOne stores a document with a commit of its own; set prepares the writer. Those into a capped collection go one after the
// other.
func (c *Collection) insertOne(ctx context.Context, x *collection, doc document, set func(w *writer)) error {
	insert := func(w *writer) error {
		set(w)
		defer func() { w.unchecked = false }() // a transaction goes on with the same writer
		return w.insert(x, doc)
	}
	if !x.settings.Load().capped {
		return c.write(ctx, insert)
	}
	defer x.capped.inserting()()
	return c.write(ctx, insert)
}

// insertEach stores documents one after the other: a capped collection decides with each what it forgets.
func (c *Collection) insertEach(ctx context.Context, x *collection, list []document, o *InsertOptions) (int, error) {
	var failed WriteErrors
	n := 0
	for i, doc := range list {
		doc, _, err := c.prepare(doc)
		if err == nil {
			own := ctx
			if i < len(list)-1 {
				own = moreFollow(ctx)
			}
			err = c.insertOne(own, x, doc, func(w *writer) {
				w.unchecked = o.SkipValidation
				w.did(i, Outcome{N: 1})
			})
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
