package pando

import (
	"iter"
	"sync/atomic"

	"github.com/pandodb/pando/internal/engine"
	"github.com/pandodb/pando/internal/view"
)

// Snapshot reads the database as it was at one moment. It is safe for concurrent use. It must be closed; then it, and the
// iterators opened from it, answer with ErrClosed.
type Snapshot struct {
	state *snapshotState
	ks    *Keyspace
}

type snapshotState struct {
	db     *DB
	held   engine.Held
	err    atomic.Pointer[error]
	closed atomic.Bool
	handle Snapshot // the first one
}

// In returns the same snapshot, reading from another keyspace.
func (s *Snapshot) In(ks *Keyspace) *Snapshot { return &Snapshot{state: s.state, ks: ks} }

// use begins a read of a keyspace; the snapshot that it returns is released when the read is done.
func (s *snapshotState) use(ks *Keyspace) (engine.Snapshot, error) { return readableIn(&s.held, ks) }

// readableIn returns the snapshot that is held, for one read, if a keyspace may be read through it.
func readableIn(held *engine.Held, ks *Keyspace) (engine.Snapshot, error) {
	snap, err := held.Use()
	if err != nil {
		return engine.Snapshot{}, err
	}
	err = ks.ks.ReadableAt(snap.Seq)
	if !snap.Of(ks.db.e) {
		err = ks.foreign()
	}
	if err != nil {
		snap.Release()
		return engine.Snapshot{}, err
	}
	return snap, nil
}

// Get returns a copy of the value of key, or ErrNotFound.
func (s *Snapshot) Get(key []byte) ([]byte, error) {
	v, err := s.GetTo([]byte{}, key)
	if err != nil {
		return nil, err
	}
	return v, nil
}

// GetTo appends the value of key to dst and returns the result. It allocates nothing when the value fits into dst, of which all the capacity
// may be written to: see the package comment.
func (s *Snapshot) GetTo(dst, key []byte) ([]byte, error) {
	snap, err := s.state.use(s.ks)
	if err != nil {
		return dst, err
	}
	defer snap.Release()
	return snap.Get(dst, nil, s.ks.ks, key)
}

// Has reports whether key is there.
func (s *Snapshot) Has(key []byte) (bool, error) {
	snap, err := s.state.use(s.ks)
	if err != nil {
		return false, err
	}
	defer snap.Release()
	return snap.Has(nil, s.ks.ks, key)
}

// Iter opens an iterator; nil options walk over everything. It must be closed.
func (s *Snapshot) Iter(o *IterOptions) *Iterator {
	snap, err := s.state.use(s.ks)
	if err != nil {
		return failedIterator(err)
	}
	return newIterator(snap, s.ks.ks, o, view.IteratorOptions{Stop: s.state.held.Stop()})
}

// Range walks over the pairs in [lo, hi) in the order of their keys; a nil bound is open. A pair is valid for its step only.
// When the walk fails it ends early: see Err.
func (s *Snapshot) Range(lo, hi []byte) iter.Seq2[[]byte, []byte] {
	return forward(s.Iter, lo, hi, s.state.note)
}

// RangeReverse is Range from the highest key to the lowest.
func (s *Snapshot) RangeReverse(lo, hi []byte) iter.Seq2[[]byte, []byte] {
	return backward(s.Iter, lo, hi, s.state.note)
}

// Prefix walks over the pairs whose keys begin with p.
func (s *Snapshot) Prefix(p []byte) iter.Seq2[[]byte, []byte] {
	lo, hi := prefixBounds(p)
	return s.Range(lo, hi)
}

// Count returns the number of pairs in [lo, hi); a nil bound is open.
func (s *Snapshot) Count(lo, hi []byte) (int64, error) {
	snap, err := s.state.use(s.ks)
	if err != nil {
		return 0, err
	}
	defer snap.Release()
	return snap.Count(nil, s.ks.ks, lo, hi)
}

// Nth returns the n-th pair of [lo, hi), counted from 0, or ErrNotFound.
func (s *Snapshot) Nth(lo, hi []byte, n int64) (key, value []byte, err error) {
	snap, err := s.state.use(s.ks)
	if err != nil {
		return nil, nil, err
	}
	defer snap.Release()
	return snap.Nth(nil, s.ks.ks, lo, hi, n)
}

func (s *snapshotState) note(err error) { s.err.Store(&err) }

// Err returns the error that ended the newest failed loop over Range, RangeReverse or Prefix, or the one with which the
// snapshot could not be taken.
func (s *Snapshot) Err() error {
	if err := s.state.err.Load(); err != nil {
		return *err
	}
	if s.state.closed.Load() {
		return s.state.held.Stop().Err()
	}
	return nil
}

// Close gives the snapshot up. Closing twice is no error.
func (s *Snapshot) Close() error {
	if !s.state.closed.Swap(true) {
		s.state.held.End(ErrClosed)
	}
	return nil
}
