package pcre

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// translator writes PCRE's syntax in that of an engine of ours. Both engines have most of it. What they see differently is
// written out: classes are ASCII, \v and \h are classes, comments and the white space of the option x are left out. The engine of linear
// time has no $ that matches before the newline at the end: there it is written as an optional newline, where nothing follows.
type translator struct {
	src                 string
	extended, multiline bool
	backtracking        bool

	at     int
	out    strings.Builder
	begins bool // there is a ^
	groups int  // that capture, so far
	reset  int  // which of them stands for \K, 0: none
	ends   bool // the end is written as an optional newline
	depth  int  // groups that are open
	names  map[string]bool
	// refused is why PCRE does not take the pattern.
	refused error
}

// The insides of classes.
const (
	digitClass      = "0-9"
	wordClass       = "0-9A-Za-z_"
	spaceClass      = `\t\n\x0b\f\r `
	horizontalClass = `\t \xa0\x{1680}\x{180e}\x{2000}-\x{200a}\x{202f}\x{205f}\x{3000}`
	verticalClass   = `\n\x0b\f\r\x{85}\x{2028}\x{2029}`

	notDigitClass = `\x00-/:-\x{10ffff}`
	notWordClass  = "\\x00-/:-@\\[-\\^`{-\\x{10ffff}"
	notSpaceClass = `\x00-\x08\x0e-\x1f!-\x{10ffff}`

	notVerticalClass   = `\x00-\x09\x0e-\x{84}\x{86}-\x{2027}\x{202a}-\x{10ffff}`
	notHorizontalClass = `\x00-\x08\x0a-\x1f!-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{180d}\x{180f}-\x{1fff}\x{200b}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{10ffff}`
)

// translate returns the pattern for the engine. ok is false when it needs the backtracking one.
func (t *translator) translate() (pattern string, ok bool) {
	t.out.Reset()
	t.at, t.depth, t.groups, t.reset, t.names, t.refused = 0, 0, 0, 0, map[string]bool{}, nil
	for strings.HasPrefix(t.src[t.at:], "(*UTF8)") || strings.HasPrefix(t.src[t.at:], "(*UTF)") {
		t.at += strings.IndexByte(t.src[t.at:], ')') + 1
	}
	for t.at < len(t.src) {
		if !t.step() && !t.backtracking {
			return "", false
		}
	}
	return t.out.String(), true
}

// step translates what begins at t.at. It reports whether the engine of linear time can have it.
func (t *translator) step() bool {
	switch c := t.src[t.at]; c {
	case '\\':
		return t.escape()
	case '[':
		return t.bracket()
	case '(':
		return t.group()
	case ')':
		t.depth--
		t.out.WriteByte(c)
		t.at++
	case '{':
		t.repetition()
	case '$':
		return t.dollar()
	case '^':
		t.caret()
	case ' ', '\t', '\n', '\r', '\f', '\v':
		if !t.extended {
			t.out.WriteByte(c)
		}
		t.at++
	case '#':
		if !t.extended {
			t.out.WriteByte(c)
			t.at++
			break
		}
		end := strings.IndexByte(t.src[t.at:], '\n')
		if end < 0 {
			end = len(t.src) - t.at - 1
		}
		t.at += end + 1
	default:
		t.out.WriteByte(c)
		t.at++
	}
	return true
}

// repetition copies what begins {n}, {n,} and {n,m}, and refuses numbers that PCRE does not take.
func (t *translator) repetition() {
	bounds, _, ended := strings.Cut(t.src[t.at+1:], "}")
	least, most, _ := strings.Cut(bounds, ",")
	if ended && isNumber(least) && (most == "" || isNumber(most)) {
		low, err := strconv.ParseUint(least, 10, 16)
		if most == "" {
			most = strconv.Itoa(math.MaxUint16)
		}
		high, also := strconv.ParseUint(most, 10, 16)
		switch {
		case err != nil || also != nil:
			t.refused = errRepetition
		case low > high:
			t.refused = errRepetitionOrder
		}
	}
	t.out.WriteByte('{')
	t.at++
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// escape translates \ and what follows, outside of a class.
func (t *translator) escape() bool {
	if t.at+1 >= len(t.src) {
		t.out.WriteByte('\\')
		t.at++
		return true
	}
	c := t.src[t.at+1]
	t.at += 2
	switch c {
	case 'Q':
		t.quoted()
	case 'E':
	case 'd':
		t.out.WriteString("[" + digitClass + "]")
	case 'D':
		t.out.WriteString("[^" + digitClass + "]")
	case 'w':
		t.out.WriteString("[" + wordClass + "]")
	case 'W':
		t.out.WriteString("[^" + wordClass + "]")
	case 's':
		t.write("[" + spaceClass + "]")
	case 'S':
		t.write("[^" + spaceClass + "]")
	case 'h':
		t.write("[" + horizontalClass + "]")
	case 'H':
		t.write("[^" + horizontalClass + "]")
	case 'v':
		t.write("[" + verticalClass + "]")
	case 'V':
		t.write("[^" + verticalClass + "]")
	case 'b', 'B':
		t.boundary(c)
	case 'N':
		t.out.WriteString(`[^\n]`)
	case 'e':
		t.out.WriteString(`\x1b`)
	case 'Z':
		if !t.backtracking {
			return t.ending()
		}
		t.out.WriteString(`\Z`)
	case 'c':
		t.control()
	case 'x':
		t.hexadecimal()
	case 'p', 'P':
		t.property(c)
	case 'F', 'I', 'J', 'M', 'O', 'T', 'Y', '_', 'i', 'j', 'm', 'q', 'y':
		t.out.WriteByte(c) // means nothing, and so itself
	case 'K':
		t.resetMatch()
		return false
	case '1', '2', '3', '4', '5', '6', '7', '8', '9':
		t.reference()
		return false
	case 'k', 'g':
		t.namedReference(c)
		return false
	case 'G', 'R', 'X':
		t.out.WriteString(`\` + string(c))
		return false
	default:
		t.out.WriteString(`\` + string(c))
	}
	return true
}

// resetGroup is the name of the empty group that stands for \K, which the engine does not know. No group of PCRE's can have it.
const resetGroup = "\u00ea"

// resetMatch translates \K.
func (t *translator) resetMatch() {
	if t.reset == 0 {
		t.groups++
		t.reset = t.groups
	}
	t.out.WriteString("(?<" + resetGroup + ">)")
}

// reference translates \1: a group behind that of \K has a number more.
func (t *translator) reference() {
	from := t.at - 1
	for t.at < len(t.src) && t.src[t.at] >= '0' && t.src[t.at] <= '9' {
		t.at++
	}
	digits := t.src[from:t.at]
	if n, err := strconv.Atoi(digits); err == nil && t.reset > 0 && n >= t.reset {
		digits = strconv.Itoa(n + 1)
	}
	t.out.WriteString(`\` + digits)
}

// namedReference translates \k{name}, \g{name}, \g{1}, \g1, \g-1 and \g{-1}, which counts back from the groups so far. What else begins with
// \k, as \k<name>, the engine knows; what else begins with \g it does not.
func (t *translator) namedReference(c byte) {
	rest := t.src[t.at:]
	end := len(rest) - len(strings.TrimLeft(strings.TrimPrefix(rest, "-"), "0123456789"))
	name := rest[:end]
	if inside, braced := strings.CutPrefix(rest, "{"); braced {
		name, _, _ = strings.Cut(inside, "}")
		end = len(name) + 2
	}
	n, err := strconv.Atoi(name)
	if n < 0 {
		n += t.groups + 1
	}
	switch {
	case name == "" || name == "-" || end > len(rest) || err == nil && (c == 'k' || n < 1):
		t.out.WriteString(`\` + string(c))
		return
	case err != nil:
		t.out.WriteString(`\k<` + name + ">")
	default:
		if name[0] != '-' && t.reset > 0 && n >= t.reset {
			n++
		}
		fmt.Fprintf(&t.out, `(?:\%d)`, n)
	}
	t.at += end
}

// write writes a class, in which the backtracking engine knows no \x{...}.
func (t *translator) write(class string) {
	if !t.backtracking {
		t.out.WriteString(class)
		return
	}
	for {
		before, after, found := strings.Cut(class, `\x{`)
		t.out.WriteString(before)
		if !found {
			return
		}
		digits, rest, _ := strings.Cut(after, "}")
		if code, err := strconv.ParseInt(digits, 16, 32); err == nil {
			t.out.WriteRune(rune(code))
		}
		class = rest
	}
}

// quoted copies literally up to \E.
func (t *translator) quoted() {
	text, rest, found := strings.Cut(t.src[t.at:], `\E`)
	t.out.WriteString(regexp.QuoteMeta(text))
	t.at = len(t.src) - len(rest)
	if !found {
		t.at = len(t.src)
	}
}

// control translates \cA.
func (t *translator) control() {
	if t.at >= len(t.src) {
		t.out.WriteString(`\c`)
		return
	}
	c := t.src[t.at]
	if c >= 'a' && c <= 'z' {
		c -= 'a' - 'A'
	}
	fmt.Fprintf(&t.out, `\x%02x`, c^0x40)
	t.at++
}

// hexadecimal translates \x41, \x4, \x and \x{41}.
func (t *translator) hexadecimal() {
	rest := t.src[t.at:]
	if strings.HasPrefix(rest, "{") {
		if end := strings.IndexByte(rest, '}'); end > 0 {
			t.write(`\x` + rest[:end+1])
			t.at += end + 1
			return
		}
	}
	n := 0
	for n < 2 && n < len(rest) && strings.IndexByte("0123456789abcdefABCDEF", rest[n]) >= 0 {
		n++
	}
	t.out.WriteString(`\x` + "00"[n:] + rest[:n])
	t.at += n
}

// class translates [...].
func (t *translator) class() {
	t.out.WriteByte('[')
	t.at++
	if t.at < len(t.src) && t.src[t.at] == '^' {
		t.out.WriteByte('^')
		t.at++
	}
	if strings.HasPrefix(t.src[t.at:], "]") { // which first does not end it
		t.out.WriteString(`\]`)
		t.at++
	}
	behind := false // a class such as \d
	for t.at < len(t.src) && t.src[t.at] != ']' {
		behind = t.classItem(behind)
	}
	if t.at < len(t.src) {
		t.out.WriteByte(']')
		t.at++
	}
}

// classItem translates what is in a class, and reports whether it was a class too, as \d. With behind, one stands in front: then, and before
// such a class, a hyphen makes no range.
func (t *translator) classItem(behind bool) (named bool) {
	switch c := t.src[t.at]; {
	case c == '[' && t.posix():
		return true
	case c == '[':
		t.out.WriteString(`\[`)
		t.at++
	case c == '-' && (behind || t.namedAt(t.at+1)):
		t.out.WriteString(`\-`)
		t.at++
	case c == '\\' && t.at+1 < len(t.src):
		named = t.namedAt(t.at)
		t.classEscape()
	default:
		t.out.WriteByte(c)
		t.at++
	}
	return named
}

// namedAt reports whether a class such as \d or [:digit:] is there.
func (t *translator) namedAt(at int) bool {
	rest := t.src[at:]
	if len(rest) > 1 && rest[0] == '\\' {
		return strings.IndexByte("dwsDWShvHV", rest[1]) >= 0
	}
	_, _, _, ok := posixAt(rest)
	return ok
}

// classEscape translates an escape within a class.
func (t *translator) classEscape() {
	c := t.src[t.at+1]
	t.at += 2
	switch c {
	case 'd':
		t.out.WriteString(digitClass)
	case 'w':
		t.out.WriteString(wordClass)
	case 's':
		t.out.WriteString(spaceClass)
	case 'D':
		t.write(notDigitClass)
	case 'W':
		t.write(notWordClass)
	case 'S':
		t.write(notSpaceClass)
	case 'h':
		t.write(horizontalClass)
	case 'v':
		t.write(verticalClass)
	case 'H':
		t.write(notHorizontalClass)
	case 'V':
		t.write(notVerticalClass)
	case 'A', 'B', 'C', 'F', 'G', 'I', 'J', 'K', 'M', 'O', 'R', 'T', 'X', 'Y', 'Z', '_', 'g', 'i', 'j', 'k', 'm', 'q', 'y', 'z', '8', '9':
		t.out.WriteByte(c) // means nothing here, and so itself
	case 'b':
		t.out.WriteString(`\x08`)
	case 'e':
		t.out.WriteString(`\x1b`)
	case 'c':
		t.control()
	case 'x':
		t.hexadecimal()
	case 'p', 'P':
		t.property(c)
	default:
		t.out.WriteString(`\` + string(c))
	}
}

// property translates the beginning of \p{L}: of \p{^L}, which the engine that backtracks does not know, to \P{L}.
func (t *translator) property(c byte) {
	if rest, negated := strings.CutPrefix(t.src[t.at:], "{^"); negated {
		c ^= 'p' ^ 'P'
		t.at = len(t.src) - len(rest)
		t.out.WriteString(`\` + string(c) + "{")
		return
	}
	t.out.WriteString(`\` + string(c))
}

// group translates the beginning of a group, and a comment.
func (t *translator) group() bool {
	rest := t.src[t.at:]
	if strings.HasPrefix(rest, "(?#") {
		end := strings.IndexByte(rest, ')')
		if end < 0 {
			end = len(rest) - 1
		}
		t.at += end + 1
		return true
	}
	if name, behind, ended := strings.Cut(strings.TrimPrefix(rest, "(?P="), ")"); ended && strings.HasPrefix(rest, "(?P=") {
		t.out.WriteString(`\k<` + name + ">")
		t.at = len(t.src) - len(behind)
		return false
	}
	t.out.WriteByte('(')
	t.at++
	if t.depth++; t.depth > deepest {
		t.refused = errNesting
	}
	if strings.HasPrefix(rest, "(*") {
		return false
	}
	if !strings.HasPrefix(rest, "(?") {
		t.groups++
		return true
	}
	if strings.HasPrefix(rest, "(?'") {
		t.groups++
		return false
	}
	if name, ok := nameOf(rest); ok {
		t.groups++
		if t.names[name] {
			t.refused = errTwice
		}
		t.names[name] = true
		t.out.WriteString("?<" + name + ">") // the engine that backtracks knows no (?P<name>
		t.at += strings.IndexByte(rest, '>')
		return true
	}
	flags := inlineFlags(rest)
	// The meaning of $ depends on m, which is known for the whole pattern only.
	return flags != "" && (!strings.Contains(flags, "m") || !strings.Contains(t.src, "$"))
}

// nameOf returns the name of a group that begins as (?<name> or (?P<name>.
func nameOf(group string) (name string, ok bool) {
	name, ok = strings.CutPrefix(strings.TrimPrefix(strings.TrimPrefix(group, "(?"), "P"), "<")
	if !ok {
		return "", false
	}
	for i, c := range []byte(name) {
		letter := c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return name[:i], i > 0 && c == '>'
		}
	}
	return "", false
}

// inlineFlags returns the beginning of a group that sets flags which both engines have, as (?i), (?s-i) and (?:, up to its
// end; "" when the group is another.
func inlineFlags(group string) string {
	end := strings.IndexAny(group[2:], ":)") + 2
	if end < 2 || strings.Trim(group[2:end], "imsU-") != "" || strings.Count(group[2:end], "-") > 1 {
		return ""
	}
	return group[:end+1]
}

// caret translates ^. With the option m it matches behind newlines, but not behind one at the end, which the engine of linear time cannot
// tell: patterns that could match nothing there go to the other.
func (t *translator) caret() {
	t.at++
	t.begins = true
	if t.multiline && t.backtracking {
		t.out.WriteString(`(?:\A|(?<=\n)(?!\z))`)
		return
	}
	t.out.WriteByte('^')
}

// boundary translates \b and \B, which are about ASCII.
func (t *translator) boundary(c byte) {
	switch {
	case !t.backtracking:
		t.out.WriteString(`\` + string(c))
	case c == 'b':
		t.out.WriteString("(?:(?<=[" + wordClass + "])(?![" + wordClass + "])|(?<![" + wordClass + "])(?=[" + wordClass + "]))")
	default:
		t.out.WriteString("(?:(?<=[" + wordClass + "])(?=[" + wordClass + "])|(?<![" + wordClass + "])(?![" + wordClass + "]))")
	}
}

// dollar translates $.
func (t *translator) dollar() bool {
	t.at++
	if t.multiline || t.backtracking {
		t.out.WriteByte('$')
		return true
	}
	return t.ending()
}

// ending writes the end of the text, or the place before its last newline, when nothing follows.
func (t *translator) ending() bool {
	t.ends = true
	t.out.WriteString(`(?:\n?\z)`)
	rest := strings.TrimLeft(t.src[t.at:], ")")
	return rest == "" || rest[0] == '|'
}
