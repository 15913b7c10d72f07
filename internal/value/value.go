package value

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/segment"
)

// Append stores val as the value of key and says where. It survives the end of the process; segment.SyncValues makes it
// durable. codec is None, S2 or Zstd. After an error nothing of it counts as live.
func Append(s *segment.Store, keyspace uint32, codec segment.Codec, key, val []byte) (Ref, error) {
	if len(val) <= ChunkBytes {
		return appendChunk(s, keyspace, codec, key, val)
	}
	w := NewWriter(s, keyspace, codec, key)
	if _, err := w.Write(val); err != nil {
		w.Abort()
		return Ref{}, err
	}
	return w.Finish()
}

// usualKey is the length of keys for which room is made behind a compressed value, so that it can be decompressed in place.
const usualKey = 64

// zstdLeast is the length from which on zstd is taken where it is asked for. A page is decompressed when it comes into the page cache, a value
// each time that it is read, and compressed while its writer waits. Zstd takes three times as long as S2 for that on documents of 5 KB, on both
// ends, and a quarter less space; on those of 64 KB half as long again to read.
const zstdLeast = 32 << 10

// appendChunk stores one chunk of key's value.
func appendChunk(s *segment.Store, keyspace uint32, codec segment.Codec, key, chunk []byte) (Ref, error) {
	if len(key) > record.MaxKey {
		return Ref{}, fmt.Errorf("store value: key of %d bytes: %w", len(key), ErrTooLarge)
	}
	if codec == segment.Zstd && len(chunk) < zstdLeast {
		codec = segment.S2
	}
	var tail [tailSize]byte
	binary.LittleEndian.PutUint32(tail[:], uint32(len(key)))
	p, err := s.AppendValue(keyspace, codec, chunk, key, tail[:])
	if err != nil {
		return Ref{}, fmt.Errorf("store value: %w", err)
	}
	return newRef(p, keyspace, len(chunk), len(key)), nil
}

// Prefetch asks the processor for the value of an encoded reference, which will be read soon: all of one that is short.
func Prefetch(s *segment.Store, ref []byte) {
	if len(ref) != RefSize {
		return
	}
	if p, err := segment.DecodePointer(ref); err == nil {
		s.PrefetchAll(p)
	}
}

// Read appends the value to dst. On an error dst is returned as it was. To read a value without compression in place, dst
// needs room for the value's key and four bytes behind the value; with less room it costs a copy, and with too little for
// the value itself memory is allocated.
func Read(s *segment.Store, dst []byte, r Ref) ([]byte, error) {
	if r.chunked() {
		return readChunks(s, dst, r)
	}
	return readChunk(s, dst, r)
}

func readChunk(s *segment.Store, dst []byte, r Ref) ([]byte, error) {
	room, stored := cap(dst)-len(dst), int(r.Pointer.Length)-segment.HeaderSize
	if !r.Plain || room < stored && room >= int(r.Length) {
		return readPacked(s, dst, r)
	}
	if n := r.keyLength(); n < 0 || n > record.MaxKey || r.chunked() {
		return dst, fmt.Errorf("segment %d: value of %d bytes at %d in a blob of %d: %w",
			r.Pointer.Segment, r.Length, r.Pointer.Offset, r.Pointer.Length, corrupt.Err)
	}
	grown := slices.Grow(dst, stored)
	if err := s.ReadPlain(r.Pointer, segment.KindValue, r.Keyspace, grown[len(dst):len(dst)+stored]); err != nil {
		return dst, fmt.Errorf("value: %w", err)
	}
	return grown[:len(dst)+int(r.Length)], nil
}

// readPacked reads a chunk of which not the whole blob belongs into dst's memory.
func readPacked(s *segment.Store, dst []byte, r Ref) ([]byte, error) {
	buf := s.GetBuffer()
	defer s.PutBuffer(buf)
	grown := dst
	if cap(dst)-len(dst) < int(r.Length) && r.Length <= ChunkBytes {
		grown = slices.Grow(dst, int(r.Length)+tailSize+usualKey)
	}
	spare := grown[len(dst):]
	raw, h, err := s.ReadNear(r.Pointer, buf, spare)
	if err != nil {
		return dst, fmt.Errorf("value: %w", err)
	}
	if err := checkChunk(r, h, raw); err != nil {
		return dst, err
	}
	if len(raw) <= cap(spare) && &raw[0] == &spare[:1][0] { // it has at least the length of a key
		return grown[:len(dst)+int(r.Length)], nil
	}
	return append(grown, raw[:r.Length]...), nil
}

// checkChunk checks that a verified payload is what the reference says.
func checkChunk(r Ref, h segment.Header, raw []byte) error {
	if h.Kind != segment.KindValue || h.Keyspace != r.Keyspace {
		return misplaced(r, h, segment.KindValue)
	}
	_, content, err := Owner(raw)
	if err == nil && uint64(len(content)) != r.Length {
		err = fmt.Errorf("value of %d bytes instead of %d: %w", len(content), r.Length, corrupt.Err)
	}
	if err != nil {
		return fmt.Errorf("segment %d: blob at %d: %w", r.Pointer.Segment, r.Pointer.Offset, err)
	}
	return nil
}

func readChunks(s *segment.Store, dst []byte, r Ref) ([]byte, error) {
	buf := s.GetBuffer()
	defer s.PutBuffer(buf)
	x, err := readIndex(s, r, buf)
	if err != nil {
		return dst, err
	}
	// Room for the last chunk's key, so that every chunk is read in place.
	out := slices.Grow(dst, int(r.Length)+len(x.key)+tailSize)
	for i := range x.count() {
		if out, err = readChunk(s, out, x.chunk(i)); err != nil {
			return dst, err
		}
	}
	return out, nil
}

// Walk calls fn for every blob of the value, chunks before their index. It reads only the index of a long value.
func Walk(s *segment.Store, r Ref, fn func(p segment.Pointer, kind segment.Kind) error) error {
	if !r.chunked() {
		return fn(r.Pointer, segment.KindValue)
	}
	buf := s.GetBuffer()
	defer s.PutBuffer(buf)
	x, err := readIndex(s, r, buf)
	if err != nil {
		return err
	}
	for i := range x.count() {
		if err := fn(x.chunk(i).Pointer, segment.KindValue); err != nil {
			return err
		}
	}
	return fn(r.Pointer, segment.KindValueIndex)
}

// Keep accounts every blob of the value live when w is committed: a root refers to it from then on.
func Keep(s *segment.Store, r Ref, w *segment.Writer) error {
	return Walk(s, r, func(p segment.Pointer, _ segment.Kind) error {
		w.Keep(p)
		return nil
	})
}

// Free accounts every blob of the value dead when w is committed. A long value whose index is damaged is an error, and
// only the index is freed; its chunks stay until their segments are cleaned.
func Free(s *segment.Store, r Ref, w *segment.Writer) error {
	err := Walk(s, r, func(p segment.Pointer, _ segment.Kind) error {
		w.Free(p)
		return nil
	})
	if errors.Is(err, corrupt.Err) {
		w.Free(r.Pointer)
	}
	return err
}

// Verify reads all of the value and returns what is wrong with it, or nil.
func Verify(s *segment.Store, r Ref) error {
	if r.chunked() {
		_, err := NewReader(s, r).WriteTo(io.Discard)
		return err
	}
	buf := s.GetBuffer()
	defer s.PutBuffer(buf)
	raw, h, err := s.Read(r.Pointer, buf)
	if err != nil {
		return fmt.Errorf("value: %w", err)
	}
	return checkChunk(r, h, raw)
}

// Renew writes every blob of the value once more: see segment.Store.Renew.
func Renew(s *segment.Store, r Ref) error {
	return Walk(s, r, func(p segment.Pointer, _ segment.Kind) error { return s.Renew(p) })
}

// Copy stores the value anew, like Append, as that of key, and returns where the copy lies. The old blobs stay live.
func Copy(s *segment.Store, r Ref, key []byte, codec segment.Codec) (Ref, error) {
	w := NewWriter(s, r.Keyspace, codec, key)
	if _, err := NewReader(s, r).WriteTo(w); err != nil {
		w.Abort()
		return Ref{}, err
	}
	return w.Finish()
}
