// Package number is the arithmetic of BSON's four kinds of numbers with MongoDB's rules of promotion: int32 grows into int64,
// int64 into double (or into an error, where updates ask for it), and everything that meets a decimal128 becomes one. It
// promises the server's result types and its rounding: doubles become decimals of 15 digits in products and quotients, of 34
// in sums. It knows no strings, dates or null: Of tells whether a value is a number at all. Nothing here fails: operations
// whose result is no number give NaN or an infinity, and what cannot be represented is reported by a second result.
package number

import (
	"encoding/binary"
	"math"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// Number is a number of any BSON type, unboxed. The zero Number is not a number: Type is 0.
type Number struct {
	t      bsoncore.Type
	hi, lo uint64 // int32, int64: lo; double: its bits in lo; decimal128: both
}

// Of returns the number in v; ok is false when v is none.
func Of(v bsoncore.Value) (n Number, ok bool) {
	switch v.Type {
	case bsoncore.TypeInt32:
		if len(v.Data) >= 4 {
			return Int32(int32(binary.LittleEndian.Uint32(v.Data))), true
		}
	case bsoncore.TypeInt64, bsoncore.TypeDouble:
		if len(v.Data) >= 8 {
			return Number{t: v.Type, lo: binary.LittleEndian.Uint64(v.Data)}, true
		}
	case bsoncore.TypeDecimal128:
		if len(v.Data) >= 16 {
			return Number{t: v.Type, lo: binary.LittleEndian.Uint64(v.Data), hi: binary.LittleEndian.Uint64(v.Data[8:])}, true
		}
	}
	return Number{}, false
}

// Truncated returns the number in v without its fraction, as Int64 does; ok is false when v is none.
func Truncated(v bsoncore.Value) (i int64, ok bool) {
	n, ok := Of(v)
	i, _ = n.Int64()
	return i, ok
}

// Int32 returns an int32.
func Int32(i int32) Number { return Number{t: bsoncore.TypeInt32, lo: uint64(int64(i))} }

// Int64 returns an int64.
func Int64(i int64) Number { return Number{t: bsoncore.TypeInt64, lo: uint64(i)} }

// Int returns an int32 when i fits, else an int64.
func Int(i int64) Number {
	if i == int64(int32(i)) {
		return Int32(int32(i))
	}
	return Int64(i)
}

// Double returns a double.
func Double(f float64) Number { return Number{t: bsoncore.TypeDouble, lo: math.Float64bits(f)} }

// FromDecimal returns a decimal128.
func FromDecimal(d Decimal) Number { return Number{t: bsoncore.TypeDecimal128, hi: d.hi, lo: d.lo} }

// Type returns the BSON type, 0 for the zero Number.
func (n Number) Type() bsoncore.Type { return n.t }

// IsInteger reports whether the type is int32 or int64.
func (n Number) IsInteger() bool { return n.t == bsoncore.TypeInt32 || n.t == bsoncore.TypeInt64 }

// IsDecimal reports whether the type is decimal128.
func (n Number) IsDecimal() bool { return n.t == bsoncore.TypeDecimal128 }

// IsNaN reports whether the number is not a number.
func (n Number) IsNaN() bool {
	switch n.t {
	case bsoncore.TypeDouble:
		return math.IsNaN(n.double())
	case bsoncore.TypeDecimal128:
		return n.decimal().IsNaN()
	}
	return false
}

// IsInf reports whether the number is an infinity.
func (n Number) IsInf() bool {
	switch n.t {
	case bsoncore.TypeDouble:
		return math.IsInf(n.double(), 0)
	case bsoncore.TypeDecimal128:
		return n.decimal().IsInf()
	}
	return false
}

// Sign returns -1, 0 or 1; 0 for NaN.
func (n Number) Sign() int {
	switch n.t {
	case bsoncore.TypeInt32, bsoncore.TypeInt64:
		return sign(n.int())
	case bsoncore.TypeDouble:
		switch f := n.double(); {
		case f < 0:
			return -1
		case f > 0:
			return 1
		}
	case bsoncore.TypeDecimal128:
		return n.decimal().Sign()
	}
	return 0
}

func sign(i int64) int {
	switch {
	case i < 0:
		return -1
	case i > 0:
		return 1
	}
	return 0
}

// IsZero reports whether the number is a zero of either sign.
func (n Number) IsZero() bool { return n.t != 0 && n.Sign() == 0 && !n.IsNaN() }

func (n Number) int() int64       { return int64(n.lo) }
func (n Number) double() float64  { return math.Float64frombits(n.lo) }
func (n Number) decimal() Decimal { return Decimal{hi: n.hi, lo: n.lo} }

// Float64 returns the nearest double.
func (n Number) Float64() float64 {
	switch n.t {
	case bsoncore.TypeInt32, bsoncore.TypeInt64:
		return float64(n.int())
	case bsoncore.TypeDouble:
		return n.double()
	case bsoncore.TypeDecimal128:
		return n.decimal().Float64()
	}
	return math.NaN()
}

// Int64 returns the number without its fraction; exact is false when it has one, or does not fit (the nearest end of the range
// is returned then), or is NaN (0).
func (n Number) Int64() (i int64, exact bool) {
	switch n.t {
	case bsoncore.TypeInt32, bsoncore.TypeInt64:
		return n.int(), true
	case bsoncore.TypeDouble:
		return floatToInt(n.double())
	case bsoncore.TypeDecimal128:
		return n.decimal().Int64()
	}
	return 0, false
}

func floatToInt(f float64) (i int64, exact bool) {
	switch {
	case math.IsNaN(f):
		return 0, false
	case f >= 1<<63:
		return math.MaxInt64, false
	case f < -1<<63:
		return math.MinInt64, false
	}
	i = int64(f)
	return i, float64(i) == f
}

// Decimal returns the number as a decimal128; a double is rounded to 15 significant digits.
func (n Number) Decimal() Decimal {
	switch n.t {
	case bsoncore.TypeInt32, bsoncore.TypeInt64:
		return DecimalFromInt(n.int())
	case bsoncore.TypeDouble:
		return DecimalFromFloat(n.double())
	}
	return n.decimal()
}

// FullDecimal is Decimal with a double rounded to 34 significant digits.
func (n Number) FullDecimal() Decimal {
	if n.t == bsoncore.TypeDouble {
		return fullDecimal(n.double())
	}
	return n.Decimal()
}

// Append appends the value's bytes, without type.
func (n Number) Append(dst []byte) []byte {
	switch n.t {
	case bsoncore.TypeInt32:
		return binary.LittleEndian.AppendUint32(dst, uint32(n.lo))
	case bsoncore.TypeInt64, bsoncore.TypeDouble:
		return binary.LittleEndian.AppendUint64(dst, n.lo)
	case bsoncore.TypeDecimal128:
		return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(dst, n.lo), n.hi)
	}
	return dst
}

// Value returns the number as a value of its own memory.
func (n Number) Value() bsoncore.Value { return bsoncore.Value{Type: n.t, Data: n.Append(nil)} }

// Widen returns n as the type t, which must be wider or the same in the order int32, int64, double, decimal128.
func (n Number) Widen(t bsoncore.Type) Number {
	if n.t == t {
		return n
	}
	switch t {
	case bsoncore.TypeInt64:
		return Int64(n.int())
	case bsoncore.TypeDouble:
		return Double(n.Float64())
	case bsoncore.TypeDecimal128:
		return FromDecimal(n.Decimal())
	}
	return n
}

// Widest returns the wider of two types in the order int32, int64, double, decimal128.
func Widest(a, b bsoncore.Type) bsoncore.Type {
	if rank(b) > rank(a) {
		return b
	}
	return a
}

func rank(t bsoncore.Type) int {
	switch t {
	case bsoncore.TypeInt32:
		return 1
	case bsoncore.TypeInt64:
		return 2
	case bsoncore.TypeDouble:
		return 3
	case bsoncore.TypeDecimal128:
		return 4
	}
	return 0
}

// String formats the number as MongoDB's messages do: doubles with six digits.
func (n Number) String() string {
	switch n.t {
	case bsoncore.TypeInt32, bsoncore.TypeInt64:
		return strconv.FormatInt(n.int(), 10)
	case bsoncore.TypeDouble:
		switch f := n.double(); {
		case math.IsNaN(f):
			return "nan"
		case math.IsInf(f, 1):
			return "inf"
		case math.IsInf(f, -1):
			return "-inf"
		default:
			return strconv.FormatFloat(f, 'g', 6, 64)
		}
	case bsoncore.TypeDecimal128:
		return n.decimal().String()
	}
	return ""
}
