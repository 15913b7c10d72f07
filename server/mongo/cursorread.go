package mongo

import (
	"context"
	"errors"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document"
)

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
	x := &cursor{lasting: r.lasting, ns: ns, src: src, ctx: ctx, cancel: cancel, txnNumber: -1, user: r.conn.auth.userDigest(), opener: r.conn.opener,
		waiting: &r.server.waiting, unhold: r.holdSnapshot(), owner: r.session}
	if r.txn != nil {
		x.txnNumber = r.txnNumber
	}
	if n := int64(len(r.body)); n > freeCommand {
		x.command = min(n, r.server.cursors.commands.total)
	}
	x.noTimeout, _ = r.flag("noCursorTimeout")
	if set != nil {
		set(x)
	}
	if size < 0 {
		size = defaultBatch
	}
	b := r.newBatch("firstBatch")
	b.whole = single
	end, err := x.read(r.ctx, size, b)
	if err != nil {
		return nil, errors.Join(err, x.close())
	}
	if end && !x.tailable && !x.changes || single {
		end = true
	} else if end = false; !x.tailable && !x.changes && int64(b.count) < size && !b.cut {
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
		x.opening = r.opening()
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
	if err := r.mayRead(x, r.db+"."+name); err != nil {
		return nil, errors.Join(err, r.server.cursors.unpin(x, false))
	}
	if err := r.server.fails.applyToGetMore(r, x); err != nil {
		return nil, errors.Join(err, r.server.cursors.unpin(x, false))
	}
	r.lasting = x.lasting
	b, end, err := r.limitedBatch(x, size, wait)
	if (err != nil || end) && r.ctx.Err() == nil && errors.Is(context.Cause(x.ctx), errKilled) { // its end may not be that of what it reads
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
func (r *request) mayRead(x *cursor, ns string) error {
	switch {
	case ns != x.ns:
		return document.NewError(codeUnauthorized, "Requested getMore on namespace '%s', but cursor belongs to a different namespace %s", ns, x.ns)
	case x.user != r.conn.auth.userDigest():
		return document.NewError(codeUnauthorized, "cursor id %d was not created by the authenticated user", x.id)
	case !x.opening.allowed(r):
		return document.NewError(codeUnauthorized, "not authorized for getMore with cursor id %d", x.id)
	case x.owner != nil && r.session == nil:
		return document.NewError(document.Code(50737), "Cannot run getMore on cursor %d, which was created in a session, without an lsid", x.id)
	case x.owner != nil && x.owner.id != r.session.id:
		return document.NewError(document.Code(50738), "Cannot run getMore on cursor %d, which was created in a session, in another one", x.id)
	case x.owner == nil && r.session != nil:
		return document.NewError(document.Code(50736), "Cannot run getMore on cursor %d, which was not created in a session, in a session", x.id)
	case x.txnNumber >= 0 && r.txn == nil:
		return document.NewError(document.Code(50740), "Cannot run getMore on cursor %d, which was created in transaction %d, without a txnNumber", x.id, x.txnNumber)
	case x.txnNumber < 0 && r.txn != nil: // it reads another moment than the transaction
		return document.NewError(document.Code(50739), "Cannot run getMore on cursor %d, which was not created in a transaction, in transaction %d", x.id, r.txnNumber)
	case x.txnNumber >= 0 && r.txnNumber != x.txnNumber:
		return document.NewError(document.Code(50741), "Cannot run getMore on cursor %d, which was created in transaction %d, in transaction %d", x.id, x.txnNumber, r.txnNumber)
	case r.has("maxTimeMS") && !(x.tailable && x.await) && !x.changes:
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
