package pando

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"testing"

	"github.com/pandodb/pando/vfs/memfs"
)

// TestCheckReadsTheChangesThatAreKept damages what only the change feed still reads: all of it has settled, or is replaced.
func TestCheckReadsTheChangesThatAreKept(t *testing.T) {
	text := []byte("a text that is nowhere else")
	for name, c := range map[string]struct {
		dir   string
		write func(t *testing.T, db *DB)
	}{
		"the log":                           {"wal", func(t *testing.T, db *DB) { must(t, db.Put([]byte("k"), text)) }},
		"a value apart that is replaced":    {"segments", func(t *testing.T, db *DB) { must(t, db.Put([]byte("k"), append(make([]byte, 5000), text...))) }},
		"the file of a batch beyond memory": {"spill", func(t *testing.T, db *DB) { writeBeyondMemory(t, db, text) }},
	} {
		t.Run(name, func(t *testing.T) {
			fsys := memfs.New()
			db := openMem(t, fsys, Options{KeepChanges: 16 << 20, Compression: None})
			c.write(t, db)
			must(t, db.Put([]byte("k"), []byte("another one")))
			must(t, db.Checkpoint(t.Context()))
			if r, err := db.Check(t.Context()); err != nil || r.Err() != nil {
				t.Fatalf("before the damage: %v, %v", r.Err(), err)
			}
			flipIn(t, fsys, path.Join("db", c.dir), text)
			var read error
			for _, err := range db.Changes(t.Context(), ChangesOptions{}) {
				read = err
			}
			if !errors.Is(read, ErrCorrupt) {
				t.Fatalf("who reads the changes gets %v", read)
			}
			if r, err := db.Check(t.Context()); err != nil || !errors.Is(r.Err(), ErrCorrupt) {
				t.Errorf("Check finds %v, and returns %v", r.Err(), err)
			}
		})
	}
}

func writeBeyondMemory(t *testing.T, db *DB, text []byte) {
	t.Helper()
	b := db.NewBatch()
	must(t, b.Put([]byte("k"), text))
	for i := range 2000 {
		must(t, b.Put(fmt.Append(nil, "many", i), make([]byte, 900)))
	}
	must(t, db.Write(b))
}

// flipIn changes a bit in each place of a directory's files in which a text lies; there is at least one.
func flipIn(t *testing.T, fsys *memfs.FS, dir string, text []byte) {
	t.Helper()
	names, err := fsys.List(dir)
	must(t, err)
	found := 0
	for _, name := range names {
		f, err := fsys.OpenReadWrite(path.Join(dir, name))
		must(t, err)
		size, err := f.Size()
		must(t, err)
		all, err := io.ReadAll(io.NewSectionReader(f, 0, size))
		must(t, err)
		for at := bytes.Index(all, text); at >= 0; at = bytes.Index(all, text) {
			found++
			all[at] ^= 1
			_, err := f.WriteAt(all[at:at+1], int64(at))
			must(t, err)
		}
		must(t, f.Close())
	}
	if found == 0 {
		t.Fatalf("the text is in none of %q", names)
	}
}
