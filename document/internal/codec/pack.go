package codec

import (
	"encoding/binary"
	"slices"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// packer packs one document.
type packer struct {
	c     *Codec
	prove bool // nobody has looked at the document yet: what is packed is to be proven valid
	doubt bool // something was packed of which it is not known whether it is valid
}

// pack appends the front and the tails of doc by template t. It is not ok when doc has another shape, or is not what it would
// come back as. What dst holds behind its length is undefined then.
func (p *packer) pack(dst []byte, t *template, doc []byte, depth int) (packed []byte, ok bool, err error) {
	if !isWhole(doc) {
		return dst, false, nil
	}
	p.doubt = p.doubt || !t.sound
	base := len(dst)
	dst = slices.Grow(dst, t.front+len(doc)/2)[:base+t.front]
	clear(dst[base:])
	var starts [maxFlattened + 1]int32
	var registers [maxRegisters]int64
	pos, depthIn := 4, 0
	for i := range t.ops {
		o := &t.ops[i]
		if o.kind == kindLeave {
			depthIn--
			start := int(starts[depthIn])
			if pos >= len(doc) || doc[pos] != 0 || int(binary.LittleEndian.Uint32(doc[start:])) != pos+1-start {
				return dst, false, nil
			}
			pos++
			continue
		}
		value := pos + len(o.prefix)
		if value > len(doc) || string(doc[pos:value]) != o.prefix {
			return dst, false, nil
		}
		if o.kind == kindEnter {
			if len(doc)-value < 5 {
				return dst, false, nil
			}
			starts[depthIn] = int32(value)
			depthIn++
			pos = value + 4
			continue
		}
		if o.kind >= kindInt32 && o.kind <= kindDate { // the most frequent ones, without further calls
			n, size := numberAt(o.kind, doc[value:])
			if size < 0 {
				return dst, false, nil
			}
			var head byte
			if from := baseOf(o, n, &registers); o.kind == kindDate {
				head, dst = appendDate(dst, n, from)
			} else {
				head, dst = appendNumber(dst, zigzag(n-from))
			}
			dst[base+int(o.place)] = head
			pos = value + size
			continue
		}
		size := 0
		if o.kind == kindString { // as frequent
			var head byte
			if head, dst, size, err = p.packString(dst, o.column, doc[value:]); size < 0 || err != nil {
				return dst, false, err
			}
			dst[base+int(o.place)] = head
			pos = value + size
			continue
		}
		if dst, size, err = p.packField(dst, base, o, doc[value:], depth); size < 0 || err != nil {
			return dst, false, err
		}
		pos = value + size
	}
	return dst, pos == len(doc)-1, nil
}

// packField packs the value that src begins with, of the field of o; base is where the front is in dst. It returns the size
// of the value in src, or -1 when it cannot be packed.
func (p *packer) packField(dst []byte, base int, o *op, src []byte, depth int) ([]byte, int, error) {
	switch o.kind {
	case kindNothing:
		return dst, 0, nil
	case kindBool:
		if len(src) < 1 || src[0] > 1 {
			return dst, -1, nil
		}
		dst[base+int(o.place)] |= src[0] << o.bit
		return dst, 1, nil
	case kindFixed:
		size := int(o.size)
		if len(src) < size {
			return dst, -1, nil
		}
		copy(dst[base+int(o.place):], src[:size])
		return dst, size, nil
	case kindBinary:
		if len(src) < 5 || src[4] != o.subtype {
			return dst, -1, nil
		}
	}
	head, dst, size, err := p.packValue(dst, o.kind, o.typ, o.column, src, depth)
	if size >= 0 {
		dst[base+int(o.place)] = head
	}
	return dst, size, err
}

// packValue appends the tail of the value that src begins with, which is of a kind that has a head, and returns the head and
// the size of the value in src; -1 when it cannot be packed.
func (p *packer) packValue(dst []byte, k kind, typ byte, col *column, src []byte, depth int) (byte, []byte, int, error) {
	var head byte
	size := 8
	switch k {
	case kindInt32:
		if len(src) < 4 {
			return 0, dst, -1, nil
		}
		head, dst = appendNumber(dst, zigzag(int64(int32(binary.LittleEndian.Uint32(src)))))
		return head, dst, 4, nil
	case kindString:
		return p.packString(dst, col, src)
	case kindInt64, kindDate, kindDouble:
		if len(src) < 8 {
			return 0, dst, -1, nil
		}
	default:
		if size = valueSize(typ, src); size < 0 {
			return 0, dst, -1, nil
		}
	}
	switch k {
	case kindInt64:
		head, dst = appendNumber(dst, zigzag(int64(binary.LittleEndian.Uint64(src))))
	case kindDate:
		head, dst = appendDate(dst, int64(binary.LittleEndian.Uint64(src)), dateEpoch)
	case kindDouble:
		head, dst = appendDouble(dst, binary.LittleEndian.Uint64(src))
	case kindBinary:
		if typ == byte(bsoncore.TypeBinary) && binary.LittleEndian.Uint32(src) != uint32(size-5) {
			return 0, dst, -1, nil
		}
		p.doubt = p.doubt || src[4] == bson.TypeBinaryBinaryOld // with a length of its own inside
		head, dst = appendLength(dst, src[5:size])
	case kindArray:
		start := len(dst)
		var err error
		if dst, err = p.packArray(dst, src[:size], col, depth+1); err != nil {
			return 0, dst, -1, err
		}
		head, dst = lengthInFront(dst, start)
	default:
		p.doubt = true
		head, dst = appendLength(dst, src[:size])
	}
	return head, dst, size, nil
}

// packString appends the tail of a BSON string and returns its head and size.
func (p *packer) packString(dst []byte, col *column, src []byte) (byte, []byte, int, error) {
	size := lengthAt(src, 4, 5)
	if size < 0 || size > len(src) || src[size-1] != 0 {
		return 0, dst, -1, nil
	}
	text := src[4 : size-1]
	if col != nil && len(text) > 0 && len(text) <= MaxEntry {
		i, err := p.number(col, src[:size])
		switch {
		case err != nil:
			return 0, dst, -1, err
		case i >= headEntry2:
			i -= headEntry2
			return byte(headEntry2 + i>>8), append(dst, byte(i)), size, nil
		case i >= 0:
			return byte(i), dst, size, nil
		}
		if head, packed, ok, err := col.packPattern(dst, text); ok || err != nil {
			return head, packed, size, err
		}
	} else if p.prove && !utf8.Valid(text) {
		p.doubt = true
	}
	if len(text) <= maxText {
		return byte(headText + len(text)), append(dst, text...), size, nil
	}
	dst = binary.AppendUvarint(dst, uint64(len(text)))
	return headLong, append(dst, text...), size, nil
}

// number returns the number of a BSON string among the entries of a column, or -1.
func (p *packer) number(col *column, s []byte) (int, error) {
	hash, d := col.hash(s), col.unpacked()
	if i := d.find(p.c.seed, hash, s); i >= 0 {
		p.doubt = p.doubt || !d.numbers(p.c.seed).sound
		return i, nil
	}
	if p.prove && !utf8.Valid(s[4:len(s)-1]) {
		p.doubt = true
		return -1, nil // nor does it become an entry, which proves those that equal it
	}
	return col.note(d, hash, s)
}

// appendLength appends a tail of classLength and returns its head.
func appendLength(dst, body []byte) (byte, []byte) {
	if len(body) <= maxShort {
		return byte(len(body)), append(dst, body...)
	}
	dst = binary.AppendUvarint(dst, uint64(len(body)))
	return headLong, append(dst, body...)
}

// lengthInFront makes a tail of classLength of what dst has from start on, and returns its head.
func lengthInFront(dst []byte, start int) (byte, []byte) {
	n := len(dst) - start
	if n <= maxShort {
		return byte(n), dst
	}
	var room [binary.MaxVarintLen64]byte
	return headLong, slices.Insert(dst, start, room[:binary.PutUvarint(room[:], uint64(n))]...)
}
