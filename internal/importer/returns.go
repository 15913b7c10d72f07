package importer

import (
	"bufio"
	"bytes"
)

// returnKeeper doubles the carriage return before each newline inside of quotes: package csv takes one away there, as it does at the ends of
// lines, where it is no part of a field.
type returnKeeper struct {
	r      *bufio.Reader
	quoted bool // what comes next is inside of quotes
	last   byte
}

// Read gives what is there up to where a byte is to be put in between.
func (k *returnKeeper) Read(p []byte) (int, error) {
	if _, err := k.r.Peek(1); err != nil || len(p) == 0 {
		return 0, err
	}
	there, err := k.r.Peek(min(k.r.Buffered(), len(p)))
	if err != nil {
		return 0, err
	}
	n := k.untouched(there)
	if n == 0 {
		p[0], k.last = '\r', 0
		return 1, nil
	}
	copy(p, there[:n])
	return k.r.Discard(n)
}

// untouched returns how many bytes go on as they are: to the end, or to a newline in quotes behind a carriage return.
func (k *returnKeeper) untouched(b []byte) int {
	if k.last != '\r' && bytes.IndexByte(b, '\r') < 0 {
		k.pass(b)
		return len(b)
	}
	for from := 0; ; {
		line := bytes.IndexByte(b[from:], '\n')
		if line < 0 {
			k.pass(b[from:])
			return len(b)
		}
		k.pass(b[from : from+line])
		from += line
		if k.quoted && k.last == '\r' {
			return from
		}
		k.last = '\n'
		from++
	}
}

// pass goes over bytes. Two quotes, which stand for one inside of quotes, change nothing.
func (k *returnKeeper) pass(b []byte) {
	if len(b) > 0 {
		k.quoted = k.quoted != (bytes.Count(b, []byte{'"'})%2 == 1)
		k.last = b[len(b)-1]
	}
}
