package value

import (
	"encoding/binary"
	"fmt"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/segment"
)

// The payload of a KindValueIndex blob, as docs/format/segment.md lists it: the value's length, then a Ref for each chunk, then
// the key and its length. Every chunk but the last has ChunkBytes bytes, so their number follows from the length.
const (
	offsetTotal  = 0
	offsetChunks = 8
)

// index is where the chunks of a long value lie. It aliases the payload that it was decoded from.
type index struct {
	total uint64
	refs  []byte
	key   []byte
}

func chunkCount(total uint64) int { return int((total + ChunkBytes - 1) / ChunkBytes) }

func appendIndex(dst []byte, total uint64, chunks []Ref) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, total)
	for _, r := range chunks {
		dst = AppendRef(dst, r)
	}
	return dst
}

// decodeIndex reads the payload of an index blob and checks all of it, so that chunk cannot fail.
func decodeIndex(raw []byte) (index, error) {
	key, content, err := Owner(raw)
	if err != nil {
		return index{}, err
	}
	if len(content) < offsetChunks {
		return index{}, fmt.Errorf("value index of %d bytes: %w", len(content), corrupt.Err)
	}
	x := index{total: binary.LittleEndian.Uint64(content[offsetTotal:]), refs: content[offsetChunks:], key: key}
	if x.total <= ChunkBytes || x.total > MaxValue || len(x.refs) != chunkCount(x.total)*RefSize {
		return index{}, fmt.Errorf("value index of %d bytes for a value of %d: %w", len(content), x.total, corrupt.Err)
	}
	for i := range x.count() {
		r, err := DecodeRef(x.refs[i*RefSize:][:RefSize])
		if err != nil {
			return index{}, fmt.Errorf("chunk %d: %w", i, err)
		}
		if want := min(x.total-uint64(i)*ChunkBytes, ChunkBytes); r.Length != want {
			return index{}, fmt.Errorf("chunk %d of %d bytes instead of %d: %w", i, r.Length, want, corrupt.Err)
		}
	}
	return x, nil
}

func (x index) count() int { return len(x.refs) / RefSize }

// chunk returns where chunk i lies.
func (x index) chunk(i int) Ref {
	r, err := DecodeRef(x.refs[i*RefSize:][:RefSize])
	if err != nil {
		return Ref{} // decodeIndex has looked at every one
	}
	return r
}

// LastChunk returns where the last chunk of a long value lies, given the payload of its index. Who does not know the index takes that chunk for
// a value.
func LastChunk(raw []byte) (Ref, error) {
	x, err := decodeIndex(raw)
	if err != nil {
		return Ref{}, err
	}
	return x.chunk(x.count() - 1), nil
}

// readIndex reads the index of a long value; it lies in buf.
func readIndex(s *segment.Store, r Ref, buf *segment.Buffer) (index, error) {
	raw, h, err := s.Read(r.Pointer, buf)
	if err != nil {
		return index{}, fmt.Errorf("value index: %w", err)
	}
	if h.Kind != segment.KindValueIndex || h.Keyspace != r.Keyspace {
		return index{}, misplaced(r, h, segment.KindValueIndex)
	}
	x, err := decodeIndex(raw)
	if err != nil {
		return index{}, fmt.Errorf("segment %d: value index at %d: %w", r.Pointer.Segment, r.Pointer.Offset, err)
	}
	if x.total != r.Length {
		return index{}, fmt.Errorf("segment %d: value index at %d: %d bytes instead of %d: %w",
			r.Pointer.Segment, r.Pointer.Offset, x.total, r.Length, corrupt.Err)
	}
	return x, nil
}

func misplaced(r Ref, h segment.Header, want segment.Kind) error {
	return fmt.Errorf("segment %d: blob at %d has kind %d of keyspace %d instead of kind %d of keyspace %d: %w",
		r.Pointer.Segment, r.Pointer.Offset, h.Kind, h.Keyspace, want, r.Keyspace, corrupt.Err)
}
