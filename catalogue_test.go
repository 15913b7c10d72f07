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

// The same happened, with data in the database, when the catalogue was the first blob of a new segment: what comes before it had filled
// one up.
func TestReopenTwiceWithTheCatalogueInASegmentOfItsOwn(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and starts no goroutines: little for the race detector")
	}
	const (
		step = 50 // bytes; a catalogue has more, so one of the databases has no room left for it
		leap = 20 * step
	)
	total, last := 230_000, uint32(0)
	for {
		image, _ := compactedTo(t, total)
		at := catalogueOf(t, image).Offset
		if at < last { // it has come to the begin of another segment
			break
		}
		total, last = total+leap, at
	}
	for total -= leap; total < 270_000; total += step {
		image, records := compactedTo(t, total)
		if catalogueOf(t, image).Offset != segment.FileHeaderSize {
			continue
		}
		for range 2 {
			db, err := Open("db", &Options{FS: image, MemoryBytes: 1 << 20})
			if err != nil {
				t.Fatalf("%d bytes: %v", total, err)
			}
			n, err := db.Count(nil, nil)
			if err := errors.Join(err, db.Close()); err != nil || n != records {
				t.Fatalf("%d bytes: counted %d, %v", total, n, err)
			}
		}
		return
	}
	t.Error("the catalogue never was alone in its segment: the test tests nothing")
}

// catalogueOf is where the catalogue of a database lies.
func catalogueOf(t *testing.T, image *memfs.FS) segment.Pointer {
	t.Helper()
	slots, err := root.OpenReadOnly(image, "db")
	if err != nil {
		t.Fatal(err)
	}
	defer slots.Close()
	return slots.Current().Catalogue
}

// compactedTo returns what a killed process leaves of a database with values of so many bytes, which has just been written anew, and how
// many records there are.
func compactedTo(t *testing.T, total int) (image *memfs.FS, records int64) {
	t.Helper()
	fsys := memfs.New()
	db, err := Open("db", &Options{FS: fsys, MemoryBytes: 1 << 20, Compression: None})
	if err != nil {
		t.Fatal(err)
	}
	seeded := rand.NewChaCha8([32]byte{1})
	for ; total > 0 && err == nil; total -= 1000 {
		value := make([]byte, min(total, 1000))
		_, _ = seeded.Read(value)
		err = db.Put(binary.BigEndian.AppendUint64(nil, uint64(records)), value)
		records++
	}
	err = errors.Join(err, db.Compact(t.Context(), CompactOptions{}))
	image = fsys.KillImage()
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	return image, records
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
