package projection

import (
	"bytes"
	"encoding/binary"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// element is one element of a document. Its bytes are doc[start:end]; name and value refer to the document.
type element struct {
	start, end int
	name       []byte
	value      bsoncore.Value
}

// scan reads the element that begins at byte at of a validated document; ok is false at the document's end.
func scan(doc []byte, at int) (e element, ok bool) {
	if at >= len(doc)-1 || doc[at] == 0 {
		return element{}, false
	}
	n := bytes.IndexByte(doc[at+1:], 0)
	if n < 0 {
		return element{}, false
	}
	body := at + 1 + n + 1
	size := valueSize(bsoncore.Type(doc[at]), doc[body:])
	if size < 0 || body+size > len(doc)-1 {
		return element{}, false
	}
	return element{
		start: at, end: body + size, name: doc[at+1 : at+1+n],
		value: bsoncore.Value{Type: bsoncore.Type(doc[at]), Data: doc[body : body+size : body+size]},
	}, true
}

// valueSize returns the length of a value of type t that b begins with, or -1.
func valueSize(t bsoncore.Type, b []byte) int {
	switch t {
	case bsoncore.TypeInt32:
		return 4
	case bsoncore.TypeDouble, bsoncore.TypeInt64, bsoncore.TypeDateTime, bsoncore.TypeTimestamp:
		return 8
	case bsoncore.TypeObjectID:
		return 12
	case bsoncore.TypeBoolean:
		return 1
	case bsoncore.TypeNull, bsoncore.TypeUndefined, bsoncore.TypeMinKey, bsoncore.TypeMaxKey:
		return 0
	case bsoncore.TypeDecimal128:
		return 16
	case bsoncore.TypeString, bsoncore.TypeJavaScript, bsoncore.TypeSymbol:
		return lengthAt(b, 4)
	case bsoncore.TypeEmbeddedDocument, bsoncore.TypeArray, bsoncore.TypeCodeWithScope:
		return lengthAt(b, 0)
	case bsoncore.TypeBinary:
		return lengthAt(b, 5)
	case bsoncore.TypeDBPointer:
		return lengthAt(b, 16)
	case bsoncore.TypeRegex:
		first := bytes.IndexByte(b, 0)
		if first < 0 {
			return -1
		}
		second := bytes.IndexByte(b[first+1:], 0)
		if second < 0 {
			return -1
		}
		return first + second + 2
	}
	return -1
}

// lengthAt returns the length that b begins with, and extra.
func lengthAt(b []byte, extra int) int {
	if len(b) < 4 {
		return -1
	}
	n := int(int32(binary.LittleEndian.Uint32(b)))
	if n < 0 {
		return -1
	}
	return n + extra
}
