package expression

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
)

// elements walks the elements of a document or an array. It ends at the first element that is broken: BSON was validated
// before it came here.
type elements struct{ rest []byte }

func elementsOf(v []byte) elements {
	if len(v) < 5 {
		return elements{}
	}
	return elements{v[4 : len(v)-1]}
}

// next returns the next element; ok is false at the end. The key is without its zero byte.
func (e *elements) next() (key []byte, v bsoncore.Value, ok bool) {
	if len(e.rest) < 2 {
		return nil, bsoncore.Value{}, false
	}
	t := bsoncore.Type(e.rest[0])
	end := bytes.IndexByte(e.rest[1:], 0)
	if end < 0 {
		return nil, bsoncore.Value{}, false
	}
	key, data := e.rest[1:1+end], e.rest[2+end:]
	n := size(t, data)
	if n < 0 || n > len(data) {
		return nil, bsoncore.Value{}, false
	}
	e.rest = data[n:]
	return key, bsoncore.Value{Type: t, Data: data[:n:n]}, true
}

// size returns how many bytes of data a value of type t has, and -1 when there is no such type.
func size(t bsoncore.Type, data []byte) int {
	length := func(more int) int {
		if len(data) < 4 {
			return -1
		}
		n := int(int32(binary.LittleEndian.Uint32(data)))
		if n < 0 {
			return -1
		}
		return n + more
	}
	switch t {
	case bsoncore.TypeDouble, bsoncore.TypeDateTime, bsoncore.TypeTimestamp, bsoncore.TypeInt64:
		return 8
	case bsoncore.TypeString, bsoncore.TypeJavaScript, bsoncore.TypeSymbol:
		return length(4)
	case bsoncore.TypeEmbeddedDocument, bsoncore.TypeArray, bsoncore.TypeCodeWithScope:
		return length(0)
	case bsoncore.TypeBinary:
		return length(5)
	case bsoncore.TypeUndefined, bsoncore.TypeNull, bsoncore.TypeMinKey, bsoncore.TypeMaxKey:
		return 0
	case bsoncore.TypeObjectID:
		return 12
	case bsoncore.TypeBoolean:
		return 1
	case bsoncore.TypeRegex:
		first := bytes.IndexByte(data, 0)
		if first < 0 {
			return -1
		}
		second := bytes.IndexByte(data[first+1:], 0)
		if second < 0 {
			return -1
		}
		return first + second + 2
	case bsoncore.TypeDBPointer:
		return length(16)
	case bsoncore.TypeInt32:
		return 4
	case bsoncore.TypeDecimal128:
		return 16
	}
	return -1
}

// lookup returns a field of a document, the zero Value when it has none of that name.
func lookup(document []byte, name string) bsoncore.Value {
	it := elementsOf(document)
	for {
		key, v, ok := it.next()
		if !ok || string(key) == name {
			return v
		}
	}
}

// count returns the number of elements.
func count(v []byte) int {
	it, n := elementsOf(v), 0
	for {
		if _, _, ok := it.next(); !ok {
			return n
		}
		n++
	}
}

// elementAt returns the i-th element of an array.
func elementAt(array []byte, i int) (bsoncore.Value, bool) {
	it := elementsOf(array)
	for {
		_, v, ok := it.next()
		if !ok || i == 0 {
			return v, ok
		}
		i--
	}
}

// pushAll puts the elements of an array on the stack.
func (st *state) pushAll(array []byte) error {
	it := elementsOf(array)
	for {
		_, v, ok := it.next()
		if !ok {
			return nil
		}
		if err := st.push(v); err != nil {
			return err
		}
	}
}

// stringOf returns the bytes of a string, symbol or code value.
func stringOf(v bsoncore.Value) []byte {
	if len(v.Data) < 5 {
		return nil
	}
	return v.Data[4 : len(v.Data)-1]
}

// appendArray appends an array of the values; missing ones become null.
func appendArray(dst []byte, values []bsoncore.Value) []byte {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	for i, v := range values {
		t := v.Type
		if t == 0 {
			t = bsoncore.TypeNull
		}
		dst = append(dst, byte(t))
		dst = strconv.AppendInt(dst, int64(i), 10)
		dst = append(append(dst, 0), v.Data...)
	}
	dst = append(dst, 0)
	binary.LittleEndian.PutUint32(dst[start:], uint32(len(dst)-start))
	return dst
}

// ElementBytes returns how many bytes a value takes as the element of an array at a position.
func ElementBytes(at int, v bsoncore.Value) int {
	digits := 1
	for ; at >= 10; at /= 10 {
		digits++
	}
	return 1 + digits + 1 + len(v.Data)
}

// nesting returns how deep documents and arrays lie in v, at most limit+1.
func nesting(v bsoncore.Value, limit int) int {
	if v.Type != bsoncore.TypeEmbeddedDocument && v.Type != bsoncore.TypeArray {
		return 0
	}
	deepest := 0
	if limit <= 0 {
		return 1
	}
	it := elementsOf(v.Data)
	for {
		_, element, ok := it.next()
		if !ok {
			return deepest + 1
		}
		deepest = max(deepest, nesting(element, limit-1))
	}
}

func isNullish(v bsoncore.Value) bool {
	return v.Type == 0 || v.Type == bsoncore.TypeNull || v.Type == bsoncore.TypeUndefined
}

func isString(v bsoncore.Value) bool { return v.Type == bsoncore.TypeString }

func isArray(v bsoncore.Value) bool { return v.Type == bsoncore.TypeArray }

func isObject(v bsoncore.Value) bool { return v.Type == bsoncore.TypeEmbeddedDocument }

// brief writes a value for a message, at most so much of it.
func brief(v bsoncore.Value) string {
	const most = 200
	s, cut := v.StringN(most)
	if cut {
		return s + "..."
	}
	return s
}

// shorten cuts the message of an error that quotes what a user sent.
func shorten(err error) error {
	const most = 4096
	var e *mongoerror.Error
	if errors.As(err, &e) && len(e.Message) > most {
		e.Message = strings.ToValidUTF8(e.Message[:most], "") + "..."
	}
	return err
}

// typeName is the name of a value's type as MongoDB's messages and $type have it.
func typeName(v bsoncore.Value) string { return mongoerror.TypeName(v.Type) }
