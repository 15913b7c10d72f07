package segment

import (
	"encoding/binary"
	"fmt"

	"github.com/pandodb/pando/internal/corrupt"
)

// PointerSize is the length of an encoded Pointer.
const PointerSize = 20

// Pointer says where a blob lies and what it must be. The zero Pointer points to nothing.
type Pointer struct {
	Segment uint32 // number of the segment, from 1
	Offset  uint32 // of the blob's header in the segment file
	Length  uint32 // bytes in the file, header included
	Sum     uint64 // the blob's checksum
}

// IsZero reports whether p points to nothing.
func (p Pointer) IsZero() bool { return p == Pointer{} }

// AppendPointer appends the encoded form of p to dst.
func AppendPointer(dst []byte, p Pointer) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, p.Segment)
	dst = binary.LittleEndian.AppendUint32(dst, p.Offset)
	dst = binary.LittleEndian.AppendUint32(dst, p.Length)
	return binary.LittleEndian.AppendUint64(dst, p.Sum)
}

// DecodePointer reads a Pointer from the first PointerSize bytes of b. It fails with an error that is corrupt.Err when b is
// too short or holds what can be no pointer.
func DecodePointer(b []byte) (Pointer, error) {
	if len(b) < PointerSize {
		return Pointer{}, fmt.Errorf("decode pointer: %d bytes instead of %d: %w", len(b), PointerSize, corrupt.Err)
	}
	p := Pointer{
		Segment: binary.LittleEndian.Uint32(b),
		Offset:  binary.LittleEndian.Uint32(b[4:]),
		Length:  binary.LittleEndian.Uint32(b[8:]),
		Sum:     binary.LittleEndian.Uint64(b[12:]),
	}
	if !p.IsZero() && (p.Segment == 0 || p.Offset < FileHeaderSize || p.Length < HeaderSize) {
		return Pointer{}, fmt.Errorf("decode pointer: segment %d, offset %d, length %d: %w", p.Segment, p.Offset, p.Length, corrupt.Err)
	}
	return p, nil
}
