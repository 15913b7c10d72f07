package keyenc

import (
	"encoding/binary"
	"math"
	"math/big"
	"math/bits"

	"github.com/pandodb/pando/document/internal/order"
)

// maxExponent is the highest exponent of a decimal128.
const maxExponent = 6111

// tailBias is added to the exponent in front of the digits.
const tailBias = 0x4000

// apart reports whether neither an int64 nor a double has the value of d: it is encoded as what its binary expansion begins with and,
// behind that, as a decimal.
func apart(d order.Decimal) bool {
	if _, ok := d.Int64(); ok {
		return false
	}
	_, ok := d.Float64()
	return !ok
}

// fit gives a decimal in lowest terms an exponent that decimal128 has.
func fit(d order.Decimal) order.Decimal {
	for d.Exp > maxExponent {
		d.Hi, d.Lo = order.MulAdd(d.Hi, d.Lo, 10, 0)
		d.Exp--
	}
	return d
}

func appendDecimal(dst []byte, d order.Decimal) []byte {
	if i, ok := d.Int64(); ok {
		return appendInt(dst, i)
	}
	if f, ok := d.Float64(); ok {
		return appendDouble(dst, f)
	}
	n := len(dst) + 1
	l := layoutOf(d.Neg)
	b, ok := expandQuickly(d)
	if !ok {
		b = expand(d)
	}
	switch {
	case b.exponent >= 63:
		dst = appendLarge(dst, l, b.exponent, d.Neg)
	case b.whole > 0:
		dst = l.append(dst, b.whole, true, d.Neg)
	default:
		dst = appendSmall(l.append(dst, 0, true, d.Neg), -b.exponent)
	}
	dst = appendGroups(dst, b.fraction, true)
	dst = appendDigits(dst, d.Reduce())
	if d.Neg {
		invert(dst[n:])
	}
	return dst
}

// expansion is what the binary form of a number begins with: below 2^63 and from 1 on an integer part and what follows it, else the
// exponent and what follows the leading one. Bits are from the top; those that do not fit are left out.
type expansion struct {
	whole, fraction uint64
	exponent        int
}

// expandQuickly is expand for coefficients below 2^64 with up to 19 decimals, which is nearly all there is.
func expandQuickly(d order.Decimal) (b expansion, ok bool) {
	if d.Hi != 0 || d.Exp >= 0 || d.Exp < -19 {
		return b, false
	}
	power := uint64(1)
	for range -d.Exp {
		power *= 10
	}
	hi, rest := bits.Div64(d.Lo%power, 0, power)
	b.whole, b.fraction = d.Lo/power, hi
	if b.whole > 0 {
		return b, b.whole < 1<<63
	}
	lo, _ := bits.Div64(rest, 0, power)
	zeros := bits.LeadingZeros64(hi)
	if zeros == 64 {
		return b, false
	}
	b.exponent = -zeros - 1
	b.fraction = hi<<(zeros+1) | lo>>(63-zeros)
	return b, true
}

// expand divides with as many digits as it takes.
func expand(d order.Decimal) expansion {
	x := new(big.Int).SetUint64(d.Hi)
	x.Lsh(x, 64).Or(x, new(big.Int).SetUint64(d.Lo))
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(d.Exp, -d.Exp))), nil)
	shift := 64 // x is the number times 2^shift
	if d.Exp >= 0 {
		x.Mul(x, power).Lsh(x, uint(shift))
	} else {
		shift = max(shift, power.BitLen()-x.BitLen()+66)
		x.Lsh(x, uint(shift)).Quo(x, power)
	}
	e := x.BitLen() - 1 - shift
	if e >= 0 && e < 63 {
		whole := new(big.Int).Rsh(x, uint(shift)).Uint64()
		return expansion{whole: whole, fraction: low(x.Rsh(x, uint(shift-64)))}
	}
	// The leading one is bit 64 of what is left, and cut off.
	return expansion{exponent: e, fraction: low(x.Rsh(x, uint(x.BitLen()-65)))}
}

// low returns the low 64 bits.
func low(x *big.Int) uint64 {
	return x.And(x, new(big.Int).SetUint64(math.MaxUint64)).Uint64()
}

// appendDigits appends a decimal in lowest terms as 0.d1d2d3... * 10^exponent: the exponent, then two digits to a byte, doubled; the
// lowest bit tells that there is more.
func appendDigits(dst []byte, d order.Decimal) []byte {
	n := d.Digits()
	dst = binary.BigEndian.AppendUint16(dst, uint16(d.Exp+n+tailBias))
	if n%2 == 1 {
		d.Hi, d.Lo = order.MulAdd(d.Hi, d.Lo, 10, 0)
		n++
	}
	var pairs [order.MaxDigits / 2]byte
	for i := n/2 - 1; i >= 0; i-- {
		var pair uint64
		d.Hi, d.Lo, pair = order.DivMod(d.Hi, d.Lo, 100)
		pairs[i] = byte(pair)<<1 | 1
	}
	pairs[n/2-1]--
	return append(dst, pairs[:n/2]...)
}
