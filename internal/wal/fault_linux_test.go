package wal

import (
	"errors"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/osfs"
)

// movingFS is a file system that writes everything to a new place. Where it has none, a store into a mapping is a fault, and a call says so.
type movingFS struct {
	vfs.FS
	full   bool
	mapped [][]byte
}

func (m *movingFS) Create(name string) (vfs.File, error) { return m.wrap(m.FS.Create(name)) }

func (m *movingFS) OpenReadWrite(name string) (vfs.File, error) {
	return m.wrap(m.FS.OpenReadWrite(name))
}

func (m *movingFS) wrap(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &movingFile{f, m}, nil
}

// protect makes stores into all mappings fault, or work.
func (m *movingFS) protect(t *testing.T, how int) {
	t.Helper()
	for _, b := range m.mapped {
		must(t, unix.Mprotect(b, how))
	}
}

type movingFile struct {
	vfs.File
	fs *movingFS
}

func (f *movingFile) WriteAt(p []byte, off int64) (int, error) {
	if f.fs.full {
		return 0, fmt.Errorf("write: %w", vfs.ErrNoSpace)
	}
	return f.File.WriteAt(p, off)
}

func (f *movingFile) Map(length int64) (vfs.Mapping, error) {
	m, err := f.File.Map(length)
	if err == nil {
		f.fs.mapped = append(f.fs.mapped, m.Bytes())
	}
	return m, err
}

// Where a mapping faults because the disk is full, that is an error that passes, as from a call; and what a call finds room for is written.
func TestFullDiskInMapping(t *testing.T) {
	fsys := &movingFS{FS: osfs.New()}
	o := options(fsys, false)
	o.Dir, o.SegmentBytes = t.TempDir(), 1<<20
	l, err := Create(o, 1)
	must(t, err)
	var h history
	size := 0
	add := func(n int) {
		t.Helper()
		for range n {
			size = (size + 1037) % 6000 // over the bounds of pages, at each place
			must(t, h.append(t, l, size))
		}
	}
	add(20)
	for range 20 {
		fsys.full = true
		fsys.protect(t, unix.PROT_READ)
		for n := range 3 {
			if _, err := l.Append(1000+uint64(n), make([]byte, 1500*n)); !errors.Is(err, vfs.ErrNoSpace) || l.Err() != nil {
				t.Fatal(err, l.Err())
			}
		}
		fsys.full = false
		add(2)
		fsys.protect(t, unix.PROT_READ|unix.PROT_WRITE)
		add(2)
		must(t, l.Sync())
	}
	must(t, l.Close())
	l, _ = recoverAll(t, o, Position{Segment: 1}, &h, 0, len(h.seqs))
	must(t, l.Close())
}
