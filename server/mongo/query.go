package mongo

import (
	"context"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document"
)

func queryCommands() []*command {
	return []*command{
		{name: "find", run: (*request).find, inTxn: true, stable: true, help: "finds documents",
			fields: []string{"filter", "sort", "projection", "hint", "skip", "limit", "batchSize", "singleBatch", "max", "min", "returnKey",
				"showRecordId", "tailable", "oplogReplay", "noCursorTimeout", "awaitData", "allowPartialResults", "collation", "allowDiskUse", "let"}},
		{name: "getMore", run: (*request).getMore, fields: []string{"collection", "batchSize", "term", "lastKnownCommittedOpTime"}, inTxn: true, stable: true, help: "reads on from a cursor"},
		{name: "killCursors", run: (*request).killCursors, fields: []string{"cursors"}, inTxn: true, stable: true, help: "closes cursors"},
		{name: "count", run: (*request).count, fields: []string{"query", "limit", "skip", "hint", "collation", "fields"}, stable: true, help: "counts documents"},
		{name: "distinct", run: (*request).distinct, fields: []string{"key", "query", "collation", "hint"}, inTxn: true, help: "finds the different values of a field"},
		{name: "aggregate", run: (*request).aggregate, inTxn: true, stable: true, write: true, help: "runs a pipeline",
			fields: []string{"pipeline", "explain", "cursor", "allowDiskUse", "bypassDocumentValidation", "collation", "hint", "let", "exchange"}},
		{name: "explain", run: (*request).explain, fields: []string{"verbosity"}, stable: true, help: "tells how a command is carried out"},
	}
}

// parseFind reads the options of a find command.
func (r *request) parseFind() (filter any, o *document.FindOptions, err error) {
	o = &document.FindOptions{Hint: r.raw("hint")}
	if filter, err = r.optional("filter"); err != nil {
		return nil, nil, err
	}
	for _, f := range []struct {
		name string
		to   *any
	}{{"sort", &o.Sort}, {"projection", &o.Projection}, {"collation", &o.Collation}, {"let", &o.Let}, {"min", &o.Min}, {"max", &o.Max}} {
		if *f.to, err = r.optional(f.name); err != nil {
			return nil, nil, err
		}
	}
	if o.Skip, err = r.size("skip"); err != nil {
		return nil, nil, err
	}
	if o.Limit, err = r.size("limit"); err != nil {
		return nil, nil, err
	}
	if o.ReturnKey, err = r.flag("returnKey"); err != nil {
		return nil, nil, err
	}
	if o.ShowRecordID, err = r.flag("showRecordId"); err != nil {
		return nil, nil, err
	}
	if r.has("allowDiskUse") {
		spill, err := r.flag("allowDiskUse")
		if err != nil {
			return nil, nil, err
		}
		o.NoSpill = !spill
	}
	return filter, o, nil
}

func (r *request) find() (bsoncore.Document, error) {
	c, err := r.collection()
	if err != nil {
		return nil, err
	}
	filter, o, err := r.parseFind()
	if err != nil {
		return nil, err
	}
	size, err := r.batchSize("batchSize", r.args)
	if err != nil {
		return nil, err
	}
	single, err := r.flag("singleBatch")
	if err != nil {
		return nil, err
	}
	if o.Limit < 0 { // as old drivers have it
		o.Limit, single = -o.Limit, true
	}
	tailable, err := r.flag("tailable")
	if err != nil {
		return nil, err
	}
	await, err := r.flag("awaitData")
	if err != nil {
		return nil, err
	}
	if await && !tailable {
		return nil, document.NewError(document.FailedToParse, "Cannot set 'awaitData' without also setting 'tailable'")
	}
	if err := checkTailable(tailable, single, o.Sort); err != nil {
		return nil, err
	}
	missing := false // there is no collection, so nothing to wait for
	open := func(ctx context.Context) (*document.Cursor, error) {
		if tailable {
			src, err := c.Tail(ctx, filter, o)
			if !errors.Is(err, document.NamespaceNotFound) {
				return src, err
			}
			if r.onView(c) != nil {
				return nil, document.NewError(document.Code(168), "Tailable cursors are not supported in aggregation.")
			}
			missing = true
		}
		return c.OpenFind(ctx, filter, o)
	}
	return r.firstBatch(r.db+"."+c.Name(), size, single, open, func(x *cursor) {
		x.tailable, x.await = tailable && !missing, await && !missing
		if !x.tailable {
			x.rest = o.Limit
		}
	})
}

// checkTailable refuses what goes against a cursor that waits at the end: an end, and any order but the natural one.
func checkTailable(tailable, single bool, sort any) error {
	if !tailable {
		return nil
	}
	if single {
		return document.NewError(document.BadValue, "cannot use tailable option with the 'singleBatch' option")
	}
	by, _ := sort.(bson.Raw)
	elements, err := by.Elements()
	if err != nil || len(elements) == 0 {
		return nil
	}
	natural, _ := asInt64(coreValue(elements[0].Value()))
	if len(elements) > 1 || elements[0].Key() != "$natural" || natural != 1 {
		return document.NewError(document.BadValue, "cannot use tailable option with a sort other than {$natural: 1}")
	}
	return nil
}

// batchSize returns how many documents a batch takes; -1 when the command does not say.
func (r *request) batchSize(field string, args map[string]bsoncore.Value) (int64, error) {
	v, ok := args[field]
	if !ok || v.Type == bsoncore.TypeNull {
		return -1, nil
	}
	n, ok := asInt64(v)
	if !ok {
		return 0, wrongType(r.name+"."+field, v, "long")
	}
	if n < 0 {
		return 0, document.NewError(document.Code(51024), "BSON field 'batchSize' value must be >= 0, actual value '%d'", n)
	}
	return n, nil
}

// cursorSize is batchSize of the cursor option of a command.
func (r *request) cursorSize(spec bsoncore.Document) (int64, error) {
	args := argsOf(spec)
	for name := range args {
		if name != "batchSize" {
			return 0, document.NewError(codeUnknownField, "BSON field 'cursor.%s' is an unknown field.", name)
		}
	}
	return r.batchSize("batchSize", args)
}

func (r *request) count() (bsoncore.Document, error) {
	c, err := r.collection()
	if err != nil {
		return nil, err
	}
	filter, err := r.optional("query")
	if err != nil {
		return nil, err
	}
	o := &document.FindOptions{Hint: r.raw("hint")}
	if o.Collation, err = r.optional("collation"); err != nil {
		return nil, err
	}
	if o.Skip, err = r.size("skip"); err != nil {
		return nil, err
	}
	if limit, given := r.args["limit"]; given {
		var isNumber bool
		if o.Limit, isNumber = asInt64(limit); !isNumber {
			return nil, document.NewError(document.BadValue, "limit value is not a valid number")
		}
		if limit.Type == bsoncore.TypeDouble && limit.Double() != float64(o.Limit) {
			return nil, document.NewError(document.FailedToParse, "Expected an integer: limit: %s", limit)
		}
	}
	o.Limit = max(o.Limit, -o.Limit)
	n, err := c.Count(r.ctx, filter, o)
	if err != nil {
		return nil, err
	}
	b := bsoncore.NewDocumentBuilder()
	if n == int64(int32(n)) {
		b.AppendInt32("n", int32(n))
	} else {
		b.AppendInt64("n", n)
	}
	return done(b), nil
}

// codeDistinctTooBig is of values that are more than may be gathered.
const codeDistinctTooBig = document.Code(17217)

// distinct gathers the values of most calls at once. Only where they are many it begins again, with the room that as many may take.
func (r *request) distinct() (bsoncore.Document, error) {
	c, err := r.collection()
	if err != nil {
		return nil, err
	}
	key, err := r.text("key")
	if err != nil {
		return nil, err
	}
	filter, err := r.optional("query")
	if err != nil {
		return nil, err
	}
	o := &document.FindOptions{Hint: r.raw("hint"), MaxBytes: freeAnswer}
	if o.Collation, err = r.optional("collation"); err != nil {
		return nil, err
	}
	values, err := c.Distinct(r.ctx, key, filter, o)
	if document.CodeOf(err) == codeDistinctTooBig { // for what needs no room
		if err := r.conn.claim(r.ctx, maxBatchBytes); err != nil {
			return nil, err
		}
		o.MaxBytes = maxBatchBytes
		values, err = c.Distinct(r.ctx, key, filter, o)
	}
	if err != nil {
		return nil, err
	}
	list := bsoncore.NewArrayBuilder()
	for _, v := range values {
		list.AppendValue(coreValue(v))
	}
	b := bsoncore.NewDocumentBuilder().AppendArray("values", list.Build())
	r.appendAtClusterTime(b)
	return done(b), nil
}

// argsOf returns the fields of a document by their names.
func argsOf(doc bsoncore.Document) map[string]bsoncore.Value {
	args := map[string]bsoncore.Value{}
	elements, err := doc.Elements()
	if err != nil {
		return args
	}
	for _, e := range elements {
		args[e.Key()] = e.Value()
	}
	return args
}
