package pando

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/pandodb/pando/internal/root"
	"github.com/pandodb/pando/internal/segment"
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

// The same happened, with data in the database, when the catalogue was the first blob of a new segment. Small checkpoints fill one up until
// either the catalogue or what comes before it begins the next; how long their records are decides.
func TestReopenTwiceWithTheCatalogueInASegmentOfItsOwn(t *testing.T) {
	for length := range 1000 { // one in some thirty fits, and which one depends on when the background settles
		fsys := memfs.New()
		db, err := Open("db", &Options{FS: fsys, MemoryBytes: 1 << 20, Compression: None})
		if err != nil {
			t.Fatal(err)
		}
		records, alone := fillSegment(t, db, fsys, length)
		image := fsys.KillImage()
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if !alone {
			continue
		}
		for range 2 {
			db, err := Open("db", &Options{FS: image, MemoryBytes: 1 << 20})
			if err != nil {
				t.Fatalf("values of %d bytes: %v", length, err)
			}
			n, err := db.Count(nil, nil)
			if err := errors.Join(err, db.Close()); err != nil || n != records {
				t.Fatalf("values of %d bytes: counted %d, %v", length, n, err)
			}
		}
		return
	}
	t.Error("the catalogue never was alone in its segment: the test tests nothing")
}

// fillSegment stores records, the later ones with values of that length, until there is a segment that begins with a catalogue or with
// something else. It says how many records there are, and whether it is the catalogue.
func fillSegment(t *testing.T, db *DB, fsys *memfs.FS, length int) (records int64, catalogue bool) {
	t.Helper()
	seeded := rand.NewChaCha8([32]byte{1})
	put := func(length int) {
		value := make([]byte, length)
		seeded.Read(value)
		if err := db.Put(binary.BigEndian.AppendUint64(nil, uint64(records)), value); err != nil {
			t.Fatal(err)
		}
		records++
	}
	for range 200 {
		put(1000)
	}
	for first := uint32(0); ; put(length) {
		if err := db.Checkpoint(t.Context()); err != nil {
			t.Fatal(err)
		}
		slots, err := root.OpenReadOnly(fsys, "db")
		if err != nil {
			t.Fatal(err)
		}
		at := slots.Current().Catalogue
		if err := slots.Close(); err != nil {
			t.Fatal(err)
		}
		if first == 0 {
			first = at.Segment
		}
		if at.Segment != first {
			return records, at.Offset == segment.FileHeaderSize
		}
	}
}

// A keyspace without Bloom filters keeps that, takes less room, and answers as the others do.
func TestKeyspaceWithoutBloomFilters(t *testing.T) {
	const n = 20_000
	sizes := map[bool]int64{}
	for _, without := range []bool{false, true} {
		o := &Options{FS: memfs.New(), MemoryBytes: 1 << 20, Compression: None}
		db, err := Open("db", o)
		if err != nil {
			t.Fatal(err)
		}
		k, err := db.Keyspace("index", &KeyspaceOptions{NoBloomFilters: without})
		for i := 0; i < n && err == nil; i++ {
			err = k.Put(binary.BigEndian.AppendUint32(nil, uint32(2*i)), nil)
		}
		if err := errors.Join(err, db.Compact(t.Context(), CompactOptions{}), db.Close()); err != nil {
			t.Fatal(err)
		}
		if db, err = Open("db", o); err != nil {
			t.Fatal(err)
		}
		list, err := db.Keyspaces()
		if err != nil || len(list) != 2 || list[1].NoBloomFilters != without || list[0].NoBloomFilters {
			t.Errorf("without filters %v: after reopening %+v, %v", without, list, err)
		}
		if k, err = db.Keyspace("index", nil); err != nil {
			t.Fatal(err)
		}
		for i := range n {
			want := error(nil)
			if i%2 == 1 {
				want = ErrNotFound
			}
			if _, err := k.Get(binary.BigEndian.AppendUint32(nil, uint32(i))); !errors.Is(err, want) {
				t.Fatalf("without filters %v: key %d: %v", without, i, err)
			}
		}
		report, err := db.Check(t.Context())
		if err != nil || len(report.Damage) > 0 {
			t.Errorf("without filters %v: %+v, %v", without, report, err)
		}
		sizes[without] = report.Bytes
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if sizes[true] > sizes[false]-n {
		t.Errorf("%d bytes without filters, %d with them: want at least a byte a key less", sizes[true], sizes[false])
	}
}
