package codec

import (
	"bytes"
	"encoding/binary"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// element is where an element lies in a document: its type byte at start, its name from start+1 to value-1, then its value.
type element struct {
	kind        byte
	value, next int
}

// readElement finds the borders of the element that begins at pos. It is not ok when there is none within b.
func readElement(b []byte, pos int) (e element, ok bool) {
	if pos < 0 || pos >= len(b) || b[pos] == 0 {
		return e, false
	}
	n := 1
	if pos+2 >= len(b) || b[pos+1] == 0 || b[pos+2] != 0 { // else it is an element of an array, most likely
		if n = bytes.IndexByte(b[pos+1:], 0); n < 0 {
			return e, false
		}
	}
	e.kind, e.value = b[pos], pos+n+2
	size := valueSize(e.kind, b[e.value:])
	if size < 0 {
		return e, false
	}
	e.next = e.value + size
	return e, true
}

// valueSize returns how many bytes of b the value of a type takes, or -1.
func valueSize(kind byte, b []byte) int {
	n := -1
	switch bsoncore.Type(kind) {
	case bsoncore.TypeNull, bsoncore.TypeUndefined, bsoncore.TypeMinKey, bsoncore.TypeMaxKey:
		n = 0
	case bsoncore.TypeBoolean:
		n = 1
	case bsoncore.TypeInt32:
		n = 4
	case bsoncore.TypeDouble, bsoncore.TypeInt64, bsoncore.TypeDateTime, bsoncore.TypeTimestamp:
		n = 8
	case bsoncore.TypeObjectID:
		n = 12
	case bsoncore.TypeDecimal128:
		n = 16
	case bsoncore.TypeString, bsoncore.TypeJavaScript, bsoncore.TypeSymbol:
		n = lengthAt(b, 4, 5)
	case bsoncore.TypeBinary:
		n = lengthAt(b, 5, 5)
	case bsoncore.TypeDBPointer:
		n = lengthAt(b, 16, 17)
	case bsoncore.TypeEmbeddedDocument, bsoncore.TypeArray:
		n = lengthAt(b, 0, 5)
	case bsoncore.TypeCodeWithScope:
		n = lengthAt(b, 0, 14)
	case bsoncore.TypeRegex:
		if first := bytes.IndexByte(b, 0); first >= 0 {
			if second := bytes.IndexByte(b[first+1:], 0); second >= 0 {
				n = first + second + 2
			}
		}
	}
	if n > len(b) {
		return -1
	}
	return n
}

// lengthAt reads the length that b begins with and adds what it does not count, or returns -1 when that is less than least.
func lengthAt(b []byte, more, least int) int {
	if len(b) < 4 {
		return -1
	}
	n := int(int32(binary.LittleEndian.Uint32(b)))
	if n < 0 || n+more < least {
		return -1
	}
	return n + more
}

// lookupRaw returns the first field of that name among elements.
func lookupRaw(elements []byte, name string) (bsoncore.Value, bool) {
	for pos := 0; ; {
		e, ok := readElement(elements, pos)
		if !ok {
			return bsoncore.Value{}, false
		}
		if string(elements[pos+1:e.value-1]) == name {
			return bsoncore.Value{Type: bsoncore.Type(e.kind), Data: elements[e.value:e.next]}, true
		}
		pos = e.next
	}
}
