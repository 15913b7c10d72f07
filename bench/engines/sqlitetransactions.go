package engines

import (
	"context"
	"database/sql"

	"github.com/pandodb/pando/bench/engine"
)

// Transactions of SQLite: prepared statements in a deferred transaction that only reads, or in an immediate one on the connection that
// writes. Without a journal there are none: a rollback would have nothing to go by.

// begin begins a transaction that only reads.
func (s *sqliteStore) begin() (sqliteReader, error) {
	if s.read == s.write {
		return sqliteReader{}, engine.ErrUnsupported
	}
	if _, err := s.scans(); err != nil { // before the transaction has a connection
		return sqliteReader{}, err
	}
	tx, err := s.read.BeginTx(context.Background(), &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return sqliteReader{}, err
	}
	return s.sqliteReader.within(tx), nil
}

// within is the same in a transaction.
func (r sqliteReader) within(tx *sql.Tx) sqliteReader {
	return sqliteReader{get: tx.Stmt(r.get), scans: r.scans, tx: tx}
}

func prepareSQLiteUpdates(db *sql.DB) (r sqliteReader, err error) {
	if r.get, err = db.Prepare(sqliteGet); err != nil {
		return r, err
	}
	walks, err := prepareSQLiteWalks(db)
	r.scans = func() (sqliteWalks, error) { return walks, nil }
	return r, err
}

// View takes its moment with its first read.
func (s *sqliteStore) View(fn func(engine.Reader) error) error {
	r, err := s.begin()
	if err != nil {
		return err
	}
	defer r.tx.Rollback() // nothing was written
	return fn(r)
}

// Update has the one connection that writes: updates take turns.
func (s *sqliteStore) Update(fn func(engine.Transaction) error) error {
	if s.read == s.write {
		return engine.ErrUnsupported
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	reads, err := s.updating() // before the transaction has the connection
	if err != nil {
		return err
	}
	tx, err := s.write.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback() // which does nothing after a commit
	if err := fn(&sqliteTransaction{sqliteReader: reads.within(tx), s: s}); err != nil {
		return err
	}
	return tx.Commit()
}

type sqliteTransaction struct {
	sqliteReader
	s   *sqliteStore
	put *sql.Stmt // in the transaction; nil: it has put nothing yet
}

// Put is an upsert.
func (t *sqliteTransaction) Put(key, value []byte) error {
	if t.put == nil {
		t.put = t.in(t.s.put)
	}
	_, err := t.put.Exec(key, value)
	return err
}

// Delete is a prepared DELETE.
func (t *sqliteTransaction) Delete(key []byte) error {
	_, err := t.in(t.s.del).Exec(key)
	return err
}
