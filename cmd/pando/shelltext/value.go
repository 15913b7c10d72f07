package shelltext

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// ErrSyntax means that a text is not a statement or a value.
var ErrSyntax = errors.New("not understood")

// maxDepth bounds documents and arrays in each other. Documents that are stored nest less deep.
const maxDepth = 200

// Value translates one value to Extended JSON. Dates and ids that are made when they are read are those of now.
func Value(text string, now time.Time) (string, error) {
	p, err := newParser(text, now)
	if err != nil {
		return "", err
	}
	if err := p.value(0); err != nil {
		return "", err
	}
	if p.space(); !p.done() {
		return "", p.unexpected("the end")
	}
	return p.out.String(), nil
}

// parser walks over a text once, and writes the value that it reads to out.
type parser struct {
	text string
	at   int
	now  time.Time
	out  bytes.Buffer
}

func newParser(text string, now time.Time) (*parser, error) {
	if !utf8.ValidString(text) {
		return nil, fmt.Errorf("%w: the text is not UTF-8", ErrSyntax)
	}
	return &parser{text: text, now: now}, nil
}

// errorf returns an error that tells where it is.
func (p *parser) errorf(format string, args ...any) error {
	where := utf8.RuneCountInString(p.text[:min(p.at, len(p.text))]) + 1
	return fmt.Errorf("%w: character %d: %s", ErrSyntax, where, fmt.Sprintf(format, args...))
}

// unexpected is the error of finding something else than what.
func (p *parser) unexpected(what string) error {
	if p.done() {
		return p.errorf("the text ends where %s is expected", what)
	}
	r, _ := utf8.DecodeRuneInString(p.text[p.at:])
	return p.errorf("%q stands where %s is expected", r, what)
}

func (p *parser) done() bool { return p.at >= len(p.text) }

// peek returns the next byte, 0 at the end.
func (p *parser) peek() byte {
	if p.done() {
		return 0
	}
	return p.text[p.at]
}

// take moves over c if it is next.
func (p *parser) take(c byte) bool {
	if p.done() || p.text[p.at] != c {
		return false
	}
	p.at++
	return true
}

// space moves over white space and comments.
func (p *parser) space() {
	for !p.done() {
		rest := p.text[p.at:]
		switch {
		case strings.IndexByte(" \t\r\n", rest[0]) >= 0:
			p.at++
		case strings.HasPrefix(rest, "//"):
			end := strings.IndexByte(rest, '\n')
			if end < 0 {
				end = len(rest)
			}
			p.at += end
		case strings.HasPrefix(rest, "/*"):
			end := strings.Index(rest, "*/")
			if end < 0 {
				return // and what follows is unexpected
			}
			p.at += end + len("*/")
		default:
			return
		}
	}
}

// value reads any value.
func (p *parser) value(depth int) error {
	if depth > maxDepth {
		return p.errorf("more than %d documents and arrays in each other", maxDepth)
	}
	p.space()
	switch c := p.peek(); {
	case c == '{':
		return p.list('}', func() error { return p.member(depth) })
	case c == '[':
		return p.list(']', func() error { return p.value(depth + 1) })
	case c == '"' || c == '\'':
		s, err := p.quoted()
		if err != nil {
			return err
		}
		p.writeString(s)
		return nil
	case c == '/':
		return p.regularExpression()
	case isDigit(c) || c == '-' || c == '+' || c == '.':
		return p.number()
	}
	return p.word(depth)
}

// list reads what stands between brackets, separated by commas, of which one may be behind the last item.
func (p *parser) list(end byte, item func() error) error {
	p.out.WriteByte(p.text[p.at])
	p.at++
	for n := 0; ; n++ {
		if p.space(); p.take(end) {
			p.out.WriteByte(end)
			return nil
		}
		if n > 0 {
			p.out.WriteByte(',')
		}
		if err := item(); err != nil {
			return err
		}
		if p.space(); !p.take(',') && p.peek() != end {
			return p.unexpected(fmt.Sprintf("a comma or %c", end))
		}
	}
}

// member reads a name and its value.
func (p *parser) member(depth int) error {
	var name string
	switch c := p.peek(); {
	case c == '"' || c == '\'':
		var err error
		if name, err = p.quoted(); err != nil {
			return err
		}
	default:
		if name = p.name(isNamePart); name == "" {
			return p.unexpected("the name of a field")
		}
	}
	p.writeString(name)
	if p.space(); !p.take(':') {
		return p.unexpected("a colon")
	}
	p.out.WriteByte(':')
	return p.value(depth + 1)
}

// name reads characters as long as part allows them.
func (p *parser) name(part func(r rune) bool) string {
	start := p.at
	for !p.done() {
		r, size := utf8.DecodeRuneInString(p.text[p.at:])
		if !part(r) {
			break
		}
		p.at += size
	}
	return p.text[start:p.at]
}

// isNamePart reports whether a name may hold r without quotes.
func isNamePart(r rune) bool {
	return r == '_' || r == '$' || r >= 0x80 || r < 0x80 && (isDigit(byte(r)) || 'a' <= r|0x20 && r|0x20 <= 'z')
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// writeString writes a string as JSON.
func (p *parser) writeString(s string) {
	text, err := json.Marshal(s)
	if err != nil { // a string always encodes
		text = []byte(`""`)
	}
	p.out.Write(text)
}

// wrap writes a wrapper of Extended JSON around a string.
func (p *parser) wrap(wrapper, s string) {
	p.out.WriteString(`{"` + wrapper + `":`)
	p.writeString(s)
	p.out.WriteByte('}')
}

// regularExpression reads /pattern/options.
func (p *parser) regularExpression() error {
	p.at++
	start, class := p.at, false
	for ; ; p.at++ {
		c := p.peek()
		if p.done() || c == '\n' {
			return p.errorf("a regular expression without its end")
		}
		if c == '/' && !class {
			break
		}
		switch c {
		case '\\':
			p.at++
		case '[':
			class = true
		case ']':
			class = false
		}
	}
	pattern := p.text[start:p.at]
	p.at++
	return p.writePattern(pattern, p.name(isNamePart))
}

// writePattern writes a regular expression. BSON wants its options in the order of the alphabet.
func (p *parser) writePattern(pattern, options string) error {
	sorted := ""
	for _, known := range "imsux" {
		if strings.ContainsRune(options, known) {
			sorted += string(known)
		}
	}
	if len(sorted) != len(options) {
		return p.errorf("the options of a regular expression are of i, m, s, u and x, each once, not %q", options)
	}
	p.out.WriteString(`{"$regularExpression":{"pattern":`)
	p.writeString(strings.ReplaceAll(pattern, `\/`, `/`))
	p.out.WriteString(`,"options":`)
	p.writeString(sorted)
	p.out.WriteString("}}")
	return nil
}
