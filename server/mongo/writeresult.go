package mongo

import (
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document"
)

// writeResult collects what the statements of a write command did.
type writeResult struct {
	n, modified int64
	errors      *bsoncore.ArrayBuilder
	failed      int // the number of the last statement that failed
	told        int // bytes of texts and keys in errors
	upserted    *bsoncore.ArrayBuilder
	upserts     int // bytes of upserted
	retried     []int32
}

// toldBytes is how much a command's errors tell: those that come when it is used up have their index and their code, and an empty text, as
// on a mongod, which goes on giving the keys. A hundred thousand statements that meet the same key of 64 KiB would fill the memory.
const toldBytes = 1 << 20

// take notes what a statement of an update or delete did.
func (w *writeResult) take(i int, result *document.UpdateResult) {
	w.n += result.Matched
	w.modified += result.Modified
	if result.UpsertedID.Type != 0 {
		w.n++
		w.upsert(i, result.UpsertedID)
	}
}

// fail notes the error of a statement.
func (w *writeResult) fail(i int, err error) {
	w.failed = i
	if w.errors == nil {
		w.errors = bsoncore.NewArrayBuilder()
	}
	b := bsoncore.NewDocumentBuilder().AppendInt32("index", int32(i)).AppendInt32("code", int32(document.CodeOf(err)))
	if w.told >= toldBytes {
		w.errors.AppendDocument(b.AppendString("errmsg", "").Build())
		return
	}
	appendDetails(b.AppendString("errmsg", message(err)), err)
	doc := b.Build()
	w.errors.AppendDocument(doc)
	w.told += len(doc)
}

// upsert notes the _id of a document that a statement inserted, unless there are more of them already than an answer can have.
func (w *writeResult) upsert(i int, id bson.RawValue) {
	if w.upserts > maxReply {
		return
	}
	if w.upserted == nil {
		w.upserted = bsoncore.NewArrayBuilder()
	}
	v := coreValue(id)
	doc := bsoncore.NewDocumentBuilder().AppendInt32("index", int32(i)).AppendValue("_id", v).Build()
	w.upserted.AppendDocument(doc)
	w.upserts += len(doc)
}

// written makes the answer of a write command. A client that has asked for w: 0 and waits all the same is told how many, and no more.
func (r *request) written(w *writeResult, updates bool) bsoncore.Document {
	if ordered, _ := r.ordered(); w.errors != nil && (ordered || r.txn != nil) {
		r.tried = w.failed + 1
	}
	b := bsoncore.NewDocumentBuilder().AppendInt32("n", int32(w.n))
	if r.concern.none { // not in a transaction
		return done(b)
	}
	r.appendMember(b)
	if r.failed = w.errors != nil; r.failed {
		b.AppendArray("writeErrors", w.errors.Build())
	}
	if len(w.retried) > 0 {
		list := bsoncore.NewArrayBuilder()
		for _, id := range w.retried {
			list.AppendInt32(id)
		}
		b.AppendArray("retriedStmtIds", list.Build())
	}
	if updates && w.upserted != nil { // a delete may find an upsert under its number
		b.AppendArray("upserted", w.upserted.Build())
	}
	if updates {
		b.AppendInt32("nModified", int32(w.modified))
	}
	return done(b)
}

// appendMember appends what a member of a replica set says of a write: who was elected when it was done, and when that was.
func (r *request) appendMember(b *bsoncore.DocumentBuilder) {
	if r.server.o.Standalone {
		return
	}
	last := r.server.store.LastTime()
	at, time := bsoncore.AppendDocumentStart(make([]byte, 0, opTimeBytes))
	time = bsoncore.AppendTimestampElement(time, "ts", last.T, last.I)
	time = bsoncore.AppendInt64Element(time, "t", 1)
	time, _ = bsoncore.AppendDocumentEnd(time, at) // fails only for a wrong start
	b.AppendObjectID("electionId", r.server.electionID()).AppendDocument("opTime", time)
}

// opTimeBytes is room for an opTime.
const opTimeBytes = 32
