package value

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/segment"
)

const (
	// RefSize is the length of an encoded Ref.
	RefSize = segment.PointerSize + 8
	// ChunkBytes is the length of a chunk; a longer value has several.
	ChunkBytes = 1 << 20
	// MaxValue is the longest value.
	MaxValue = 1 << 30

	// tailSize is the length of what follows the key at the end of every payload: the key's length.
	tailSize = 4
	// plainBit in an encoded length says that the value is one blob without compression.
	plainBit = 1 << 31
)

// ErrTooLarge is what errors.Is finds when a value is longer than MaxValue, or its key longer than record.MaxKey.
var ErrTooLarge = errors.New("value or key is too large")

// Ref says where a value lies and how to read it. It is the Value of a record of kind Apart.
type Ref struct {
	segment.Pointer        // of the value's blob, or of its index when it has several chunks
	Length          uint64 // of the value
	Keyspace        uint32
	Plain           bool // one blob, stored without compression
}

// AppendRef appends the encoded form of r to dst.
func AppendRef(dst []byte, r Ref) []byte {
	length := uint32(r.Length)
	if r.Plain {
		length |= plainBit
	}
	dst = segment.AppendPointer(dst, r.Pointer)
	dst = binary.LittleEndian.AppendUint32(dst, length)
	return binary.LittleEndian.AppendUint32(dst, r.Keyspace)
}

// DecodeRef reads a Ref from b, which holds nothing else. Its errors are corrupt.Err.
func DecodeRef(b []byte) (Ref, error) {
	if len(b) != RefSize {
		return Ref{}, fmt.Errorf("decode value reference: %d bytes instead of %d: %w", len(b), RefSize, corrupt.Err)
	}
	p, err := segment.DecodePointer(b)
	if err != nil {
		return Ref{}, fmt.Errorf("decode value reference: %w", err)
	}
	length := binary.LittleEndian.Uint32(b[segment.PointerSize:])
	r := Ref{
		Pointer:  p,
		Length:   uint64(length &^ plainBit),
		Keyspace: binary.LittleEndian.Uint32(b[segment.PointerSize+4:]),
		Plain:    length&plainBit != 0,
	}
	if p.IsZero() || r.Length > MaxValue || r.Plain && (r.chunked() || r.keyLength() < 0 || r.keyLength() > record.MaxKey) {
		return Ref{}, fmt.Errorf("decode value reference: a value of %d bytes in a blob of %d: %w", r.Length, p.Length, corrupt.Err)
	}
	return r, nil
}

// chunked tells whether Pointer is that of an index.
func (r Ref) chunked() bool { return r.Length > ChunkBytes }

// keyLength is that of the key behind a plain value.
func (r Ref) keyLength() int64 {
	return int64(r.Pointer.Length) - segment.HeaderSize - int64(r.Length) - tailSize
}

// newRef is the reference to a value of one blob, of which p is the place.
func newRef(p segment.Pointer, keyspace uint32, length, keyLength int) Ref {
	r := Ref{Pointer: p, Length: uint64(length), Keyspace: keyspace}
	r.Plain = r.keyLength() == int64(keyLength) // compression is used only where it saves something
	return r
}

// Owner splits the payload of a KindValue or KindValueIndex blob into the key that the value belongs to and what precedes it,
// for KindValue the value or chunk itself. Both alias raw.
func Owner(raw []byte) (key, content []byte, err error) {
	n := len(raw) - tailSize
	if n < 0 {
		return nil, nil, fmt.Errorf("value blob with a payload of %d bytes: %w", len(raw), corrupt.Err)
	}
	length := binary.LittleEndian.Uint32(raw[n:])
	if length > record.MaxKey || int(length) > n {
		return nil, nil, fmt.Errorf("value blob with a key of %d bytes in a payload of %d: %w", length, len(raw), corrupt.Err)
	}
	return raw[n-int(length) : n], raw[:n-int(length)], nil
}
