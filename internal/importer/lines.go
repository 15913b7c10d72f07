package importer

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

var byteOrderMark = []byte("\xef\xbb\xbf")

// lines splits a stream into lines of bounded length.
type lines struct {
	r      *bufio.Reader
	most   int    // bytes of a line
	long   []byte // a line that did not fit into the buffer of r
	number int    // of the line that next returned, from 1
}

func newLines(r io.Reader) *lines { return newLinesOf(r, MaxRecordBytes) }

func newLinesOf(r io.Reader, most int) *lines {
	return &lines{r: bufio.NewReaderSize(r, 64<<10), most: most}
}

// next returns the next line that is not empty, without its end, valid until the next call.
func (l *lines) next() ([]byte, error) {
	for {
		line, err := l.read()
		if err != nil {
			return nil, err
		}
		l.number++
		if l.number == 1 {
			line = bytes.TrimPrefix(line, byteOrderMark)
		}
		if line = bytes.TrimSuffix(line, []byte("\r")); len(line) > 0 {
			return line, nil
		}
	}
}

// nextJSON is next, but passes over lines of nothing but white space, which is none of what JSON says.
func (l *lines) nextJSON() ([]byte, error) {
	for {
		line, err := l.next()
		if err != nil || len(bytes.TrimLeft(line, " \t\r")) > 0 {
			return line, err
		}
	}
}

// read returns the next line without its newline.
func (l *lines) read() ([]byte, error) {
	line, err := l.r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		l.long = l.long[:0]
		for errors.Is(err, bufio.ErrBufferFull) {
			if len(l.long) > l.most {
				return nil, at(l.number+1, tooLong(l.most))
			}
			l.long = append(l.long, line...)
			line, err = l.r.ReadSlice('\n')
		}
		l.long = append(l.long, line...)
		line = l.long
	}
	if err != nil && (!errors.Is(err, io.EOF) || len(line) == 0) {
		return nil, err
	}
	return bytes.TrimSuffix(line, []byte("\n")), nil
}

func tooLong(most int) error {
	return fmt.Errorf("%w: it has more than %d bytes", ErrRecordTooLong, most)
}

// textReader reads lines of key, separator, value. A line's value may hold the separator again; its key may not.
type textReader struct {
	*lines
	separator []byte
}

// Next cuts the next line at its first separator. It is that of Reader.
func (t *textReader) Next() (key, value []byte, err error) {
	line, err := t.next()
	if err != nil {
		return nil, nil, err
	}
	key, value, found := bytes.Cut(line, t.separator)
	if !found {
		return nil, nil, at(t.number, fmt.Errorf("%w: there is no %q behind the key", ErrNoKey, t.separator))
	}
	return key, value, nil
}
