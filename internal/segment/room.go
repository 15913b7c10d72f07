package segment

import (
	"errors"
	"fmt"
	"sync"

	"github.com/pandodb/pando/vfs"
)

// The system's page cache takes memory for what is appended in pieces as large as the writes are, and as their places allow: values of
// any length and place get a dozen small ones, of which each costs as much as copying what goes there, and once more when it is mapped.
// So the value that comes first into a stretch of the file writes zeros up to its end in the same call, and the stretch becomes one piece.
// Those who come later write over zeros in memory, before the device sees them for the most part.
//
// The zeros lie within space that is reserved anyway. Behind the last value they are given back when the segment is left; after a
// crash they stay, as do places that were taken and never written, and like them verify as nothing.

const (
	// stretchBytes is the length of a stretch, which begins at a multiple of it. Of four times as much the first read of a value takes
	// a fifth less, but such pieces the system takes from memory that it has not used yet, as long as there is any, instead of from
	// what was given back to it a moment ago: where that is slow, writing takes twice as long.
	stretchBytes = 32 << 10
)

// valueLog is where AppendValue takes places.
type valueLog struct {
	mu       sync.Mutex
	current  *file   // nil: the next value begins a new segment
	reserved int64   // current has space up to here
	filled   int64   // ... and memory in the page cache, or is about to have it
	unsynced []*file // segments that may hold writes which wait for a sync

	zeros   []byte     // of a stretch, made by who needs some first; never changed then, and guarded by filling
	filling sync.Mutex // held by who writes zeros, from the moment that he takes his place
	syncing sync.Mutex // one SyncValues at a time; taken before mu
	unnamed bool       // files were synced whose names were not; guarded by syncing
}

// room is a place for a value.
type room struct {
	f      *file
	offset int64
	zeros  int64 // so many follow the value, and filling is held
	wait   bool  // zeros may be on their way to this place
}

// reserve takes a place for length bytes. The caller, who has entered, writes there with writeTo, and calls finishValue.
func (s *Store) reserve(length int) (room, error) {
	v := &s.values
	v.mu.Lock()
	defer v.mu.Unlock()
	f := v.current
	if f != nil && f.size.Load()+int64(length) > s.options.SegmentBytes {
		v.leave()
		f = nil
	}
	if f == nil {
		var err error
		if f, err = s.add(Values, 0); err != nil {
			return room{}, fmt.Errorf("append value: %w", err)
		}
		f.state.Store(listed)
		v.begin(f)
		v.unsynced = append(v.unsynced, f)
	}
	if !f.acquire() {
		return room{}, fmt.Errorf("append value: %w", ErrClosed)
	}
	f.writers.Add(1)
	r := room{f: f, offset: f.size.Load()}
	end := r.offset + int64(length)
	f.size.Store(end)
	v.reserveSpace(end, s.options.SegmentBytes)
	r.wait = r.offset < v.filled
	if s.options.Ahead {
		r.zeros = v.fillAhead(end)
	}
	return r, nil
}

// begin makes f the current segment. The caller holds mu.
func (v *valueLog) begin(f *file) {
	if v.current != nil {
		v.current.growing.Store(false)
	}
	v.current, v.reserved, v.filled = f, 0, 0
	if f != nil {
		v.reserved, v.filled = f.left, f.left
	}
}

// What a segment has reserved behind its end is as much as it holds, within these limits.
const (
	reserveLeast = 64 << 10
	reserveMost  = 2 << 20
)

// reserveSpace sees to it that the current segment has space on the device up to end, and for some more but not beyond full: a write
// that finds its space reserved takes two thirds of the time. The caller holds mu.
func (v *valueLog) reserveSpace(end, full int64) {
	h := v.current.handle.Load()
	if end <= v.reserved || h == nil {
		return
	}
	to := max(end, min(end+min(max(end, reserveLeast), reserveMost), full))
	if whole := to &^ (stretchBytes - 1); whole >= end {
		to = whole
	}
	if r, ok := (*h).(vfs.Reserver); ok {
		r.Reserve(v.reserved, to)
	}
	v.reserved = to
}

// fillAhead is how many zeros are to follow a value that ends at end; when there are any it takes filling. The caller holds mu.
func (v *valueLog) fillAhead(end int64) int64 {
	to := (end + stretchBytes - 1) &^ (stretchBytes - 1)
	if end <= v.filled || to == end || to > v.reserved {
		return 0
	}
	if h := v.current.handle.Load(); h == nil {
		return 0
	} else if _, ok := (*h).(vfs.PieceWriter); !ok || !v.filling.TryLock() {
		return 0
	}
	if v.zeros == nil {
		v.zeros = make([]byte, stretchBytes)
	}
	v.filled = to
	return to - end
}

// leave gives the space back that the current segment does not need any more, and makes the next value begin a new one. While
// somebody writes, where the file ends is not known: then it keeps the space, as where the system refuses, until it is removed. The
// caller holds mu.
func (v *valueLog) leave() {
	f, reserved := v.current, v.reserved
	defer v.begin(nil) // until then the handle stays open
	if reserved == 0 || f.writers.Load() > 0 {
		return
	}
	h := f.handle.Load()
	if h == nil {
		return // closed
	}
	end, err := (*h).Size()
	end = min(end, f.size.Load()) // behind it lie zeros, or what the file held before
	if err == nil && end < reserved {
		_ = (*h).Truncate(end)
	}
}

// writeTo writes the pieces of a value, one behind the other, and the zeros behind them. It may append to pieces.
func (s *Store) writeTo(r room, pieces [][]byte) error {
	if r.wait && r.zeros == 0 {
		s.values.awaitZeros()
	}
	h, err := r.f.opened()
	if err != nil {
		return err
	}
	length := 0
	for _, piece := range pieces {
		length += len(piece)
	}
	if w, ok := h.(vfs.PieceWriter); ok {
		whole := pieces
		if r.zeros > 0 {
			whole = append(pieces, s.values.zeros[:r.zeros])
		}
		_, err = w.WritePiecesAt(whole, r.offset)
		if r.zeros > 0 && errors.Is(err, vfs.ErrNoSpace) {
			_, err = w.WritePiecesAt(pieces, r.offset) // there may be some without the zeros
		}
	} else {
		err = writeEach(h, pieces, r.offset)
	}
	if err != nil {
		return fmt.Errorf("%s: write value of %d bytes at %d: %w", r.f.name, length, r.offset, err)
	}
	r.f.wrote(r.offset, length)
	return nil
}

// awaitZeros returns when nobody writes zeros.
func (v *valueLog) awaitZeros() {
	v.filling.Lock()
	defer v.filling.Unlock()
}

// writeEach writes pieces with a call for each.
func writeEach(h vfs.File, pieces [][]byte, offset int64) error {
	for _, piece := range pieces {
		n, err := h.WriteAt(piece, offset)
		if err != nil {
			return err
		}
		offset += int64(n)
	}
	return nil
}

// finishValue ends what reserve began, and passes the error of the writes on.
func (s *Store) finishValue(r room, err error) error {
	if r.zeros > 0 {
		s.values.filling.Unlock()
	}
	r.f.dirty.Store(true)
	r.f.writers.Add(-1)
	r.f.release()
	return err
}
