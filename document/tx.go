package document

import (
	"context"
	"errors"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document/internal/mongoerror"
)

// Tx is a transaction: it reads one state of the store, with its own writes in front, and commits all of its writes or none. It
// is used by one goroutine at a time. It waits for nobody: when another commit has changed what it read or wrote, Commit fails with
// WriteConflict and the label TransientTransactionError.
type Tx struct {
	store *Store
	tx    *pando.Tx
	w     *writer
	done  bool
}

// Transaction runs fn with a transaction and commits it when fn returns nil. When another commit overtakes it, fn runs again; so it
// should have no effects but through the transaction.
//
//	err := s.Transaction(ctx, func(tx *document.Tx) error {
//		_, err := tx.In(accounts).Update(ctx, filter, update, nil)
//		...
//	})
func (s *Store) Transaction(ctx context.Context, fn func(tx *Tx) error) error {
	for attempt := 0; ; attempt++ {
		err := s.transact(ctx, fn)
		var e *Error
		if !errors.As(err, &e) || e.Code != mongoerror.WriteConflict {
			return err
		}
		if err := s.pause(ctx, attempt); err != nil {
			return err
		}
	}
}

func (s *Store) transact(ctx context.Context, fn func(tx *Tx) error) error {
	tx, err := s.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Abort()
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// Begin starts a transaction, which must be ended with Commit or Abort.
func (s *Store) Begin(ctx context.Context) (*Tx, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	inner, err := s.db.Begin(true)
	if err != nil {
		return nil, err
	}
	tx := &Tx{store: s, tx: inner}
	tx.w = &writer{store: s, tx: inner, owner: tx}
	return tx, nil
}

// In returns a collection as the transaction sees it.
func (tx *Tx) In(c *Collection) *Collection { return &Collection{store: tx.store, ns: c.ns, tx: tx} }

// Commit makes the writes of the transaction visible and, as the profile says, durable.
func (tx *Tx) Commit(ctx context.Context) error {
	if tx.done {
		return errTxDone()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	tx.done = true
	err := tx.w.commit()
	if err != nil {
		_ = tx.tx.Rollback() // which cannot fail
	}
	if isConflict(err) || errors.Is(err, errDropped) || errors.Is(err, pando.ErrDropped) {
		return conflict(err)
	}
	return err
}

// Abort ends the transaction and forgets its writes. On one that has ended it does nothing, so that it can be deferred.
func (tx *Tx) Abort() {
	if !tx.done {
		tx.done = true
		_ = tx.tx.Rollback() // which cannot fail
	}
}

func errTxDone() error {
	return &Error{Code: mongoerror.NoSuchTransaction, Message: "the transaction was committed or aborted before", Cause: pando.ErrTxDone}
}

// write runs fn with the transaction's writer, and takes back what it wrote when it fails.
func (tx *Tx) write(fn func(w *writer) error) error {
	if tx.done {
		return errTxDone()
	}
	before := tx.tx.Savepoint()
	touched := len(tx.w.touched)
	err := fn(tx.w)
	if err != nil {
		tx.w.touched = tx.w.touched[:touched]
		return errors.Join(err, tx.tx.RollbackTo(before))
	}
	return nil
}
