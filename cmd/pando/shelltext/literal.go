package shelltext

import (
	"math/big"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// quoted reads a string in quotes, with the escapes of JavaScript.
func (p *parser) quoted() (string, error) {
	quote := p.text[p.at]
	p.at++
	var b strings.Builder
	for {
		switch c := p.peek(); {
		case p.done() || c == '\n':
			return "", p.errorf("a string without its closing quote")
		case c == quote:
			p.at++
			return b.String(), nil
		case c == '\\':
			p.at++
			if err := p.escape(&b); err != nil {
				return "", err
			}
		default:
			b.WriteByte(c)
			p.at++
		}
	}
}

// escape reads what stands behind a backslash.
func (p *parser) escape(b *strings.Builder) error {
	if p.done() {
		return p.errorf("a string without its closing quote")
	}
	const letters, stand = "bfnrtv0", "\b\f\n\r\t\v\x00"
	c := p.text[p.at]
	if i := strings.IndexByte(letters, c); i >= 0 {
		p.at++
		b.WriteByte(stand[i])
		return nil
	}
	switch c {
	case '\n':
		p.at++ // the string goes on in the next line
	case 'x':
		p.at++
		r, err := p.hex(2)
		b.WriteRune(r)
		return err
	case 'u':
		p.at++
		r, err := p.unicode()
		b.WriteRune(r)
		return err
	default:
		r, size := utf8.DecodeRuneInString(p.text[p.at:])
		p.at += size
		b.WriteRune(r)
	}
	return nil
}

// unicode reads what stands behind \u, with the second half of a pair if there is one.
func (p *parser) unicode() (rune, error) {
	if p.take('{') {
		end := strings.IndexByte(p.text[p.at:], '}')
		if end < 1 || end > 6 {
			return 0, p.errorf("no number of a character")
		}
		r, err := p.hex(end)
		p.at++
		if err == nil && !utf8.ValidRune(r) {
			err = p.errorf("%#x is no character", r)
		}
		return r, err
	}
	r, err := p.hex(4)
	if err != nil || !utf16.IsSurrogate(r) {
		return r, err
	}
	if strings.HasPrefix(p.text[p.at:], `\u`) {
		p.at += 2
		low, err := p.hex(4)
		if err != nil {
			return 0, err
		}
		r = utf16.DecodeRune(r, low)
	}
	if utf16.IsSurrogate(r) || r == utf8.RuneError {
		return 0, p.errorf("half of a character")
	}
	return r, nil
}

// hex reads n hexadecimal digits.
func (p *parser) hex(n int) (rune, error) {
	if len(p.text)-p.at < n {
		return 0, p.errorf("%d hexadecimal digits are missing", n)
	}
	v, err := strconv.ParseUint(p.text[p.at:p.at+n], 16, 32)
	if err != nil {
		return 0, p.errorf("%q is not hexadecimal", p.text[p.at:p.at+n])
	}
	p.at += n
	return rune(v), nil
}

// number reads a number and writes it as JSON: what has no point and no exponent is an integer.
func (p *parser) number() error {
	start, sign := p.at, ""
	switch {
	case p.take('-'):
		sign = "-"
	default:
		p.take('+')
	}
	if p.space(); strings.HasPrefix(p.text[p.at:], "Infinity") {
		p.at += len("Infinity")
		p.wrap("$numberDouble", sign+"Infinity")
		return nil
	}
	digits := p.name(func(r rune) bool { return r < 0x80 && (isNamePart(r) || r == '.') })
	if n := len(digits); n > 0 && digits[n-1]|0x20 == 'e' && (p.peek() == '-' || p.peek() == '+') && !strings.HasPrefix(digits, "0x") {
		at := p.at
		p.at++
		digits += p.text[at:p.at] + p.name(func(r rune) bool { return r < 0x80 && isDigit(byte(r)) })
	}
	text, ok := asJSON(digits, sign)
	if !ok {
		p.at = start
		return p.unexpected("a number")
	}
	p.out.WriteString(sign + text)
	return nil
}

// asJSON returns a number without its sign as JSON has it.
func asJSON(digits, sign string) (string, bool) {
	if strings.HasPrefix(digits, "0x") || strings.HasPrefix(digits, "0X") {
		v, err := strconv.ParseUint(digits[2:], 16, 63)
		return strconv.FormatUint(v, 10), err == nil
	}
	if digits == "" || strings.ContainsAny(digits, "_$xXpP") {
		return "", false
	}
	if strings.Trim(digits, "0123456789") == "" {
		v, ok := new(big.Int).SetString(digits, 10)
		if !ok || len(digits) > 400 {
			return "", false
		}
		if signed, ok := new(big.Int).SetString(sign+digits, 10); !ok || !signed.IsInt64() {
			return v.String() + ".0", true // as a double has it
		}
		return v.String(), true
	}
	v, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return "", false
	}
	text := strconv.FormatFloat(v, 'g', -1, 64)
	if strings.Trim(text, "0123456789") == "" {
		text += ".0"
	}
	return text, isDigit(text[0])
}
