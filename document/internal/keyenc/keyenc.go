// Package keyenc encodes BSON values as bytes whose order is MongoDB's comparison order, for keys of indexes and of _id.
//
// It promises that bytes.Compare of encodings is order.Compare of values, that equal values have equal encodings, and that no encoding
// is a prefix of another, so that encodings one after the other are compound keys. The encoding is part of the format of databases:
// docs/format/keyenc.md has every byte. In short, the first byte tells the class, and for numbers more:
//
//	0x10 MinKey   0x14 undefined, missing   0x18 null   0x20 NaN   0x21-0x5f negative numbers   0x60 zero   0x61-0xd7 positive ones
//	0xda string   0xdc object   0xde array   0xe0 binary   0xe2 ObjectId   0xe4 false   0xe5 true   0xe6 date   0xe8 timestamp
//	0xea regex    0xec DBPointer   0xee code   0xf0 code with scope   0xf2 MaxKey
//
// 0x00 and 0xff are never first, neither as they are nor inverted for a descending component: there is room below and above. Numbers
// of all four types share one encoding, in which integers of 0 to 31 take a byte, up to 4,127 two, up to 528,415 three.
//
// Append takes valid BSON and does not fail. Decode and Skip take any bytes: what is not an encoding is an error that wraps ErrMalformed,
// and what Decode accepts is exactly what Append makes of the value.
package keyenc

import (
	"encoding/binary"
	"math"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/collation"
	"github.com/pandodb/pando/document/internal/order"
)

// The first bytes of encodings.
const (
	tagMinKey        = 0x10
	tagUndefined     = 0x14
	tagNull          = 0x18
	tagNaN           = 0x20
	tagZero          = 0x60
	tagNumberEnd     = tagZero + numberInfinite + 1 // behind the last one
	tagString        = 0xda
	tagObject        = 0xdc
	tagArray         = 0xde
	tagBinary        = 0xe0
	tagObjectID      = 0xe2
	tagFalse         = 0xe4
	tagTrue          = 0xe5
	tagDate          = 0xe6
	tagTimestamp     = 0xe8
	tagRegex         = 0xea
	tagDBPointer     = 0xec
	tagCode          = 0xee
	tagCodeWithScope = 0xf0
	tagMaxKey        = 0xf2
)

// terminator ends strings, objects and arrays.
const terminator = 0x00

// Append appends the encoding of v: for any a, b: bytes.Compare(enc(a), enc(b)) == order.Compare(a, b), equal values have equal
// encodings, no encoding is a prefix of another (so encodings concatenate to compound keys). With descending all bytes are
// inverted. Strings go through the collation when there is one.
func Append(dst []byte, v bsoncore.Value, descending bool, c *collation.Collation) []byte {
	n := len(dst)
	dst = appendValue(dst, v, c)
	if descending {
		invert(dst[n:])
	}
	return dst
}

func invert(b []byte) {
	for i := range b {
		b[i] = ^b[i]
	}
}

func appendValue(dst []byte, v bsoncore.Value, c *collation.Collation) []byte {
	switch v.Type {
	case bsoncore.TypeInt32:
		return appendInt(dst, int64(int32(binary.LittleEndian.Uint32(v.Data))))
	case bsoncore.TypeInt64:
		return appendInt(dst, int64(binary.LittleEndian.Uint64(v.Data)))
	case bsoncore.TypeDouble:
		return appendDouble(dst, math.Float64frombits(binary.LittleEndian.Uint64(v.Data)))
	case bsoncore.TypeDecimal128:
		return appendDecimal(dst, order.DecimalAt(v.Data))
	case bsoncore.TypeString, bsoncore.TypeSymbol:
		return appendText(append(dst, tagString), v.Data, c)
	case bsoncore.TypeObjectID:
		return append(append(dst, tagObjectID), v.Data...)
	case bsoncore.TypeEmbeddedDocument:
		return appendFields(append(dst, tagObject), v.Data, c)
	case bsoncore.TypeArray:
		return appendElements(append(dst, tagArray), v.Data, c)
	case bsoncore.TypeBoolean:
		return append(dst, tagFalse+v.Data[0]&1)
	case bsoncore.TypeDateTime:
		return binary.BigEndian.AppendUint64(append(dst, tagDate), binary.LittleEndian.Uint64(v.Data)^1<<63)
	case bsoncore.TypeTimestamp:
		return binary.BigEndian.AppendUint64(append(dst, tagTimestamp), binary.LittleEndian.Uint64(v.Data))
	}
	return appendRare(dst, v)
}

// appendRare is appendValue for what keys seldom hold.
func appendRare(dst []byte, v bsoncore.Value) []byte {
	switch v.Type {
	case bsoncore.TypeBinary:
		dst = appendLength(append(dst, tagBinary), len(v.Data)-5)
		return append(dst, v.Data[4:]...)
	case bsoncore.TypeNull:
		return append(dst, tagNull)
	case bsoncore.TypeMinKey:
		return append(dst, tagMinKey)
	case bsoncore.TypeMaxKey:
		return append(dst, tagMaxKey)
	case bsoncore.TypeRegex:
		return append(append(dst, tagRegex), v.Data...) // both parts end in a zero byte already
	case bsoncore.TypeDBPointer:
		n := len(v.Data) - 4 - 1 - objectIDSize
		dst = appendLength(append(dst, tagDBPointer), n)
		dst = append(dst, v.Data[4:4+n]...)
		return append(dst, v.Data[4+n+1:]...)
	case bsoncore.TypeJavaScript:
		return appendText(append(dst, tagCode), v.Data, nil)
	case bsoncore.TypeCodeWithScope:
		n := 8 + binary.LittleEndian.Uint32(v.Data[4:])
		dst = appendText(append(dst, tagCodeWithScope), v.Data[4:n], nil)
		return appendFields(dst, v.Data[n:], nil)
	}
	return append(dst, tagUndefined)
}

const objectIDSize = 12

// appendFields appends the fields of a document: for each the class of the value, the name, a zero byte, the value.
func appendFields(dst, doc []byte, c *collation.Collation) []byte {
	for e := doc[4 : len(doc)-1]; len(e) > 0; {
		name, v, rest := element(e)
		dst = append(dst, byte(order.ClassOf(v.Type)))
		dst = append(append(dst, name...), terminator)
		dst = appendValue(dst, v, c)
		e = rest
	}
	return append(dst, terminator)
}

// appendElements appends the elements of an array.
func appendElements(dst, doc []byte, c *collation.Collation) []byte {
	for e := doc[4 : len(doc)-1]; len(e) > 0; {
		_, v, rest := element(e)
		dst = appendValue(dst, v, c)
		e = rest
	}
	return append(dst, terminator)
}

// element takes the first element off those of a valid document.
func element(src []byte) (name []byte, v bsoncore.Value, rest []byte) {
	name, rest, _ = bsoncore.ReadKeyBytes(src[1:])
	v, rest, _ = bsoncore.ReadValue(rest, bsoncore.Type(src[0]))
	return name, v, rest
}

// Exact reports whether Decode gives v back byte for byte: ints and doubles, -0 and NaN, and decimals share an encoding, and a
// collation loses the string.
func Exact(v bsoncore.Value, c *collation.Collation) bool {
	switch v.Type {
	case bsoncore.TypeInt32:
		return true
	case bsoncore.TypeInt64:
		i := int64(binary.LittleEndian.Uint64(v.Data))
		return i != int64(int32(i)) && i != math.MinInt64
	case bsoncore.TypeDouble:
		return exactDouble(binary.LittleEndian.Uint64(v.Data))
	case bsoncore.TypeDecimal128:
		return exactDecimal(v.Data)
	case bsoncore.TypeString:
		return c == nil
	case 0, bsoncore.TypeSymbol:
		return false
	case bsoncore.TypeEmbeddedDocument:
		return exactElements(v.Data, c, false)
	case bsoncore.TypeArray:
		return exactElements(v.Data, c, true)
	case bsoncore.TypeCodeWithScope:
		return exactElements(v.Data[8+binary.LittleEndian.Uint32(v.Data[4:]):], nil, false)
	}
	return true
}

// exactElements asks Exact of all elements; those of arrays must be numbered as they should.
func exactElements(doc []byte, c *collation.Collation, numbered bool) bool {
	var buf [20]byte
	i := 0
	for e := doc[4 : len(doc)-1]; len(e) > 0; i++ {
		name, v, rest := element(e)
		if numbered && string(name) != string(appendPosition(buf[:0], i)) || !Exact(v, c) {
			return false
		}
		e = rest
	}
	return true
}

// End appends the end of the range of all keys that begin with prefix: the lowest byte string above them. It returns nil when there
// is none. dst may be prefix[:0].
func End(dst, prefix []byte) []byte {
	n := len(prefix)
	for n > 0 && prefix[n-1] == 0xff {
		n--
	}
	if n == 0 {
		return nil
	}
	dst = append(dst, prefix[:n]...)
	dst[len(dst)-1]++
	return dst
}
