package importer

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// notAvailable is how statistics programs write a value that is missing.
const notAvailable = "NA"

// csvReader reads CSV under a header: the value is a JSON object, in which numbers are numbers and what is missing is left
// out.
type csvReader struct {
	r       *csv.Reader
	limit   *recordLimit
	columns []string
	names   [][]byte // of the columns as JSON, with the colon
	parts   []int    // the columns that make the key
	last    int      // line of the last record
	oneLine bool     // a carriage return stands inside of the header, and no record has come yet
	key     []byte
	object  []byte
}

func newCSVReader(r io.Reader, key []string) (*csvReader, error) {
	limit := &recordLimit{r: r, left: MaxRecordBytes}
	text := bufio.NewReader(limit)
	if head, err := text.Peek(len(byteOrderMark)); err == nil && bytes.Equal(head, byteOrderMark) {
		_, _ = text.Discard(len(head)) // which is there; before a quote the mark would make the header malformed
	}
	c := &csvReader{r: csv.NewReader(&returnKeeper{r: text}), limit: limit}
	c.r.ReuseRecord = true
	header, err := c.r.Read()
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read the header: %w: the input is empty", ErrSyntax)
	}
	if err != nil {
		return nil, fmt.Errorf("read the header: %w", describeCSV(err))
	}
	c.last, _ = c.r.FieldPos(len(header) - 1)
	seen := map[string]int{}
	for i, name := range header {
		if _, twice := seen[name]; twice || !utf8.ValidString(name) {
			return nil, fmt.Errorf("read the header: %w: column %q stands there twice or is not UTF-8", ErrSyntax, name)
		}
		seen[name] = i
		c.columns = append(c.columns, name)
		c.oneLine = c.oneLine || strings.Contains(name, "\r")
		c.names = append(c.names, append(appendString(nil, name), ':'))
	}
	for _, name := range key {
		i, ok := seen[name]
		if !ok {
			return nil, fmt.Errorf("%w: there is no column %q", ErrNoKey, name)
		}
		c.parts = append(c.parts, i)
	}
	return c, nil
}

// Next makes a JSON object of the next line. It is that of Reader.
func (c *csvReader) Next() (key, value []byte, err error) {
	c.limit.left = MaxRecordBytes
	fields, err := c.r.Read()
	if err != nil {
		if errors.Is(err, io.EOF) {
			return nil, nil, c.end()
		}
		if errors.Is(err, ErrRecordTooLong) { // its own line is not known: it may have begun long ago
			err = fmt.Errorf("behind line %d: %w", c.last, err)
		}
		return nil, nil, describeCSV(err)
	}
	c.oneLine = false
	c.last, _ = c.r.FieldPos(len(fields) - 1)
	if err := c.buildKey(fields); err != nil {
		return nil, nil, err
	}
	c.object = append(c.object[:0], '{')
	for i, text := range fields {
		if text == "" || text == notAvailable {
			continue
		}
		if !utf8.ValidString(text) {
			return nil, nil, c.wrong(i, fmt.Errorf("%w: column %q is not UTF-8", ErrSyntax, c.columns[i]))
		}
		if len(c.object) > 1 {
			c.object = append(c.object, ',')
		}
		c.object = append(c.object, c.names[i]...)
		if isNumber(text) {
			c.object = append(c.object, text...)
		} else {
			c.object = appendString(c.object, text)
		}
	}
	c.object = append(c.object, '}')
	return c.key, c.object, nil
}

// end returns what ends the input. A file whose lines end in carriage returns alone is all header: its records would go without a word.
func (c *csvReader) end() error {
	if c.oneLine {
		return at(c.last, fmt.Errorf("%w: carriage returns alone end no lines, newlines do", ErrSyntax))
	}
	return io.EOF
}

// buildKey joins the texts of the columns that make the key.
func (c *csvReader) buildKey(fields []string) error {
	c.key = c.key[:0]
	for n, i := range c.parts {
		if fields[i] == "" || fields[i] == notAvailable {
			return c.wrong(i, fmt.Errorf("%w: column %q is empty", ErrNoKey, c.columns[i]))
		}
		if n > 0 {
			c.key = append(c.key, keySeparator)
		}
		c.key = append(c.key, fields[i]...)
	}
	if len(c.parts) == 0 {
		c.key = nil
	}
	return nil
}

// wrong says on which line a field is.
func (c *csvReader) wrong(field int, err error) error {
	line, _ := c.r.FieldPos(field)
	return at(line, err)
}

// describeCSV puts an error of the CSV reader into our words.
func describeCSV(err error) error {
	var parse *csv.ParseError
	if errors.As(err, &parse) {
		return at(parse.Line, fmt.Errorf("%w: %w", ErrSyntax, parse.Err))
	}
	return err
}

// recordLimit ends a stream whose record, for want of a closing quote, does not end.
type recordLimit struct {
	r    io.Reader
	left int
}

// Read reads on as long as the record may become longer.
func (l *recordLimit) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, tooLong(MaxRecordBytes)
	}
	n, err := l.r.Read(p)
	l.left -= n
	return n, err
}

// isNumber reports whether text is a number of JSON, which "007" and "+1" are not: they would not come back as they were. Nor would what no
// double is near, as 12e4567: it is part of a hash, or the like.
func isNumber(text string) bool {
	return isJSONNumber(text) && (len(text) < longNumber && !strings.ContainsAny(text, "eE") || isNearDouble(text))
}

// longNumber is a length below which numbers without an exponent are in the range of doubles.
const longNumber = 300

// isNearDouble reports whether a number is neither beyond the largest double, nor takes the smallest for zero.
func isNearDouble(text string) bool {
	f, err := strconv.ParseFloat(text, 64)
	digits, _, _ := strings.Cut(strings.ToLower(text), "e")
	return err == nil && (f != 0 || !strings.ContainsAny(digits, "123456789"))
}

// isJSONNumber reports whether text is written as JSON writes numbers.
func isJSONNumber(text string) bool {
	rest := text
	if rest[0] == '-' {
		rest = rest[1:]
	}
	whole := digits(rest)
	if whole == 0 || (whole > 1 && rest[0] == '0') {
		return false
	}
	rest = rest[whole:]
	if len(rest) > 0 && rest[0] == '.' {
		n := digits(rest[1:])
		if n == 0 {
			return false
		}
		rest = rest[1+n:]
	}
	if len(rest) > 0 && (rest[0] == 'e' || rest[0] == 'E') {
		rest = rest[1:]
		if len(rest) > 0 && (rest[0] == '+' || rest[0] == '-') {
			rest = rest[1:]
		}
		n := digits(rest)
		return n > 0 && n == len(rest)
	}
	return len(rest) == 0
}

// digits returns how many digits text begins with.
func digits(text string) int {
	n := 0
	for n < len(text) && text[n] >= '0' && text[n] <= '9' {
		n++
	}
	return n
}

// appendString appends a JSON string. text is UTF-8.
func appendString(dst []byte, text string) []byte {
	for i := 0; i < len(text); i++ {
		if c := text[i]; c < ' ' || c == '"' || c == '\\' || c == 0x7f {
			return appendEscaped(dst, text)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, text...)
	return append(dst, '"')
}

// appendEscaped is appendString for what needs escapes, which is rare.
func appendEscaped(dst []byte, text string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(text) != nil { // a string always encodes
		return append(dst, `""`...)
	}
	return append(dst, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
}
