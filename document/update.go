package document

import (
	"bytes"
	"context"
	"errors"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/update"
)

// UpdateOptions says how to update. nil: the first document that matches, none is inserted.
type UpdateOptions struct {
	// Many updates all documents that match.
	Many bool
	// Upsert inserts a document when none matches, made of the filter's equalities and the update.
	Upsert bool
	// ArrayFilters say which elements $[name] stands for: a slice of documents.
	ArrayFilters any
	// Sort picks the first of several.
	Sort any
	// Hint, Collation, Let: see FindOptions.
	Hint, Collation, Let any
	// SkipValidation stores documents that the collection's validator refuses.
	SkipValidation bool

	now time.Time // of the $merge that this is a part of; zero: see nowIn
}

// UpdateResult says what an update did.
type UpdateResult struct {
	Matched    int64
	Modified   int64         // of those matched
	UpsertedID bson.RawValue // Type 0: none
}

// Update changes the documents that match: u is a document of operators ($set, $inc, ...) or a pipeline.
func (c *Collection) Update(ctx context.Context, filter, u any, o *UpdateOptions) (*UpdateResult, error) {
	v, err := toUpdate(u)
	if err != nil {
		return nil, err
	}
	if v.Type == bsoncore.TypeEmbeddedDocument && !startsWithOperator(v.Document()) {
		return nil, mongoerror.New(mongoerror.FailedToParse, "the update operation document must contain atomic operators; Replace replaces documents")
	}
	return c.update(ctx, filter, v, o)
}

// Replace puts another document, with the same _id, in the place of the first that matches.
func (c *Collection) Replace(ctx context.Context, filter, replacement any, o *UpdateOptions) (*UpdateResult, error) {
	doc, err := toStored(replacement)
	if err != nil {
		return nil, err
	}
	if startsWithOperator(doc) {
		return nil, mongoerror.New(mongoerror.FailedToParse, "the replace operation document must not contain atomic operators")
	}
	return c.update(ctx, filter, bsoncore.Value{Type: bsoncore.TypeEmbeddedDocument, Data: doc}, o)
}

// Apply is Update or Replace, whichever u asks for: documents of operators, replacements and pipelines, as MongoDB's update
// command has them.
func (c *Collection) Apply(ctx context.Context, filter, u any, o *UpdateOptions) (*UpdateResult, error) {
	v, err := toUpdate(u)
	if err != nil {
		return nil, err
	}
	return c.update(ctx, filter, v, o)
}

// toUpdate returns an update as a BSON value: a document, or an array of stages.
func toUpdate(u any) (bsoncore.Value, error) {
	if u == nil { // which is no pipeline either: an empty one changes nothing, as if nothing was to change
		return bsoncore.Value{}, mongoerror.New(mongoerror.BadValue, "nil is no update")
	}
	if v, ok := u.(bson.RawValue); ok {
		u = bsoncore.Value{Type: bsoncore.Type(v.Type), Data: v.Value}
	}
	if v, ok := u.(bsoncore.Value); ok {
		if v.Type == bsoncore.TypeEmbeddedDocument {
			return v, checkSpec(v.Data)
		}
		if v.Type == bsoncore.TypeArray {
			_, err := arrayStages(bsoncore.Array(v.Data))
			return v, err
		}
		return v, mongoerror.New(mongoerror.FailedToParse, "Update argument must be either an object or an array")
	}
	if text, ok := u.(JSON); ok && len(bytes.TrimSpace([]byte(text))) > 0 && bytes.TrimSpace([]byte(text))[0] != '[' || isDocument(u) {
		doc, err := toDocument(u)
		return bsoncore.Value{Type: bsoncore.TypeEmbeddedDocument, Data: doc}, err
	}
	stages, err := toPipeline(u)
	if err != nil {
		return bsoncore.Value{}, err
	}
	b := bsoncore.NewArrayBuilder()
	for _, stage := range stages {
		b.AppendDocument(stage)
	}
	return bsoncore.Value{Type: bsoncore.TypeArray, Data: b.Build()}, nil
}

func startsWithOperator(doc document) bool {
	e, err := doc.IndexErr(0)
	return err == nil && len(e.Key()) > 0 && e.Key()[0] == '$'
}

// change is what Update, Replace, Delete and FindAndModify have in common: which documents, and what becomes of each.
type change struct {
	c     *Collection
	query *findQuery
	u     *update.Update // nil: delete
	many  bool
	id    bsoncore.Value // all that the query asks for, where the record is read by it; Type 0: not so
	// keep is told each document that is changed, before and after, and returns what the caller gets of it.
	keep func(old, new document) (document, error)

	matched, modified int64
	number            int  // which of the statements of its commit it is
	keepInserted      bool // the caller gets a document that is inserted
	unchecked         bool // the validator is not asked
	*changeBuffers         // while it is carried out
}

// parseChange parses the query and update of a change.
func (c *Collection) parseChange(ctx context.Context, filter any, u bsoncore.Value, o *UpdateOptions) (*change, error) {
	filters, err := toFilters(o.ArrayFilters)
	if err != nil {
		return nil, err
	}
	q, err := c.parseSought(ctx, filter, o)
	if err != nil {
		if wrong := checkUpdate(u, o, filters, c.store.clock.Now()); wrong != nil {
			return nil, wrong // MongoDB looks at the update first
		}
		return nil, err
	}
	if !o.Many {
		q.Limit = 1
	}
	ch := &change{c: c, query: q, many: o.Many, unchecked: o.SkipValidation}
	if u.Type == 0 {
		return ch, nil
	}
	ch.u, err = update.Parse(u, &update.Options{
		ArrayFilters: filters, Collation: q.Collation, Let: q.let, Now: q.Now, Filter: q.Filter, Call: q.call,
		Timestamp: c.store.timestamp,
	})
	if err != nil {
		return nil, err
	}
	if ch.u.Replacement() && o.Many {
		return nil, manyReplaced()
	}
	if o.Upsert {
		if err := q.Filter.Upsertable(); err != nil {
			return nil, err
		}
	}
	return ch, nil
}

// checkUpdate returns what is wrong with an update, as far as that can be told without its query.
func checkUpdate(u bsoncore.Value, o *UpdateOptions, filters []document, now time.Time) error {
	if u.Type == 0 || u.Type == bsoncore.TypeArray && o.Let != nil {
		return nil
	}
	parsed, err := update.Parse(u, &update.Options{ArrayFilters: filters, Now: now})
	if err == nil && parsed.Replacement() && o.Many {
		return manyReplaced()
	}
	return err
}

func manyReplaced() error {
	return mongoerror.New(mongoerror.FailedToParse, "multi update is not supported for replacement-style update")
}

func toFilters(v any) ([]document, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case bson.RawValue:
		if v.Type != bson.TypeArray {
			return nil, wrongType("arrayFilters", bsoncore.Value{Type: bsoncore.Type(v.Type), Data: v.Value}, "an array")
		}
		return arrayStages(bsoncore.Array(v.Value))
	}
	return toDocuments(v)
}

func (c *Collection) update(ctx context.Context, filter any, u bsoncore.Value, o *UpdateOptions) (*UpdateResult, error) {
	if o == nil {
		o = new(UpdateOptions)
	}
	ch, err := c.parseUpdate(ctx, filter, u, o)
	if err != nil {
		return nil, err
	}
	return ch.carryOut(ctx, o.Upsert)
}

// parseUpdate parses an update, unless there is nothing here that can be updated so.
func (c *Collection) parseUpdate(ctx context.Context, filter any, u bsoncore.Value, o *UpdateOptions) (*change, error) {
	if c.view() != nil {
		return nil, onView(c.ns)
	}
	if err := c.checkSeriesUpdate(filter, u, o); err != nil {
		return nil, err
	}
	return c.parseChange(ctx, filter, u, o)
}

// carryOut changes what matches, or inserts a document where nothing does and upsert is set.
func (ch *change) carryOut(ctx context.Context, upsert bool) (*UpdateResult, error) {
	for attempt := 0; ; attempt++ {
		if err := ch.run(ctx); err != nil {
			return nil, err
		}
		if ch.matched > 0 || !upsert {
			return &UpdateResult{Matched: ch.matched, Modified: ch.modified}, nil
		}
		id, _, err := ch.upsert(ctx)
		if errors.Is(err, DuplicateKey) && ch.c.tx == nil && attempt < maxUpsertAttempts && ch.collides(err) {
			continue // somebody else inserted it in between: now there is something to update
		}
		if err != nil {
			return nil, err
		}
		return &UpdateResult{UpsertedID: bson.RawValue{Type: bson.Type(id.Type), Value: id.Data}}, nil
	}
}

// maxUpsertAttempts is how often an upsert looks again after somebody else inserted what it was about to insert.
const maxUpsertAttempts = 20

// collides reports whether an upsert failed on fields that its filter sets equal to something, so that it may match next time.
func (ch *change) collides(err error) bool {
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	equal, err := ch.query.Filter.Equalities()
	if err != nil {
		return false
	}
	for _, k := range elementsOf(e.KeyPattern) {
		if _, err := equal.LookupErr(k.Key()); err != nil {
			return false
		}
	}
	return true
}

// upsert inserts what the filter and the update make, and returns its _id.
func (ch *change) upsert(ctx context.Context) (id bsoncore.Value, doc document, err error) {
	doc, err = ch.missing()
	if err != nil {
		return id, nil, err
	}
	raw, err := ch.c.insertWith(ctx, doc, ch.unchecked, func(id bson.RawValue) (Outcome, error) {
		o := Outcome{N: 1, UpsertedID: id}
		if ch.keepInserted {
			doc, err := ch.query.project(doc)
			o.Document = bson.Raw(bytes.Clone(doc))
			return o, err
		}
		return o, nil
	})
	return bsoncore.Value{Type: bsoncore.Type(raw.Type), Data: raw.Value}, doc, err
}

// missing makes the document that an upsert inserts.
func (ch *change) missing() (document, error) {
	doc, err := ch.u.Upsert(ch.query.Filter, func() bsoncore.Value {
		fresh := ch.c.store.newID()
		return bsoncore.Value{Type: bsoncore.TypeObjectID, Data: fresh[:]}
	})
	if err != nil {
		return nil, err
	}
	if len(doc) > MaxDocumentBytes {
		return nil, mongoerror.New(codeUpsertTooLarge, "Document to upsert is larger than %d", MaxDocumentBytes)
	}
	return doc, checkDocument(doc)
}

// run carries the change out. It looks for documents in a snapshot; each is read again by the commit that changes it, and left
// alone when it does not match any more.
func (ch *change) run(ctx context.Context) error {
	ch.query.call.By(ctx)
	ch.matched, ch.modified = 0, 0
	x, err := ch.c.use()
	if x == nil || err != nil {
		return err
	}
	ch.changeBuffers = spareChanges.Get().(*changeBuffers)
	defer ch.changeBuffers.release()
	if ch.needsNoPlan(x) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := ch.apply(ctx, x, nil); !errors.Is(err, errNeedsPlan) {
			return err
		}
	}
	if err := ch.parseFilter(); err != nil {
		return err
	}
	q := *ch.query
	if ch.c.tx == nil {
		q.Limit = 0 // the first may be gone by the time it is to be changed
	}
	m, err := ch.c.open(ctx, x, &q)
	if err != nil {
		return err
	}
	w := &changeWalk{ch: ch, x: x, m: m}
	defer w.end()
	return w.run(ctx)
}

// apply changes the documents under some keys with one commit; nil: under the only key that can match.
func (ch *change) apply(ctx context.Context, x *collection, keys [][]byte) error {
	matched, modified := ch.matched, ch.modified
	err := ch.c.write(ctx, func(w *writer) (err error) {
		ch.matched, ch.modified, w.unchecked = matched, modified, ch.unchecked
		defer func() { w.unchecked = false }()
		keys := keys
		if keys == nil {
			if keys, err = ch.onlyKey(w, x); err != nil {
				return err
			}
		}
		return ch.all(w, x, keys)
	})
	if err != nil {
		ch.matched, ch.modified = matched, modified // nothing of it remains
	}
	switch {
	case !errors.Is(err, errDropped):
		return err
	case ch.c.tx != nil:
		return conflict(err)
	}
	return nil // there is nothing to change
}

// all changes the documents under some keys. It reads them first: a read behind a write has to look through what was written.
func (ch *change) all(w *writer, x *collection, keys [][]byte) error {
	records := w.tx.In(x.records)
	ch.stored, ch.spans = ch.stored[:0], ch.spans[:0]
	for _, key := range keys {
		from := len(ch.stored)
		stored, err := records.GetTo(ch.stored, key)
		if err != nil && !errors.Is(err, pando.ErrNotFound) {
			return err
		}
		if err == nil {
			ch.stored = stored
		}
		ch.spans = append(ch.spans, span{from, len(ch.stored)})
	}
	for i, key := range keys {
		if s := ch.spans[i]; s.from < s.to {
			if err := ch.one(w, x, key, ch.stored[s.from:s.to]); err != nil {
				return err
			}
		}
	}
	return nil
}

// one changes the document under a key, if it still matches.
func (ch *change) one(w *writer, x *collection, key, stored []byte) (err error) {
	if ch.doc, err = x.codec.Decode(ch.doc[:0], stored); err != nil {
		return err
	}
	old := document(ch.doc)
	match, position, err := ch.matches(old)
	if err != nil || !match {
		return err
	}
	ch.matched++
	if ch.u == nil {
		ch.modified++
		if err := ch.tell(w, old, nil, true); err != nil {
			return err
		}
		return w.remove(x, key, old)
	}
	out, changed, err := ch.u.Apply(ch.out[:0], old, false, position)
	if err != nil {
		return err
	}
	ch.out = out
	if err := ch.tell(w, old, out, changed); err != nil {
		return err
	}
	if !changed {
		return nil
	}
	ch.modified++
	op := opUpdate
	if ch.u.Replacement() {
		op = opReplace
	}
	w.targets = ch.u.Targets(position)
	err = w.replace(x, key, old, out, op)
	w.targets = update.Targets{}
	return err
}

// tell notes what becomes of a document, for the caller and for those who send the statement again.
func (ch *change) tell(w *writer, old, new document, changed bool) error {
	o := Outcome{N: 1}
	if changed {
		o.Modified = 1
	}
	if ch.keep != nil {
		doc, err := ch.keep(old, new)
		if err != nil {
			return err
		}
		o.Document = bson.Raw(doc)
	}
	if !ch.many {
		w.did(ch.number, o)
	}
	return nil
}
