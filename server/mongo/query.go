package mongo

import (
	"context"
	"errors"
	"time"

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
	natural, _ := elements[0].Value().AsInt64OK()
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

// firstBatch opens a cursor, answers with its first batch, and keeps it if there is more.
func (r *request) firstBatch(ns string, size int64, single bool, open func(ctx context.Context) (*document.Cursor, error), set func(x *cursor)) (bsoncore.Document, error) {
	ctx, cancel := r.ctx, context.CancelCauseFunc(func(error) {})
	if !single {
		// The cursor outlives this command, so it reads with a context of its own; until the answer is made that of the command
		// ends it too.
		ctx, cancel = context.WithCancelCause(r.server.work)
		defer context.AfterFunc(r.ctx, func() { cancel(context.Cause(r.ctx)) })()
	}
	src, err := open(ctx)
	if err != nil {
		cancel(nil)
		return nil, err
	}
	begun := r.server.clock.Now()
	r.lasting = r.lasting || r.readsLasting() || ns == oplogDatabase+"."+oplogCollection // which others copy
	x := &cursor{lasting: r.lasting, ns: ns, src: src, ctx: ctx, cancel: cancel, txnNumber: -1, user: r.conn.auth.userDigest(), quota: r.conn.cursors}
	if r.session != nil {
		x.session = r.session.id
	}
	if r.txn != nil {
		x.txnNumber = r.txnNumber
	}
	x.noTimeout, _ = r.flag("noCursorTimeout")
	if set != nil {
		set(x)
	}
	if size < 0 {
		size = defaultBatch
	}
	b := r.newBatch("firstBatch")
	if single {
		b.conn = nil
	}
	end, err := x.read(r.ctx, size, b)
	if err != nil {
		return nil, errors.Join(err, x.close())
	}
	if end && !x.tailable && !x.changes || single {
		end = true
	} else if end = false; !x.tailable && !x.changes && int64(b.count) < size && x.held == nil {
		end = true
	}
	if end {
		if err := x.close(); err != nil {
			return nil, err
		}
	} else {
		if ms, err := r.number("maxTimeMS"); err == nil && ms > 0 && !x.tailable && !x.changes {
			x.limited, x.left = true, time.Duration(ms)*time.Millisecond-r.server.clock.Now().Sub(begun)
		}
		if err := r.server.cursors.add(x); err != nil {
			return nil, errors.Join(err, x.close())
		}
	}
	return r.cursorReply(x, x.id, b)
}

// defaultAwait is how long a getMore on a tailable cursor waits for more, when it does not say.
const defaultAwait = time.Second

func (r *request) getMore() (bsoncore.Document, error) {
	id, okID := r.target.Int64OK()
	if !okID {
		return nil, wrongType("getMore.getMore", r.target, "long")
	}
	name, err := r.text("collection")
	if err != nil {
		return nil, err
	}
	if name == "" {
		return nil, document.NewError(codeInvalidNamespace, "Collection names cannot be empty")
	}
	size, err := r.batchSize("batchSize", r.args)
	if err != nil {
		return nil, err
	}
	if size == 0 {
		size = -1
	}
	wait, err := r.number("maxTimeMS")
	if err != nil {
		return nil, err
	}
	x, err := r.server.cursors.pin(id)
	if err != nil {
		return nil, err
	}
	if err := r.mayRead(x, r.db+"."+name, wait); err != nil {
		return nil, errors.Join(err, r.server.cursors.unpin(x, false))
	}
	if err := r.server.fails.applyToGetMore(r, x); err != nil {
		return nil, errors.Join(err, r.server.cursors.unpin(x, false))
	}
	r.lasting = x.lasting
	b, end, err := r.limitedBatch(x, size, wait)
	if err != nil && r.ctx.Err() == nil && errors.Is(context.Cause(x.ctx), errKilled) {
		err = document.NewError(codeCursorKilled, "operation was interrupted because the cursor was killed")
	}
	if err != nil {
		return nil, errors.Join(err, r.server.cursors.unpin(x, true))
	}
	if end {
		id = 0
	}
	reply, err := r.cursorReply(x, id, b)
	r.more = !end && (b.count > 0 || x.await || x.changes)
	return reply, errors.Join(err, r.server.cursors.unpin(x, end))
}

// mayRead checks that a getMore is made by whom the cursor belongs to.
func (r *request) mayRead(x *cursor, ns string, wait int64) error {
	session := ""
	if r.session != nil {
		session = r.session.id
	}
	switch {
	case ns != x.ns:
		return document.NewError(codeUnauthorized, "Requested getMore on namespace '%s', but cursor belongs to a different namespace %s", ns, x.ns)
	case x.user != r.conn.auth.userDigest():
		return document.NewError(codeUnauthorized, "cursor id %d was not created by the authenticated user", x.id)
	case x.session != "" && session == "":
		return document.NewError(document.Code(50737), "Cannot run getMore on cursor %d, which was created in a session, without an lsid", x.id)
	case x.session != session && x.session != "":
		return document.NewError(document.Code(50738), "Cannot run getMore on cursor %d, which was created in a session, in another one", x.id)
	case x.session == "" && session != "":
		return document.NewError(document.Code(50736), "Cannot run getMore on cursor %d, which was not created in a session, in a session", x.id)
	case x.txnNumber >= 0 && (r.txn == nil || r.txnNumber != x.txnNumber):
		return document.NewError(document.Code(50741), "Cannot run getMore on cursor %d, which was created in a transaction, outside of it", x.id)
	case wait > 0 && !(x.tailable && x.await) && !x.changes:
		return document.NewError(document.BadValue, "cannot set maxTimeMS on getMore command for a non-awaitData cursor")
	}
	return nil
}

// limitedBatch reads a batch within what is left of the time that the command which opened the cursor was given for all of them.
func (r *request) limitedBatch(x *cursor, size, wait int64) (*batch, bool, error) {
	if !x.limited {
		return r.nextBatch(x, size, wait)
	}
	stop, err := r.endAfter(x.left)
	if err != nil {
		return nil, false, err
	}
	defer stop()
	begun := r.server.clock.Now()
	defer func() { x.left -= r.server.clock.Now().Sub(begun) }()
	return r.nextBatch(x, size, wait)
}

// nextBatch reads a batch; on a cursor that does not end it waits for the first document.
func (r *request) nextBatch(x *cursor, size, wait int64) (*batch, bool, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	unlink := context.AfterFunc(r.ctx, func() { x.cancelRead(r) })
	defer unlink()
	b := r.newBatch("nextBatch")
	end, err := x.read(r.ctx, size, b)
	if err != nil || b.count > 0 || end || !x.await && !x.changes {
		return b, end, err
	}
	limit := defaultAwait
	if wait > 0 {
		limit = time.Duration(wait) * time.Millisecond
	}
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	defer context.AfterFunc(x.ctx, cancel)()
	defer context.AfterFunc(r.server.accepting, cancel)() // a shutdown does not wait
	timer := r.server.clock.NewTimer(limit)
	defer timer.Stop()
	go func() {
		select {
		case <-timer.C():
			cancel()
		case <-ctx.Done():
		}
	}()
	for b.count == 0 && !end {
		if err := x.src.Wait(ctx); err != nil {
			if ctx.Err() != nil && r.ctx.Err() == nil && x.ctx.Err() == nil {
				return b, false, nil // the time is up; the cursor stays
			}
			return nil, true, err
		}
		if end, err = x.read(r.ctx, size, b); err != nil {
			return nil, true, err
		}
	}
	return b, end, nil
}

// cancelRead ends what a cursor is doing when the command that reads from it is killed or out of time.
func (x *cursor) cancelRead(r *request) { x.cancel(context.Cause(r.ctx)) }

func (r *request) killCursors() (bsoncore.Document, error) {
	if _, err := r.collectionName(); err != nil {
		return nil, err
	}
	array, isArray := r.args["cursors"].ArrayOK()
	if !isArray {
		return nil, wrongType("killCursors.cursors", r.args["cursors"], "array")
	}
	values, err := array.Values()
	if err != nil {
		return nil, document.NewError(document.FailedToParse, "killCursors.cursors: %v", err)
	}
	killed, missing := bsoncore.NewArrayBuilder(), bsoncore.NewArrayBuilder()
	for _, v := range values {
		id, isID := v.Int64OK()
		if !isID {
			return nil, wrongType("killCursors.cursors", v, "long")
		}
		if r.server.cursors.kill(id) {
			killed.AppendInt64(id)
		} else {
			missing.AppendInt64(id)
		}
	}
	none := bsoncore.NewArrayBuilder().Build()
	return done(bsoncore.NewDocumentBuilder().AppendArray("cursorsKilled", killed.Build()).AppendArray("cursorsNotFound", missing.Build()).
		AppendArray("cursorsAlive", none).AppendArray("cursorsUnknown", none)), nil
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
	o := &document.FindOptions{Hint: r.raw("hint"), MaxBytes: maxBatchBytes}
	if o.Collation, err = r.optional("collation"); err != nil {
		return nil, err
	}
	values, err := c.Distinct(r.ctx, key, filter, o)
	if err != nil {
		return nil, err
	}
	list := bsoncore.NewArrayBuilder()
	for _, v := range values {
		list.AppendValue(bsoncore.Value{Type: bsoncore.Type(v.Type), Data: v.Value})
	}
	b := bsoncore.NewDocumentBuilder().AppendArray("values", list.Build())
	r.appendAtClusterTime(b)
	return done(b), nil
}

// pipeline returns the stages of an aggregate command.
func (r *request) pipeline() (bson.RawArray, error) {
	v, given := r.args["pipeline"]
	if !given {
		return nil, document.NewError(codeMissingField, "BSON field 'aggregate.pipeline' is missing but a required field")
	}
	array, isArray := v.ArrayOK()
	if !isArray {
		return nil, document.NewError(document.TypeMismatch, "'pipeline' option must be specified as an array")
	}
	return bson.RawArray(array), nil
}

func (r *request) aggregate() (bsoncore.Document, error) {
	stages, err := r.pipeline()
	if err != nil {
		return nil, err
	}
	o := &document.AggregateOptions{Hint: r.raw("hint"), Special: r.specialStage, Host: r.server.o.Address, Usage: r.server.stats.latencies}
	if o.Collation, err = r.optional("collation"); err != nil {
		return nil, err
	}
	if o.Let, err = r.optional("let"); err != nil {
		return nil, err
	}
	if o.SkipValidation, err = r.flag("bypassDocumentValidation"); err != nil {
		return nil, err
	}
	if r.has("allowDiskUse") {
		spill, err := r.flag("allowDiskUse")
		if err != nil {
			return nil, err
		}
		o.NoSpill = !spill
	}
	name, whole := r.target.StringValueOK()
	if one, isNumber := asInt64(r.target); !whole && (!isNumber || one != 1 || r.target.Type == bsoncore.TypeDouble && r.target.Double() != 1) {
		return nil, r.nameless()
	}
	if explain, err := r.flag("explain"); err != nil {
		return nil, err
	} else if explain {
		return r.explainAggregate(name, stages, o, "queryPlanner")
	}
	spec, err := r.document("cursor")
	if err != nil {
		return nil, err
	}
	if spec == nil {
		return nil, document.NewError(document.FailedToParse, "The 'cursor' option is required, except for aggregate with the explain argument")
	}
	size, err := r.cursorSize(spec)
	if err != nil {
		return nil, err
	}
	if level, _ := r.readConcern.Lookup("level").StringValueOK(); level == "linearizable" && writes(stages) {
		return nil, document.NewError(codeInvalidOptions, "$out and $merge cannot be used with a 'linearizable' read concern")
	}
	changes := startsWith(stages, "$changeStream")
	if level, given := r.readConcern.Lookup("level").StringValueOK(); changes && given && level != "majority" {
		return nil, document.NewError(codeInvalidOptions, "$changeStream cannot run with a readConcern other than 'majority'. Current readConcern: { level: \"%s\" }", level)
	}
	for _, stage := range []string{"$changeStream", "$collStats", "$indexStats", "$planCacheStats", "$currentOp", "$listSessions", "$listLocalSessions"} {
		if r.txn != nil && startsWith(stages, stage) {
			return nil, document.NewError(document.Code(263), "%s cannot be used in a transaction", stage)
		}
	}
	if changes && r.server.o.Standalone {
		return nil, document.NewError(document.Code(40573), "The $changeStream stage is only supported on replica sets")
	}
	ns := r.db + "." + name
	if !whole {
		ns = r.db + ".$cmd.aggregate"
	}
	open := func(ctx context.Context) (*document.Cursor, error) {
		if whole {
			return r.lookup(name).OpenAggregate(ctx, stages, o)
		}
		return r.server.store.Database(r.db).OpenAggregate(ctx, stages, o)
	}
	r.lasting = changes
	if writes(stages) {
		r.lasting, open = true, r.writingOnce(open)
	}
	return r.firstBatch(ns, size, false, open, func(x *cursor) { x.changes = changes })
}

// writingOnce is open, for a pipeline that writes while it is opened, with one sync for all that it writes.
func (r *request) writingOnce(open func(ctx context.Context) (*document.Cursor, error)) func(ctx context.Context) (*document.Cursor, error) {
	const many = 2 // nobody knows how many
	return func(ctx context.Context) (src *document.Cursor, err error) {
		err = r.server.store.SyncOnce(ctx, many, func(ctx context.Context) error {
			src, err = open(ctx)
			return err
		})
		return src, err
	}
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

// writes reports whether a pipeline's last stage is $out or $merge.
func writes(stages bson.RawArray) bool {
	values, err := stages.Values()
	if err != nil || len(values) == 0 {
		return false
	}
	doc, isDoc := values[len(values)-1].DocumentOK()
	if !isDoc {
		return false
	}
	e, err := doc.IndexErr(0)
	return err == nil && (e.Key() == "$out" || e.Key() == "$merge")
}

// startsWith reports whether a pipeline's first stage has a name.
func startsWith(stages bson.RawArray, name string) bool {
	first, err := stages.IndexErr(0)
	if err != nil {
		return false
	}
	doc, isDoc := first.DocumentOK()
	if !isDoc {
		return false
	}
	e, err := doc.IndexErr(0)
	return err == nil && e.Key() == name
}
