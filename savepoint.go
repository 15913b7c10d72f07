package pando

import (
	"fmt"
	"slices"

	"github.com/pandodb/pando/internal/command"
)

// Savepoint is a moment in a transaction to which RollbackTo can return.
type Savepoint struct {
	tx     *txState
	number int // of those of the transaction, from 1 on
	mark   command.Mark
	size   int64
	count  int
	used   int // keyspaces
}

// Savepoint returns the present moment of the transaction. What is written behind the first savepoint stays in memory until
// the transaction ends.
func (tx *Tx) Savepoint() Savepoint {
	s := tx.state
	if s.txWrites == nil {
		return Savepoint{tx: s}
	}
	s.fixed = true
	s.points++
	s.past = append(s.past, s.points)
	return Savepoint{tx: s, number: s.points, mark: s.enc.Mark(), size: s.size, count: s.count, used: len(s.used)}
}

// RollbackTo forgets what the transaction wrote since p. Savepoints taken after p are ErrSavepoint from then on, as is one of another
// transaction. The next read costs one step for each write that is left.
func (tx *Tx) RollbackTo(p Savepoint) error {
	s := tx.state
	if err := s.writable(); err != nil {
		return err
	}
	at, there := slices.BinarySearch(s.past, p.number)
	if p.tx != s || !there { // its place may be the midst of a command by now
		return fmt.Errorf("roll back: %w", ErrSavepoint)
	}
	s.past = s.past[:at+1]
	s.enc.Rewind(p.mark)
	s.size, s.count, s.used = p.size, p.count, s.used[:p.used]
	if s.shown.After(p.mark) {
		s.dropOverlay()
	}
	return nil
}
