package pando

import (
	"fmt"
	"iter"
	"math"
	"sync/atomic"
	"time"

	"github.com/pandodb/pando/internal/engine"
	"github.com/pandodb/pando/internal/value"
	"github.com/pandodb/pando/internal/view"
)

// Keyspace is one map of keys to values. It is safe for concurrent use. Each call reads from a snapshot of its own and
// commits by itself; a Tx, a Snapshot or a Batch joins several.
//
// One with the layout Hash keeps no order of keys, here and seen through a Tx or a Snapshot: see Hash for what is ErrNoOrder there.
type Keyspace struct {
	db  *DB
	ks  *engine.Keyspace
	err atomic.Pointer[error]
}

// of refuses a keyspace of another database: its number may be that of a keyspace here.
func (k *Keyspace) of(db *DB) error {
	if k.db != db {
		return k.foreign()
	}
	return nil
}

func (k *Keyspace) foreign() error {
	return fmt.Errorf("keyspace %q: %w", k.Name(), ErrOtherDatabase)
}

// Name returns the keyspace's name.
func (k *Keyspace) Name() string { return k.ks.Name }

// Layout returns the layout of the keyspace's settled data.
func (k *Keyspace) Layout() Layout { return k.ks.Layout }

// Get returns a copy of the value of key, or ErrNotFound.
func (k *Keyspace) Get(key []byte) ([]byte, error) {
	v, err := k.db.e.Get([]byte{}, k.ks, key)
	if err != nil {
		return nil, err
	}
	return v, nil
}

// GetTo appends the value of key to dst and returns the result. It allocates nothing when the value fits into dst, of which all the capacity
// may be written to: see the package comment.
func (k *Keyspace) GetTo(dst, key []byte) ([]byte, error) { return k.db.e.Get(dst, k.ks, key) }

// Has reports whether key is there.
func (k *Keyspace) Has(key []byte) (bool, error) { return k.db.e.Has(k.ks, key) }

// Put stores value under key. A nil value is stored as an empty one. What is too long is ErrKeyTooLarge or ErrValueTooLarge.
func (k *Keyspace) Put(key, value []byte) error { return k.put(key, value, 0, k.db.e.Syncs()) }

// PutUnsynced is Put without waiting for a sync, whatever the profile: a power cut may undo it, but only together with every commit
// that follows it. It is for what nothing but later commits will need.
func (k *Keyspace) PutUnsynced(key, value []byte) error { return k.put(key, value, 0, false) }

// PutExpiring stores value under key until the moment at, from which on the key is invisible. Its space comes back later. A
// clock that jumps back resurrects nothing that was seen expired for longer than a second. The zero time is never, as in the answer
// of Expiry: then it is Put.
func (k *Keyspace) PutExpiring(key, value []byte, at time.Time) error {
	return k.put(key, value, expiryOf(at), k.db.e.Syncs())
}

// expiryOf converts a moment for storage. What has no positive Unix time has expired long ago, and what is later than milliseconds can
// tell, such as the latest moment that a time.Time holds, is the last one that they can: as a number it would have come round.
func expiryOf(at time.Time) uint64 {
	switch {
	case at.IsZero():
		return 0
	case at.After(time.UnixMilli(math.MaxInt64)):
		return math.MaxInt64
	case at.Before(time.UnixMilli(1)):
		return 1
	}
	return uint64(at.UnixMilli())
}

// Expiry returns the moment at which key becomes invisible, the zero time when it does not, or ErrNotFound.
func (k *Keyspace) Expiry(key []byte) (time.Time, error) {
	s, err := k.db.e.SnapshotFor(k.ks)
	if err != nil {
		return time.Time{}, err
	}
	defer s.Release()
	r, ok, err := s.Find(nil, k.ks, key)
	switch {
	case err != nil:
		return time.Time{}, err
	case !ok:
		return time.Time{}, ErrNotFound
	case r.Expiry == 0:
		return time.Time{}, nil
	}
	return time.UnixMilli(int64(r.Expiry)), nil
}

// Delete removes key. Deleting what is not there is no error.
func (k *Keyspace) Delete(key []byte) error {
	if err := k.checkKey(key); err != nil {
		return err
	}
	p := k.db.putter()
	p.enc.Delete(k.ks.ID, key)
	return k.db.commit(p)
}

// DeleteRange removes every key in [lo, hi); a nil bound is open. Its cost does not depend on how many there are. Bounds in a keyspace
// without order are ErrNoOrder.
func (k *Keyspace) DeleteRange(lo, hi []byte) error {
	if err := k.checkRange(lo, hi); err != nil {
		return err
	}
	p := k.db.putter()
	p.enc.DeleteRange(k.ks.ID, lo, hi)
	return k.db.commit(p)
}

// Iter opens an iterator; nil options walk over everything. It must be closed.
func (k *Keyspace) Iter(o *IterOptions) *Iterator {
	s, err := k.db.e.SnapshotFor(k.ks)
	if err != nil {
		return failedIterator(err)
	}
	return newIterator(s, k.ks, o, view.IteratorOptions{Stop: k.db.e.Stop()})
}

// Range walks over the pairs in [lo, hi) in the order of their keys; a nil bound is open. A pair is valid for its step only.
// When the walk fails it ends early: see Err.
func (k *Keyspace) Range(lo, hi []byte) iter.Seq2[[]byte, []byte] {
	return forward(k.Iter, lo, hi, k.note)
}

// RangeReverse is Range from the highest key to the lowest.
func (k *Keyspace) RangeReverse(lo, hi []byte) iter.Seq2[[]byte, []byte] {
	return backward(k.Iter, lo, hi, k.note)
}

// Prefix walks over the pairs whose keys begin with p.
func (k *Keyspace) Prefix(p []byte) iter.Seq2[[]byte, []byte] {
	lo, hi := prefixBounds(p)
	return k.Range(lo, hi)
}

// Count returns the number of pairs in [lo, hi); a nil bound is open. It costs O(log n) on settled data, and one look-up for
// each key of the range that has not settled.
func (k *Keyspace) Count(lo, hi []byte) (int64, error) {
	s, err := k.db.e.SnapshotFor(k.ks)
	if err != nil {
		return 0, err
	}
	defer s.Release()
	return s.Count(nil, k.ks, lo, hi)
}

// Nth returns the n-th pair of [lo, hi), counted from 0, or ErrNotFound. Its cost is that of Count.
func (k *Keyspace) Nth(lo, hi []byte, n int64) (key, value []byte, err error) {
	s, err := k.db.e.SnapshotFor(k.ks)
	if err != nil {
		return nil, nil, err
	}
	defer s.Release()
	return s.Nth(nil, k.ks, lo, hi, n)
}

// Err returns the error that ended the newest failed loop over Range, RangeReverse or Prefix of this handle.
func (k *Keyspace) Err() error {
	if err := k.err.Load(); err != nil {
		return *err
	}
	return nil
}

func (k *Keyspace) note(err error) { k.err.Store(&err) }

// checkKey refuses keys that cannot be stored.
func (k *Keyspace) checkKey(key []byte) error {
	if len(key) > MaxKeyBytes {
		return fmt.Errorf("keyspace %q: key of %d bytes: %w", k.ks.Name, len(key), ErrKeyTooLarge)
	}
	return k.dropped()
}

// dropped is the error of a keyspace that has been dropped.
func (k *Keyspace) dropped() error {
	if k.ks.Dropped.Load() {
		return fmt.Errorf("keyspace %q: %w", k.ks.Name, ErrDropped)
	}
	return nil
}

// checkPair refuses pairs that cannot be stored.
func (k *Keyspace) checkPair(key, value []byte) error {
	if len(value) > MaxValueBytes {
		return fmt.Errorf("keyspace %q: value of %d bytes: %w", k.ks.Name, len(value), ErrValueTooLarge)
	}
	return k.checkKey(key)
}

// checkRange refuses bounds that cannot be stored, and those of a range of a keyspace that keeps no order.
func (k *Keyspace) checkRange(lo, hi []byte) error {
	if err := k.ks.CheckOrder("delete a range of", lo, hi); err != nil {
		return err
	}
	if err := k.checkKey(lo); err != nil {
		return err
	}
	return k.checkKey(hi)
}

// put stores a pair, and waits for a sync or not.
func (k *Keyspace) put(key, val []byte, expiry uint64, sync bool) error {
	if err := k.checkPair(key, val); err != nil {
		return err
	}
	if len(val) > k.db.e.Threshold() {
		return k.putApart(key, expiry, sync, func(h *engine.ValueHold) (value.Ref, error) { return h.Store(k.ks, key, val) })
	}
	p := k.db.putter()
	p.enc.Put(k.ks.ID, key, val, expiry)
	return k.db.commitWith(p, sync)
}
