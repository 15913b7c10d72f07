package mongo

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document"
)

// transaction is a multi-document transaction.
type transaction struct {
	number  int64
	tx      *document.Tx // nil when it has ended
	started time.Time
	state   txnState
	session *session
	server  *Server
}

// txnState is how far a transaction has come.
type txnState uint8

const (
	txnRunning txnState = iota
	txnCommitted
	txnAborted
)

// transactionCounts is what the server counts of transactions: how many have been started, and what became of them.
type transactionCounts struct {
	open, active                atomic.Int64 // active: a command of theirs runs
	started, committed, aborted atomic.Int64
}

func (x *transaction) abort() {
	x.tx.Abort()
	x.leave(txnAborted)
}

// leave notes how the transaction has ended, and closes its cursors: nobody can read from them any more. What its session goes on knowing is
// that alone: the collections that the transaction has seen, and what it has told change streams, would stay in memory as long as the session.
func (x *transaction) leave(state txnState) {
	if x.state == txnRunning {
		counts := &x.server.transactions
		counts.open.Add(-1)
		if state == txnCommitted {
			counts.committed.Add(1)
		} else {
			counts.aborted.Add(1)
		}
		x.server.cursors.endTransaction(x.session, x.number)
	}
	x.state, x.tx = state, nil
}

// inTransaction runs the command, alone in its session when that matters, and inside of its transaction if it has one.
func (r *request) inTransaction(run func() (bsoncore.Document, error)) (bsoncore.Document, error) {
	if err := r.writesOplog(); err != nil {
		return nil, err
	}
	if r.session == nil || !r.has("txnNumber") {
		return run()
	}
	if err := r.checkInTransaction(); err != nil {
		return nil, err
	}
	s, err := r.lockSession()
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	if err := s.recall(r.server.store); err != nil {
		return nil, err
	}
	if !r.has("autocommit") {
		return r.retryableWrite(run)
	}
	if err := r.joinTransaction(); err != nil {
		return nil, err
	}
	active := &r.server.transactions.active
	active.Add(1)
	defer active.Add(-1)
	if r.endsTransaction() {
		return run()
	}
	var reply bsoncore.Document
	if err = r.refusedInside(); err == nil {
		reply, err = run()
	}
	if (err != nil || r.failed) && r.txn.state == txnRunning {
		r.txn.abort()
		err = transient(err)
	}
	return reply, err
}

// endsTransaction reports whether the command is one that ends its transaction.
func (r *request) endsTransaction() bool {
	return r.name == "commitTransaction" || r.name == "abortTransaction"
}

// checkInTransaction refuses a command that no transaction, and no retryable write, can be. That leaves the session as it is: a transaction
// that is open goes on, and none begins.
func (r *request) checkInTransaction() error {
	switch {
	case !r.has("autocommit"):
		return r.checkRetryable()
	case !r.command.inTxn:
		return document.NewError(codeNotInTransaction, "Cannot run '%s' in a multi-document transaction.", r.name)
	}
	if err := r.outsideTransactions(); err != nil {
		return err
	}
	begins := r.has("startTransaction")
	if begins && (r.endsTransaction() || r.command.name == "killCursors") { // a new transaction has no cursors
		return document.NewError(codeNotInTransaction, "Cannot run %s as the first operation of a transaction", r.name)
	}
	if r.concern.given && !r.endsTransaction() {
		return document.NewError(codeInvalidOptions, "writeConcern is not allowed within a multi-statement transaction")
	}
	if !begins {
		if len(r.readConcern) > emptyDocument {
			return document.NewError(codeInvalidOptions, "Only the first command in a transaction may specify a readConcern")
		}
		return nil
	}
	if r.readConcern == nil { // of most: to look for something in vain costs an error
		return nil
	}
	level, given := r.readConcern.Lookup("level").StringValueOK()
	if given && level != "local" && level != "majority" && level != "snapshot" {
		return document.NewError(codeInvalidOptions, "The readConcern level must be either 'local' (default), 'majority' or 'snapshot' in order to run in a transaction")
	}
	return nil
}

// joinTransaction finds or starts the transaction of a command. The session is locked.
func (r *request) joinTransaction() error {
	s := r.session
	if r.has("startTransaction") { // which is true: see checkTransactionFields
		return r.startTransaction()
	}
	x := s.txn
	switch {
	case r.txnNumber < s.number:
		return document.NewError(document.Code(225), "Cannot start transaction %d on session because a newer transaction %d has already started.", r.txnNumber, s.number)
	case x == nil || x.number != r.txnNumber, x.state == txnAborted && r.name != "abortTransaction":
		return transientError(codeNoSuchTransaction, "Given transaction number %d does not match any in-progress transactions.", r.txnNumber)
	case x.state == txnCommitted && r.name != "commitTransaction":
		return document.NewError(document.Code(256), "Transaction %d has been committed.", r.txnNumber)
	}
	r.txn = x
	return nil
}

func (r *request) startTransaction() error {
	s := r.session
	if r.txnNumber < s.number {
		return document.NewError(document.Code(225), "Cannot start transaction %d on session because a newer transaction %d has already started.", r.txnNumber, s.number)
	}
	if r.txnNumber == s.number {
		return document.NewError(document.Code(117), "Cannot start a transaction at given transaction number %d: a transaction with the same number is in progress or has ended", r.txnNumber)
	}
	if s.txn != nil && s.txn.state == txnRunning {
		s.txn.abort()
	}
	open := &r.server.transactions.open
	if n := open.Add(1); n > int64(r.server.o.MaxTransactions) {
		open.Add(-1)
		return transientError(document.Code(246), "too many transactions are open: %d", n-1)
	}
	tx, err := r.server.store.BeginSnapshot(document.WithStatements(r.ctx, s.id, r.txnNumber))
	if err != nil {
		open.Add(-1)
		return err
	}
	r.server.transactions.started.Add(1)
	s.number = r.txnNumber
	s.txn = &transaction{number: r.txnNumber, tx: tx, started: r.server.clock.Now(), session: s, server: r.server}
	r.txn = s.txn
	return nil
}

// transient marks errors after which the whole transaction may be run again.
func transient(err error) error {
	if !isTransient(err) {
		return err
	}
	return withLabel(err, document.TransientTransactionError)
}

func isTransient(err error) bool {
	switch document.CodeOf(err) {
	case document.WriteConflict, 24, 246, codeNoSuchTransaction, 91, 11600, 11602, 10107, 13435, 189:
		return true
	}
	return false
}

// transientCommit is transient for a commit: errors after which it may have happened are for sending it again instead.
func transientCommit(err error) error {
	switch document.CodeOf(err) {
	case document.WriteConflict, 24, 246, 267, codeNoSuchTransaction:
		return withLabel(err, document.TransientTransactionError)
	}
	return err
}

func transientError(code document.Code, format string, args ...any) error {
	return withLabel(document.NewError(code, format, args...), document.TransientTransactionError)
}

// withLabel returns err with a label.
func withLabel(err error, label string) error {
	var e *document.Error
	if !errors.As(err, &e) {
		return err
	}
	for _, l := range e.Labels {
		if l == label {
			return err
		}
	}
	labelled := *e
	labelled.Labels = append(append([]string(nil), e.Labels...), label)
	return &labelled
}

func (r *request) commitTransaction() (bsoncore.Document, error) {
	x := r.txn
	if x == nil {
		return nil, document.NewError(codeCommandFailed, "commitTransaction must be run within a transaction")
	}
	if x.state == txnCommitted {
		return ok(), nil // the client did not hear of it the first time
	}
	if err := x.tx.Commit(context.WithoutCancel(r.ctx)); err != nil {
		x.leave(txnAborted)
		return nil, transientCommit(err)
	}
	x.leave(txnCommitted)
	return ok(), nil
}

func (r *request) abortTransaction() (bsoncore.Document, error) {
	x := r.txn
	if x == nil {
		return nil, document.NewError(codeCommandFailed, "abortTransaction must be run within a transaction")
	}
	if x.state == txnAborted {
		return nil, transientError(codeNoSuchTransaction, "Transaction %d has been aborted.", x.number)
	}
	x.abort()
	return ok(), nil
}
