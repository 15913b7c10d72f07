package segment

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"

	"github.com/pandodb/pando/vfs"
	"github.com/zeebo/xxh3"
)

const (
	// gatherBytes: the long parts of a longer plain value are hashed and written where they lie, with a write each, which
	// costs less than copying them together first.
	gatherBytes = 64 << 10
	// inPlaceBytes is what a part must have to be written on its own.
	inPlaceBytes = 16 << 10
)

// valueLog is where AppendValue takes places.
type valueLog struct {
	mu       sync.Mutex
	current  *file   // nil: the next value begins a new segment
	reserved int64   // current has space up to here
	unsynced []*file // segments that may hold writes which wait for a sync

	syncing sync.Mutex // one SyncValues at a time; taken before mu
}

// valueScratch is the memory of one AppendValue call.
type valueScratch struct {
	blob   []byte
	raw    []byte
	hasher xxh3.Hasher
}

// AppendValue stores the parts, one after the other, as a KindValue blob in a segment of class Values. When it returns the
// value can be read and survives the end of the process; SyncValues makes it durable. After an error the value is not there,
// and the place that it took is lost until its segment is cleaned. codec is None, S2 or Zstd.
func (s *Store) AppendValue(keyspace uint32, codec Codec, parts ...[]byte) (Pointer, error) {
	return s.appendValue(KindValue, keyspace, codec, parts)
}

// AppendValueIndex is AppendValue for a KindValueIndex blob.
func (s *Store) AppendValueIndex(keyspace uint32, codec Codec, parts ...[]byte) (Pointer, error) {
	return s.appendValue(KindValueIndex, keyspace, codec, parts)
}

func (s *Store) appendValue(kind Kind, keyspace uint32, codec Codec, parts [][]byte) (Pointer, error) {
	if err := s.writable(); err != nil {
		return Pointer{}, fmt.Errorf("append value: %w", err)
	}
	total := 0
	for _, part := range parts {
		total += len(part)
	}
	if total > MaxBlob || codec > Zstd {
		return Pointer{}, fmt.Errorf("append value of %d bytes with codec %d: not allowed", total, codec)
	}
	scratch, ok := s.scratch.Get().(*valueScratch)
	if !ok {
		scratch = new(valueScratch)
	}
	defer s.recycle(scratch)

	h := Header{Kind: kind, Keyspace: keyspace, Stored: uint32(total), Raw: uint32(total)}
	scratch.blob = resize(scratch.blob, HeaderSize)
	if total > gatherBytes && codec != None && !worthwhile(codec, slices.MaxFunc(parts, shorter)) {
		codec = None
	}
	if codec == None && total > gatherBytes {
		return s.writeParts(h, parts, scratch)
	}
	if codec == None {
		for _, part := range parts {
			scratch.blob = append(scratch.blob, part...)
		}
		return s.writeBlob(h, scratch.blob)
	}
	var raw []byte
	if len(parts) == 1 {
		raw = parts[0]
	} else {
		scratch.raw = scratch.raw[:0]
		for _, part := range parts {
			scratch.raw = append(scratch.raw, part...)
		}
		raw = scratch.raw
	}
	var err error
	scratch.blob, h.Codec, err = s.codecs.appendStored(scratch.blob, codec, 0, thorough, raw)
	if err != nil {
		return Pointer{}, fmt.Errorf("append value: %w", err)
	}
	h.Stored = uint32(len(scratch.blob) - HeaderSize)
	return s.writeBlob(h, scratch.blob)
}

func shorter(a, b []byte) int { return cmp.Compare(len(a), len(b)) }

func (s *Store) recycle(scratch *valueScratch) {
	if cap(scratch.blob)+cap(scratch.raw) <= 2*keepCapacity {
		s.scratch.Put(scratch)
	}
}

// writeBlob writes a blob whose payload is complete and whose header is not.
func (s *Store) writeBlob(h Header, blob []byte) (Pointer, error) {
	f, offset, err := s.reserve(len(blob))
	if err != nil {
		return Pointer{}, err
	}
	p := s.seal(blob, h, f.id, uint32(offset))
	return p, f.finishValue(f.write(blob, offset))
}

// writeParts writes a blob whose payload lies in several pieces: the long ones from where they lie, what is short between
// them gathered.
func (s *Store) writeParts(h Header, parts [][]byte, scratch *valueScratch) (Pointer, error) {
	length := HeaderSize + int(h.Stored)
	f, offset, err := s.reserve(length)
	if err != nil {
		return Pointer{}, err
	}
	header := scratch.blob[:HeaderSize]
	h.put(header)
	scratch.hasher.ResetSeed(payloadSeed(header, s.place(f.id, uint32(offset))))
	for _, part := range parts {
		if _, err := scratch.hasher.Write(part); err != nil {
			return Pointer{}, f.finishValue(err)
		}
	}
	h.Sum = scratch.hasher.Sum64()
	binary.LittleEndian.PutUint64(header[offsetSum:], h.Sum)
	p := Pointer{Segment: f.id, Offset: uint32(offset), Length: uint32(length), Sum: h.Sum}

	gathered, at := header, offset // what waits to be written, and where
	for _, part := range parts {
		if len(part) < inPlaceBytes {
			gathered = append(gathered, part...)
			continue
		}
		if err == nil && len(gathered) > 0 {
			err = f.write(gathered, at)
		}
		at += int64(len(gathered))
		if err == nil {
			err = f.write(part, at)
		}
		at += int64(len(part))
		gathered = gathered[:0]
	}
	if err == nil && len(gathered) > 0 {
		err = f.write(gathered, at)
	}
	scratch.blob = gathered
	return p, f.finishValue(err)
}

func (f *file) write(b []byte, offset int64) error {
	h, err := f.opened()
	if err != nil {
		return err
	}
	if _, err := h.WriteAt(b, offset); err != nil {
		return fmt.Errorf("%s: write value of %d bytes at %d: %w", f.name, len(b), offset, err)
	}
	return nil
}

// reserve takes a place for length bytes. The caller writes there and calls finishValue.
func (s *Store) reserve(length int) (*file, int64, error) {
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
			return nil, 0, fmt.Errorf("append value: %w", err)
		}
		f.state.Store(listed)
		v.current, v.reserved = f, f.left
		v.unsynced = append(v.unsynced, f)
	}
	if !f.acquire() {
		return nil, 0, fmt.Errorf("append value: %w", ErrClosed)
	}
	f.writers.Add(1)
	offset := f.size.Load()
	f.size.Store(offset + int64(length))
	v.reserveSpace(offset+int64(length), s.options.SegmentBytes)
	return f, offset, nil
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
	if r, ok := (*h).(vfs.Reserver); ok {
		to := max(end, min(end+min(max(end, reserveLeast), reserveMost), full))
		r.Reserve(v.reserved, to)
		v.reserved = to
	}
}

// leave gives the space back that the current segment does not need any more, and makes the next value begin a new one. While
// somebody writes, where the file ends is not known: then it keeps the space, as where the system refuses, until it is removed. The
// caller holds mu.
func (v *valueLog) leave() {
	f, reserved := v.current, v.reserved
	v.current, v.reserved = nil, 0
	if reserved == 0 || f.writers.Load() > 0 {
		return
	}
	h := f.handle.Load()
	if h == nil {
		return // closed
	}
	end, err := (*h).Size()
	if f.left > 0 {
		end = min(end, f.size.Load()) // behind it lies what the file held before
	}
	if err == nil && end < reserved {
		_ = (*h).Truncate(end)
	}
}

// finishValue ends what reserve began, and passes the error of the writes on.
func (f *file) finishValue(err error) error {
	f.dirty.Store(true)
	f.writers.Add(-1)
	f.release()
	return err
}

// SealValues makes the next AppendValue begin a new segment.
func (s *Store) SealValues() {
	s.values.mu.Lock()
	defer s.values.mu.Unlock()
	s.values.leave()
}

// SyncValues makes every value durable whose AppendValue had returned before. It syncs only files that hold unsynced
// values; calls that meet wait for each other and mostly find nothing left to do. When it fails the store accepts no more
// writes.
func (s *Store) SyncValues() error {
	v := &s.values
	v.syncing.Lock()
	defer v.syncing.Unlock()
	if err := s.failed(); err != nil {
		return fmt.Errorf("sync values: %w", err) // what it lost is not known: not even "nothing to do" may be said
	}
	v.mu.Lock()
	files := slices.DeleteFunc(slices.Clone(v.unsynced), func(f *file) bool { return !f.acquire() })
	complete := len(files) == len(v.unsynced) // Remove takes a file from the list first, so only Close keeps us out
	v.mu.Unlock()

	var err error
	named := true
	for _, f := range files {
		if err == nil && f.dirty.Load() {
			named = false
			err = s.syncFile(f)
		}
		f.release()
	}
	if err == nil && !complete {
		err = fmt.Errorf("sync values: %w", ErrClosed)
	}
	if err != nil {
		return err
	}
	if !named {
		if err := s.syncNames(); err != nil {
			return err
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.unsynced = slices.DeleteFunc(v.unsynced, func(f *file) bool {
		return f != v.current && f.writers.Load() == 0 && !f.dirty.Load()
	})
	return nil
}

// syncFile makes a file durable unless nothing was written to it since it was synced last.
func (s *Store) syncFile(f *file) error {
	if err := s.writable(); err != nil {
		return fmt.Errorf("sync %s: %w", f.name, err)
	}
	if !f.dirty.Swap(false) {
		return nil
	}
	opener := f.opened
	if f.earlier {
		opener = f.open
	}
	h, err := opener()
	if f.earlier && errors.Is(err, fs.ErrNotExist) {
		return nil // it is lost, as Damage says: nothing is left to be synced
	}
	if err != nil {
		f.dirty.Store(true)
		return fmt.Errorf("sync %s: %w", f.name, err)
	}
	if err := h.Sync(); err != nil {
		err = fmt.Errorf("sync %s: %w", f.name, err)
		s.fail(err)
		return err
	}
	return nil
}
