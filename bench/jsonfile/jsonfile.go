// Package jsonfile keeps the numbers of a benchmark in files of JSON, compressed with gzip where the name ends in ".gz". A file that
// cannot be written or read, or holds something else, is an error that names it.
package jsonfile

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// Save puts v into a file, in place of what it held, at once. Equal values make equal files.
func Save(name string, v any) error {
	text, err := json.MarshalIndent(v, "", " ")
	if err == nil && compressed(name) {
		text, err = pack(text)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	// Beside it and then over it: whoever is interrupted while writing leaves the earlier numbers as they were.
	if err := os.WriteFile(name+".new", text, 0o644); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

// Load is the inverse of Save.
func Load[T any](name string) (v T, err error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return v, err
	}
	if compressed(name) {
		text, err = unpack(text)
	}
	if err == nil {
		err = json.Unmarshal(text, &v)
	}
	if err != nil {
		return v, fmt.Errorf("%s: %w", name, err)
	}
	return v, nil
}

// Runs tells the runs of one command, each of which is an R with cells C, from those of others.
type Runs[R, C any] struct {
	Command string       // as a refusal calls it
	Cells   func(*R) []C // all that a run has measured
	Own     func(C) bool // reports whether a cell is one that the command measures
}

// Load loads a run. A file with the cells of another command is refused; a run that has measured nothing yet is not.
func (k Runs[R, C]) Load(name string) (*R, error) {
	r, err := Load[R](name)
	if err != nil {
		return nil, err
	}
	for _, c := range k.Cells(&r) {
		if !k.Own(c) {
			return nil, k.refusal(name)
		}
	}
	return &r, nil
}

// LoadAll loads several runs, each of which has to have measured something.
func (k Runs[R, C]) LoadAll(names []string) ([]*R, error) {
	var list []*R
	for _, name := range names {
		r, err := k.Load(name)
		if err == nil && len(k.Cells(r)) == 0 {
			err = k.refusal(name)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return list, nil
}

func (k Runs[R, C]) refusal(name string) error {
	return fmt.Errorf("%s holds no numbers of %s", name, k.Command)
}

func compressed(name string) bool { return strings.HasSuffix(name, ".gz") }

func pack(text []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	_, err = w.Write(text)
	err = errors.Join(err, w.Close())
	return out.Bytes(), err
}

func unpack(packed []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}
