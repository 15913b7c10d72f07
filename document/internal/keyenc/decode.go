package keyenc

import (
	"encoding/binary"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/order"
	"github.com/pandodb/pando/internal/corrupt"
)

// ErrMalformed is what Decode and Skip wrap when bytes are not an encoding. It wraps corrupt.Err: only keys that are stored are decoded.
var ErrMalformed = fmt.Errorf("keyenc: malformed key: %w", corrupt.Err)

// maxDepth is how deep objects and arrays may be within one another: more than any document that is accepted has.
const maxDepth = 250

// Decode returns the value of which the encoding begins src, and the rest. dst is where bytes of the value are appended: v lies in
// grown. A value that is not Exact comes back as one that is equal to it; what was encoded with a collation is garbage.
func Decode(dst, src []byte, descending bool) (v bsoncore.Value, grown, rest []byte, err error) {
	r := newReader(src, descending)
	n := len(dst)
	t, grown, err := r.value(dst, 0)
	if err != nil {
		return bsoncore.Value{}, dst, src, fmt.Errorf("decode at byte %d of %d: %w", r.at, len(src), err)
	}
	return bsoncore.Value{Type: t, Data: grown[n:len(grown):len(grown)]}, grown, src[r.at:], nil
}

// Skip returns what follows the first encoded value of src.
func Skip(src []byte, descending bool) (rest []byte, err error) {
	r := newReader(src, descending)
	if err := r.skip(0); err != nil {
		return src, fmt.Errorf("skip at byte %d of %d: %w", r.at, len(src), err)
	}
	return src[r.at:], nil
}

// reader reads an encoding, inverted or not.
type reader struct {
	src  []byte
	at   int
	mask byte // 0xff when bytes are inverted
}

func newReader(src []byte, descending bool) reader {
	r := reader{src: src}
	if descending {
		r.mask = 0xff
	}
	return r
}

func (r *reader) next() (byte, error) {
	if r.at >= len(r.src) {
		return 0, fmt.Errorf("%w: it ends within a value", ErrMalformed)
	}
	b := r.src[r.at] ^ r.mask
	r.at++
	return b, nil
}

// take appends the next n bytes.
func (r *reader) take(dst []byte, n int) ([]byte, error) {
	if n > len(r.src)-r.at {
		return dst, fmt.Errorf("%w: %d bytes are to follow, %d do", ErrMalformed, n, len(r.src)-r.at)
	}
	dst = append(dst, r.src[r.at:r.at+n]...)
	if r.mask != 0 {
		invert(dst[len(dst)-n:])
	}
	r.at += n
	return dst, nil
}

// uint reads n bytes, high ones first.
func (r *reader) uint(n int) (uint64, error) {
	x := uint64(0)
	for range n {
		b, err := r.next()
		if err != nil {
			return 0, err
		}
		x = x<<8 | uint64(b)
	}
	return x, nil
}

// value appends the data of the next value.
func (r *reader) value(dst []byte, depth int) (bsoncore.Type, []byte, error) {
	if depth > maxDepth {
		return 0, dst, fmt.Errorf("%w: more than %d values within one another", ErrMalformed, maxDepth)
	}
	tag, err := r.next()
	if err != nil {
		return 0, dst, err
	}
	if tag >= tagNaN && tag < tagNumberEnd {
		return r.number(dst, tag)
	}
	t := typeOf(tag)
	switch tag {
	case tagMinKey, tagMaxKey, tagUndefined, tagNull:
	case tagFalse, tagTrue:
		dst = append(dst, tag-tagFalse)
	case tagString, tagCode:
		dst, err = r.text(dst)
	case tagObject:
		dst, err = r.fields(dst, depth)
	case tagArray:
		dst, err = r.elements(dst, depth)
	case tagObjectID:
		dst, err = r.take(dst, objectIDSize)
	case tagDate, tagTimestamp:
		var x uint64
		x, err = r.uint(8)
		if tag == tagDate {
			x ^= 1 << 63
		}
		dst = binary.LittleEndian.AppendUint64(dst, x)
	default:
		dst, err = r.rare(dst, tag, depth)
	}
	return t, dst, err
}

// typeOf returns the type that a value with the first byte decodes to.
func typeOf(tag byte) bsoncore.Type {
	switch tag {
	case tagMinKey:
		return bsoncore.TypeMinKey
	case tagUndefined:
		return bsoncore.TypeUndefined
	case tagNull:
		return bsoncore.TypeNull
	case tagString:
		return bsoncore.TypeString
	case tagObject:
		return bsoncore.TypeEmbeddedDocument
	case tagArray:
		return bsoncore.TypeArray
	case tagBinary:
		return bsoncore.TypeBinary
	case tagObjectID:
		return bsoncore.TypeObjectID
	case tagFalse, tagTrue:
		return bsoncore.TypeBoolean
	case tagDate:
		return bsoncore.TypeDateTime
	case tagTimestamp:
		return bsoncore.TypeTimestamp
	case tagRegex:
		return bsoncore.TypeRegex
	case tagDBPointer:
		return bsoncore.TypeDBPointer
	case tagCode:
		return bsoncore.TypeJavaScript
	case tagCodeWithScope:
		return bsoncore.TypeCodeWithScope
	case tagMaxKey:
		return bsoncore.TypeMaxKey
	}
	return 0
}

// rare is value for what keys seldom hold.
func (r *reader) rare(dst []byte, tag byte, depth int) (_ []byte, err error) {
	start := len(dst)
	switch tag {
	case tagBinary:
		n, err := r.length()
		if err != nil {
			return dst, err
		}
		return r.take(binary.LittleEndian.AppendUint32(dst, uint32(n)), n+1)
	case tagRegex:
		if dst, err = r.cstring(dst); err == nil {
			dst, err = r.cstring(dst)
		}
		return dst, err
	case tagDBPointer:
		n, err := r.length()
		if err != nil {
			return dst, err
		}
		if dst, err = r.take(binary.LittleEndian.AppendUint32(dst, uint32(n+1)), n); err != nil {
			return dst, err
		}
		return r.take(append(dst, 0), objectIDSize)
	case tagCodeWithScope:
		if dst, err = r.text(append(dst, 0, 0, 0, 0)); err == nil {
			dst, err = r.fields(dst, depth)
		}
		binary.LittleEndian.PutUint32(dst[start:], uint32(len(dst)-start))
		return dst, err
	}
	return dst, fmt.Errorf("%w: no value begins with %#x", ErrMalformed, tag)
}

// text appends a string as BSON has it.
func (r *reader) text(dst []byte) ([]byte, error) {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	for {
		b, err := r.next()
		if err != nil {
			return dst, err
		}
		if b == terminator {
			break
		}
		if b == escape {
			if b, err = r.next(); err != nil {
				return dst, err
			}
			if b--; b != escapedZero-1 && b != escapedOne-1 {
				return dst, fmt.Errorf("%w: nothing is escaped as %#x", ErrMalformed, b+1)
			}
		}
		dst = append(dst, b)
	}
	dst = append(dst, 0)
	binary.LittleEndian.PutUint32(dst[start:], uint32(len(dst)-start-4))
	return dst, nil
}

// cstring appends bytes up to a zero byte, and that.
func (r *reader) cstring(dst []byte) ([]byte, error) {
	for {
		b, err := r.next()
		if err != nil {
			return dst, err
		}
		if dst = append(dst, b); b == 0 {
			return dst, nil
		}
	}
}

// length reads what appendLength wrote: in as few bytes as possible.
func (r *reader) length() (int, error) {
	b, err := r.next()
	if err != nil || b < lengthInline {
		return int(b), err
	}
	size := int(b - lengthInline)
	if size == 0 || size > 4 {
		return 0, fmt.Errorf("%w: a length of %d bytes", ErrMalformed, size)
	}
	n, err := r.uint(size)
	if err != nil {
		return 0, err
	}
	if n < lengthInline || n>>(8*(size-1)) == 0 || n > uint64(len(r.src)) {
		return 0, fmt.Errorf("%w: %d as a length in %d bytes", ErrMalformed, n, size)
	}
	return int(n), nil
}

// fields appends a document.
func (r *reader) fields(dst []byte, depth int) ([]byte, error) {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	for {
		class, err := r.next()
		if err != nil {
			return dst, err
		}
		if class == terminator {
			return closeDocument(dst, start), nil
		}
		at := len(dst)
		if dst, err = r.cstring(append(dst, 0)); err != nil {
			return dst, err
		}
		t, grown, err := r.value(dst, depth+1)
		if err != nil {
			return grown, err
		}
		if dst = grown; order.ClassOf(t) != order.Class(class) {
			return dst, fmt.Errorf("%w: a field of class %d has type %v", ErrMalformed, class, t)
		}
		dst[at] = byte(t)
	}
}

// elements appends an array.
func (r *reader) elements(dst []byte, depth int) ([]byte, error) {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	for i := 0; ; i++ {
		if r.at < len(r.src) && r.src[r.at]^r.mask == terminator {
			r.at++
			return closeDocument(dst, start), nil
		}
		at := len(dst)
		dst = append(appendPosition(append(dst, 0), i), 0)
		t, grown, err := r.value(dst, depth+1)
		if err != nil {
			return grown, err
		}
		dst = grown
		dst[at] = byte(t)
	}
}

// closeDocument ends the document that begins at start.
func closeDocument(dst []byte, start int) []byte {
	dst = append(dst, 0)
	binary.LittleEndian.PutUint32(dst[start:], uint32(len(dst)-start))
	return dst
}
