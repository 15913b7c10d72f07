package mongo

import "context"

// turn is a mutex that can be waited for no longer than a context lasts.
type turn struct{ taken chan struct{} }

func newTurn() turn { return turn{make(chan struct{}, 1)} }

// Lock waits for the turn however long that takes.
func (t turn) Lock() { t.taken <- struct{}{} }

// TryLock takes the turn if nobody has it, and reports whether it did.
func (t turn) TryLock() bool {
	select {
	case t.taken <- struct{}{}:
		return true
	default:
		return false
	}
}

// lockWithin waits for the turn. It fails when the context ends first.
func (t turn) lockWithin(ctx context.Context) error {
	if t.TryLock() {
		return nil
	}
	select {
	case t.taken <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Unlock gives the turn to one of those who wait for it.
func (t turn) Unlock() { <-t.taken }
