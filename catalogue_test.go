package pando

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/pandodb/pando/vfs/memfs"
)

// A checkpoint that leaves nothing behind writes no blob but the catalogue, whose segment is then not in the table that the
// catalogue holds. Open once took that segment for an orphan and removed it: the open after that failed.
func TestReopenTwiceAfterEverythingWasDeleted(t *testing.T) {
	fsys := memfs.New()
	reopen := func(fn func(db *DB) error) {
		t.Helper()
		db, err := Open("db", &Options{FS: fsys, MemoryBytes: 1 << 20})
		if err == nil {
			err = errors.Join(fn(db), db.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	nothing := func(*DB) error { return nil }
	reopen(func(db *DB) error { return db.Put([]byte("key"), nil) })
	reopen(func(db *DB) error { return db.Delete([]byte("key")) })
	reopen(nothing)
	reopen(nothing)
}

// The same happened, with data in the database, when the catalogue was the first blob of a new segment: 249 records nearly
// fill one, the last record decides.
func TestReopenTwiceWithTheCatalogueInASegmentOfItsOwn(t *testing.T) {
	alone := 0
	for length := 0; length < 400; length += 10 {
		fsys := memfs.New()
		o := &Options{FS: fsys, MemoryBytes: 1 << 20, Compression: None}
		records := fillSegment(t, o, length)
		names, err := fsys.List("db/segments")
		if err != nil {
			t.Fatal(err)
		}
		info, err := fsys.Stat("db/segments/" + names[len(names)-1])
		if err != nil {
			t.Fatal(err)
		}
		if len(names) == 2 && info.Size < 300 {
			alone++
		}
		for range 2 {
			db, err := Open("db", o)
			if err != nil {
				t.Fatalf("last value of %d bytes: %v", length, err)
			}
			n, err := db.Count(nil, nil)
			if err := errors.Join(err, db.Close()); err != nil || n != records {
				t.Fatalf("last value of %d bytes: counted %d, %v", length, n, err)
			}
		}
	}
	if alone == 0 {
		t.Error("the catalogue never was alone in its segment: the test tests nothing")
	}
}

// fillSegment makes a database of 249 records and one with a value of that length, and says how many that are.
func fillSegment(t *testing.T, o *Options, length int) int64 {
	t.Helper()
	db, err := Open("db", o)
	if err != nil {
		t.Fatal(err)
	}
	value := make([]byte, 1000)
	seeded := rand.NewChaCha8([32]byte{1})
	batch := db.NewBatch()
	for i := range 249 {
		seeded.Read(value)
		if err := batch.Put([]byte{1, byte(i)}, value); err != nil {
			t.Fatal(err)
		}
	}
	err = batch.Put([]byte{2}, value[:length])
	if err := errors.Join(err, db.Write(batch), db.Close()); err != nil {
		t.Fatal(err)
	}
	return 250
}
