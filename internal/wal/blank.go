package wal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/pandodb/pando/vfs"
)

// Blank reports whether no record was ever appended to the log in dir, whatever database it belongs to: a log is made blank,
// and so a blank one may be what a crash left of the creation of a database. A directory that holds anything else is not blank: it may
// be somebody else's.
func Blank(fsys vfs.FS, dir string) (bool, error) {
	names, err := fsys.List(dir)
	if err != nil {
		return false, fmt.Errorf("log: list %s: %w", dir, err)
	}
	for _, name := range names {
		if _, ok := parseName(name); !ok {
			return false, nil
		}
		blank, err := blankFile(fsys, filepath.Join(dir, name))
		if err != nil || !blank {
			return false, err
		}
	}
	return true, nil
}

// blankFile reports whether a segment holds nothing between the two copies of its header.
func blankFile(fsys vfs.FS, path string) (bool, error) {
	f, err := fsys.Open(path)
	if err != nil {
		return false, fmt.Errorf("log: %w", err)
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return false, fmt.Errorf("log: %w", err)
	}
	buf := make([]byte, blockSize)
	for at := int64(firstFrame); at < size-blockSize; at += blockSize {
		if _, err := f.ReadAt(buf, at); err != nil && !errors.Is(err, io.EOF) {
			return false, fmt.Errorf("log: read %s: %w", path, err)
		}
		if len(bytes.Trim(buf, "\x00")) > 0 {
			return false, nil
		}
	}
	return true, nil
}
