package engine

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/pandodb/pando/internal/segment"
	"github.com/pandodb/pando/internal/value"
)

// A value that lies apart is written when it is handed over, before its commit. Until the commit has been carried out, or
// given up, nothing refers to it that the cleaner could see: a hold keeps the cleaner from every segment that the value may
// lie in, which are those that were open or did not exist when the hold was taken.

// valueHolds are the holds in force, and what the memtable in front has to do with values.
type valueHolds struct {
	mu    sync.Mutex
	holds map[*ValueHold]struct{}

	// Of Engine.valuesWritten, what was written before the memtable in front began, and the bytes behind that with which it settles
	// whatever that costs; and what was written before writers were slowed down last. All belong to who leads.
	before, most, paced int64
}

// ValueHold protects values on their way to a commit. Release gives it up, and may be called twice.
type ValueHold struct {
	from   uint32 // segments from this number on are protected
	stored int64  // bytes of the values
	e      *Engine
}

// HoldValues takes a hold. It comes before the values are written.
func (e *Engine) HoldValues() *ValueHold {
	h := &ValueHold{from: e.store.OpenValueSegment(), e: e}
	e.values.mu.Lock()
	e.values.holds[h] = struct{}{}
	e.values.mu.Unlock()
	return h
}

// End gives the hold up after the commit that refers to its values, with the error of which it returns.
func (h *ValueHold) End(commit error) error {
	if commit != nil {
		h.GiveUp()
	} else {
		h.Release()
	}
	return commit
}

// Committed notes that a commit refers to the values: GiveUp, which may still come, is nothing but Release then.
func (h *ValueHold) Committed() { h.stored = 0 }

// GiveUp is Release where no commit refers to the values: once those that were given up are worth it, their space is given back without
// waiting for a checkpoint.
func (h *ValueHold) GiveUp() {
	h.Release()
	if e := h.e; e.valuesGivenUp.Add(h.stored) >= min(e.sizes.segment, mostGivenUp) || h.stored > 0 && e.space.short.Load() {
		e.valuesGivenUp.Store(0)
		e.litter()
	}
}

// mostGivenUp is how many bytes of values that were given up may wait for a checkpoint.
const mostGivenUp = 8 << 20

// Release gives the hold up.
func (h *ValueHold) Release() {
	h.e.values.mu.Lock()
	delete(h.e.values.holds, h)
	h.e.values.mu.Unlock()
}

// unheldValues returns the number below which no value segment is open or held.
func (e *Engine) unheldValues() uint32 {
	// The open segment is asked for first: a hold taken later protects what comes behind it anyway.
	below := e.store.OpenValueSegment()
	e.values.mu.Lock()
	defer e.values.mu.Unlock()
	for h := range e.values.holds {
		below = min(below, h.from)
	}
	return below
}

// Store writes a value.
func (h *ValueHold) Store(ks *Keyspace, key, val []byte) (value.Ref, error) {
	e := h.e
	if err := cmp.Or(e.usable(), e.spaceForValue()); err != nil {
		return value.Ref{}, err
	}
	codec := e.valueCodec(ks)
	ref, err := value.Append(e.store, ks.ID, codec, key, val)
	h.wrote(int64(len(val)))
	if err != nil {
		e.litter()
		err = e.ended(err)
	}
	return ref, err
}

// Stream writes a value of any length without keeping it in memory.
func (h *ValueHold) Stream(ks *Keyspace, key []byte, r io.Reader) (value.Ref, error) {
	e := h.e
	if err := cmp.Or(e.usable(), e.spaceForValue()); err != nil {
		return value.Ref{}, err
	}
	codec := e.valueCodec(ks)
	w := value.NewWriter(e.store, ks.ID, codec, key)
	stored := false
	defer func() {
		if !stored { // also where r panics
			w.Abort()
			e.litter()
		}
	}()
	n, err := io.Copy(w, io.LimitReader(r, MaxValueBytes+1))
	h.wrote(n)
	if err == nil && n > MaxValueBytes {
		err = ErrValueTooLarge
	}
	if err != nil {
		return value.Ref{}, fmt.Errorf("store a value: %w", e.ended(err))
	}
	ref, err := w.Finish()
	if stored = err == nil; !stored {
		err = e.ended(err)
	}
	return ref, err
}

// wrote accounts a value.
func (h *ValueHold) wrote(n int64) {
	e := h.e
	h.stored += n
	e.counters.valueBytes.Add(n)
	e.valuesWritten.Add(n) // the commit that refers to the value sees to it
}

// The space of a value that was replaced or deleted is given back by a checkpoint. A memtable holds no more of a value apart than
// where it lies, so that what it replaces may be many times as large as all there is by the time it is full. So the values that it may
// bring are limited as its own bytes are: while the memtable behind it settles, writers are slowed down, and stopped at the limit.
const (
	// valueSegments is how many segments full of values are little. With one instead of four an overwrite costs less only where the
	// system is slow to give memory, and the load of new values a fifth more everywhere.
	valueSegments = 4
	// valuePerRecord is how many bytes of values there must be for each record before a checkpoint is made for their sake: it may
	// have to write a leaf for each.
	valuePerRecord = 32 << 10
	// valuePerSettled is how many bytes of values settle in the time of one byte of a memtable.
	valuePerSettled = 16
)

// beginValues notes that a new memtable comes in front. The caller leads.
func (e *Engine) beginValues() {
	live := int64(0)
	for _, i := range e.store.Segments() {
		if i.Class == segment.Values {
			live += max(i.Live, 0)
		}
	}
	e.values.before, e.values.most = e.valuesWritten.Load(), live
	e.values.paced = e.values.before
}

// newValues is how many bytes of values were written since the memtable in front began. The caller leads.
func (e *Engine) newValues() int64 { return e.valuesWritten.Load() - e.values.before }

// valuesLimit is with how many bytes of values a memtable in front of so many records is to settle. The caller leads.
func (e *Engine) valuesLimit(records int) int64 {
	return max(valueSegments*e.sizes.segment, min(e.values.most, valuePerRecord*int64(records)))
}

// valuesDue reports whether the memtable in front, of so many records, has come to the limit. The caller leads.
func (e *Engine) valuesDue(records int) bool {
	return records > 0 && e.newValues() >= e.valuesLimit(records)
}

// valuesToPace is how many bytes of values were written since it was asked last. The caller leads.
func (e *Engine) valuesToPace() int64 {
	written := e.valuesWritten.Load()
	n := written - e.values.paced
	e.values.paced = written
	return n
}

// OpenValue returns a reader of a value that lies apart.
func (s Snapshot) OpenValue(encoded []byte) (*value.Reader, error) {
	ref, err := value.DecodeRef(encoded)
	if err != nil {
		return nil, err
	}
	return value.NewReader(s.e.store, ref), nil
}

// litter says that a value was given up half-way, perhaps after it had filled the disk: the worker is to sweep.
func (e *Engine) litter() {
	e.store.SealValues()
	e.littered.Store(true)
	e.wakeWorker()
}

// sweepValues removes segments full of values that were given up. They were made since the last checkpoint, so that no
// catalogue lists them, and no record of the log refers to them: they can go without one, when there is no space for any. It reports whether
// that was done, and is not to be done again: other such values may lie in segments that only a checkpoint gives back.
func (e *Engine) sweepValues() bool {
	if !e.littered.Swap(false) {
		return false
	}
	e.settling.Lock()
	defer e.settling.Unlock()
	e.sweepLocked()
	return !e.littered.Load()
}

// sweepLocked is the work of sweepValues. The caller is settling.
func (e *Engine) sweepLocked() {
	if e.failure.Load() != nil {
		return // the root that the next open finds may refer to what none in force refers to
	}
	below, listed := e.unheldValues(), e.root.Current().NextSegment
	for _, i := range e.store.Segments() {
		if i.Class != segment.Values || i.LastSeq != 0 || i.Live > 0 || i.ID < listed {
			continue
		}
		if i.ID >= below {
			e.littered.Store(true) // its writer has not let go yet, or another's value may lie in it
			continue
		}
		e.removeSegments([]uint32{i.ID})
	}
	e.store.GiveBack() // what they were given up for may be the want of space
}

// ended says ErrClosed instead of what a value meets whose writing was overtaken by Close, and ErrFailed where a sync has failed
// behind it.
func (e *Engine) ended(err error) error {
	switch {
	case e.closed.Load():
		return ErrClosed
	case errors.Is(err, segment.ErrFailed):
		return e.fail(err)
	case isDiskFull(err):
		e.store.GiveBack()
	}
	return err
}
