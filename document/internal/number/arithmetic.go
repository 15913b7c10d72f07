package number

import (
	"math"
	"math/bits"

	"github.com/cockroachdb/apd/v3"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// Add returns a+b as $add and $sum do: an int32 that overflows becomes an int64, an int64 a double.
func Add(a, b Number) Number {
	if a.IsInteger() && b.IsInteger() {
		if n, ok := AddExact(a, b); ok {
			return n
		}
	}
	if a.t == bsoncore.TypeDouble && b.t == bsoncore.TypeDouble {
		return Double(a.double() + b.double() + 0) // two negative zeros make a positive one, as in a sum that begins with 0
	}
	var s Sum
	s.Add(a)
	s.Add(b)
	return s.Result()
}

// AddExact returns a+b as updates do: ok is false when an int64 overflows. A double that meets a decimal is rounded to 15
// digits.
func AddExact(a, b Number) (n Number, ok bool) {
	switch t := Widest(a.t, b.t); t {
	case bsoncore.TypeInt32:
		return Int(a.int() + b.int()), true
	case bsoncore.TypeInt64:
		sum := a.int() + b.int()
		if (a.int() < 0) == (b.int() < 0) && (sum < 0) != (a.int() < 0) {
			return Number{}, false
		}
		return Int64(sum), true
	case bsoncore.TypeDouble:
		return Double(a.Float64() + b.Float64()), true
	default:
		return FromDecimal(a.Decimal().Add(b.Decimal())), true
	}
}

// Subtract returns a-b as $subtract does.
func Subtract(a, b Number) Number {
	switch t := Widest(a.t, b.t); t {
	case bsoncore.TypeInt32:
		return Int(a.int() - b.int())
	case bsoncore.TypeInt64:
		difference := a.int() - b.int()
		if (a.int() < 0) != (b.int() < 0) && (difference < 0) != (a.int() < 0) {
			return Double(a.Float64() - b.Float64())
		}
		return Int64(difference)
	case bsoncore.TypeDouble:
		return Double(a.Float64() - b.Float64())
	default:
		return FromDecimal(a.Decimal().Add(b.Decimal().Negate()))
	}
}

// Multiply returns a*b as $multiply does: an int64 that overflows becomes a double.
func Multiply(a, b Number) Number {
	if n, ok := MultiplyExact(a, b); ok {
		return n
	}
	return Double(a.Float64() * b.Float64())
}

// MultiplyExact returns a*b as updates do: ok is false when an int64 overflows.
func MultiplyExact(a, b Number) (n Number, ok bool) {
	switch t := Widest(a.t, b.t); t {
	case bsoncore.TypeInt32:
		return Int(a.int() * b.int()), true
	case bsoncore.TypeInt64:
		p, ok := multiply64(a.int(), b.int())
		return Int64(p), ok
	case bsoncore.TypeDouble:
		return Double(a.Float64() * b.Float64()), true
	default:
		return FromDecimal(a.Decimal().Multiply(b.Decimal())), true
	}
}

func multiply64(a, b int64) (p int64, ok bool) {
	hi, lo := bits.Mul64(magnitude(a), magnitude(b))
	negative := (a < 0) != (b < 0)
	switch {
	case hi != 0:
		return 0, false
	case negative && lo <= 1<<63:
		return -int64(lo), true
	case !negative && lo <= math.MaxInt64:
		return int64(lo), true
	}
	return 0, false
}

func magnitude(i int64) uint64 {
	if i < 0 {
		return -uint64(i)
	}
	return uint64(i)
}

// Divide returns a/b: a double, or a decimal when one of them is. Division by zero gives an infinity or NaN.
func Divide(a, b Number) Number {
	if a.IsDecimal() || b.IsDecimal() {
		return FromDecimal(a.Decimal().Divide(b.Decimal()))
	}
	return Double(a.Float64() / b.Float64())
}

// Mod returns the remainder of a/b with the sign of a. The divisor of integers must not be zero. A double that is a small integer counts
// as one when it divides an integer, so that the result is an integer.
func Mod(a, b Number) Number {
	if i, exact := b.Int64(); a.IsInteger() && b.t == bsoncore.TypeDouble && exact && int64(int32(i)) == i {
		b = Int32(int32(i))
	}
	switch t := Widest(a.t, b.t); t {
	case bsoncore.TypeInt32, bsoncore.TypeInt64:
		remainder := int64(0)
		if b.int() != -1 { // the least int64 divided by -1 overflows
			remainder = a.int() % b.int()
		}
		if t == bsoncore.TypeInt32 {
			return Int32(int32(remainder))
		}
		return Int64(remainder)
	case bsoncore.TypeDouble:
		return Double(math.Mod(a.Float64(), b.Float64()))
	default:
		return FromDecimal(a.Decimal().Mod(b.Decimal()))
	}
}

// Bits combines two integers as $bit and $bitAnd do: the result is an int64 when one of them is. ok is false when one is no
// integer.
func Bits(a, b Number, operate func(x, y int64) int64) (n Number, ok bool) {
	if !a.IsInteger() || !b.IsInteger() {
		return Number{}, false
	}
	i := operate(a.int(), b.int())
	if Widest(a.t, b.t) == bsoncore.TypeInt32 {
		return Int32(int32(i)), true
	}
	return Int64(i), true
}

// And, Or and Xor are for Bits.
func And(x, y int64) int64 { return x & y }

// Or is for Bits.
func Or(x, y int64) int64 { return x | y }

// Xor is for Bits.
func Xor(x, y int64) int64 { return x ^ y }

// Add returns d+o.
func (d Decimal) Add(o Decimal) Decimal {
	var x, y apd.Decimal
	c := context34()
	_, _ = c.Add(&x, d.load(&x), o.load(&y))
	return store(&x)
}

// Multiply returns d*o.
func (d Decimal) Multiply(o Decimal) Decimal {
	var x, y, z apd.Decimal
	c := context34()
	_, _ = c.Mul(&z, d.load(&x), o.load(&y))
	return store(&z)
}

// Divide returns d/o: an infinity or NaN when o is zero.
func (d Decimal) Divide(o Decimal) Decimal {
	if o.Sign() == 0 && !o.IsNaN() && !d.IsNaN() {
		if d.Sign() == 0 {
			return Decimal{hi: nanBits}
		}
		return Decimal{hi: infinityBits | (d.hi^o.hi)&signBit}
	}
	var x, y, z apd.Decimal
	c := context34()
	condition, _ := c.Quo(&z, d.load(&x), o.load(&y))
	if z.Form == apd.Finite && !condition.Inexact() {
		strip(&z, x.Exponent-y.Exponent)
	}
	return store(&z)
}

// strip removes trailing zeros while the exponent is below the limit.
func strip(x *apd.Decimal, limit int32) {
	var q, r apd.BigInt
	for ten := apd.NewBigInt(10); x.Exponent < limit && x.Coeff.Sign() != 0; x.Exponent++ {
		if q.QuoRem(&x.Coeff, ten, &r); r.Sign() != 0 {
			return
		}
		x.Coeff.Set(&q)
	}
}

// Mod returns the remainder of d/o with the sign of d, NaN when o is zero or d infinite.
func (d Decimal) Mod(o Decimal) Decimal {
	switch {
	case d.IsNaN() || o.IsNaN() || d.IsInf() || o.Sign() == 0:
		return Decimal{hi: nanBits}
	case o.IsInf():
		return d
	}
	var x, y, quotient apd.Decimal
	d.load(&x)
	o.load(&y)
	// The quotient may have thousands of digits: the precision of this one operation allows for them.
	c := context34()
	c.Precision = uint32(max(int(x.Exponent)+int(x.NumDigits())-int(y.Exponent), 0) + 2*precision)
	_, _ = c.QuoInteger(&quotient, &x, &y)
	_, _ = c.Mul(&quotient, &quotient, &y)
	negative := x.Negative
	_, _ = c.Sub(&x, &x, &quotient)
	x.Negative = negative
	return store(&x)
}

// Rounding says which neighbour Quantize takes.
type Rounding uint8

// The ways of rounding.
const (
	HalfEven Rounding = iota
	Truncate
	Ceiling
	Floor
)

func (r Rounding) rounder() apd.Rounder {
	switch r {
	case Truncate:
		return apd.RoundDown
	case Ceiling:
		return apd.RoundCeiling
	case Floor:
		return apd.RoundFloor
	}
	return apd.RoundHalfEven
}

// Quantize rounds d to that many digits behind the point, before it when negative; zeros are added up to there. A number
// that has no room for all of the zeros gets as many as it has room for.
func (d Decimal) Quantize(places int, how Rounding) Decimal {
	if d.IsNaN() || d.IsInf() || d.Exponent() == -places {
		return d
	}
	var x, rounded apd.Decimal
	c := context34()
	c.Rounding = how.rounder()
	if d.load(&x); !x.IsZero() && int64(x.Exponent)+x.NumDigits() < int64(-places) {
		// apd rounds to zero, whatever the way, what is below a tenth of the last place: the tenth is rounded as that should be.
		x.Coeff.SetInt64(1)
		x.Exponent = int32(-places - 1)
	}
	condition, _ := c.Quantize(&rounded, &x, int32(-places))
	if condition.InvalidOperation() || rounded.Form != apd.Finite {
		return d.padded()
	}
	rounded.Negative = x.Negative // also of what was rounded to zero
	return store(&rounded)
}

// padded returns d with zeros up to 34 digits, or as many as the lowest exponent leaves room for.
func (d Decimal) padded() Decimal {
	var x apd.Decimal
	d.load(&x)
	zeros := min(precision-x.NumDigits(), int64(x.Exponent-minExponent))
	if zeros <= 0 || x.Form != apd.Finite {
		return d
	}
	c := context34()
	_, _ = c.Quantize(&x, &x, x.Exponent-int32(zeros))
	return store(&x)
}
