package importer

import (
	"bytes"
	"errors"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Why JSON is not WellFormed.
var (
	errNotUTF8       = errors.New("is not UTF-8")
	errHalfSurrogate = errors.New("has half of a surrogate pair in it")
)

// WellFormed refuses JSON with text that stands for no characters. Packages json and bson take U+FFFD for each, so that different texts
// would become one.
func WellFormed(doc []byte) error {
	if !utf8.Valid(doc) {
		return errNotUTF8
	}
	for rest := doc; ; {
		i := bytes.IndexByte(rest, '\\')
		if i < 0 {
			return nil
		}
		rest = rest[i:]
		first := escapedUnit(rest)
		switch {
		case first < 0:
			rest = rest[min(2, len(rest)):]
			continue
		case utf16.IsSurrogate(first):
			if utf16.DecodeRune(first, escapedUnit(rest[unitLength:])) == utf8.RuneError {
				return errHalfSurrogate
			}
			rest = rest[unitLength:]
		}
		rest = rest[unitLength:]
	}
}

// unitLength is the length of an escape that stands for one unit of UTF-16.
const unitLength = len(`\u0000`)

// escapedUnit returns the unit of UTF-16 with whose escape b begins; negative: it begins with something else.
func escapedUnit(b []byte) rune {
	if len(b) < unitLength || b[0] != '\\' || b[1] != 'u' {
		return -1
	}
	unit, err := strconv.ParseUint(string(b[2:unitLength]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(unit)
}

// longestExponent bounds how many digits a number may have that is written with an exponent. What programs compute with has fewer.
const longestExponent = 400

var errExponent = errors.New("has an exponent of more than 400")

// appendDecimal appends a JSON number that has an exponent without it: all digits, but no zeroes at the end of a fraction. A float64,
// which does not hold all of them, would make different numbers one.
func appendDecimal(dst, number []byte) ([]byte, error) {
	if number[0] == '-' {
		dst, number = append(dst, '-'), number[1:]
	}
	e := bytes.IndexAny(number, "eE")
	exponent, err := strconv.Atoi(string(number[e+1:]))
	if err != nil || exponent > longestExponent || exponent < -longestExponent {
		return dst, errExponent
	}
	whole, fraction, _ := bytes.Cut(number[:e], []byte("."))
	digits := append(bytes.Clone(whole), fraction...)
	point := len(whole) + exponent // how many of them stand before the point
	digits = bytes.TrimRight(digits, "0")
	for len(digits) > 0 && digits[0] == '0' {
		digits, point = digits[1:], point-1
	}
	zeroes := func(n int) []byte { return bytes.Repeat([]byte("0"), n) }
	switch {
	case len(digits) == 0:
		return append(dst, '0'), nil
	case point <= 0:
		dst = append(append(dst, "0."...), zeroes(-point)...)
		return append(dst, digits...), nil
	case point >= len(digits):
		return append(append(dst, digits...), zeroes(point-len(digits))...), nil
	}
	dst = append(append(dst, digits[:point]...), '.')
	return append(dst, digits[point:]...), nil
}
