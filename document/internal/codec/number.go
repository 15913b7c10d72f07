package codec

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// A packed value is a head of one byte and a tail whose length the head tells, so the place of any tail is a sum over heads.
// The heads of numbers: below headTwo the number itself; below headThree its high bits, of which a byte follows; below headMore
// its high bits, of which two bytes follow; then 3 to 8 bytes of the number. All big-endian: what rarely changes comes first.
const (
	headTwo   = 176
	headThree = 240
	headMore  = 248 // three bytes follow; the next heads have one byte more each
	headEight = 253
	headExact = 254 // eight bytes follow, of a double or a date as it is in BSON

	leastTwo   = headTwo
	leastThree = leastTwo + (headThree-headTwo)<<8
	leastMore  = leastThree + (headMore-headThree)<<16
)

// The heads of strings: below headEntry2 the number of an entry of the column's dictionary; below headPattern its high bits,
// of which a byte follows; below headPattern2 how many bytes, less one, the number in a pattern takes, which follows the byte
// of the pattern; below headText the same, with two bytes of the pattern; below headLong the length of the text that follows;
// headLong itself: the length as a uvarint, the text.
const (
	headEntry2   = 160
	headPattern  = 192
	headPattern2 = 200
	headText     = 208
	headLong     = 255
	maxText      = headLong - headText - 1
)

// The heads of what else has a length: the length, or headLong and a uvarint.
const maxShort = 253

// zigzag makes small numbers of small negative ones.
func zigzag(n int64) uint64 { return uint64(n<<1) ^ uint64(n>>63) }

func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

// appendNumber appends the tail of u and returns its head.
func appendNumber(dst []byte, u uint64) (byte, []byte) {
	switch {
	case u < leastTwo:
		return byte(u), dst
	case u < leastThree:
		u -= leastTwo
		return byte(headTwo + u>>8), append(dst, byte(u))
	case u < leastMore:
		u -= leastThree
		return byte(headThree + u>>16), append(dst, byte(u>>8), byte(u))
	}
	n := (bits.Len64(u) + 7) / 8
	for i := n - 1; i >= 0; i-- {
		dst = append(dst, byte(u>>(8*i)))
	}
	return byte(headMore + n - 3), dst
}

// readNumber returns the number with head h whose tail begins at pos, and where that ends; -1 when it does not.
func readNumber(h byte, src []byte, pos int) (uint64, int) {
	switch {
	case h < headTwo:
		return uint64(h), pos
	case h < headThree:
		if pos >= len(src) {
			return 0, -1
		}
		return leastTwo + uint64(h-headTwo)<<8 + uint64(src[pos]), pos + 1
	case h < headMore:
		if pos+2 > len(src) {
			return 0, -1
		}
		return leastThree + uint64(h-headThree)<<16 + uint64(src[pos])<<8 + uint64(src[pos+1]), pos + 2
	case h > headEight:
		return 0, -1
	}
	end := pos + int(h) - headMore + 3
	if end > len(src) {
		return 0, -1
	}
	if pos+8 <= len(src) { // one load instead of many
		return binary.BigEndian.Uint64(src[pos:]) >> (8 * uint(headEight-h)), end
	}
	u := uint64(0)
	for _, b := range src[pos:end] {
		u = u<<8 | uint64(b)
	}
	return u, end
}

// Dates count from 2020, or from another date, in the coarsest unit that is exact. The unit is in the low two bits.
const (
	dateEpoch = 1577836800000 // milliseconds from 1970
	unitMilli = 0
	unitSec   = 1
	unitHour  = 2
	unitDay   = 3
	dateLimit = 1 << 60
)

func dateUnit(unit uint64) int64 {
	switch unit {
	case unitSec:
		return 1000
	case unitHour:
		return 3600_000
	case unitDay:
		return 86400_000
	}
	return 1
}

// appendDate appends the tail of a date in milliseconds, counted from another, and returns its head.
func appendDate(dst []byte, ms, from int64) (byte, []byte) {
	n, unit := ms-from, uint64(unitMilli)
	if ms > dateLimit || ms < -dateLimit || n >= 2*dateLimit || n < -2*dateLimit { // with the unit it has 64 bits
		return headExact, binary.LittleEndian.AppendUint64(dst, uint64(ms))
	}
	switch {
	case n%86400_000 == 0:
		n, unit = n/86400_000, unitDay
	case n%3600_000 == 0:
		n, unit = n/3600_000, unitHour
	case n%1000 == 0:
		n, unit = n/1000, unitSec
	}
	return appendNumber(dst, zigzag(n)<<2|unit)
}

// readDate returns the date with head h whose tail begins at pos, and where that ends, or -1.
func readDate(h byte, src []byte, pos int, from int64) (int64, int) {
	if h == headExact {
		u, end := readExact(src, pos)
		return int64(u), end
	}
	u, end := readNumber(h, src, pos)
	return dateOf(u) + from, end
}

// dateOf returns the milliseconds that a packed date stands for.
func dateOf(u uint64) int64 { return unzigzag(u>>2) * dateUnit(u&3) }

func readExact(src []byte, pos int) (uint64, int) {
	if pos+8 > len(src) {
		return 0, -1
	}
	return binary.LittleEndian.Uint64(src[pos:]), pos + 8
}

// Doubles that are short decimals are stored as whole numbers, with the number of decimals in the low two bits.
const (
	scaleOne    = 0
	scaleTen    = 1
	scaleCent   = 2
	scaleMicro  = 3
	doubleLimit = 1 << 50 // the packed form is never longer than the exact one
)

func doubleScale(scale uint64) float64 {
	switch scale {
	case scaleTen:
		return 10
	case scaleCent:
		return 100
	case scaleMicro:
		return 1e6
	}
	return 1
}

// appendDouble appends the tail of a double given by its bits and returns its head.
func appendDouble(dst []byte, b uint64) (byte, []byte) {
	x := math.Float64frombits(b)
	if x < doubleLimit && x > -doubleLimit {
		if n := int64(x); math.Float64bits(float64(n)) == b {
			return appendNumber(dst, zigzag(n)<<2|scaleOne)
		}
		for scale := uint64(scaleTen); scale <= scaleMicro; scale++ {
			by := doubleScale(scale)
			y := math.RoundToEven(x * by)
			if y < doubleLimit && y > -doubleLimit && math.Float64bits(float64(int64(y))/by) == b {
				return appendNumber(dst, zigzag(int64(y))<<2|scale)
			}
		}
	}
	return headExact, binary.LittleEndian.AppendUint64(dst, b)
}

// readDouble returns the bits of the double with head h whose tail begins at pos, and where that ends, or -1.
func readDouble(h byte, src []byte, pos int) (uint64, int) {
	if h == headExact {
		return readExact(src, pos)
	}
	u, end := readNumber(h, src, pos)
	return doubleOf(u), end
}

// doubleOf returns the bits of the double that a packed decimal stands for.
func doubleOf(u uint64) uint64 {
	n := float64(unzigzag(u >> 2))
	if scale := u & 3; scale != scaleOne {
		n /= doubleScale(scale)
	}
	return math.Float64bits(n)
}
