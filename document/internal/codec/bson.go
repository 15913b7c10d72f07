package codec

import (
	"bytes"
	"encoding/binary"

	"go.mongodb.org/mongo-driver/v2/bson"
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

// maxSound bounds documents and arrays in each other. Arrays of documents may unfold to more than half as many levels, and who goes down into a
// document calls itself at each of them.
const maxSound = 4096

// Sound reports whether doc is BSON, as deep as it goes: all lengths in it are right, and all texts end. Readers trust that.
func Sound(doc []byte) bool { return isSound(doc, 0) }

// SoundValue is Sound for a value.
func SoundValue(v bsoncore.Value) bool {
	return valueSize(byte(v.Type), v.Data) == len(v.Data) && isSoundValue(byte(v.Type), v.Data, 0)
}

func isSound(doc []byte, depth int) bool {
	return depth <= maxSound && isWhole(doc) && areSound(doc[4:len(doc)-1], depth)
}

// areSound is isSound for the elements of a document.
func areSound(elements []byte, depth int) bool {
	for pos := 0; pos < len(elements); {
		e, ok := readElement(elements, pos)
		if !ok || !isSoundValue(e.kind, elements[e.value:e.next], depth) {
			return false
		}
		pos = e.next
	}
	return true
}

// isSoundValue is isSound for a value that is as long as valueSize says.
func isSoundValue(kind byte, value []byte, depth int) bool {
	switch bsoncore.Type(kind) {
	case bsoncore.TypeEmbeddedDocument, bsoncore.TypeArray:
		return isSound(value, depth+1)
	case bsoncore.TypeString, bsoncore.TypeJavaScript, bsoncore.TypeSymbol:
		return value[len(value)-1] == 0
	case bsoncore.TypeDBPointer:
		return value[len(value)-13] == 0 // twelve bytes are those of the ObjectID
	case bsoncore.TypeBinary:
		return isSoundBinary(value[4], value[5:])
	case bsoncore.TypeCodeWithScope:
		code := value[4:]
		n := valueSize(byte(bsoncore.TypeJavaScript), code)
		return n > 0 && code[n-1] == 0 && isSound(code[n:], depth+1)
	}
	return true
}

// isSoundBinary reports whether binary data of a subtype is what readers take it for: the old one has its length in it once more.
func isSoundBinary(subtype byte, data []byte) bool {
	return subtype != bson.TypeBinaryBinaryOld || lengthAt(data, 4, 4) == len(data)
}
