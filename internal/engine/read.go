package engine

import (
	"fmt"
	"sync"

	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/value"
	"github.com/pandodb/pando/internal/view"
)

// acquire returns the current view and the sequence number up to which its readers see. The two belong together: every
// write up to that number was made while the view, or an older one, was the current one. The caller is inside an epoch
// section.
func (e *Engine) acquire() (*view.View, uint64) {
	for {
		v := e.current.Load()
		seq := e.visible.Load()
		if e.current.Load() == v {
			return v, seq
		}
	}
}

// Get appends the value of a key to dst. It allocates nothing when dst is large enough and the record is in memory.
func (e *Engine) Get(dst []byte, ks *Keyspace, key []byte) ([]byte, error) {
	hash := record.Hash(ks.ID, key)
	g := e.epoch.Enter()
	if e.closed.Load() {
		g.Exit()
		return dst, ErrClosed
	}
	if ks.Dropped.Load() {
		g.Exit()
		return dst, ks.absent()
	}
	v, seq := e.acquire()
	r, at, status := v.Get(ks.ID, hash, key, seq)
	if status == layout.Found && r.Kind == record.Inline && r.Expiry == 0 {
		dst = append(dst, r.Value...)
		g.Exit()
		return dst, nil
	}
	if status == layout.Absent {
		g.Exit()
		return dst, ks.absent()
	}
	v.Ref()
	if status == layout.Found && r.Kind == record.Apart && r.Expiry == 0 {
		ref, err := value.DecodeRef(r.Value) // what it lies in may go with the section, what it refers to goes with the view
		g.Exit()
		defer v.Unref()
		return e.readApart(dst, ks, ref, err)
	}
	g.Exit()
	if status == layout.NotResident {
		return e.getCold(dst, v, at, ks, hash, key)
	}
	defer v.Unref()
	return e.getSlow(dst, v, nil, ks, hash, key, seq)
}

// readApart appends a value that lies apart to dst, unless there is an error already. The caller holds a reference on its view.
func (e *Engine) readApart(dst []byte, ks *Keyspace, ref value.Ref, err error) ([]byte, error) {
	if err == nil {
		dst, err = value.Read(e.store, dst, ref)
	}
	if err != nil {
		return dst, fmt.Errorf("get from keyspace %q: %w", ks.Name, err)
	}
	return dst, nil
}

// getCold answers what is not in the memtables and not in memory, but at a place on the disk. It gives up the caller's reference on v.
func (e *Engine) getCold(dst []byte, v *view.View, at layout.Place, ks *Keyspace, hash uint64, key []byte) ([]byte, error) {
	scratch := e.scratch.get()
	defer func() {
		e.scratch.put(scratch)
		v.Unref()
	}()
	ok, err := v.GetSettled(scratch, at, ks.ID, hash, key)
	return e.appendValue(dst, ks, &scratch.Record, ok && !e.expired(&scratch.Record), err)
}

// absent is the answer for a key that is not there.
func (ks *Keyspace) absent() error {
	if ks.Dropped.Load() {
		return fmt.Errorf("keyspace %q: %w", ks.Name, ErrDropped)
	}
	return ErrNotFound
}

// scratches holds the buffers of reads that go to the disk.
type scratches struct{ pool sync.Pool }

func (s *scratches) get() *layout.Scratch {
	if x, ok := s.pool.Get().(*layout.Scratch); ok {
		return x
	}
	return new(layout.Scratch)
}

func (s *scratches) put(x *layout.Scratch) { s.pool.Put(x) }

// getSlow answers what Get could not answer from memory alone. The caller holds a reference on v.
func (e *Engine) getSlow(dst []byte, v *view.View, overlay []view.Layer, ks *Keyspace, hash uint64, key []byte, seq uint64) ([]byte, error) {
	scratch := e.scratch.get()
	defer e.scratch.put(scratch)
	r, ok, err := e.find(scratch, v, overlay, ks, hash, key, seq)
	return e.appendValue(dst, ks, &r, ok, err)
}

// appendValue appends the value of what was found.
func (e *Engine) appendValue(dst []byte, ks *Keyspace, r *record.Record, ok bool, err error) ([]byte, error) {
	if err != nil {
		return dst, fmt.Errorf("get from keyspace %q: %w", ks.Name, err)
	}
	if !ok {
		return dst, ErrNotFound
	}
	if r.Kind == record.Inline {
		return append(dst, r.Value...), nil
	}
	ref, err := value.DecodeRef(r.Value)
	return e.readApart(dst, ks, ref, err)
}

// find returns the live record of a key. The caller holds a reference on v; the record is valid until scratch is used again.
func (e *Engine) find(scratch *layout.Scratch, v *view.View, overlay []view.Layer, ks *Keyspace, hash uint64, key []byte, seq uint64) (record.Record, bool, error) {
	for _, l := range overlay {
		if r, at, ok := l.Table.Get(ks.ID, hash, key, l.Seq); ok || l.Table.HasRanges() {
			if l.Table.Covered(ks.ID, key, l.Seq) > at || (ok && r.Kind == record.Tombstone) {
				return record.Record{}, false, nil
			}
			if ok {
				return r, !e.expired(&r), nil
			}
		}
	}
	r, ok, err := v.GetRead(scratch, ks.ID, hash, key, seq)
	if err != nil || !ok || e.expired(&r) {
		return record.Record{}, false, err
	}
	return r, true, nil
}

// expired reports whether a record is invisible by now.
func (e *Engine) expired(r *record.Record) bool {
	if r.Expiry == 0 || !r.Expired(e.Now()) {
		return false
	}
	e.clock.used.Store(true)
	return true
}

// Snapshot is a view and a sequence number, held.
type Snapshot struct {
	View *view.View
	Seq  uint64
	e    *Engine
}

// Snapshot takes a snapshot of the newest visible state. Release gives it up.
func (e *Engine) Snapshot() (Snapshot, error) {
	g := e.epoch.Enter()
	defer g.Exit()
	if e.closed.Load() {
		return Snapshot{}, ErrClosed
	}
	v, seq := e.acquire()
	v.Ref()
	return Snapshot{View: v, Seq: seq, e: e}, nil
}

// Of reports whether the snapshot is one of e.
func (s Snapshot) Of(e *Engine) bool { return s.e == e }

// Retain returns a second hold on the same state.
func (s Snapshot) Retain() Snapshot {
	s.View.Ref()
	return s
}

// Release gives the snapshot up. It is called once.
func (s Snapshot) Release() { s.View.Unref() }

// Get appends the value of a key, as the snapshot with an overlay in front shows it, to dst.
func (s Snapshot) Get(dst []byte, overlay []view.Layer, ks *Keyspace, key []byte) ([]byte, error) {
	hash := record.Hash(ks.ID, key)
	if len(overlay) == 0 {
		g := s.e.epoch.Enter()
		r, _, status := s.View.Get(ks.ID, hash, key, s.Seq)
		if status == layout.Found && r.Kind == record.Inline && r.Expiry == 0 {
			dst = append(dst, r.Value...)
			g.Exit()
			return dst, nil
		}
		g.Exit()
		if status == layout.Absent {
			return dst, ErrNotFound
		}
	}
	return s.e.getSlow(dst, s.View, overlay, ks, hash, key, s.Seq)
}

// Find returns a copy of the live record of a key, values apart as their reference.
func (s Snapshot) Find(overlay []view.Layer, ks *Keyspace, key []byte) (record.Record, bool, error) {
	scratch := s.e.scratch.get()
	defer s.e.scratch.put(scratch)
	r, ok, err := s.e.find(scratch, s.View, overlay, ks, record.Hash(ks.ID, key), key, s.Seq)
	r.Value = append([]byte(nil), r.Value...)
	return r, ok, err
}

// Iterator opens an iterator over the snapshot, which must be held until it is closed. What the snapshot knows it enters into o.
// It refuses bounds in a keyspace that keeps no order.
func (s Snapshot) Iterator(ks *Keyspace, o *view.IteratorOptions) (*view.Iterator, error) {
	if err := ks.CheckOrder("walk over a range of", o.Lower, o.Upper); err != nil {
		return nil, err
	}
	o.Keyspace, o.Seq, o.Now, o.Hid, o.NoSeek = ks.ID, s.Seq, s.e.Now(), &s.e.clock.used, ks.noSeek
	if ks.ordered() {
		o.Gaps, o.Noter = s.e.gaps.Of(ks.ID), s.e // after the sequence number was taken
	}
	return s.View.NewIterator(o), nil
}

// Count returns the number of pairs in [lo, hi).
func (s Snapshot) Count(overlay []view.Layer, ks *Keyspace, lo, hi []byte) (int64, error) {
	if err := ks.CheckOrder("count in a range of", lo, hi); err != nil {
		return 0, err
	}
	scratch := s.e.scratch.get()
	defer s.e.scratch.put(scratch)
	return s.View.Count(scratch, s.span(overlay, ks, lo, hi))
}

// Nth returns copies of the n-th pair of [lo, hi), values apart read.
func (s Snapshot) Nth(overlay []view.Layer, ks *Keyspace, lo, hi []byte, n int64) (key, val []byte, err error) {
	if !ks.ordered() {
		return nil, nil, ks.noOrder("find the n-th pair of")
	}
	scratch := s.e.scratch.get()
	defer s.e.scratch.put(scratch)
	key, r, ok, err := s.View.Nth(scratch, s.span(overlay, ks, lo, hi), n)
	if err != nil || !ok {
		if err == nil {
			err = ErrNotFound
		}
		return nil, nil, err
	}
	if r.Kind == record.Apart {
		val, err = s.e.reads.ReadValue(nil, r.Value)
		return key, val, err
	}
	return key, append([]byte{}, r.Value...), nil
}

func (s Snapshot) span(overlay []view.Layer, ks *Keyspace, lo, hi []byte) view.Span {
	if !ks.ordered() {
		lo = nil // it is empty, which a layout without order need not take for the start
	}
	return view.Span{Keyspace: ks.ID, Seq: s.Seq, Now: s.e.Now(), Lo: lo, Hi: hi, Overlay: overlay, Hid: &s.e.clock.used}
}

// Has reports whether a key is there.
func (s Snapshot) Has(overlay []view.Layer, ks *Keyspace, key []byte) (bool, error) {
	scratch := s.e.scratch.get()
	defer s.e.scratch.put(scratch)
	_, ok, err := s.e.find(scratch, s.View, overlay, ks, record.Hash(ks.ID, key), key, s.Seq)
	return ok, err
}

// Has reports whether a key is there. A value that lies apart is not read.
func (e *Engine) Has(ks *Keyspace, key []byte) (bool, error) {
	s, err := e.SnapshotFor(ks)
	if err != nil {
		return false, err
	}
	defer s.Release()
	return s.Has(nil, ks, key)
}

// SnapshotFor is Snapshot for a single read of a keyspace: one that was dropped cannot be read.
func (e *Engine) SnapshotFor(ks *Keyspace) (Snapshot, error) {
	s, err := e.Snapshot()
	if err == nil && ks.Dropped.Load() {
		s.Release()
		err = ks.absent()
	}
	return s, err
}
