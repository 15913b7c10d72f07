package order

import (
	"cmp"
	"math"
	"math/big"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// compareNumbers compares numbers of any two types by their exact values. NaN is the lowest number.
func compareNumbers(a, b bsoncore.Value) int {
	if a.Type == bsoncore.TypeDecimal128 {
		return compareDecimalWith(DecimalAt(a.Data), b)
	}
	if b.Type == bsoncore.TypeDecimal128 {
		return -compareDecimalWith(DecimalAt(b.Data), a)
	}
	i, isInt := integer(a)
	j, isIntToo := integer(b)
	switch {
	case isInt && isIntToo:
		return cmp.Compare(i, j)
	case isInt:
		return compareIntDouble(i, doubleAt(b.Data))
	case isIntToo:
		return -compareIntDouble(j, doubleAt(a.Data))
	}
	return compareDoubles(doubleAt(a.Data), doubleAt(b.Data))
}

// integer returns the value of an int32 or int64.
func integer(v bsoncore.Value) (int64, bool) {
	switch v.Type {
	case bsoncore.TypeInt32:
		return int64(int32At(v.Data)), true
	case bsoncore.TypeInt64:
		return int64At(v.Data), true
	}
	return 0, false
}

// compareDoubles has NaN below everything and equal to itself, and -0 equal to 0, as cmp.Compare does.
func compareDoubles(a, b float64) int { return cmp.Compare(a, b) }

// twoTo63 is the first double above all int64.
const twoTo63 = float64(1 << 63)

// compareIntDouble compares exactly: a double beyond 2^53 stands for the one integer that it is.
func compareIntDouble(i int64, f float64) int {
	switch {
	case f != f || f < -twoTo63:
		return 1
	case f >= twoTo63:
		return -1
	}
	whole := math.Trunc(f)
	if r := cmp.Compare(i, int64(whole)); r != 0 {
		return r
	}
	return cmp.Compare(0, f-whole)
}

// compareDecimalWith compares a decimal with a number of any type.
func compareDecimalWith(d Decimal, v bsoncore.Value) int {
	if v.Type == bsoncore.TypeDecimal128 {
		return d.Compare(DecimalAt(v.Data))
	}
	if i, ok := integer(v); ok {
		return d.Compare(decimalOf(i))
	}
	f := doubleAt(v.Data)
	switch {
	case d.Form == NaN || f != f:
		return -compareBool(d.Form == NaN, f != f)
	case math.IsInf(f, 0) || d.Form == Infinite:
		return cmp.Compare(d.infinite(), clamp(f))
	}
	if f == math.Trunc(f) && f >= -twoTo63 && f < twoTo63 {
		return d.Compare(decimalOf(int64(f)))
	}
	return d.compareDouble(f)
}

// infinite returns the infinity that d is, and 0 for every finite number.
func (d Decimal) infinite() float64 {
	if d.Form == Infinite {
		return d.approximate()
	}
	return 0
}

// clamp keeps infinities and makes every finite number 0: enough to compare with an infinity.
func clamp(f float64) float64 {
	if math.IsInf(f, 0) {
		return f
	}
	return 0
}

// compareDouble compares a finite decimal with a finite double that is not 0.
func (d Decimal) compareDouble(f float64) int {
	// With powers of ten that are normal numbers the approximation errs by a few units of 2^-53: in the coefficient, the power, their
	// product. Farther away than 2^-45 the doubles tell who is greater.
	g := d.approximate()
	if d.Exp > -300 && d.Exp < 270 && math.Abs(g-f) > math.Abs(g)*0x1p-45 {
		return cmp.Compare(g, f)
	}
	if d.Neg != (f < 0) {
		return compareBool(!d.Neg, !(f < 0))
	}
	r := d.compareMagnitude(math.Abs(f))
	if d.Neg {
		return -r
	}
	return r
}

// compareMagnitude compares |d| with f > 0, exactly: coefficient * 10^exp against mantissa * 2^e, both multiplied until they are whole.
func (d Decimal) compareMagnitude(f float64) int {
	fraction, e := math.Frexp(f)
	mantissa := int64(math.Ldexp(fraction, 53))
	e -= 53
	x, y := d.coefficient(), big.NewInt(mantissa)
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(d.Exp, -d.Exp))), nil)
	if d.Exp < 0 {
		y.Mul(y, power)
	} else {
		x.Mul(x, power)
	}
	if e < 0 {
		x.Lsh(x, uint(-e))
	} else {
		y.Lsh(y, uint(e))
	}
	return x.Cmp(y)
}
