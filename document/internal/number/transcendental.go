package number

import (
	"math"

	"github.com/cockroachdb/apd/v3"
)

// working is the precision of steps whose result is rounded to 34 digits at the end.
const working = 2 * precision

func workingContext(digits uint32) apd.Context {
	return apd.Context{Precision: digits, MaxExponent: apd.MaxExponent, MinExponent: apd.MinExponent, Rounding: apd.RoundHalfEven}
}

// Sqrt returns the square root, NaN of what is negative.
func (d Decimal) Sqrt() Decimal {
	var x, z apd.Decimal
	if d.IsNaN() || d.Sign() < 0 {
		return Decimal{hi: nanBits}
	}
	if d.IsInf() {
		return d
	}
	d.load(&x)
	ideal := int32(math.Floor(float64(x.Exponent) / 2))
	if d.Sign() == 0 {
		x.Exponent = ideal
		return store(&x)
	}
	c := context34()
	_, _ = c.Sqrt(&z, &x)
	// Whether the result is exact apd tells of its last step only.
	var square apd.Decimal
	c = workingContext(working)
	if _, _ = c.Mul(&square, &z, &z); square.Cmp(&x) != 0 {
		return store(&z).padded()
	}
	strip(&z, ideal)
	return store(&z)
}

// Exp returns e^d.
func (d Decimal) Exp() Decimal {
	switch {
	case d.IsNaN():
		return d
	case d.IsInf() && d.Negative():
		return Decimal{hi: exponentBias << 49}
	case d.IsInf():
		return d
	case d.Sign() == 0:
		return DecimalFromInt(1)
	case d.Compare(DecimalFromInt(15000)) > 0:
		return Decimal{hi: infinityBits}
	case d.Compare(DecimalFromInt(-15000)) < 0:
		return Decimal{}
	}
	var x, z apd.Decimal
	c := workingContext(working)
	_, _ = c.Exp(&z, d.load(&x))
	return store(&z).padded() // it is never exact
}

// logarithm applies one of apd's logarithms.
func (d Decimal) logarithm(of func(c *apd.Context, z, x *apd.Decimal)) Decimal {
	switch {
	case d.IsNaN() || d.Sign() < 0:
		return Decimal{hi: nanBits}
	case d.Sign() == 0:
		return Decimal{hi: infinityBits | signBit}
	case d.IsInf():
		return d
	case d.Compare(DecimalFromInt(1)) == 0:
		return DecimalFromInt(0)
	}
	var x, z apd.Decimal
	c := workingContext(working)
	of(&c, &z, d.load(&x))
	return store(&z).padded() // it is never exact
}

// Ln returns the natural logarithm, NaN of what is negative.
func (d Decimal) Ln() Decimal {
	return d.logarithm(func(c *apd.Context, z, x *apd.Decimal) { _, _ = c.Ln(z, x) })
}

// Log10 returns the decimal logarithm, NaN of what is negative.
func (d Decimal) Log10() Decimal {
	var x apd.Decimal
	if d.Sign() > 0 && !d.IsInf() {
		d.load(&x)
		if x.Reduce(&x); x.Coeff.IsInt64() && x.Coeff.Int64() == 1 {
			return DecimalFromInt(int64(x.Exponent))
		}
	}
	return d.logarithm(func(c *apd.Context, z, x *apd.Decimal) { _, _ = c.Log10(z, x) })
}

// Log returns the logarithm to a base.
func (d Decimal) Log(base Decimal) Decimal {
	if d.IsNaN() || base.IsNaN() || d.IsInf() || base.IsInf() || d.Sign() <= 0 || base.Sign() <= 0 {
		return d.Ln().Divide(base.Ln())
	}
	var x, y, z apd.Decimal
	c := workingContext(working)
	_, _ = c.Ln(&x, d.load(&x))
	_, _ = c.Ln(&y, base.load(&y))
	_, _ = c.Quo(&z, &x, &y)
	r := context34()
	_, _ = r.Round(&z, &z)
	var short apd.Decimal
	short.Set(&z)
	if strip(&short, 0); short.NumDigits() < precision-3 { // so many zeros are no chance: it is exact
		return store(&short)
	}
	return store(&z).padded()
}

// parity reports whether a finite d is a whole number, and whether it is an odd one.
func (d Decimal) parity() (whole, odd bool) {
	var x apd.Decimal
	d.load(&x).Reduce(&x)
	return x.Exponent >= 0, x.Exponent == 0 && x.Coeff.Bit(0) == 1
}

// Pow returns d^o, NaN where that is no real number.
func (d Decimal) Pow(o Decimal) Decimal {
	one := DecimalFromInt(1)
	switch {
	case o.Sign() == 0 && !o.IsNaN() || d.Compare(one) == 0:
		return one.padded()
	case d.IsNaN() || o.IsNaN():
		return Decimal{hi: nanBits}
	case d.Sign() == 0 && o.Sign() > 0:
		return Decimal{} // with the lowest exponent
	case o.IsInf() && d.Abs().Compare(one) == 0:
		return one.padded()
	case d.Sign() == 0: // o is negative
		return fullDecimal(math.Pow(d.Float64(), o.Float64()))
	case d.IsInf() && o.Sign() < 0, o.IsInf() && (d.Abs().Compare(one) > 0) != (o.Sign() > 0):
		return Decimal{}
	case o.IsInf():
		return Decimal{hi: infinityBits}
	case d.IsInf(): // no double tells whether a long exponent is odd, nor one below all doubles from 0
		if _, odd := o.parity(); d.Negative() && odd {
			return Decimal{hi: infinityBits | signBit}
		}
		return Decimal{hi: infinityBits}
	}
	integral, odd := o.parity()
	switch {
	case d.Negative() && !integral:
		return Decimal{hi: nanBits}
	case d.Abs().Compare(one) == 0 && odd:
		return one.Negate().padded()
	case d.Abs().Compare(one) == 0:
		return one.padded()
	}
	var x, y, z apd.Decimal
	c := workingContext(working)
	// The exponent of the result decides about overflow before digits are computed in vain.
	_, _ = c.Log10(&z, d.Abs().load(&x))
	_, _ = c.Mul(&z, &z, o.load(&y))
	if size, _ := z.Float64(); size > 6200 || size < -6200 { // infinite when it is no double
		negative := uint64(0)
		if d.Negative() && odd {
			negative = signBit
		}
		if size > 0 {
			return Decimal{hi: infinityBits | negative}
		}
		return Decimal{hi: negative}
	}
	_, _ = c.Pow(&z, d.load(&x), &y)
	r := context34()
	_, _ = r.Round(&z, &z)
	return store(&z).padded() // the server gives all digits always
}
