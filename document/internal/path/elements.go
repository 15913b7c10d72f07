package path

import (
	"bytes"
	"encoding/binary"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// Elements walks over the elements of a document or an array. It is small and makes no garbage: use it as a local variable.
type Elements struct{ rest []byte }

// ElementsOf returns the elements of a document's or an array's bytes.
func ElementsOf(doc []byte) Elements {
	if len(doc) < bsoncore.EmptyDocumentLength {
		return Elements{}
	}
	return Elements{doc[4 : len(doc)-1]}
}

// Next returns the next element. The name is a slice of the document.
func (e *Elements) Next() (name []byte, v bsoncore.Value, ok bool) {
	src := e.rest
	if len(src) < 2 {
		return nil, bsoncore.Value{}, false
	}
	end := nameEnd(src)
	if end < 0 {
		return nil, bsoncore.Value{}, false
	}
	name, t, data := src[1:end], bsoncore.Type(src[0]), src[end+1:]
	n := size(t, data)
	if n < 0 || n > len(data) {
		return nil, bsoncore.Value{}, false
	}
	e.rest = data[n:]
	return name, bsoncore.Value{Type: t, Data: data[:n:n]}, true
}

// nameEnd returns where the name of an element ends, -1 when it does not. Names are short: a loop beats a search.
func nameEnd(src []byte) int {
	for i := 1; i < len(src); i++ {
		if src[i] == 0 {
			return i
		}
	}
	return -1
}

// Lookup returns the first field of a document that has the name.
func Lookup(doc []byte, name string) (bsoncore.Value, bool) {
	if len(doc) < bsoncore.EmptyDocumentLength {
		return bsoncore.Value{}, false
	}
	for src := doc[4 : len(doc)-1]; len(src) >= 2; {
		end := nameEnd(src)
		if end < 0 {
			break
		}
		t, data := bsoncore.Type(src[0]), src[end+1:]
		n := size(t, data)
		if n < 0 || n > len(data) {
			break
		}
		if end-1 == len(name) && string(src[1:end]) == name {
			return bsoncore.Value{Type: t, Data: data[:n:n]}, true
		}
		src = data[n:]
	}
	return bsoncore.Value{}, false
}

// size returns the length of a value at the beginning of data, and -1 when it cannot be told.
func size(t bsoncore.Type, data []byte) int {
	switch t {
	case bsoncore.TypeInt32:
		return 4
	case bsoncore.TypeDouble, bsoncore.TypeInt64, bsoncore.TypeDateTime, bsoncore.TypeTimestamp:
		return 8
	case bsoncore.TypeString, bsoncore.TypeJavaScript, bsoncore.TypeSymbol:
		return prefixed(data, 4, 1)
	case bsoncore.TypeEmbeddedDocument, bsoncore.TypeArray, bsoncore.TypeCodeWithScope:
		return prefixed(data, 0, bsoncore.EmptyDocumentLength)
	case bsoncore.TypeBinary:
		return prefixed(data, 5, 0)
	case bsoncore.TypeDBPointer:
		return prefixed(data, 16, 1)
	case bsoncore.TypeObjectID:
		return 12
	case bsoncore.TypeDecimal128:
		return 16
	case bsoncore.TypeBoolean:
		return 1
	case bsoncore.TypeNull, bsoncore.TypeUndefined, bsoncore.TypeMinKey, bsoncore.TypeMaxKey:
		return 0
	case bsoncore.TypeRegex:
		pattern := bytes.IndexByte(data, 0) + 1
		options := bytes.IndexByte(data[pattern:], 0) + 1
		if pattern > 0 && options > 0 {
			return pattern + options
		}
	}
	return -1
}

// prefixed is the size of a value that begins with its length, which does not count some bytes, and cannot be less than least.
func prefixed(data []byte, more, least int) int {
	if len(data) < 4 {
		return -1
	}
	n := int(int32(binary.LittleEndian.Uint32(data)))
	if n < least {
		return -1
	}
	return n + more
}
