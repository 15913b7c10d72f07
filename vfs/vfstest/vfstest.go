// Package vfstest holds every vfs.FS to the contract of package vfs.
//
// It promises that whatever passes may stand in for any other in the engine, as far as can be seen without a power cut; what
// a crash leaves is tested by memfs itself. It needs an empty directory, leaves nothing open, and fails through testing.T.
// A run costs some dozens of small files.
package vfstest

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"testing"

	"github.com/pandodb/pando/vfs"
)

// A Setup gives a fresh file system and an existing empty directory in it.
type Setup func(t *testing.T) (fsys vfs.FS, dir string)

// Run runs the whole suite; each test gets its own file system.
func Run(t *testing.T, setup Setup) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, e env)
	}{
		{"OpenModes", testOpenModes},
		{"ReadWrite", testReadWrite},
		{"Pieces", testPieces},
		{"Truncate", testTruncate},
		{"Allocate", testAllocate},
		{"Closed", testClosed},
		{"Remove", testRemove},
		{"Rename", testRename},
		{"RenameDirectory", testRenameDirectory},
		{"Link", testLink},
		{"Directories", testDirectories},
		{"SyncDir", testSyncDir},
		{"Map", testMap},
		{"MapErrors", testMapErrors},
		{"Lock", testLock},
		{"LockRemoved", testLockRemoved},
		{"LockOrder", testLockOrder},
		{"WholeFiles", testWholeFiles},
		{"RemoveAll", testRemoveAll},
		{"Concurrent", testConcurrent},
		{"AgainstModel", testAgainstModel},
	} {
		t.Run(test.name, func(t *testing.T) {
			fsys, dir := setup(t)
			test.run(t, env{FS: fsys, dir: dir, t: t})
		})
	}
}

// env is a file system under test whose helpers end the test on an unexpected failure.
type env struct {
	vfs.FS
	dir string
	t   *testing.T
}

func (e env) path(elements ...string) string {
	return filepath.Join(append([]string{e.dir}, elements...)...)
}

func (e env) must(err error) {
	e.t.Helper()
	if err != nil {
		e.t.Fatal(err)
	}
}

func (e env) is(err, want error) {
	e.t.Helper()
	if !errors.Is(err, want) {
		e.t.Errorf("got error %v, want %v", err, want)
	}
}

func (e env) fails(err error, what string) {
	e.t.Helper()
	if err == nil {
		e.t.Errorf("%s succeeded", what)
	}
}

func (e env) create(name, content string) vfs.File {
	e.t.Helper()
	f, err := e.Create(e.path(name))
	e.must(err)
	if n, err := f.WriteAt([]byte(content), 0); err != nil || n != len(content) {
		e.t.Fatalf("write: %d bytes, %v", n, err)
	}
	return f
}

func (e env) put(name, content string) {
	e.t.Helper()
	e.must(e.create(name, content).Close())
}

func (e env) holds(name, want string) {
	e.t.Helper()
	got, err := vfs.ReadFile(e.FS, e.path(name), 1<<20)
	e.must(err)
	if string(got) != want {
		e.t.Errorf("%s holds %q, want %q", name, got, want)
	}
}

func (e env) size(f vfs.File, want int64) {
	e.t.Helper()
	if got, err := f.Size(); err != nil || got != want {
		e.t.Errorf("size %d (%v), want %d", got, err, want)
	}
}

func (e env) lists(dir string, want ...string) {
	e.t.Helper()
	got, err := e.List(e.path(dir))
	e.must(err)
	if !slices.Equal(got, want) {
		e.t.Errorf("list %q: %q, want %q", dir, got, want)
	}
}

func testOpenModes(t *testing.T, e env) {
	for _, open := range []func(string) (vfs.File, error){e.Open, e.OpenReadWrite} {
		_, err := open(e.path("missing"))
		e.is(err, fs.ErrNotExist)
		_, err = open(e.dir)
		e.fails(err, "opening a directory")
		_, err = open(e.path("missing", "below"))
		e.is(err, fs.ErrNotExist)
	}
	_, err := e.Create(e.path("missing", "file"))
	e.is(err, fs.ErrNotExist)
	_, err = e.Create(e.dir)
	e.fails(err, "creating a file over a directory")

	e.put("a", "hello")
	f, err := e.Open(e.path("a"))
	e.must(err)
	_, err = f.WriteAt([]byte("x"), 0)
	e.fails(err, "writing to a file opened for reading")
	e.fails(f.Truncate(1), "truncating a file opened for reading")
	e.fails(f.Allocate(100), "allocating in a file opened for reading")
	e.must(f.Close())
	e.holds("a", "hello")

	f, err = e.OpenReadWrite(e.path("a"))
	e.must(err)
	_, err = f.WriteAt([]byte("J"), 0)
	e.must(err)
	e.must(f.Close())
	e.holds("a", "Jello")
	e.put("a", "") // Create truncates
	e.holds("a", "")
}

func testReadWrite(t *testing.T, e env) {
	f := e.create("f", "0123456789")
	defer f.Close()
	read := func(length int, off int64, want string, wantErr error) {
		t.Helper()
		p := make([]byte, length)
		n, err := f.ReadAt(p, off)
		if string(p[:n]) != want || err != wantErr {
			t.Errorf("read %d at %d: %q, %v; want %q, %v", length, off, p[:n], err, want, wantErr)
		}
	}
	read(4, 3, "3456", nil)
	read(4, 8, "89", io.EOF)
	read(4, 10, "", io.EOF)
	read(4, 1000, "", io.EOF)
	read(0, 3, "", nil)
	_, err := f.ReadAt(make([]byte, 1), -1)
	e.fails(err, "reading before the start")
	_, err = f.WriteAt([]byte("x"), -1)
	e.fails(err, "writing before the start")

	_, err = f.WriteAt([]byte("end"), 5000) // leaves a hole
	e.must(err)
	e.size(f, 5003)
	read(6, 8, "89\x00\x00\x00\x00", nil)
	read(5, 4998, "\x00\x00end", nil)
	e.must(f.Sync())

	// A second handle sees the same bytes at once.
	g, err := e.Open(e.path("f"))
	e.must(err)
	_, err = f.WriteAt([]byte("END"), 5000)
	e.must(err)
	p := make([]byte, 3)
	_, err = g.ReadAt(p, 5000)
	if err != nil && err != io.EOF || string(p) != "END" {
		t.Errorf("second handle reads %q, %v", p, err)
	}
	e.must(g.Sync())
	e.must(g.Close())
}

func testTruncate(t *testing.T, e env) {
	f := e.create("f", "0123456789")
	e.must(f.Truncate(4))
	e.size(f, 4)
	e.must(f.Truncate(8)) // what was cut must not come back
	e.size(f, 8)
	e.fails(f.Truncate(-1), "truncating to a negative size")
	e.must(f.Close())
	e.holds("f", "0123\x00\x00\x00\x00")
}

func testAllocate(t *testing.T, e env) {
	f := e.create("f", "data")
	e.must(f.Allocate(10000))
	e.size(f, 10000)
	e.must(f.Allocate(10)) // never shrinks
	e.must(f.Allocate(0))
	e.size(f, 10000)
	e.fails(f.Allocate(-1), "allocating a negative size")
	p := make([]byte, 10000)
	if n, err := f.ReadAt(p, 0); n != len(p) || err != nil && err != io.EOF {
		t.Fatalf("read %d bytes, %v", n, err)
	}
	if want := append([]byte("data"), make([]byte, 9996)...); !bytes.Equal(p, want) {
		t.Error("allocated bytes are not what was there and zeroes")
	}
	e.must(f.Sync())
	e.must(f.Close())
}

func testClosed(t *testing.T, e env) {
	f := e.create("f", "data")
	e.must(f.Close())
	_, err := f.ReadAt(make([]byte, 1), 0)
	e.is(err, fs.ErrClosed)
	_, err = f.WriteAt([]byte("x"), 0)
	e.is(err, fs.ErrClosed)
	_, err = f.Size()
	e.is(err, fs.ErrClosed)
	_, err = f.Map(4)
	e.is(err, fs.ErrClosed)
	e.is(f.Truncate(1), fs.ErrClosed)
	e.is(f.Allocate(10), fs.ErrClosed)
	e.is(f.Sync(), fs.ErrClosed)
	e.is(f.Close(), fs.ErrClosed)
	e.holds("f", "data")
}
