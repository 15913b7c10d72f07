package pcre

import (
	"errors"
	"fmt"
	"strings"
)

// What PCRE says of classes that it has not.
var (
	errUnknownClass = errors.New("unknown POSIX class name")
	errCollating    = errors.New("POSIX collating elements are not supported")
	errOutside      = errors.New("POSIX named classes are supported only within a class")
)

// posixAt returns what s begins with, as [:alpha:]: its kind, one of : . and =, its name, and how long it is; ok is false when that is
// no such class, but a bracket and what follows.
func posixAt(s string) (kind byte, name string, length int, ok bool) {
	if len(s) < 2 || s[0] != '[' || strings.IndexByte(":.=", s[1]) < 0 {
		return 0, "", 0, false
	}
	kind = s[1]
	for i := 2; i+1 < len(s); i++ {
		switch c, next := s[i], s[i+1]; {
		case c == kind && next == ']':
			return kind, s[2:i], i + 2, true
		case c == ']' || c == '[' && next == kind:
			return 0, "", 0, false
		case c == '\\' && (next == ']' || next == '\\'):
			i++
		}
	}
	return 0, "", 0, false
}

// posix translates a class within a class; done is false when there is none.
func (t *translator) posix() (done bool) {
	kind, name, length, ok := posixAt(t.src[t.at:])
	if !ok {
		return false
	}
	t.at += length
	ranges := posixRanges(strings.TrimPrefix(name, "^"))
	switch {
	case kind != ':':
		t.refused = errCollating
	case ranges == "":
		t.refused = errUnknownClass
	case name[0] == '^':
		t.writeOthers(ranges)
	default:
		for i := 0; i < len(ranges); i += 2 {
			fmt.Fprintf(&t.out, `\x%02x-\x%02x`, ranges[i], ranges[i+1])
		}
	}
	return true
}

// writeOthers writes the ranges between those of a class and beside them.
func (t *translator) writeOthers(ranges string) {
	next := byte(0)
	for i := 0; i < len(ranges); i += 2 {
		if ranges[i] > next {
			fmt.Fprintf(&t.out, `\x%02x-\x%02x`, next, ranges[i]-1)
		}
		next = ranges[i+1] + 1
	}
	t.write(fmt.Sprintf(`\x%02x-\x{10ffff}`, next))
}

// posixRanges is what is in a class: pairs of the first and the last of the bytes, in order; "" if there is no such class.
func posixRanges(name string) string {
	return map[string]string{
		"alpha": "AZaz", "digit": "09", "alnum": "09AZaz", "upper": "AZ", "lower": "az", "space": "\t\r  ", "blank": "\t\t  ",
		"punct": "!/:@[`{~", "xdigit": "09AFaf", "word": "09AZ__az", "cntrl": "\x00\x1f\x7f\x7f", "print": " ~", "graph": "!~", "ascii": "\x00\x7f",
	}[name]
}

// bracket translates [ outside of a class: mostly the beginning of one.
func (t *translator) bracket() (linear bool) {
	rest := t.src[t.at:]
	word := "[" + wordClass + "]"
	switch kind, _, _, ok := posixAt(rest); {
	case strings.HasPrefix(rest, wordBegins):
		t.at += len(wordBegins)
		t.out.WriteString("(?<!" + word + ")(?=" + word + ")")
		return false
	case strings.HasPrefix(rest, wordEnds):
		t.at += len(wordEnds)
		t.out.WriteString("(?<=" + word + ")(?!" + word + ")")
		return false
	case ok && kind == ':':
		t.refused = errOutside
	case ok:
		t.refused = errCollating
	}
	t.class()
	return true
}

// The boundaries of words that look like classes.
const (
	wordBegins = "[[:<:]]"
	wordEnds   = "[[:>:]]"
)
