package pando

import (
	"bytes"
	"iter"
	"slices"

	"github.com/pandodb/pando/internal/command"
	"github.com/pandodb/pando/internal/engine"
	"github.com/pandodb/pando/internal/view"
)

// Reading in a transaction: what an optimistic one reads is noted for its commit to check, and its own writes lie in front of the
// snapshot as an overlay, which is brought up to date when it is next read through.

// readPoint notes a key that an optimistic transaction depends on.
func (s *txState) readPoint(k *Keyspace, key []byte) {
	if s.mode == optimistic {
		s.reads.AddPoint(k.ks.ID, key)
	}
}

// readRange notes a range that an optimistic transaction depends on.
func (s *txState) readRange(k *Keyspace, lo, hi []byte) {
	if s.mode == optimistic {
		s.reads.Ranges = append(s.reads.Ranges, engine.RangeRead{Keyspace: k.ks.ID, Lo: bytes.Clone(lo), Hi: bytes.Clone(hi)})
	}
}

// readPoint is that of the state, for what is read through tx.
func (tx *Tx) readPoint(key []byte) {
	if !tx.unchecked {
		tx.state.readPoint(tx.ks, key)
	}
}

// readRange is that of the state, for what is read through tx.
func (tx *Tx) readRange(lo, hi []byte) {
	if !tx.unchecked {
		tx.state.readRange(tx.ks, lo, hi)
	}
}

// use begins a read: it returns what the transaction has written so far, and the snapshot below, which is released when the read is done.
func (tx *Tx) use() ([]view.Layer, engine.Snapshot, error) {
	layers, err := tx.state.layers()
	if err != nil {
		return nil, engine.Snapshot{}, err
	}
	snap, err := readableIn(&tx.state.held, tx.ks)
	return layers, snap, err
}

// Get returns a copy of the value of key, or ErrNotFound.
func (tx *Tx) Get(key []byte) ([]byte, error) {
	v, err := tx.GetTo([]byte{}, key)
	if err != nil {
		return nil, err
	}
	return v, nil
}

// GetTo appends the value of key to dst and returns the result. It allocates nothing when the value fits into dst, of which all the capacity
// may be written to: see the package comment.
func (tx *Tx) GetTo(dst, key []byte) ([]byte, error) {
	layers, snap, err := tx.use()
	if err != nil {
		return dst, err
	}
	defer snap.Release()
	tx.readPoint(key)
	return snap.Get(dst, layers, tx.ks.ks, key)
}

// Has reports whether key is there.
func (tx *Tx) Has(key []byte) (bool, error) {
	layers, snap, err := tx.use()
	if err != nil {
		return false, err
	}
	defer snap.Release()
	tx.readPoint(key)
	return snap.Has(layers, tx.ks.ks, key)
}

// Iter opens an iterator; nil options walk over everything. It does not see what the transaction writes afterwards. An
// optimistic transaction depends on the whole range between its bounds. It must be closed.
func (tx *Tx) Iter(o *IterOptions) *Iterator {
	layers, snap, err := tx.use()
	if err != nil {
		return failedIterator(err)
	}
	if o == nil {
		tx.readRange(nil, nil)
	} else {
		tx.readRange(o.Lower, o.Upper)
	}
	it := newIterator(snap, tx.ks.ks, o, view.IteratorOptions{
		Overlay: slices.Clone(layers), Stop: tx.state.held.Stop(), Leads: tx.state.mode == exclusive,
	})
	if it.it != nil && len(layers) > 0 {
		it.own = tx.state.overlay
		it.own.Retain()
	}
	return it
}

// Range walks over the pairs in [lo, hi) in the order of their keys; a nil bound is open. A pair is valid for its step only.
// When the walk fails it ends early: see Err.
func (tx *Tx) Range(lo, hi []byte) iter.Seq2[[]byte, []byte] {
	return forward(tx.Iter, lo, hi, tx.state.fail)
}

// RangeReverse is Range from the highest key to the lowest.
func (tx *Tx) RangeReverse(lo, hi []byte) iter.Seq2[[]byte, []byte] {
	return backward(tx.Iter, lo, hi, tx.state.fail)
}

// Prefix walks over the pairs whose keys begin with p.
func (tx *Tx) Prefix(p []byte) iter.Seq2[[]byte, []byte] {
	lo, hi := prefixBounds(p)
	return tx.Range(lo, hi)
}

// Count returns the number of pairs in [lo, hi); a nil bound is open. What the transaction itself has written in the range
// costs one look-up each.
func (tx *Tx) Count(lo, hi []byte) (int64, error) {
	layers, snap, err := tx.use()
	if err != nil {
		return 0, err
	}
	defer snap.Release()
	tx.readRange(lo, hi)
	return snap.Count(layers, tx.ks.ks, lo, hi)
}

// Nth returns the n-th pair of [lo, hi), counted from 0, or ErrNotFound.
func (tx *Tx) Nth(lo, hi []byte, n int64) (key, value []byte, err error) {
	layers, snap, err := tx.use()
	if err != nil {
		return nil, nil, err
	}
	defer snap.Release()
	tx.readRange(lo, hi)
	return snap.Nth(layers, tx.ks.ks, lo, hi, n)
}

func (s *txState) fail(err error) { s.err = err }

// Err returns the error that ended the newest failed loop over Range, RangeReverse or Prefix.
func (tx *Tx) Err() error { return tx.state.err }

// layers returns what reads look through: the transaction's own writes so far. It is valid until the next call.
func (s *txState) layers() ([]view.Layer, error) {
	if err := s.usable(); err != nil || s.txWrites == nil {
		return nil, err
	}
	now := s.enc.Mark()
	if now == s.shown && s.spilled() == s.read {
		if s.overlay == nil {
			return nil, nil
		}
		return s.overlay.Layers(), nil
	}
	if s.overlay == nil {
		s.overlay = s.db.e.NewOverlay()
	}
	if s.spilled() != s.read {
		// What was in memory has gone to the file: read it from there. The overlay already holds what it held before.
		if err := s.catchUp(); err != nil {
			return nil, err
		}
	}
	if err := s.overlay.Apply(s.enc.Since(s.shown)); err != nil {
		s.dropOverlay() // RollbackTo does not know of those that it has got
		return nil, err
	}
	s.shown = now
	return s.overlay.Layers(), nil
}

// spilled is the length of the spill file.
func (s *txWrites) spilled() int64 {
	if s.spill == nil {
		return 0
	}
	return s.spill.Size()
}

// catchUp adds to the overlay what has gone to the spill file since it was last read.
func (s *txWrites) catchUp() error {
	skip := s.shown.Count()
	err := s.db.e.ReadSpill(s.spill, s.read, func(d command.Decoder, count int) error {
		for ; skip > 0 && count > 0; skip, count = skip-1, count-1 {
			if !d.Next() {
				return d.Err()
			}
		}
		return s.overlay.Apply(d)
	})
	if err != nil {
		return err // the next read begins again where this one did: what is added twice shows the same
	}
	s.read, s.shown = s.spilled(), command.Mark{}
	return nil
}

// dropOverlay forgets what reads look through; iterators opened before go on looking through it.
func (s *txWrites) dropOverlay() {
	if s.overlay != nil {
		s.overlay.Release()
	}
	s.overlay, s.shown, s.read = nil, command.Mark{}, 0
}
