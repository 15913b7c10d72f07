package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/pandodb/pando/internal/segment"
	"github.com/pandodb/pando/vfs"
)

// What stands in the file that marks a part of a database, for people and for Open. An older version, or another program, may have
// written something else.
const (
	SalvageMark = "This is a part of a database: what was to make it is not done, or was interrupted.\n"
	backupMark  = "This is a part of a backup, which is not done, or was interrupted.\n"
	longestMark = 4 << 10
)

// refuseUnfinished keeps a part of a database from passing for the whole.
func (e *Engine) refuseUnfinished() error {
	if e.unfinished {
		return nil
	}
	mark, err := readMark(e.o.FS, e.o.Dir)
	switch {
	case err != nil || mark == "":
		return err
	case mark == backupMark:
		return fmt.Errorf("the backup was interrupted: make it again, or remove the directory: %w", ErrUnfinished)
	}
	return fmt.Errorf("the salvage was interrupted: remove the directory, and salvage again: %w", ErrUnfinished)
}

// readMark returns what stands in the mark of an unfinished database, or nothing where there is none.
func readMark(fsys vfs.FS, dir string) (string, error) {
	name := filepath.Join(dir, UnfinishedName)
	if _, err := fsys.Stat(name); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return "", err
	}
	text, err := vfs.ReadFile(fsys, name, longestMark)
	if errors.Is(err, vfs.ErrTooLarge) || err == nil && len(text) == 0 {
		return SalvageMark, nil
	}
	return string(text), err
}

// Above returns the directory of a database that a directory lies in, this one or another, damaged or not; empty: it lies in none.
func Above(fsys vfs.FS, dir string) string {
	for at := filepath.Clean(dir); ; {
		up := filepath.Dir(at)
		if up == at {
			return ""
		}
		at = up
		segments, err := fsys.Stat(filepath.Join(at, segment.DirName))
		logs, logsErr := fsys.Stat(filepath.Join(at, logDir))
		if err == nil && logsErr == nil && segments.Dir && logs.Dir {
			return at
		}
	}
}

// CheckDirectory refuses what is there and is no directory, and what has no name. What is not there is another matter.
func CheckDirectory(fsys vfs.FS, dir string) error {
	if dir == "" {
		return fmt.Errorf("%w: no directory is named", ErrOptions)
	}
	if info, err := fsys.Stat(dir); err == nil && !info.Dir {
		return fmt.Errorf("it is a file, not a directory: %w", ErrNotDatabase)
	}
	return nil
}
