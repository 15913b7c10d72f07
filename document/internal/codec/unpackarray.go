package codec

import (
	"encoding/binary"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// array appends the array with head h whose tail is at pos of src.
func (u *unpacker) array(dst []byte, col *column, h byte, src []byte, pos int) ([]byte, int) {
	body, end := readLength(h, src, pos)
	if u.depth++; end < 0 || u.depth > MaxNesting+1 {
		return dst, -1
	}
	if len(body) > 0 && body[0] == arrayWhole {
		if !Sound(body[1:]) {
			return dst, -1
		}
		u.depth--
		return append(dst, body[1:]...), end
	}
	start, ok := len(dst), true
	dst = append(dst, 0, 0, 0, 0)
	if len(body) > 0 {
		switch form := body[0]; form {
		case arrayDocuments:
			ok = u.documents(&dst, body[1:])
		case byte(bsoncore.TypeString):
			dst, ok = u.strings(dst, body[1:], col)
		default:
			ok = u.elements(&dst, form, body[1:], col)
		}
	}
	if !ok {
		return dst, -1
	}
	u.depth--
	return endDocument(dst, start), end
}

// appendIndex appends type and name of the i-th element of an array.
func appendIndex(dst []byte, typ byte, i int) []byte {
	if i < 10 {
		return append(dst, typ, byte('0'+i), 0)
	}
	return append(strconv.AppendInt(append(dst, typ), int64(i), 10), 0)
}

// elements appends elements of one type, or of several when form is arrayMixed.
func (u *unpacker) elements(dst *[]byte, form byte, body []byte, col *column) bool {
	typ, pos := form, 0
	for i := 0; pos < len(body); i++ {
		if len(*dst) > u.limit {
			return false
		}
		if form == arrayMixed {
			typ, pos = body[pos], pos+1
		}
		k, size, ok := kindOf(typ)
		if !ok || (k == kindNothing && form != arrayMixed) {
			return false
		}
		*dst = appendIndex(*dst, typ, i)
		if pos = u.element(dst, k, typ, size, body, pos, col); pos < 0 {
			return false
		}
	}
	return true
}

// strings is elements for an array of nothing but strings.
func (u *unpacker) strings(dst []byte, body []byte, col *column) ([]byte, bool) {
	pos := 0
	for i := 0; pos < len(body); i++ {
		if len(dst) > u.limit {
			return dst, false
		}
		dst = appendIndex(dst, byte(bsoncore.TypeString), i)
		if dst, pos = appendString(dst, col, body[pos], body, pos+1); pos < 0 {
			return dst, false
		}
	}
	return dst, true
}

// element appends the value of an element at pos of body, and returns where it ends, or -1.
func (u *unpacker) element(dst *[]byte, k kind, typ byte, size int, body []byte, pos int, col *column) int {
	if k == kindNothing {
		return pos
	}
	if pos >= len(body) {
		return -1
	}
	var value []byte
	switch k {
	case kindBool:
		*dst = append(*dst, body[pos])
		if body[pos] > 1 {
			return -1
		}
		return pos + 1
	case kindFixed:
		value, pos = readShort(body, pos, size)
		*dst = append(*dst, value...)
		return pos
	case kindEnter:
		return u.embedded(dst, body, pos)
	case kindBinary:
		if pos+2 > len(body) {
			return -1
		}
		*dst, pos = appendBinary(*dst, body[pos], body[pos+1], body, pos+2)
		return pos
	}
	*dst, pos = u.value(*dst, k, typ, col, body[pos], body, pos+1)
	return pos
}

// embedded appends a document of a mixed array.
func (u *unpacker) embedded(dst *[]byte, body []byte, pos int) int {
	number, n := binary.Uvarint(body[pos:])
	if n <= 0 || number > MaxTemplates {
		return -1
	}
	pos += n
	if number == documentWhole {
		size := valueSize(byte(bsoncore.TypeEmbeddedDocument), body[pos:])
		if size < 0 || !Sound(body[pos:pos+size]) {
			return -1
		}
		*dst = append(*dst, body[pos:pos+size]...)
		return pos + size
	}
	return u.packed(dst, u.c.table.Load().at(int(number)-1), body, pos)
}

// packed appends a document of a template that begins at pos of body.
func (u *unpacker) packed(dst *[]byte, t *template, body []byte, pos int) int {
	if t == nil || t.front > len(body)-pos {
		return -1
	}
	var end int
	if *dst, end = u.record(*dst, t, body[pos:]); end < 0 {
		return -1
	}
	return pos + t.front + end
}

// documents appends documents of one template.
func (u *unpacker) documents(dst *[]byte, body []byte) bool {
	number, n := binary.Uvarint(body)
	if n <= 0 || number >= MaxTemplates {
		return false
	}
	count, m := binary.Uvarint(body[n:])
	if m <= 0 {
		return false
	}
	t, pos := u.c.table.Load().at(int(number)), n+m
	for i := 0; uint64(i) < count; i++ {
		if len(*dst) > u.limit {
			return false
		}
		*dst = appendIndex(*dst, byte(bsoncore.TypeEmbeddedDocument), i)
		if pos = u.packed(dst, t, body, pos); pos < 0 {
			return false
		}
	}
	return pos == len(body)
}
