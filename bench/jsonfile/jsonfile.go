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

// LoadAll loads several files, as load does one.
func LoadAll[T any](names []string, load func(name string) (T, error)) ([]T, error) {
	var list []T
	for _, name := range names {
		v, err := load(name)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
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
