package mongo

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document"
)

const codeIncompleteHistory = document.Code(217)

// checkRetryable refuses a txnNumber where nothing makes use of it.
func (r *request) checkRetryable() error {
	switch r.command.name {
	case "insert", "update", "delete", "findAndModify":
		return nil
	}
	return document.NewError(document.Code(50768), "txnNumber may only be provided for multi-document transactions and retryable write commands. autocommit:false was not provided, and %s is not a retryable write command.", r.name)
}

// retryableWrite runs a command that its client sends again when it does not hear of its outcome. The session is locked.
func (r *request) retryableWrite(run func() (bsoncore.Document, error)) (bsoncore.Document, error) {
	s := r.session
	if r.txnNumber < s.number {
		return nil, document.NewError(document.Code(225), "Retryable write with txnNumber %d is prohibited on session because a newer transaction %d has already started on this session.", r.txnNumber, s.number)
	}
	if x := s.txn; x != nil && r.txnNumber == x.number {
		return nil, document.NewError(codeIncompleteHistory, "Cannot retry a retryable write that has been converted into a transaction")
	} else if x != nil && x.state == txnRunning {
		x.abort()
	}
	s.number = max(s.number, r.txnNumber)
	reply, err := run()
	if err == nil && r.unheard {
		return nil, errDropConnection
	}
	return reply, err
}

// statementNumbers is what the statements of a command are known by: their place in it, from a first number on, or what the client says.
type statementNumbers struct {
	first int32
	given []int32
}

// of returns the number of statement i.
func (s *statementNumbers) of(i int32) int32 {
	if s.given != nil {
		return s.given[i]
	}
	return s.first + i
}

// numberStatements reads the numbers of n statements.
func (r *request) numberStatements(n int) error {
	r.statement = statementNumbers{}
	if r.has("stmtIds") {
		return r.readStatementNumbers(n)
	}
	if !r.retryable {
		return nil
	}
	first, err := r.number("stmtId")
	r.statement.first = int32(first)
	return err
}

// readStatementNumbers reads the numbers that a client gives to n statements, which have to make sense where they are of no use, too.
func (r *request) readStatementNumbers(n int) error {
	if r.has("stmtId") {
		return document.NewError(codeInvalidOptions, "May not specify both stmtId and stmtIds in write command.")
	}
	array, _ := r.args["stmtIds"].ArrayOK()
	values, err := array.Values()
	if err != nil {
		return document.NewError(document.FailedToParse, "stmtIds: %v", err)
	}
	if len(values) != n {
		return document.NewError(codeInvalidLength, "Number of statement ids must match the number of batch entries. Got %d statement ids but %d operations.", len(values), n)
	}
	for _, v := range values {
		id, isInt := v.Int32OK()
		if !isInt {
			return wrongType(r.name+".stmtIds", v, "int")
		}
		r.statement.given = append(r.statement.given, id)
	}
	return nil
}

// statementContext returns the context for a write, which says what its statements are known by if it may be sent again.
func (r *request) statementContext(statements ...int32) context.Context {
	if !r.retryable {
		return r.ctx
	}
	ids := make([]int32, len(statements))
	for i, s := range statements {
		ids[i] = r.statement.of(s)
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
	o, err := r.server.store.Outcome(r.session.id, r.txnNumber, r.statement.of(int32(i)))
	if o == nil || err != nil {
		return nil, err
	}
	return &outcome{o}, nil
}

// repeated is doneBefore for a command that answers which of its statements were carried out before.
func (r *request) repeated(i int, w *writeResult) (*outcome, error) {
	before, err := r.doneBefore(i)
	if before != nil {
		w.retried = append(w.retried, r.statement.of(int32(i)))
	}
	return before, err
}

// update returns the outcome as that of an update.
func (o *outcome) update() *document.UpdateResult {
	if o.UpsertedID.Type != 0 {
		return &document.UpdateResult{UpsertedID: o.UpsertedID}
	}
	return &document.UpdateResult{Matched: o.N, Modified: o.Modified}
}

// fits refuses to answer a findAndModify with the outcome of another command, which its client has sent under the same number: it has no
// document to return, or tells of an upsert that was not asked for.
func (o *outcome) fits(want *document.ModifyOptions) error {
	upserted := o.UpsertedID.Type != 0
	code := document.Code(0)
	switch {
	case upserted && !want.Upsert:
		code = 40608
	case upserted || o.Document != nil:
		return nil
	case want.Remove:
		code = 40607
	case want.New:
		code = 40611
	default:
		code = 40612
	}
	return document.NewError(code, "findAndModify retry request is not compatible with previous write in the transaction")
}

// findAndModify returns the outcome as the answer of findAndModify, which says that it is about the statement once more.
func (o *outcome) findAndModify(removed bool, statement int32) bsoncore.Document {
	return done(modified(removed, o.Document, o.update()).AppendInt32("retriedStmtId", statement))
}

// notYetDone returns the documents of an insert that were not stored before, with the numbers of their statements.
func (r *request) notYetDone(docs []bsoncore.Document, w *writeResult) ([]bson.Raw, []int32, error) {
	pending, numbers := make([]bson.Raw, 0, len(docs)), make([]int32, 0, len(docs))
	for i, doc := range docs {
		before, err := r.repeated(i, w)
		if err != nil {
			return nil, nil, err
		}
		if before != nil {
			w.n++
			continue
		}
		pending, numbers = append(pending, bson.Raw(doc)), append(numbers, int32(i))
	}
	return pending, numbers, nil
}
