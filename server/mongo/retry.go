package mongo

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document"
)

// retryableWrite runs a command that its client sends again when it does not hear of its outcome. The session is locked.
func (r *request) retryableWrite(run func() (bsoncore.Document, error)) (bsoncore.Document, error) {
	s := r.session
	if r.txnNumber < s.number {
		return nil, document.NewError(document.Code(225), "Retryable write with txnNumber %d is prohibited on session because a newer transaction %d has already started on this session.", r.txnNumber, s.number)
	}
	if x := s.txn; x != nil && x.state == txnRunning && r.txnNumber > s.number {
		x.abort()
	}
	s.number = max(s.number, r.txnNumber)
	reply, err := run()
	if err == nil && r.unheard {
		return nil, errDropConnection
	}
	return reply, err
}

// statementContext returns the context for a write, which says what it is known by if it may be sent again.
func (r *request) statementContext(ids ...int32) context.Context {
	if !r.retryable {
		return r.ctx
	}
	return document.WithStatements(r.ctx, r.session.id, r.txnNumber, ids...)
}

// outcome is what a statement did when it was carried out before.
type outcome struct{ *document.Outcome }

// doneBefore returns the outcome of statement i if it was carried out before; nil if it was not.
func (r *request) doneBefore(i int) (*outcome, error) {
	if !r.retryable {
		return nil, nil
	}
	o, err := r.server.store.Outcome(r.session.id, r.txnNumber, int32(i))
	if o == nil || err != nil {
		return nil, err
	}
	return &outcome{o}, nil
}

// update returns the outcome as that of an update.
func (o *outcome) update() *document.UpdateResult {
	if o.UpsertedID.Type != 0 {
		return &document.UpdateResult{UpsertedID: o.UpsertedID}
	}
	return &document.UpdateResult{Matched: o.N, Modified: o.Modified}
}

// findAndModify returns the outcome as the answer of findAndModify, which says that it is about statement 0 once more.
func (o *outcome) findAndModify(removed bool) bsoncore.Document {
	return done(modified(removed, o.Document, o.update()).AppendInt32("retriedStmtId", 0))
}

// notYetDone returns the documents of an insert that were not stored before, with the numbers of their statements.
func (r *request) notYetDone(docs []bsoncore.Document, w *writeResult) ([]bson.Raw, []int32, error) {
	pending, numbers := make([]bson.Raw, 0, len(docs)), make([]int32, 0, len(docs))
	for i, doc := range docs {
		before, err := r.doneBefore(i)
		if err != nil {
			return nil, nil, err
		}
		if before != nil {
			w.retried = append(w.retried, int32(i))
			w.n++
			continue
		}
		pending, numbers = append(pending, bson.Raw(doc)), append(numbers, int32(i))
	}
	return pending, numbers, nil
}
