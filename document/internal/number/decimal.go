package number

import (
	"math"
	"math/big"
	"math/bits"
	"strconv"
	"strings"

	"github.com/cockroachdb/apd/v3"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// Decimal is an IEEE 754-2008 decimal128 in its binary encoding, as BSON holds it. The zero Decimal is 0E-6176.
type Decimal struct{ hi, lo uint64 }

const (
	exponentBias = 6176
	minExponent  = -exponentBias
	maxExponent  = 6111
	precision    = 34

	signBit      = 1 << 63
	infinityBits = 0x78 << 56
	nanBits      = 0x7c << 56

	// limitHi and limitLo are 10^34: a coefficient that is not less is no canonical one and means zero.
	limitHi = 0x0001ed09bead87c0
	limitLo = 0x378d8e6400000000
)

// Bits returns the two halves.
func (d Decimal) Bits() (hi, lo uint64) { return d.hi, d.lo }

// IsNaN reports whether d is not a number.
func (d Decimal) IsNaN() bool { return d.hi&nanBits == nanBits }

// IsInf reports whether d is an infinity.
func (d Decimal) IsInf() bool { return d.hi&nanBits == infinityBits }

// Negative reports whether the sign bit is set.
func (d Decimal) Negative() bool { return d.hi&signBit != 0 }

// Negate returns -d.
func (d Decimal) Negate() Decimal { return Decimal{d.hi ^ signBit, d.lo} }

// Abs returns d without its sign.
func (d Decimal) Abs() Decimal { return Decimal{d.hi &^ signBit, d.lo} }

// Sign returns -1, 0 or 1; 0 for NaN.
func (d Decimal) Sign() int {
	if d.IsNaN() {
		return 0
	}
	if !d.IsInf() {
		if hi, lo, _ := d.parts(); hi == 0 && lo == 0 {
			return 0
		}
	}
	if d.Negative() {
		return -1
	}
	return 1
}

// parts returns coefficient and exponent of a finite number.
func (d Decimal) parts() (hi, lo uint64, exponent int) {
	if d.hi>>61&3 == 3 {
		return 0, 0, int(d.hi>>47&0x3fff) - exponentBias
	}
	hi, lo, exponent = d.hi&(1<<49-1), d.lo, int(d.hi>>49&0x3fff)-exponentBias
	if hi > limitHi || hi == limitHi && lo >= limitLo {
		return 0, 0, exponent
	}
	return hi, lo, exponent
}

// Exponent returns the power of ten of the coefficient's last digit.
func (d Decimal) Exponent() int {
	_, _, e := d.parts()
	return e
}

// DecimalZero returns a zero with an exponent, which must be one of decimals: added to a number it gives it as many digits.
func DecimalZero(exponent int) Decimal { return Decimal{hi: uint64(exponent+exponentBias) << 49} }

// load sets x to d.
func (d Decimal) load(x *apd.Decimal) *apd.Decimal {
	x.Negative = d.Negative()
	switch {
	case d.IsNaN():
		x.Form = apd.NaN
		x.Negative = false
		return x
	case d.IsInf():
		x.Form = apd.Infinite
		return x
	}
	hi, lo, exponent := d.parts()
	x.Form, x.Exponent = apd.Finite, int32(exponent)
	if hi == 0 {
		x.Coeff.SetUint64(lo)
		return x
	}
	var low apd.BigInt
	x.Coeff.SetUint64(hi)
	x.Coeff.Lsh(&x.Coeff, 64)
	x.Coeff.Or(&x.Coeff, low.SetUint64(lo))
	return x
}

// store encodes x, which is rounded when it has more than 34 digits.
func store(x *apd.Decimal) Decimal {
	negative := uint64(0)
	if x.Negative {
		negative = signBit
	}
	switch x.Form {
	case apd.NaN, apd.NaNSignaling:
		return Decimal{hi: nanBits}
	case apd.Infinite:
		return Decimal{hi: infinityBits | negative}
	}
	if x.NumDigits() > precision || x.Exponent < minExponent {
		c := context34()
		_, _ = c.Round(x, x) // nothing is trapped: the condition is in the result
		if x.Form != apd.Finite {
			return store(x)
		}
	}
	exponent := int(x.Exponent)
	coefficient := x.Coeff.MathBigInt()
	if exponent > maxExponent { // folded down: more zeros at the end while there is room for them
		zeros := exponent - maxExponent
		switch {
		case coefficient.Sign() == 0:
		case int(x.NumDigits())+zeros > precision:
			return Decimal{hi: infinityBits | negative}
		default:
			coefficient.Mul(coefficient, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(zeros)), nil))
		}
		exponent = maxExponent
	}
	if exponent < minExponent { // only a zero comes here: rounding brought everything else into the range
		exponent = minExponent
	}
	var b [16]byte
	coefficient.FillBytes(b[:])
	hi, lo := be64(b[:8]), be64(b[8:])
	return Decimal{hi: negative | uint64(exponent+exponentBias)<<49 | hi, lo: lo}
}

func be64(b []byte) (x uint64) {
	for _, c := range b {
		x = x<<8 | uint64(c)
	}
	return x
}

// context34 is the arithmetic of decimal128: nothing is trapped, results are rounded to the even neighbour.
func context34() apd.Context {
	return apd.Context{Precision: precision, MaxExponent: 6144, MinExponent: -6143, Rounding: apd.RoundHalfEven}
}

// DecimalFromInt returns i.
func DecimalFromInt(i int64) Decimal {
	if i < 0 {
		return Decimal{hi: signBit | exponentBias<<49, lo: -uint64(i)}
	}
	return Decimal{hi: exponentBias << 49, lo: uint64(i)}
}

// DecimalFromFloat returns f rounded to 15 significant digits, all 15 of them kept.
func DecimalFromFloat(f float64) Decimal { return fromDigits(f, 15) }

// fullDecimal returns f with up to 34 significant digits; an integer gets the exponent 0 where it fits, a fraction no
// trailing zeros.
func fullDecimal(f float64) Decimal {
	if f == math.Trunc(f) && math.Abs(f) < 1<<63 && f != 0 {
		return DecimalFromInt(int64(f))
	}
	d := fromDigits(f, precision)
	if d.IsNaN() || d.IsInf() || d.Sign() == 0 || d.Exponent() >= 0 {
		return d
	}
	var x apd.Decimal
	d.load(&x)
	strip(&x, 0)
	return store(&x)
}

// fromDigits returns f with the given number of significant digits.
func fromDigits(f float64, digits int) Decimal {
	switch {
	case math.IsNaN(f):
		return Decimal{hi: nanBits}
	case math.IsInf(f, 0) || f == 0:
		d := Decimal{hi: infinityBits}
		if f == 0 {
			d.hi = exponentBias << 49
		}
		if math.Signbit(f) {
			d.hi |= signBit
		}
		return d
	}
	text := strconv.FormatFloat(math.Abs(f), 'e', digits-1, 64)
	mantissa, power, _ := strings.Cut(text, "e")
	exponent, _ := strconv.Atoi(power) // what FormatFloat wrote is a number
	hi, lo := uint64(0), uint64(0)
	for i := range len(mantissa) {
		if c := mantissa[i]; c != '.' {
			high, low := bits.Mul64(lo, 10)
			var carry uint64
			lo, carry = bits.Add64(low, uint64(c-'0'), 0)
			hi = hi*10 + high + carry
		}
	}
	d := Decimal{hi: hi | uint64(exponent-digits+1+exponentBias)<<49, lo: lo}
	if f < 0 {
		d.hi |= signBit
	}
	return d
}

// Float64 returns the nearest double.
func (d Decimal) Float64() float64 {
	switch {
	case d.IsNaN():
		return math.NaN()
	case d.IsInf() && d.Negative():
		return math.Inf(-1)
	case d.IsInf():
		return math.Inf(1)
	}
	hi, lo, exponent := d.parts()
	if hi == 0 && exponent == 0 && lo < 1<<53 {
		f := float64(lo)
		if d.Negative() {
			return -f
		}
		return f
	}
	f, _ := strconv.ParseFloat(d.String(), 64) // out of range: an infinity, or zero, which is right
	return f
}

// Int64 is Number.Int64 of a decimal.
func (d Decimal) Int64() (i int64, exact bool) {
	if d.IsNaN() {
		return 0, false
	}
	end := int64(math.MaxInt64)
	if d.Negative() {
		end = math.MinInt64
	}
	if d.IsInf() {
		return end, false
	}
	t := d.Quantize(0, Truncate)
	hi, lo, exponent := t.parts()
	if exponent != 0 && (hi != 0 || lo != 0) || hi != 0 {
		return end, false
	}
	if d.Negative() {
		if lo > 1<<63 {
			return end, false
		}
		return -int64(lo), d.Compare(t) == 0
	}
	if lo > math.MaxInt64 {
		return end, false
	}
	return int64(lo), d.Compare(t) == 0
}

// Compare compares by value; NaN is less than everything else.
func (d Decimal) Compare(o Decimal) int {
	switch {
	case d.IsNaN() && o.IsNaN():
		return 0
	case d.IsNaN():
		return -1
	case o.IsNaN():
		return 1
	}
	var x, y apd.Decimal
	return d.load(&x).Cmp(o.load(&y))
}

// ParseDecimal reads a decimal number, "NaN" or an infinity; ok is false when s is none of these. Digits beyond the 34th are
// cut off, as the server does it.
func ParseDecimal(s string) (d Decimal, ok bool) {
	digits := strings.TrimLeft(s, "+-")
	if len(s)-len(digits) > 1 || digits == "" || strings.ContainsAny(digits, "_") {
		return Decimal{}, false
	}
	switch strings.ToLower(digits) {
	case "nan":
		return Decimal{hi: nanBits}, true
	case "inf", "infinity":
		d.hi = infinityBits
		if s[0] == '-' {
			d.hi |= signBit
		}
		return d, true
	}
	if digits[0] != '.' && (digits[0] < '0' || digits[0] > '9') {
		return Decimal{}, false
	}
	x, _, err := apd.NewFromString(shortened(s))
	if err != nil {
		return Decimal{}, false
	}
	c := context34()
	c.Rounding = apd.RoundDown
	if x.NumDigits() > precision {
		_, _ = c.Round(x, x)
	}
	return store(x), true
}

// shortened returns a number without most of the digits that are cut off: millions of them take long to read.
func shortened(s string) string {
	const long = 4 * precision
	mantissa, exponent := s, 0
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		var err error
		if exponent, err = strconv.Atoi(s[i+1:]); err != nil {
			return s
		}
		mantissa = s[:i]
	}
	if len(mantissa) < long {
		return s
	}
	kept := make([]byte, 0, long)
	point := false
	for i, c := range []byte(mantissa) {
		switch {
		case i == 0 && (c == '+' || c == '-'):
			kept = append(kept, c)
		case c == '.' && !point:
			point = true
		case c < '0' || c > '9':
			return "?" // which is no number either
		case c == '0' && (len(kept) == 0 || len(kept) == 1 && kept[0] < '0'): // in front of all others
			if point {
				exponent--
			}
		case len(kept) < long/2:
			kept = append(kept, c)
			if point {
				exponent--
			}
		case !point:
			exponent++
		}
	}
	if len(kept) == 0 || len(kept) == 1 && kept[0] < '0' {
		kept = append(kept, '0')
	}
	return string(kept) + "E" + strconv.Itoa(exponent)
}

// String returns the number as MongoDB writes it: in full, or with an exponent where that is shorter.
func (d Decimal) String() string {
	if d.IsNaN() {
		return "NaN"
	}
	return bson.NewDecimal128(d.hi, d.lo).String()
}
