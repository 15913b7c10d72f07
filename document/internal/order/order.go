// Package order compares BSON values the way MongoDB does: by class of type first, numbers by value whatever their type,
// documents field by field, arrays element by element.
//
// The classes, from low to high: MinKey; undefined and missing; null; numbers; strings and symbols; objects; arrays; binary data (by
// length, subtype, bytes); object ids; booleans (false first); dates; timestamps; regular expressions (pattern, options); DBPointers
// (length, namespace, id); code; code with scope; MaxKey. NaN is the lowest number and equals NaN, -0 equals 0, and numbers of
// different types compare by their exact values: nothing is rounded. A field of an object compares by class, then name, then value.
//
// A missing value is lower than null here, as the aggregation's operators have it. Where MongoDB sorts documents or makes keys of
// indexes, missing counts as null and an empty array as undefined: callers substitute that.
//
// Values must be valid BSON. Comparing does not fail, does not look at anything but its arguments, and does not allocate, except with
// a collation and where a decimal and a double are within 2^-45 of each other.
package order

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/collation"
)

// Class is the place of a type in MongoDB's comparison order. All numbers are one class, strings and symbols one, missing
// (a Value with Type 0) and undefined one.
type Class uint8

// The classes in ascending order. Zero is no class: that of a type which BSON does not have.
const (
	ClassMinKey Class = iota + 1
	ClassUndefined
	ClassNull
	ClassNumber
	ClassString
	ClassObject
	ClassArray
	ClassBinary
	ClassObjectID
	ClassBool
	ClassDate
	ClassTimestamp
	ClassRegex
	ClassDBPointer
	ClassCode
	ClassCodeWithScope
	ClassMaxKey
)

// ClassOf returns the class of a value's type.
func ClassOf(t bsoncore.Type) Class {
	switch t {
	case bsoncore.TypeInt32, bsoncore.TypeInt64, bsoncore.TypeDouble, bsoncore.TypeDecimal128:
		return ClassNumber
	case bsoncore.TypeString, bsoncore.TypeSymbol:
		return ClassString
	case bsoncore.TypeEmbeddedDocument:
		return ClassObject
	case bsoncore.TypeArray:
		return ClassArray
	case bsoncore.TypeObjectID:
		return ClassObjectID
	case bsoncore.TypeNull:
		return ClassNull
	case 0, bsoncore.TypeUndefined:
		return ClassUndefined
	case bsoncore.TypeBoolean:
		return ClassBool
	case bsoncore.TypeDateTime:
		return ClassDate
	case bsoncore.TypeBinary:
		return ClassBinary
	case bsoncore.TypeTimestamp:
		return ClassTimestamp
	case bsoncore.TypeRegex:
		return ClassRegex
	case bsoncore.TypeDBPointer:
		return ClassDBPointer
	case bsoncore.TypeJavaScript:
		return ClassCode
	case bsoncore.TypeCodeWithScope:
		return ClassCodeWithScope
	case bsoncore.TypeMinKey:
		return ClassMinKey
	case bsoncore.TypeMaxKey:
		return ClassMaxKey
	}
	return 0
}

// IsNumber reports whether t is int32, int64, double or decimal128.
func IsNumber(t bsoncore.Type) bool { return ClassOf(t) == ClassNumber }

// Compare returns -1, 0 or 1. c may be nil: strings are compared byte by byte then. A Value with Type 0 is a missing one.
func Compare(a, b bsoncore.Value, c *collation.Collation) int {
	if a.Type == b.Type {
		switch a.Type {
		case bsoncore.TypeInt32:
			return cmp.Compare(int32At(a.Data), int32At(b.Data))
		case bsoncore.TypeString:
			return compareStrings(a.Data, b.Data, c)
		case bsoncore.TypeDouble:
			return compareDoubles(doubleAt(a.Data), doubleAt(b.Data))
		case bsoncore.TypeInt64, bsoncore.TypeDateTime:
			return cmp.Compare(int64At(a.Data), int64At(b.Data))
		case bsoncore.TypeObjectID:
			return bytes.Compare(a.Data, b.Data)
		}
		return compareSameClass(ClassOf(a.Type), a, b, c)
	}
	x, y := ClassOf(a.Type), ClassOf(b.Type)
	if x != y {
		return cmp.Compare(x, y)
	}
	return compareSameClass(x, a, b, c)
}

// Equal is Compare(a, b, c) == 0.
func Equal(a, b bsoncore.Value, c *collation.Collation) bool { return Compare(a, b, c) == 0 }

func compareSameClass(cl Class, a, b bsoncore.Value, c *collation.Collation) int {
	switch cl {
	case ClassNumber:
		return compareNumbers(a, b)
	case ClassString:
		return compareStrings(a.Data, b.Data, c)
	case ClassObject:
		return CompareDocuments(a.Data, b.Data, c)
	case ClassArray:
		return compareArrays(a.Data, b.Data, c)
	case ClassBinary:
		return compareBinary(a.Data, b.Data)
	case ClassDate:
		return cmp.Compare(int64At(a.Data), int64At(b.Data))
	case ClassTimestamp:
		return cmp.Compare(binary.LittleEndian.Uint64(a.Data), binary.LittleEndian.Uint64(b.Data))
	case ClassBool, ClassObjectID:
		return bytes.Compare(a.Data, b.Data)
	case ClassRegex:
		return compareRegexes(a.Data, b.Data)
	case ClassDBPointer:
		return compareDBPointers(a.Data, b.Data)
	case ClassCode:
		return compareStrings(a.Data, b.Data, nil)
	case ClassCodeWithScope:
		return compareScopes(a.Data, b.Data)
	}
	return 0 // classes of a single value
}

func int32At(b []byte) int32 { return int32(binary.LittleEndian.Uint32(b)) }
func int64At(b []byte) int64 { return int64(binary.LittleEndian.Uint64(b)) }

func doubleAt(b []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b)) }

// text returns the bytes of a string, symbol or code without its length and its terminator.
func text(data []byte) []byte { return data[4 : len(data)-1] }

func compareStrings(a, b []byte, c *collation.Collation) int {
	a, b = text(a), text(b)
	if c == nil {
		return bytes.Compare(a, b)
	}
	if bytes.Equal(a, b) {
		return 0
	}
	return c.Compare(string(a), string(b))
}

// compareBinary compares by length, subtype, bytes. The second length that the old binary subtype 2 has within is bytes here.
func compareBinary(a, b []byte) int {
	if r := cmp.Compare(len(a), len(b)); r != 0 {
		return r
	}
	return bytes.Compare(a[4:], b[4:])
}

// compareRegexes compares pattern, then options. Both end in a zero byte, which is lower than any byte that they can have.
func compareRegexes(a, b []byte) int { return bytes.Compare(a, b) }

// compareDBPointers compares the length of the namespace, the namespace, the id.
func compareDBPointers(a, b []byte) int {
	if r := cmp.Compare(len(a), len(b)); r != 0 {
		return r
	}
	return bytes.Compare(a[4:], b[4:])
}

// compareScopes compares the code, then the scope. A collation is not for code.
func compareScopes(a, b []byte) int {
	x, y := scoped(a), scoped(b)
	if r := bytes.Compare(x.code, y.code); r != 0 {
		return r
	}
	return CompareDocuments(x.scope, y.scope, nil)
}

// codeWithScope is the two parts of such a value.
type codeWithScope struct{ code, scope []byte }

// scoped takes a code with scope apart: total length, length of the code with its terminator, code, terminator, scope.
func scoped(data []byte) codeWithScope {
	n := 8 + int(binary.LittleEndian.Uint32(data[4:]))
	return codeWithScope{code: data[8 : n-1], scope: data[n:]}
}
