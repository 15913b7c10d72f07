package keyenc

import (
	"encoding/binary"
	"slices"
	"strconv"

	"github.com/pandodb/pando/document/internal/collation"
)

// Bytes 0 and 1 of a string are written as escape and the byte plus one, so that the terminator is lower than anything within.
const (
	escape      = 0x01
	escapedZero = 0x01
	escapedOne  = 0x02
)

// AppendString appends what Append appends for a string, without a collation and ascending.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, tagString)
	n := len(dst)
	return append(escapeTail(append(dst, s...), n), terminator)
}

// appendText appends a string given as BSON has it: length, bytes, zero byte.
func appendText(dst, data []byte, c *collation.Collation) []byte {
	n := len(dst)
	if s := data[4 : len(data)-1]; c == nil {
		dst = append(dst, s...)
	} else {
		dst = c.AppendKey(dst, string(s))
	}
	return append(escapeTail(dst, n), terminator)
}

// escapeTail escapes the bytes of b from n on, in place.
func escapeTail(b []byte, n int) []byte {
	if !hasEscapes(b[n:]) {
		return b
	}
	more := 0
	for _, x := range b[n:] {
		if x <= escape {
			more++
		}
	}
	from := len(b)
	b = slices.Grow(b, more)[:from+more]
	for to := len(b); from > n; {
		from--
		to--
		b[to] = b[from]
		if b[to] <= escape {
			b[to]++
			to--
			b[to] = escape
		}
	}
	return b
}

// hasEscapes reports whether a byte is to be escaped, with eight of them at a time: a byte that is zero with its lowest bit left out makes
// the one below borrow from its highest bit (Mycroft's test).
func hasEscapes(b []byte) bool {
	const lows, highs = 0x0101010101010101, 0x8080808080808080
	for ; len(b) >= 8; b = b[8:] {
		if x := binary.LittleEndian.Uint64(b) &^ lows; (x-lows)&^x&highs != 0 {
			return true
		}
	}
	for _, x := range b {
		if x <= escape {
			return true
		}
	}
	return false
}

// Lengths below lengthInline take a byte; longer ones a byte that tells how many bytes follow, and these, high ones first.
const lengthInline = 0xf0

func appendLength(dst []byte, n int) []byte {
	if n < lengthInline {
		return append(dst, byte(n))
	}
	size := 1
	for n>>(8*size) != 0 {
		size++
	}
	dst = append(dst, lengthInline+byte(size))
	for size--; size >= 0; size-- {
		dst = append(dst, byte(n>>(8*size)))
	}
	return dst
}

// appendPosition appends the name of an element of an array.
func appendPosition(dst []byte, i int) []byte { return strconv.AppendInt(dst, int64(i), 10) }
