package order

import (
	"cmp"
	"encoding/binary"
	"math"
	"math/big"
	"math/bits"
)

// Form is what kind of number a decimal is.
type Form uint8

// The forms.
const (
	Finite Form = iota
	Infinite
	NaN
)

// Decimal is a decimal128 taken apart: its value is (Hi*2^64 + Lo) * 10^Exp, negative with Neg.
type Decimal struct {
	Hi, Lo uint64
	Exp    int
	Neg    bool
	Form   Form
}

// The binary integer form of decimal128 (IEEE 754-2008): a sign, 14 bits of exponent, 113 bits of coefficient. Two bits set behind
// the sign announce special values, or coefficients above 10^34-1, which count as 0.
const (
	decimalBias     = 6176
	decimalSign     = 1 << 63
	decimalSpecial  = 3 << 61
	decimalNaN      = 0x1f << 58
	decimalInfinite = 0x1e << 58
	exponentMask    = 0x3fff
	coefficientBits = 49
	coefficientMask = 1<<coefficientBits - 1
	largeShift      = 47

	// maxCoefficient is 10^34-1.
	maxCoefficientHi = 0x1ed09bead87c0
	maxCoefficientLo = 0x378d8e63ffffffff
)

// MaxDigits is how many digits a decimal128 has at most.
const MaxDigits = 34

// DecimalAt takes the 16 bytes of a decimal128 apart.
func DecimalAt(data []byte) Decimal {
	lo, hi := binary.LittleEndian.Uint64(data), binary.LittleEndian.Uint64(data[8:])
	d := Decimal{Neg: hi&decimalSign != 0}
	if hi&decimalSpecial == decimalSpecial {
		switch hi & decimalNaN {
		case decimalNaN:
			return Decimal{Form: NaN}
		case decimalInfinite:
			d.Form = Infinite
			return d
		}
		d.Exp = int(hi>>largeShift&exponentMask) - decimalBias
		return d
	}
	d.Exp = int(hi>>coefficientBits&exponentMask) - decimalBias
	d.Hi, d.Lo = hi&coefficientMask, lo
	if compare128(d.Hi, d.Lo, maxCoefficientHi, maxCoefficientLo) > 0 {
		d.Hi, d.Lo = 0, 0
	}
	return d
}

// AppendDecimal appends the 16 bytes of a finite decimal as it is. ok is false when it has no such form.
func AppendDecimal(dst []byte, d Decimal) (grown []byte, ok bool) {
	e := d.Exp + decimalBias
	if d.Form != Finite || e < 0 || e > 12287 || compare128(d.Hi, d.Lo, maxCoefficientHi, maxCoefficientLo) > 0 {
		return dst, false
	}
	hi := uint64(e)<<coefficientBits | d.Hi
	if d.Neg {
		hi |= decimalSign
	}
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(dst, d.Lo), hi), true
}

func decimalOf(i int64) Decimal {
	if i < 0 {
		return Decimal{Lo: -uint64(i), Neg: true}
	}
	return Decimal{Lo: uint64(i)}
}

// IsZero reports whether d is 0 or -0.
func (d Decimal) IsZero() bool { return d.Form == Finite && d.Hi|d.Lo == 0 }

// Compare compares by value; NaN is the lowest and equal to NaN.
func (d Decimal) Compare(o Decimal) int {
	if d.Form == NaN || o.Form == NaN {
		return -compareBool(d.Form == NaN, o.Form == NaN)
	}
	x, y := d.sign(), o.sign()
	if x != y || x == 0 {
		return cmp.Compare(x, y)
	}
	return x * compareMagnitudes(d, o)
}

func (d Decimal) sign() int {
	switch {
	case d.IsZero():
		return 0
	case d.Neg:
		return -1
	}
	return 1
}

// compareMagnitudes compares |a| and |b|, neither of which is 0 or NaN.
func compareMagnitudes(a, b Decimal) int {
	if a.Form == Infinite || b.Form == Infinite {
		return compareBool(a.Form == Infinite, b.Form == Infinite)
	}
	m, n := a.Digits(), b.Digits()
	if r := cmp.Compare(m+a.Exp, n+b.Exp); r != 0 {
		return r
	}
	// Both begin at the same power of ten, so the one with fewer digits can be given as many as the other.
	for ; m < n; m++ {
		a.Hi, a.Lo = MulAdd(a.Hi, a.Lo, 10, 0)
	}
	for ; n < m; n++ {
		b.Hi, b.Lo = MulAdd(b.Hi, b.Lo, 10, 0)
	}
	return compare128(a.Hi, a.Lo, b.Hi, b.Lo)
}

// Digits returns the number of decimal digits of the coefficient; that of 0 is 0.
func (d Decimal) Digits() int {
	n := 0
	for d.Hi != 0 {
		d.Hi, d.Lo, _ = DivMod(d.Hi, d.Lo, 1e18)
		n += 18
	}
	for ; d.Lo != 0; d.Lo /= 10 {
		n++
	}
	return n
}

// Reduce removes trailing zeros of the coefficient: equal finite decimals are identical then, but for the sign of 0.
func (d Decimal) Reduce() Decimal {
	if d.IsZero() {
		d.Exp = 0
		return d
	}
	for d.Form == Finite {
		hi, lo, rest := DivMod(d.Hi, d.Lo, 10)
		if rest != 0 {
			break
		}
		d.Hi, d.Lo = hi, lo
		d.Exp++
	}
	return d
}

// Int64 returns the value when it is an integer within int64.
func (d Decimal) Int64() (int64, bool) {
	if d.IsZero() {
		return 0, true
	}
	d = d.Reduce()
	if d.Form != Finite || d.Exp < 0 || d.Exp > 18 || d.Hi != 0 {
		return 0, false
	}
	lo := d.Lo
	for range d.Exp {
		var hi uint64
		if hi, lo = bits.Mul64(lo, 10); hi != 0 {
			return 0, false
		}
	}
	switch {
	case d.Neg && lo <= 1<<63:
		return int64(-lo), true
	case !d.Neg && lo < 1<<63:
		return int64(lo), true
	}
	return 0, false
}

// Float64 returns the double that has exactly the value of d, if there is one. It may be an infinity or NaN.
func (d Decimal) Float64() (float64, bool) {
	switch {
	case d.Form == NaN:
		return math.NaN(), true
	case d.Form == Infinite:
		return d.approximate(), true
	case d.IsZero():
		return 0, true
	}
	// c * 10^e is c * 5^e * 2^e: a double when c * 5^e is whole and, without the twos in it, below 2^53. 5^23 is above that, and
	// c, below 10^34, has no more than 48 fives.
	d = d.Reduce()
	if d.Exp > 22 || d.Exp < -48 {
		return 0, false
	}
	e := d.Exp
	for d.Lo&1 == 0 {
		d.Hi, d.Lo = d.Hi>>1, d.Lo>>1|d.Hi<<63
		e++
	}
	for ; d.Exp > 0; d.Exp-- {
		if d.Hi, d.Lo = MulAdd(d.Hi, d.Lo, 5, 0); d.Hi != 0 {
			return 0, false
		}
	}
	for ; d.Exp < 0; d.Exp++ {
		var rest uint64
		if d.Hi, d.Lo, rest = DivMod(d.Hi, d.Lo, 5); rest != 0 {
			return 0, false
		}
	}
	if d.Hi != 0 || d.Lo >= 1<<53 {
		return 0, false
	}
	f := math.Ldexp(float64(d.Lo), e)
	if d.Neg {
		return -f, true
	}
	return f, true
}

// coefficient returns the coefficient as a big integer.
func (d Decimal) coefficient() *big.Int {
	x := new(big.Int).SetUint64(d.Hi)
	x.Lsh(x, 64)
	return x.Or(x, new(big.Int).SetUint64(d.Lo))
}

// approximate returns about the value of d, and exactly an infinity.
func (d Decimal) approximate() float64 {
	f := (float64(d.Hi)*0x1p64 + float64(d.Lo)) * math.Pow10(d.Exp)
	if d.Form == Infinite {
		f = math.Inf(1)
	}
	if d.Neg {
		return -f
	}
	return f
}

func compare128(ahi, alo, bhi, blo uint64) int {
	if r := cmp.Compare(ahi, bhi); r != 0 {
		return r
	}
	return cmp.Compare(alo, blo)
}

// MulAdd returns (hi, lo) * m + n, modulo 2^128.
func MulAdd(hi, lo, m, n uint64) (uint64, uint64) {
	over, low := bits.Mul64(lo, m)
	low, carry := bits.Add64(low, n, 0)
	return hi*m + over + carry, low
}

// DivMod divides (hi, lo) by d.
func DivMod(hi, lo, d uint64) (qhi, qlo, rest uint64) {
	qhi, rest = hi/d, hi%d
	qlo, rest = bits.Div64(rest, lo, d)
	return qhi, qlo, rest
}
