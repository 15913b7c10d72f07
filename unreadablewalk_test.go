package pando

import (
	"bytes"
	"crypto/sha512"
	"fmt"
	"testing"

	"github.com/pandodb/pando/vfs/memfs"
)

// A walk ends at the value that cannot be read, in either direction, wherever among others that lie apart it stands: no step goes on
// from there as though nothing had been, and those before it have their values.
func TestWalksEndAtAValueThatCannotBeRead(t *testing.T) {
	const n, damaged = 100, 57
	fs := memfs.New()
	db := openMem(t, fs, Options{ValueThreshold: 10})
	key := func(i int) []byte { return fmt.Appendf(nil, "key %03d", i) }
	value := func(i int) []byte { // which does not become shorter by compression
		noise := sha512.Sum512(key(i))
		return noise[:]
	}
	for i := range n {
		must(t, db.Put(key(i), value(i)))
	}
	must(t, db.Checkpoint(t.Context()))
	damage(t, fs, "db/segments", value(damaged))
	for _, walk := range []struct {
		name       string
		step, back func(*Iterator) bool
		from, by   int
	}{
		{"forwards", (*Iterator).Next, (*Iterator).Prev, 0, 1},
		{"backwards", (*Iterator).Prev, (*Iterator).Next, n - 1, -1},
	} {
		it := db.Iter(nil)
		for i := walk.from; i != damaged; i += walk.by {
			if !walk.step(it) || !bytes.Equal(it.Key(), key(i)) || !bytes.Equal(it.Value(), value(i)) {
				t.Fatalf("%s: %q instead of the pair %d: %v", walk.name, it.Key(), i, it.Err())
			}
		}
		if !walk.step(it) || !bytes.Equal(it.Key(), key(damaged)) || it.Value() != nil {
			t.Errorf("%s: the value that cannot be read is %q", walk.name, it.Value())
		}
		wantErr(t, walk.name, it.Err(), ErrCorrupt)
		if walk.step(it) || walk.back(it) {
			t.Errorf("%s: a step from there leads to %q", walk.name, it.Key())
		}
		must(t, it.Close())
	}
}

// damage changes a byte of each place in the files of a directory that has those bytes; there has to be one.
func damage(t *testing.T, fs *memfs.FS, dir string, what []byte) {
	t.Helper()
	names, err := fs.List(dir)
	must(t, err)
	found := false
	for _, name := range names {
		f, err := fs.OpenReadWrite(dir + "/" + name)
		must(t, err)
		size, err := f.Size()
		must(t, err)
		all := make([]byte, size)
		_, err = f.ReadAt(all, 0)
		must(t, err)
		if at := bytes.Index(all, what); at >= 0 {
			found = true
			_, err = f.WriteAt([]byte{what[0] ^ 1}, int64(at))
			must(t, err)
		}
		must(t, f.Close())
	}
	if !found {
		t.Fatalf("no file in %s has %.20q", dir, what)
	}
}
