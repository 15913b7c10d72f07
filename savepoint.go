package pando

import (
	"fmt"

	"github.com/pandodb/pando/internal/command"
)

// Savepoint is a moment in a transaction to which RollbackTo can return.
type Savepoint struct {
	tx    *txState
	mark  command.Mark
	size  int64
	count int
	used  int // keyspaces
}

// Savepoint returns the present moment of the transaction. What is written behind the first savepoint stays in memory until
// the transaction ends.
func (tx *Tx) Savepoint() Savepoint {
	s := tx.state
	if s.txWrites == nil {
		return Savepoint{tx: s}
	}
	s.fixed = true
	return Savepoint{tx: s, mark: s.enc.Mark(), size: s.size, count: s.count, used: len(s.used)}
}

// RollbackTo forgets what the transaction wrote since p. Savepoints taken after p must not be used any more. One of another
// transaction is ErrSavepoint. The next read costs one step for each write that is left.
func (tx *Tx) RollbackTo(p Savepoint) error {
	s := tx.state
	if err := s.writable(); err != nil {
		return err
	}
	if p.tx != s || p.mark.After(s.enc.Mark()) {
		return fmt.Errorf("roll back: %w", ErrSavepoint)
	}
	s.enc.Rewind(p.mark)
	s.size, s.count, s.used = p.size, p.count, s.used[:p.used]
	if s.shown.After(p.mark) {
		s.dropOverlay()
	}
	return nil
}
