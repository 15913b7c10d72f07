package number

import (
	"math/big"

	"github.com/cockroachdb/apd/v3"
)

// Trigonometry of decimals: power series after the argument was made small, with twice the digits that are wanted. The server's
// results come from a library of the same precision; the last digit may differ.

// calculator computes with a fixed precision.
type calculator struct{ c apd.Context }

func newCalculator(digits uint32) *calculator { return &calculator{workingContext(digits)} }

func (k *calculator) add(x, y *apd.Decimal) *apd.Decimal {
	z := new(apd.Decimal)
	_, _ = k.c.Add(z, x, y)
	return z
}

func (k *calculator) sub(x, y *apd.Decimal) *apd.Decimal {
	z := new(apd.Decimal)
	_, _ = k.c.Sub(z, x, y)
	return z
}

func (k *calculator) mul(x, y *apd.Decimal) *apd.Decimal {
	z := new(apd.Decimal)
	_, _ = k.c.Mul(z, x, y)
	return z
}

func (k *calculator) div(x, y *apd.Decimal) *apd.Decimal {
	z := new(apd.Decimal)
	_, _ = k.c.Quo(z, x, y)
	return z
}

func (k *calculator) sqrt(x *apd.Decimal) *apd.Decimal {
	z := new(apd.Decimal)
	_, _ = k.c.Sqrt(z, x)
	return z
}

func integer(i int64) *apd.Decimal { return apd.New(i, 0) }

// negligible reports whether a term no longer changes a sum.
func (k *calculator) negligible(term, sum *apd.Decimal) bool {
	if term.IsZero() {
		return true
	}
	return !sum.IsZero() && int64(term.Exponent)+term.NumDigits() < int64(sum.Exponent)+sum.NumDigits()-int64(k.c.Precision)-2
}

// pi is Machin's formula, 16 arctan(1/5) - 4 arctan(1/239), in integers: thousands of digits may be asked for.
func (k *calculator) pi() *apd.Decimal {
	digits := int64(k.c.Precision) + 5
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(digits), nil)
	a, b := arctanReciprocal(scale, 5), arctanReciprocal(scale, 239)
	a.Sub(a.Lsh(a, 4), b.Lsh(b, 2))
	var z apd.Decimal
	z.Coeff.SetMathBigInt(a)
	z.Exponent = int32(-digits)
	_, _ = k.c.Round(&z, &z)
	return &z
}

// arctanReciprocal returns scale*arctan(1/n) by Gregory's series.
func arctanReciprocal(scale *big.Int, n int64) *big.Int {
	power := new(big.Int).Quo(scale, big.NewInt(n))
	sum, square, term, divisor := new(big.Int).Set(power), big.NewInt(n*n), new(big.Int), new(big.Int)
	for i := int64(1); ; i++ {
		power.Quo(power, square)
		if power.Sign() == 0 {
			return sum
		}
		term.Quo(power, divisor.SetInt64(2*i+1))
		if i%2 == 1 {
			sum.Sub(sum, term)
		} else {
			sum.Add(sum, term)
		}
	}
}

// sinCos returns sine and cosine. The argument is reduced by multiples of pi/2, for which as many digits of pi are needed as
// the argument has before the point.
func sinCos(d Decimal) (sin, cos *apd.Decimal) {
	var x apd.Decimal
	d.load(&x)
	before := max(int64(x.Exponent)+x.NumDigits(), 0)
	k := newCalculator(uint32(before) + working)
	half := k.div(k.pi(), integer(2))
	quotient := new(apd.Decimal)
	_, _ = k.c.RoundToIntegralValue(quotient, k.div(&x, half))
	rest := k.sub(&x, k.mul(quotient, half))
	quarter := new(apd.Decimal)
	_, _ = k.c.Rem(quarter, quotient, integer(4))
	turn, _ := quarter.Int64()
	k = newCalculator(working)
	s, c := k.sine(rest), k.cosine(rest)
	switch (turn + 4) % 4 {
	case 1:
		return c, s.Neg(s)
	case 2:
		return s.Neg(s), c.Neg(c)
	case 3:
		return c.Neg(c), s
	}
	return s, c
}

func (k *calculator) sine(x *apd.Decimal) *apd.Decimal {
	return k.alternating(new(apd.Decimal).Set(x), x, 1)
}

func (k *calculator) cosine(x *apd.Decimal) *apd.Decimal {
	return k.alternating(integer(1), x, 0)
}

// alternating sums term - term*x^2/((n+1)(n+2)) + ...
func (k *calculator) alternating(term, x *apd.Decimal, n int64) *apd.Decimal {
	sum, square := new(apd.Decimal).Set(term), k.mul(x, x)
	for {
		term = k.div(k.mul(term, square), integer((n+1)*(n+2)))
		term.Negative = !term.Negative
		if k.negligible(term, sum) {
			return sum
		}
		sum = k.add(sum, term)
		n += 2
	}
}

// arctan halves the argument until the series converges quickly: atan(x) = 2 atan(x/(1+sqrt(1+x^2))).
func (k *calculator) arctan(x *apd.Decimal) *apd.Decimal {
	if x.IsZero() {
		return x
	}
	one, factor := integer(1), int64(1)
	for limit := apd.New(1, -2); new(apd.Decimal).Set(x).CmpTotal(limit) > 0 || limit.CmpTotal(k.sub(integer(0), x)) < 0; factor *= 2 {
		x = k.div(x, k.add(one, k.sqrt(k.add(one, k.mul(x, x)))))
	}
	square := k.mul(x, x)
	power := new(apd.Decimal).Set(x)
	sum := new(apd.Decimal).Set(x)
	for i := int64(1); ; i++ {
		power = k.mul(power, square)
		power.Negative = !power.Negative
		term := k.div(power, integer(2*i+1))
		if k.negligible(term, sum) {
			return k.mul(sum, integer(factor))
		}
		sum = k.add(sum, term)
	}
}

// Trigonometric returns one of sin, cos, tan, asin, acos, atan, sinh, cosh, tanh, asinh, acosh, atanh of d, which must be in the
// function's domain; NaN for NaN and for a name that is none of these.
func (d Decimal) Trigonometric(name string) Decimal {
	if d.IsNaN() {
		return d
	}
	if d.IsInf() {
		return limitAtInfinity(name, d)
	}
	switch name {
	case "sin", "cos", "tan":
		return circular(name, d)
	case "asin", "acos", "atan":
		return inverseCircular(name, d)
	case "sinh", "cosh", "tanh":
		return hyperbolic(name, d)
	case "asinh", "acosh", "atanh":
		return inverseHyperbolic(name, d)
	}
	return Decimal{hi: nanBits}
}

func limitAtInfinity(name string, d Decimal) Decimal {
	switch name {
	case "atan":
		k := newCalculator(working)
		half := k.div(k.pi(), integer(2))
		half.Negative = d.Negative()
		return store(half)
	case "sinh", "asinh", "acosh":
		return d
	case "cosh":
		return d.Abs()
	case "tanh":
		return Decimal{hi: exponentBias<<49 | d.hi&signBit, lo: 1}
	}
	return Decimal{hi: nanBits}
}

func circular(name string, d Decimal) Decimal {
	if d.Sign() == 0 {
		if name == "cos" {
			return DecimalFromInt(1).padded()
		}
		return d
	}
	sin, cos := sinCos(d)
	switch name {
	case "sin":
		return store(sin)
	case "cos":
		return store(cos)
	}
	return store(newCalculator(working).div(sin, cos))
}

func inverseCircular(name string, d Decimal) Decimal {
	k := newCalculator(working)
	var x apd.Decimal
	d.load(&x)
	one := integer(1)
	switch {
	case name == "atan" && d.Sign() == 0, name == "asin" && d.Sign() == 0:
		return d
	case name == "atan":
		return store(k.arctan(&x))
	case name == "acos" && x.Cmp(one) == 0:
		return DecimalFromInt(0)
	}
	// asin(x) = 2 atan(x / (1 + sqrt(1-x^2))), which holds at both ends too; acos(x) = 2 atan(sqrt((1-x)/(1+x))).
	if name == "asin" {
		root := k.sqrt(k.mul(k.sub(one, &x), k.add(one, &x)))
		return store(k.mul(integer(2), k.arctan(k.div(&x, k.add(one, root)))))
	}
	if x.Cmp(integer(-1)) == 0 {
		return store(k.pi())
	}
	return store(k.mul(integer(2), k.arctan(k.sqrt(k.div(k.sub(one, &x), k.add(one, &x))))))
}

func hyperbolic(name string, d Decimal) Decimal {
	switch {
	case d.Sign() == 0 && name == "cosh":
		return DecimalFromInt(1).padded()
	case d.Sign() == 0:
		return d
	case d.Abs().Compare(DecimalFromInt(15000)) > 0:
		return limitAtInfinity(name, Decimal{hi: infinityBits | d.hi&signBit})
	}
	var x apd.Decimal
	d.load(&x)
	// Small arguments lose as many digits in the difference as they have zeros behind the point.
	small := max(-(int64(x.Exponent) + x.NumDigits()), 0)
	k := newCalculator(uint32(working + 2*min(small, 2*working)))
	if small > working && name == "cosh" {
		return DecimalFromInt(1)
	}
	if small > working {
		return d
	}
	up, down := new(apd.Decimal), new(apd.Decimal)
	_, _ = k.c.Exp(up, &x)
	_, _ = k.c.Exp(down, new(apd.Decimal).Neg(&x))
	switch name {
	case "sinh":
		return store(k.div(k.sub(up, down), integer(2)))
	case "cosh":
		return store(k.div(k.add(up, down), integer(2)))
	}
	return store(k.div(k.sub(up, down), k.add(up, down)))
}

func inverseHyperbolic(name string, d Decimal) Decimal {
	var x apd.Decimal
	d.load(&x)
	small := max(-(int64(x.Exponent) + x.NumDigits()), 0)
	if name != "acosh" && (d.Sign() == 0 || small > working) {
		return d
	}
	k := newCalculator(uint32(working + small))
	one := integer(1)
	z := new(apd.Decimal)
	switch name {
	case "asinh":
		negative := x.Negative
		x.Negative = false
		_, _ = k.c.Ln(z, k.add(&x, k.sqrt(k.add(k.mul(&x, &x), one))))
		z.Negative = negative
	case "acosh":
		if x.Cmp(one) == 0 {
			return DecimalFromInt(0)
		}
		_, _ = k.c.Ln(z, k.add(&x, k.sqrt(k.sub(k.mul(&x, &x), one))))
	default:
		if x.Cmp(one) == 0 || x.Cmp(integer(-1)) == 0 {
			return Decimal{hi: infinityBits | d.hi&signBit}
		}
		_, _ = k.c.Ln(z, k.div(k.add(one, &x), k.sub(one, &x)))
		z = k.div(z, integer(2))
	}
	return store(z)
}

// Atan2 returns the angle of the point (x, d).
func (d Decimal) Atan2(x Decimal) Decimal {
	if d.IsNaN() || x.IsNaN() {
		return Decimal{hi: nanBits}
	}
	switch {
	case x.IsInf() && !x.Negative() && !d.IsInf():
		return Decimal{hi: d.hi & signBit} // the smallest zero
	case d.Sign() == 0 && !x.Negative():
		return d
	}
	k := newCalculator(working)
	if d.IsInf() || x.IsInf() {
		return store(k.distant(d, x))
	}
	var a, b apd.Decimal
	d.load(&a)
	x.load(&b)
	pi := k.pi()
	if b.IsZero() && !a.IsZero() {
		half := k.div(pi, integer(2))
		half.Negative = a.Negative
		return store(half)
	}
	if a.IsZero() {
		pi.Negative = a.Negative
		return store(pi)
	}
	angle := k.arctan(k.div(&a, &b))
	switch {
	case !b.Negative:
	case a.Negative:
		angle = k.sub(angle, pi)
	default:
		angle = k.add(angle, pi)
	}
	return store(angle)
}

// distant returns the angle of a point that is infinitely far away, but not along the axis x.
func (k *calculator) distant(y, x Decimal) *apd.Decimal {
	eighths := int64(4) // of a turn of pi
	switch {
	case !y.IsInf():
		eighths = 8
	case x.IsInf() && x.Negative():
		eighths = 6
	case x.IsInf():
		eighths = 2
	}
	angle := k.div(k.mul(k.pi(), integer(eighths)), integer(8))
	angle.Negative = y.Negative()
	return angle
}

// Degrees returns d, which is in radians, in degrees: d times 180/pi, of which the server has 34 digits.
func (d Decimal) Degrees() Decimal {
	return d.Multiply(constant("57.29577951308232087679815481410517"))
}

// Radians returns d, which is in degrees, in radians: d times pi/180, in the same way.
func (d Decimal) Radians() Decimal {
	return d.Multiply(constant("0.01745329251994329576923690768488613"))
}

// constant reads a decimal that is one.
func constant(s string) Decimal {
	d, _ := ParseDecimal(s)
	return d
}
