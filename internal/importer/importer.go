// Package importer reads records from files that other programs write, JSON lines, CSV, lines of text, and turns each into a
// key and a value for a keyspace.
//
// It promises that what it hands out is what the input says: values keep every digit and letter, and what cannot be kept (text
// that is no UTF-8, a record without its key) is refused with the line on which it stands, never guessed. It streams: the
// memory that it takes does not grow with the input, only with the longest record, and a record longer than MaxRecordBytes, or
// MaxPairBytes where a database was exported, is refused. It never writes to a database and never closes what it reads from.
//
// A JSON line costs two passes over its bytes and no allocation; a line of CSV costs one allocation for its fields.
package importer

import (
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
)

// MaxRecordBytes is the length of the longest record that is read.
const MaxRecordBytes = 64 << 20

// MaxPairBytes is the length of the longest line of Pairs that is read. The longest that NewPair makes of a key and a value of a
// database, of 1 GiB, is shorter: see longestText.
const MaxPairBytes = 3 << 29

// Errors for errors.Is. The errors that wrap them tell the line.
var (
	ErrRecordTooLong = errors.New("record is too long")
	ErrNoKey         = errors.New("record has no key")
	ErrSyntax        = errors.New("record is malformed")
)

// Format says how records are written.
type Format uint8

const (
	JSONLines Format = iota + 1 // one JSON document in a line
	CSV                         // comma-separated values under a header
	Pairs                       // what the export command writes as JSON lines: {"key": ..., "value": ...}
	Lines                       // key, separator, value
)

// String returns the name that ParseFormat takes.
func (f Format) String() string {
	switch f {
	case JSONLines:
		return "jsonl"
	case CSV:
		return "csv"
	case Pairs:
		return "pairs"
	case Lines:
		return "lines"
	}
	return fmt.Sprintf("format %d", uint8(f))
}

// ParseFormat returns the format of a name.
func ParseFormat(name string) (Format, error) {
	for _, f := range []Format{JSONLines, CSV, Pairs, Lines} {
		if f.String() == name {
			return f, nil
		}
	}
	return 0, fmt.Errorf("%q is not a format: want jsonl, csv or pairs", name)
}

// FormatOf guesses the format from the name of a file, a suffix of compression aside.
func FormatOf(name string) (Format, bool) {
	name = strings.ToLower(name)
	for _, suffix := range []string{".gz", ".zst"} {
		name = strings.TrimSuffix(name, suffix)
	}
	switch path.Ext(name) {
	case ".jsonl", ".ndjson", ".json":
		return JSONLines, true
	case ".csv":
		return CSV, true
	}
	return 0, false
}

// Options says how to read.
type Options struct {
	Format Format

	// Key names the fields, of JSON lines and CSV, whose texts joined by "/" are the key. Without it records have no keys:
	// they are to be numbered.
	Key []string

	// Separator ends the key of Lines. Default: a tab.
	Separator string
}

// Reader gives one record after the other. It is used by one goroutine at a time.
type Reader interface {
	// Next returns the next record, or io.EOF after the last one. Both slices are valid until the next call; the key is nil
	// when Options.Key names none.
	Next() (key, value []byte, err error)
}

// NewReader returns a reader of the records in r, which may be compressed: see Decompress. It reads nothing yet.
func NewReader(r io.Reader, o Options) Reader { return &reader{source: r, options: o} }

// reader looks at its source when it is asked for the first record.
type reader struct {
	source  io.Reader
	options Options
	records Reader // nil before that
	err     error  // what ended the records
}

// Next opens the source when it is called first. It is that of Reader; behind an error it answers the same one again.
func (r *reader) Next() (key, value []byte, err error) {
	if r.records == nil && r.err == nil {
		var plain io.Reader
		if plain, r.err = Decompress(r.source); r.err == nil {
			r.records, r.err = newRecords(plain, r.options)
		}
	}
	if r.err != nil {
		return nil, nil, r.err
	}
	key, value, r.err = r.records.Next()
	return key, value, r.err
}

func newRecords(r io.Reader, o Options) (Reader, error) {
	switch o.Format {
	case JSONLines:
		return &jsonReader{lines: newLines(r), key: newKeyBuilder(o.Key)}, nil
	case CSV:
		return newCSVReader(r, o.Key)
	case Pairs:
		return &pairReader{lines: newLinesOf(r, MaxPairBytes)}, nil
	case Lines:
		if o.Separator == "" {
			o.Separator = "\t"
		}
		return &textReader{lines: newLines(r), separator: []byte(o.Separator)}, nil
	}
	return nil, fmt.Errorf("%v cannot be read", o.Format)
}

// at says on which line an error is.
func at(line int, err error) error {
	if errors.Is(err, io.EOF) {
		return err
	}
	return fmt.Errorf("line %d: %w", line, err)
}
