package segment

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/zeebo/xxh3"
)

const (
	// gatherBytes: the parts of a longer plain value are hashed and written where they lie, which costs less than copying them
	// together first.
	gatherBytes = 64 << 10
	// scratchPieces is how many pieces a value usually has: header, value, key and its length, and zeros behind them.
	scratchPieces = 5
)

// valueScratch is the memory of one AppendValue call.
type valueScratch struct {
	blob   []byte
	raw    []byte
	pieces [][]byte // without any, and with room for those of a value
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
	if err := s.enter(); err != nil {
		return Pointer{}, fmt.Errorf("append value: %w", err)
	}
	defer s.leave()
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
		scratch = &valueScratch{pieces: make([][]byte, 0, scratchPieces)}
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
		return s.writeBlob(h, scratch.blob, scratch)
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
	return s.writeBlob(h, scratch.blob, scratch)
}

func shorter(a, b []byte) int { return cmp.Compare(len(a), len(b)) }

func (s *Store) recycle(scratch *valueScratch) {
	clear(scratch.pieces[:cap(scratch.pieces)]) // they are the caller's
	if cap(scratch.blob)+cap(scratch.raw) <= 2*keepCapacity {
		s.scratch.Put(scratch)
	}
}

// writeBlob writes a blob whose payload is complete and whose header is not.
func (s *Store) writeBlob(h Header, blob []byte, scratch *valueScratch) (Pointer, error) {
	r, err := s.reserve(len(blob))
	if err != nil {
		return Pointer{}, err
	}
	p := s.seal(blob, h, r.f.id, uint32(r.offset))
	return p, s.finishValue(r, s.writeTo(r, append(scratch.pieces, blob)))
}

// writeParts writes a blob whose payload lies in several pieces, from where they lie.
func (s *Store) writeParts(h Header, parts [][]byte, scratch *valueScratch) (Pointer, error) {
	length := HeaderSize + int(h.Stored)
	r, err := s.reserve(length)
	if err != nil {
		return Pointer{}, err
	}
	header := scratch.blob[:HeaderSize]
	h.put(header)
	scratch.hasher.ResetSeed(payloadSeed(header, s.place(r.f.id, uint32(r.offset))))
	for _, part := range parts {
		if _, err := scratch.hasher.Write(part); err != nil {
			return Pointer{}, s.finishValue(r, err)
		}
	}
	h.Sum = scratch.hasher.Sum64()
	binary.LittleEndian.PutUint64(header[offsetSum:], h.Sum)
	p := Pointer{Segment: r.f.id, Offset: uint32(r.offset), Length: uint32(length), Sum: h.Sum}
	return p, s.finishValue(r, s.writeTo(r, append(append(scratch.pieces, header), parts...)))
}

// SealValues makes the next AppendValue begin a new segment.
func (s *Store) SealValues() {
	if s.enter() != nil {
		return // there is no next one
	}
	defer s.leave()
	s.sealValues()
}

// sealValues is SealValues for who has entered, or keeps others from it.
func (s *Store) sealValues() {
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
	for _, f := range files {
		if err == nil && f.dirty.Load() {
			v.unnamed = true
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
	if v.unnamed {
		if err := s.syncNames(); err != nil {
			return err
		}
		v.unnamed = false
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
