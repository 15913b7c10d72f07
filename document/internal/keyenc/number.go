package keyenc

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/pandodb/pando/document/internal/order"
)

// A number's first byte is tagZero plus a magnitude, or minus one for negative numbers, which have all bytes behind it inverted.
// Magnitudes up to 2^63 say the integer part of the number, doubled, plus 1 when a fraction follows:
//
//	magnitudes                       bytes behind    integer parts
//	2 for each                       0               the first inline of them, from 0
//	wide1 of them                    1               the next 128 * wide1
//	wide2 of them                    2               the next 32,768 * wide2
//	6, for 3 to 8 bytes              3 to 8          the rest
//
// Integer parts count from the first that no shorter form has. Behind these come numberLarge and numberInfinite.
type layout struct{ inline, wide1, wide2 uint64 }

// Most numbers are not negative, so they have the larger share of the short forms.
const (
	positiveInline, positiveWide1, positiveWide2 = 32, 32, 16
	negativeInline, negativeWide1, negativeWide2 = 16, 16, 8

	numberLarge    = 2*positiveInline + positiveWide1 + positiveWide2 + 6
	numberInfinite = numberLarge + 1
	shortestLong   = 3 // bytes of the first form with one magnitude
)

func layoutOf(negative bool) layout {
	if negative {
		return layout{inline: negativeInline, wide1: negativeWide1, wide2: negativeWide2}
	}
	return layout{inline: positiveInline, wide1: positiveWide1, wide2: positiveWide2}
}

// large returns the magnitude of numbers of 2^63 and more; infinities have the next one.
func (l layout) large() uint64 { return 2*l.inline + l.wide1 + l.wide2 + 6 }

// appendFirst appends the first byte of a number.
func appendFirst(dst []byte, magnitude uint64, negative bool) []byte {
	if negative {
		return append(dst, tagZero-byte(magnitude))
	}
	return append(dst, tagZero+byte(magnitude))
}

// append appends an integer part below 2^63, not yet inverted but for the first byte.
func (l layout) append(dst []byte, whole uint64, fraction, negative bool) []byte {
	x := whole << 1
	if fraction {
		x++
	}
	if whole < l.inline {
		return appendFirst(dst, x, negative)
	}
	first := 2 * l.inline
	if x -= 2 * l.inline; x < l.wide1<<8 {
		return append(appendFirst(dst, first+x>>8, negative), byte(x))
	}
	first += l.wide1
	if x -= l.wide1 << 8; x < l.wide2<<16 {
		return append(appendFirst(dst, first+x>>16, negative), byte(x>>8), byte(x))
	}
	x -= l.wide2 << 16
	size := max((bits.Len64(x)+7)/8, shortestLong)
	dst = appendFirst(dst, first+l.wide2+uint64(size-shortestLong), negative)
	for size--; size >= 0; size-- {
		dst = append(dst, byte(x>>(8*size)))
	}
	return dst
}

// AppendInt appends what Append appends for an integer, ascending.
func AppendInt(dst []byte, i int64) []byte { return appendInt(dst, i) }

func appendInt(dst []byte, i int64) []byte {
	switch {
	case i >= 0:
		return layoutOf(false).append(dst, uint64(i), false, false)
	case i == math.MinInt64:
		return appendDouble(dst, math.MinInt64)
	}
	n := len(dst) + 1
	dst = layoutOf(true).append(dst, uint64(-i), false, true)
	invert(dst[n:])
	return dst
}

// twoTo63 is where large numbers begin.
const twoTo63 = float64(1 << 63)

func appendDouble(dst []byte, f float64) []byte {
	if f != f {
		return append(dst, tagNaN)
	}
	n, negative := len(dst)+1, f < 0
	l := layoutOf(negative)
	size := math.Abs(f)
	switch {
	case math.IsInf(f, 0):
		return appendFirst(dst, l.large()+1, negative)
	case size >= twoTo63:
		fraction, e := math.Frexp(size)
		dst = appendLarge(dst, l, e-1, negative)
		dst = appendGroups(dst, significand(fraction), false)
	case size >= 1 || size == 0:
		whole := math.Trunc(size)
		rest := uint64(math.Ldexp(size-whole, 64))
		dst = l.append(dst, uint64(whole), rest != 0, negative)
		if rest != 0 {
			dst = appendGroups(dst, rest, false)
		}
	default:
		fraction, e := math.Frexp(size)
		dst = l.append(dst, 0, true, negative)
		dst = appendGroups(appendSmall(dst, 1-e), significand(fraction), false)
	}
	if negative {
		invert(dst[n:])
	}
	return dst
}

// significand returns the bits behind the leading one of a fraction in [0.5, 1), from the top.
func significand(fraction float64) uint64 { return uint64(math.Ldexp(fraction*2-1, 64)) }

// appendLarge appends the beginning of a number of 2^e or more, with e >= 63.
func appendLarge(dst []byte, l layout, e int, negative bool) []byte {
	return binary.BigEndian.AppendUint16(appendFirst(dst, l.large(), negative), uint16(e))
}

// Numbers below 1 have minus their binary exponent e, counted down: in a byte where it is below smallExponents, else in three.
const (
	smallExponents = 240
	exponentTop    = 0xff
	longExponent   = 0x00
	longTop        = 0xffff
)

// appendSmall appends the exponent of a number of 2^-e or more, with e >= 1.
func appendSmall(dst []byte, e int) []byte {
	if e < smallExponents {
		return append(dst, byte(exponentTop-e))
	}
	return binary.BigEndian.AppendUint16(append(dst, longExponent), uint16(longTop-e))
}

// groups is how many bytes of 7 bits a fraction has at most: doubles have no more than 52 bits, so that 8 tell all doubles apart.
const groups = 8

// appendGroups appends bits from the top, 7 to a byte; the lowest bit of each tells that there is more. With more all groups are there:
// a decimal that no double equals follows.
func appendGroups(dst []byte, fraction uint64, more bool) []byte {
	for i := range groups {
		b := byte(fraction>>57) << 1
		fraction <<= 7
		last := !more && (fraction == 0 || i == groups-1)
		if last {
			return append(dst, b)
		}
		dst = append(dst, b|1)
	}
	return dst
}

// canonicalNaN is the NaN that decoding gives.
const canonicalNaN = 0x7ff8 << 48

func exactDouble(b uint64) bool {
	f := math.Float64frombits(b)
	if f != f {
		return b == canonicalNaN
	}
	return f != math.Trunc(f) || math.Abs(f) >= twoTo63
}

func exactDecimal(data []byte) bool {
	d := order.DecimalAt(data)
	if !apart(d) {
		return false
	}
	var buf [16]byte
	canonical, ok := order.AppendDecimal(buf[:0], fit(d.Reduce()))
	return ok && string(canonical) == string(data)
}
