package aggregate

import (
	"encoding/binary"
	"math"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/path"
)

type (
	document = bsoncore.Document
	value    = bsoncore.Value
)

func null() value { return value{Type: bsoncore.TypeNull} }

// begin starts a document or an array; end completes it.
func begin(dst []byte) (grown []byte, start int) { return append(dst, 0, 0, 0, 0), len(dst) }

func end(dst []byte, start int) []byte {
	dst = append(dst, 0)
	binary.LittleEndian.PutUint32(dst[start:], uint32(len(dst)-start))
	return dst
}

// appendField appends an element; a missing value appends nothing.
func appendField[T string | []byte](dst []byte, name T, v value) []byte {
	if v.Type == 0 {
		return dst
	}
	return append(append(append(append(dst, byte(v.Type)), name...), 0), v.Data...)
}

// appendItem appends an element of an array.
func appendItem(dst []byte, i int, v value) []byte {
	if v.Type == 0 {
		v = null()
	}
	dst = strconv.AppendInt(append(dst, byte(v.Type)), int64(i), 10)
	return append(append(dst, 0), v.Data...)
}

// fields makes a document of alternating names and values, for the stages that are made of other stages.
func fields(list ...any) document {
	b, start := begin(nil)
	for i := 0; i < len(list); i += 2 {
		b = appendField(b, list[i].(string), list[i+1].(value))
	}
	return end(b, start)
}

func object(list ...any) value { return documentValue(fields(list...)) }

func array(list ...value) value {
	b, start := begin(nil)
	for i, v := range list {
		b = appendItem(b, i, v)
	}
	return value{Type: bsoncore.TypeArray, Data: end(b, start)}
}

func documentValue(d document) value { return value{Type: bsoncore.TypeEmbeddedDocument, Data: d} }

func text(s string) value {
	return value{Type: bsoncore.TypeString, Data: bsoncore.AppendString(nil, s)}
}

func int32Value(i int32) value {
	return value{Type: bsoncore.TypeInt32, Data: bsoncore.AppendInt32(nil, i)}
}

func int64Value(i int64) value {
	return value{Type: bsoncore.TypeInt64, Data: bsoncore.AppendInt64(nil, i)}
}

// shortest returns an int32 when the number fits.
func shortest(i int64) value {
	if i >= math.MinInt32 && i <= math.MaxInt32 {
		return int32Value(int32(i))
	}
	return int64Value(i)
}

func doubleValue(f float64) value {
	return value{Type: bsoncore.TypeDouble, Data: bsoncore.AppendDouble(nil, f)}
}

func dateValue(ms int64) value {
	return value{Type: bsoncore.TypeDateTime, Data: bsoncore.AppendInt64(nil, ms)}
}

func literal(v value) value { return object("$literal", v) }

// clone returns v with memory of its own.
func clone(v value) value {
	v.Data = append([]byte(nil), v.Data...)
	return v
}

func isNullish(v value) bool {
	return v.Type == 0 || v.Type == bsoncore.TypeNull || v.Type == bsoncore.TypeUndefined
}

func isNumber(v value) bool {
	switch v.Type {
	case bsoncore.TypeInt32, bsoncore.TypeInt64, bsoncore.TypeDouble, bsoncore.TypeDecimal128:
		return true
	}
	return false
}

// appendSet appends doc with the value at a path: replaced where it is, else at the end. What is on the way and is no document
// becomes one. A missing value removes the field, but not what is on the way to it.
func appendSet(dst []byte, doc document, segments []string, v value) []byte {
	dst, start := begin(dst)
	found := false
	it := path.ElementsOf(doc)
	for name, old, ok := it.Next(); ok; name, old, ok = it.Next() {
		if found || string(name) != segments[0] {
			dst = appendField(dst, name, old)
			continue
		}
		found = true
		dst = appendSetField(dst, old, segments, v)
	}
	if !found {
		dst = appendSetField(dst, value{}, segments, v)
	}
	return end(dst, start)
}

// appendSetField appends the field of the first segment.
func appendSetField(dst []byte, old value, segments []string, v value) []byte {
	if len(segments) == 1 {
		return appendField(dst, segments[0], v)
	}
	var inner document
	if old.Type == bsoncore.TypeEmbeddedDocument {
		inner = old.Data
	}
	dst = append(append(append(dst, byte(bsoncore.TypeEmbeddedDocument)), segments[0]...), 0)
	return appendSet(dst, inner, segments[1:], v)
}

// get follows a path through documents only.
func get(doc document, segments []string) value {
	v := documentValue(doc)
	for _, name := range segments {
		if v.Type != bsoncore.TypeEmbeddedDocument {
			return value{}
		}
		v, _ = path.Lookup(v.Data, name)
	}
	return v
}
