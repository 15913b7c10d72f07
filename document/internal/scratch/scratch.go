// Package scratch is where queries put what does not fit into their memory: sorted runs and tapes, in files that vanish with the
// query.
//
// It promises bounded memory, for each and for all together, that equal keys keep their order of arrival, and that what comes back is what was put in: every
// block has a checksum, and damage is an error that wraps ErrDamaged. A full disk, or a space that has used up its limit, is an
// error that wraps vfs.ErrNoSpace. Nothing here is durable: files are never synced, they are removed by Close, and those of a
// killed process by Open. The directory is made with the first file. Without a space, exceeding the memory fails with QueryExceededMemoryLimitNoDiskUseAllowed.
//
// A file is a sequence of blocks: 4 bytes of length, 8 bytes of xxh3 of what follows, then records, each a length of its
// key, a length of its value (uvarints), the key and the value.
package scratch

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/pandodb/pando/vfs"
)

// ErrDamaged is what errors.Is finds when a file does not hold what was written.
var ErrDamaged = errors.New("scratch file is damaged")

const suffix = ".scratch"

// Space is a directory for temporary files. It is safe for concurrent use.
type Space struct {
	fs     vfs.FS
	held   io.Closer // what fs keeps open
	dir    string
	limit  int64
	used   atomic.Int64
	number atomic.Uint64
	made   atomic.Bool // the directory, by this space or by a killed process
}

// Open makes dir ready, removing what a killed process left in it. limit bounds the bytes of all files together; 0: none.
func Open(fsys vfs.FS, dir string, limit int64) (*Space, error) {
	s := &Space{dir: dir, limit: limit}
	var err error
	// The directory is made when it is needed, which may be when its name leads elsewhere.
	switch s.fs, s.held, err = vfs.HoldDir(fsys, filepath.Dir(filepath.Clean(dir))); {
	case errors.Is(err, fs.ErrNotExist):
		s.fs, s.held = fsys, io.NopCloser(nil)
	case err != nil:
		return nil, fmt.Errorf("make room for scratch files: %w", err)
	}
	if err := s.sweep(); err != nil {
		return nil, errors.Join(err, s.held.Close())
	}
	return s, nil
}

// sweep removes the files that are there.
func (s *Space) sweep() error {
	names, err := s.fs.List(s.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("look for old scratch files: %w", err)
	}
	for _, name := range names {
		if !strings.HasSuffix(name, suffix) {
			continue
		}
		if err := s.fs.Remove(filepath.Join(s.dir, name)); err != nil {
			return fmt.Errorf("remove the old scratch file %s: %w", name, err)
		}
		s.made.Store(true)
	}
	return nil
}

// Close removes the directory if it was made for this space, unless files are in it still. One that stays does no harm.
func (s *Space) Close() {
	if s.made.Load() {
		_ = s.fs.Remove(s.dir)
	}
	_ = s.held.Close()
}

// Used returns the bytes of all files.
func (s *Space) Used() int64 { return s.used.Load() }

// reserve takes bytes from the limit.
func (s *Space) reserve(n int64) error {
	if used := s.used.Add(n); s.limit > 0 && used > s.limit {
		s.used.Add(-n)
		return fmt.Errorf("scratch files would exceed their limit of %d bytes: %w", s.limit, vfs.ErrNoSpace)
	}
	return nil
}
