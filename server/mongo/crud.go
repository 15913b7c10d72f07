package mongo

import (
	"errors"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/server/wire"
)

// maxWriteBatch is how many statements one command may have.
const maxWriteBatch = wire.MaxDocuments

func crudCommands() []*command {
	return []*command{
		{name: "insert", run: (*request).insert, write: true, inTxn: true, stable: true, help: "inserts documents",
			fields: []string{"documents", "ordered", "bypassDocumentValidation", "stmtId", "stmtIds"}},
		{name: "update", run: (*request).update, write: true, inTxn: true, stable: true, help: "updates documents",
			fields: []string{"updates", "ordered", "bypassDocumentValidation", "let", "stmtId", "stmtIds"}},
		{name: "delete", run: (*request).delete, write: true, inTxn: true, stable: true, help: "deletes documents",
			fields: []string{"deletes", "ordered", "bypassDocumentValidation", "let", "stmtId", "stmtIds"}},
		{name: "findAndModify", aliases: []string{"findandmodify"}, run: (*request).findAndModify, write: true, inTxn: true, stable: true, help: "updates or deletes a document and returns it",
			fields: []string{"query", "sort", "remove", "update", "new", "fields", "upsert", "bypassDocumentValidation", "collation",
				"arrayFilters", "hint", "let", "stmtId"}},
	}
}

func itoa(n int) string { return strconv.Itoa(n) }

// ordered returns whether the statements go on after one that failed: not, by default.
func (r *request) ordered() (bool, error) {
	if !r.has("ordered") {
		return true, nil
	}
	return r.flag("ordered")
}

// batch returns what a write command has in its field of documents, and checks how many they are.
func (r *request) batch(field string) ([]bsoncore.Document, bool, error) {
	list, err := r.documents(field)
	if err != nil {
		return nil, false, err
	}
	if len(list) == 0 || len(list) > maxWriteBatch {
		return nil, false, wrongBatchSize(len(list))
	}
	if err := r.numberStatements(len(list)); err != nil {
		return nil, false, err
	}
	r.tried = len(list)
	ordered, err := r.ordered()
	return list, ordered || r.txn != nil, err // a transaction has ended with the first error
}

// wrongBatchSize is the error of a command with none, or with more than there may be.
func wrongBatchSize(n int) error {
	return document.NewError(codeInvalidLength, "Write batch sizes must be between 1 and %d. Got %d operations.", maxWriteBatch, n)
}

// codeUnknownStage is of a pipeline that no server knows, in an update as elsewhere.
const codeUnknownStage = document.Code(40324)

// fatal reports whether an error is not that of one statement, but ends the whole command.
func (r *request) fatal(err error) bool {
	if r.txn != nil && isTransient(err) {
		return true
	}
	code := document.CodeOf(err)
	return code == 0 || code == codeUnknownStage || r.ctx.Err() != nil
}

func (r *request) insert() (bsoncore.Document, error) {
	c, err := r.collection()
	if err != nil {
		return nil, err
	}
	docs, ordered, err := r.batch("documents")
	if err != nil {
		return nil, err
	}
	skip, err := r.flag("bypassDocumentValidation")
	if err != nil {
		return nil, err
	}
	var w writeResult
	pending, numbers, err := r.notYetDone(docs, &w)
	if err != nil {
		return nil, err
	}
	if len(pending) == 0 {
		return r.written(&w, false), nil
	}
	o := &document.InsertOptions{Ordered: ordered, Unordered: !ordered, SkipValidation: skip}
	for _, start := range writeGroups(pending) {
		if failure := r.server.fails.beforeWrite(r); failure != nil {
			if err := r.insertUntil(c, pending[:start], numbers[:start], o, &w); err != nil || errors.Is(failure, errDropConnection) {
				return nil, errors.Join(err, failure)
			}
			w.fail(int(numbers[start]), failure)
			return r.written(&w, false), nil
		}
	}
	n, err := r.insertMany(c, pending, numbers, o)
	r.synced = err == nil && len(w.retried) == 0
	if w.n += int64(n); n > 0 {
		r.server.fails.afterWrite(r)
	}
	var list document.WriteErrors
	switch {
	case err == nil:
	case document.CodeOf(err) == codeNotOnView: // of each statement, as MongoDB has it
		for _, i := range numbers {
			if w.fail(int(i), err); ordered {
				break
			}
		}
	case errors.As(err, &list) && (r.txn != nil && isTransient(list[0].Err) || document.CodeOf(list[0].Err) == codeInvalidBSON):
		return nil, list[0].Err // of bytes that are no BSON: nothing was stored
	case errors.As(err, &list):
		for _, e := range list {
			w.fail(int(numbers[e.Index]), r.explainError(e.Err))
		}
	default:
		return nil, err
	}
	return r.written(&w, false), nil
}

// insertUntil inserts the documents in front of one that a fail point strikes.
func (r *request) insertUntil(c *document.Collection, docs []bson.Raw, numbers []int32, o *document.InsertOptions, w *writeResult) error {
	if len(docs) == 0 {
		return nil
	}
	n, err := r.insertMany(c, docs, numbers, o)
	w.n += int64(n)
	return err
}

// insertMany inserts documents, and waits for one sync where they are not inserted with one commit.
func (r *request) insertMany(c *document.Collection, docs []bson.Raw, numbers []int32, o *document.InsertOptions) (n int, err error) {
	if len(docs) == 1 {
		return c.InsertMany(r.statementContext(numbers...), docs, o)
	}
	err = r.syncOnce(1, func() (err error) {
		n, err = c.InsertMany(r.statementContext(numbers...), docs, o)
		return err
	})
	return n, err
}

// groupBytes is how many bytes of documents MongoDB inserts at once. Fail points count what is written at once.
const groupBytes = 256 << 10

// writeGroups returns where the groups of documents that are inserted at once begin.
func writeGroups(docs []bson.Raw) []int {
	var starts []int
	size := groupBytes
	for i, doc := range docs {
		if size >= groupBytes {
			starts, size = append(starts, i), 0
		}
		size += len(doc)
	}
	return starts
}

// docsChecked reports whether the documents are part of the body, which was checked as a whole.
func (r *request) docsChecked() bool { return r.docs == nil }

func (r *request) update() (bsoncore.Document, error) {
	return r.change("updates", (*request).parseUpdate)
}

func (r *request) delete() (bsoncore.Document, error) {
	return r.change("deletes", (*request).parseDelete)
}

// change carries out an update or delete command, whose statements are read by parse.
func (r *request) change(field string, parse parseStatement) (bsoncore.Document, error) {
	c, err := r.collection()
	if err != nil {
		return nil, err
	}
	list, ordered, err := r.statements(field, parse)
	if err != nil {
		return nil, err
	}
	var w writeResult
	if err := r.carryOut(c, list, ordered, &w); err != nil {
		return nil, err
	}
	return r.written(&w, field == "updates"), nil
}

func (r *request) findAndModify() (bsoncore.Document, error) {
	c, err := r.collection()
	if err != nil {
		return nil, err
	}
	o, filter, err := r.parseFindAndModify()
	if err != nil {
		return nil, err
	}
	if err := r.numberStatements(1); err != nil {
		return nil, err
	}
	if before, err := r.doneBefore(0); err != nil {
		return nil, err
	} else if before != nil {
		if err := before.fits(o); err != nil {
			return nil, err
		}
		return before.findAndModify(o.Remove, r.statement.of(0)), nil
	}
	if err := r.server.fails.beforeWrite(r); err != nil {
		return nil, err
	}
	doc, result, err := c.FindAndModify(r.statementContext(0), filter, r.raw("update"), o)
	if err != nil && !errors.Is(err, document.ErrNotFound) {
		return nil, err
	}
	r.synced = result.Modified > 0 || result.UpsertedID.Type != 0
	if result.Matched > 0 || result.UpsertedID.Type != 0 {
		r.server.fails.afterWrite(r)
	}
	return done(modified(o.Remove, doc, result)), nil
}

func (r *request) parseFindAndModify() (o *document.ModifyOptions, filter any, err error) {
	o = &document.ModifyOptions{ArrayFilters: r.raw("arrayFilters"), Hint: r.raw("hint")}
	for _, f := range []struct {
		name string
		to   *bool
	}{{"remove", &o.Remove}, {"new", &o.New}, {"upsert", &o.Upsert}, {"bypassDocumentValidation", &o.SkipValidation}} {
		if *f.to, err = r.flag(f.name); err != nil {
			return nil, nil, err
		}
	}
	for _, f := range []struct {
		name string
		to   *any
	}{{"query", &filter}, {"sort", &o.Sort}, {"fields", &o.Projection}, {"collation", &o.Collation}, {"let", &o.Let}} {
		if *f.to, err = r.optional(f.name); err != nil {
			return nil, nil, err
		}
	}
	switch {
	case o.Remove && r.has("update"):
		err = document.NewError(document.FailedToParse, "Cannot specify both an update and remove=true")
	case o.Remove && o.New:
		err = document.NewError(document.FailedToParse, "Cannot specify both new=true and remove=true; 'remove' always returns the deleted document")
	case o.Remove && o.Upsert:
		err = document.NewError(document.FailedToParse, "Cannot specify both upsert=true and remove=true")
	case o.Remove && r.has("arrayFilters"):
		err = document.NewError(document.FailedToParse, "Cannot specify arrayFilters and remove=true")
	case !o.Remove && !r.has("update"):
		err = document.NewError(document.FailedToParse, "Either an update or remove=true must be specified")
	}
	return o, filter, err
}

// modified begins the answer of findAndModify.
func modified(removed bool, doc bson.Raw, result *document.UpdateResult) *bsoncore.DocumentBuilder {
	last := bsoncore.NewDocumentBuilder()
	n := int32(result.Matched)
	if result.UpsertedID.Type != 0 {
		n = 1
	}
	last.AppendInt32("n", n)
	if !removed {
		last.AppendBoolean("updatedExisting", result.Matched > 0)
		if result.UpsertedID.Type != 0 {
			last.AppendValue("upserted", coreValue(result.UpsertedID))
		}
	}
	b := bsoncore.NewDocumentBuilder().AppendDocument("lastErrorObject", last.Build())
	if doc == nil {
		b.AppendNull("value")
	} else {
		b.AppendDocument("value", bsoncore.Document(doc))
	}
	return b
}
