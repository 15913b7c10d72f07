package document

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"sync"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document/internal/mongoerror"
)

// Tx is a transaction: it reads one state of the store, with its own writes in front, and commits all of its writes or none. It
// is used by one goroutine at a time. It waits for nobody: when another commit has changed what it read or wrote, Commit fails with
// WriteConflict and the label TransientTransactionError.
type Tx struct {
	store *Store
	tx    *pando.Tx
	reads *pando.Tx // tx, for queries
	w     *writer
	names *catalogue // the collections when it began
	done  bool

	created map[namespace]*collection // collections that nobody else sees before the commit
	claimed []string                  // documents that other transactions cannot write to meanwhile

	noted bool // the log is told that the commit is a transaction
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

// Begin starts a transaction, which must be ended with Commit or Abort. If ctx is one of WithStatements, change streams and the oplog tell
// whose it was, and Store.NewestNumber that it was committed.
func (s *Store) Begin(ctx context.Context) (*Tx, error) {
	tx, err := s.begin(ctx)
	if err == nil {
		tx.reads = tx.tx
	}
	return tx, err
}

// BeginSnapshot is Begin of a transaction with the snapshot isolation that MongoDB's transactions have: its Commit fails when another
// commit has changed a document that it writes, or has taken a unique value that it needs, but not when one has changed what it only
// read. Programs that are written for MongoDB count on that: a long report that ends with a note of what it found must not fail because
// somebody else was at work. What they want to hold until the commit they write to.
func (s *Store) BeginSnapshot(ctx context.Context) (*Tx, error) {
	tx, err := s.begin(ctx)
	if err == nil {
		tx.reads = tx.tx.Unchecked()
	}
	return tx, err
}

func (s *Store) begin(ctx context.Context) (*Tx, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	names, began := s.current.Load(), s.db.LastSeq()
	inner, err := s.db.Begin(true)
	if err != nil {
		return nil, err
	}
	tx := &Tx{store: s, tx: inner, names: names}
	tx.w = &writer{store: s, tx: inner, began: began, owner: tx}
	if numbered, ok := ctx.Value(statementsKey{}).(*statements); ok {
		tx.w.statements = &statements{session: numbered.session, number: numbered.number} // it is kept as a whole, not by its statements
	}
	return tx, nil
}

// In returns a collection as the transaction sees it.
func (tx *Tx) In(c *Collection) *Collection { return &Collection{store: tx.store, ns: c.ns, tx: tx} }

// find returns the collection of a name as the transaction sees it, and nil when there is none. One that was dropped, renamed or replaced
// since the transaction began is a conflict: the transaction would go on as if it had been empty all the time.
func (tx *Tx) find(ns namespace) (*collection, error) {
	if x := tx.created[ns]; x != nil {
		return x, nil
	}
	name := ns.String()
	x, before := tx.store.current.Load().byName[name], tx.names.byName[name]
	if x != before && (before != nil || tx.names.byNumber[x.number] != nil) {
		return nil, conflict(nil)
	}
	return x, nil
}

// Commit makes the writes of the transaction visible and, as the profile says, durable.
func (tx *Tx) Commit(ctx context.Context) error {
	if tx.done {
		return errTxDone()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	tx.done = true
	defer tx.release()
	err := tx.commit(ctx)
	if err != nil {
		_ = tx.tx.Rollback() // which cannot fail
		tx.dropCreated()
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
		tx.dropCreated()
		tx.release()
	}
}

// Create creates a collection, from options as MongoDB's create command has them, that others see after the commit.
func (tx *Tx) Create(ctx context.Context, d *Database, name string, options any) error {
	if tx.done {
		return errTxDone()
	}
	spec, err := toDocument(options)
	if err != nil {
		return err
	}
	ns := namespace{d.name, name}
	if tx.created[ns] != nil || tx.store.current.Load().byName[ns.String()] != nil {
		return mongoerror.New(mongoerror.NamespaceExists, "Collection %s already exists.", ns)
	}
	_, err = tx.create(ns, slices.Clone(spec))
	return errors.Join(err, ctx.Err())
}

// create makes a collection that others see after the commit.
func (tx *Tx) create(ns namespace, spec document) (*collection, error) {
	if err := ns.check(); err != nil {
		return nil, err
	}
	spec, err := asCreated(spec)
	if err != nil {
		return nil, err
	}
	settings, err := parseSettings(spec)
	if err == nil {
		err = settings.checkValidator()
	}
	if err != nil {
		return nil, err
	}
	if settings.viewOn != "" || settings.capped || settings.series != nil {
		return nil, mongoerror.New(mongoerror.OperationNotSupportedInTransaction, "views, time series and capped collections cannot be created in a transaction")
	}
	tx.store.schema.Lock()
	defer tx.store.schema.Unlock()
	c, err := tx.store.makeCollection(ns, settings, nil)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(tx.note(), tx.w.noteCreate(c)); err != nil {
		return nil, errors.Join(err, tx.store.undoCollection(c))
	}
	if tx.created == nil {
		tx.created = map[namespace]*collection{}
	}
	tx.created[ns] = c
	return c, nil
}

// commit commits, and shows what the transaction has created to others. It is overtaken when somebody has created the same.
func (tx *Tx) commit(ctx context.Context) error {
	if len(tx.created) == 0 {
		return tx.end()
	}
	s := tx.store
	s.schema.Lock()
	defer s.schema.Unlock()
	before := s.current.Load()
	cat, known := before.with(), before.with()
	for ns, c := range tx.created {
		if cat.byName[ns.String()] != nil || cat.views[ns.String()] != nil {
			return errSchemaChanged
		}
		if err := errors.Join(ctx.Err(), tx.w.putEntry(c)); err != nil {
			return err
		}
		cat.byName[ns.String()], cat.byNumber[c.number], known.byNumber[c.number] = c, c, c
	}
	s.current.Store(known) // a change stream may see the commit before this call does
	if err := tx.end(); err != nil {
		s.current.Store(before)
		return err
	}
	s.current.Store(cat)
	return nil
}

// end commits, and tells the log when.
func (tx *Tx) end() error {
	record, err := tx.w.storeTransaction(len(tx.w.touched)+len(tx.created) > 0)
	if err != nil {
		return err
	}
	if tx.noted {
		if err := tx.w.noteCommit(); err != nil {
			return err
		}
	}
	if err := tx.w.commit(); err != nil {
		return err
	}
	if record != nil {
		tx.store.remember(tx.w.statements.session, record)
	}
	return nil
}

// note tells the log, in front of everything else, that the commit is a transaction.
func (tx *Tx) note() error {
	if tx.noted || tx.store.options.History < 0 {
		return nil
	}
	tx.noted = true
	return tx.w.noteTransaction(tx.w.statements)
}

// dropCreated removes what nobody will ever see. What cannot be removed now is when the store is opened again.
func (tx *Tx) dropCreated() {
	for _, c := range tx.created {
		if err := tx.store.undoCollection(c); err != nil {
			tx.store.log.Warn("what an aborted transaction created could not be removed", "error", err)
		}
	}
	tx.created = nil
}

// claims is the documents that open transactions have written to. A second transaction that writes to one fails at once, instead
// of at its commit.
type claims struct {
	mu     sync.Mutex
	byName map[string]*Tx
}

// claim takes a document for the transaction.
func (tx *Tx) claim(c *collection, key []byte) error {
	name := string(binary.BigEndian.AppendUint32(nil, c.number)) + string(key)
	s := &tx.store.claims
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.byName[name] {
	case tx:
		return nil
	case nil:
	default:
		return conflict(nil)
	}
	if s.byName == nil {
		s.byName = map[string]*Tx{}
	}
	s.byName[name] = tx
	tx.claimed = append(tx.claimed, name)
	return nil
}

// release gives up what the transaction has claimed.
func (tx *Tx) release() {
	s := &tx.store.claims
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range tx.claimed {
		delete(s.byName, name)
	}
	tx.claimed = nil
}

func errTxDone() error {
	return &Error{Code: mongoerror.NoSuchTransaction, Message: "the transaction was committed or aborted before", Cause: pando.ErrTxDone}
}

// write runs fn with the transaction's writer, and takes back what it wrote when it fails.
func (tx *Tx) write(fn func(w *writer) error) error {
	if tx.done {
		return errTxDone()
	}
	if err := tx.note(); err != nil {
		return err
	}
	before := tx.tx.Savepoint()
	touched, raised := len(tx.w.touched), len(tx.w.raised)
	err := tx.w.whatIsGone(fn(tx.w))
	if isConflict(err) {
		err = conflict(err)
	}
	if err != nil {
		tx.w.touched, tx.w.raised = tx.w.touched[:touched], tx.w.raised[:raised]
		return errors.Join(err, tx.tx.RollbackTo(before))
	}
	return nil
}
