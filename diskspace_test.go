package pando_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/test/filling"
	"github.com/pandodb/pando/vfs/memfs"
)

// smallDisk is a file system of so many bytes that tells how many are left.
func smallDisk(bytes int64) *memfs.FS {
	fsys := memfs.New()
	fsys.SetCapacity(bytes)
	fsys.TellSpace()
	return fsys
}

// From a disk that the database has filled itself records can be deleted, and that makes room for others, again and again.
func TestDiskThatTheDatabaseFills(t *testing.T) {
	rounds := 2
	if testing.Short() {
		rounds = 1 // the race detector makes it ten times as long
	}
	for _, test := range []struct {
		layout  pando.Layout
		profile pando.Profile
		size    int
		disk    int64
	}{
		{pando.Tree, pando.Relaxed, 100, filledDisk},
		{pando.Tree, pando.Bench, 900, filledDisk},
		{pando.Tree, pando.Durable, 5000, 12 << 20},
		{pando.Hash, pando.Relaxed, 100, filledDisk},
		{pando.Hash, pando.Durable, 900, filledDisk},
		{pando.Hash, pando.Bench, 5000, 12 << 20},
	} {
		t.Run(fmt.Sprintf("%v/%v/%d", test.layout, test.profile, test.size), func(t *testing.T) {
			t.Parallel()
			o := pando.Options{FS: smallDisk(test.disk), Profile: test.profile, MemoryBytes: 1 << 20}
			f := filling.New(t, 1, test.size)
			for range rounds {
				f.Open("db", o, test.layout)
				f.Again()
				f.Close()
			}
		})
	}
}

// From one that is small beside the budget, too, which has files, and keeps in memory, what the disk is too small for.
func TestSmallDiskBesideALargeBudget(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and starts no goroutines: little for the race detector")
	}
	for _, layout := range []pando.Layout{pando.Tree, pando.Hash} {
		t.Run(layout.String(), func(t *testing.T) {
			f := filling.New(t, 1, 100) // one at a time: with 32 bits there are no addresses for two such budgets
			f.Open("db", pando.Options{FS: smallDisk(2 * filledDisk), Profile: pando.Relaxed, MemoryBytes: 1 << 30}, layout)
			f.Fill()
			f.Thin()
			f.Check()
			f.Close()
		})
	}
}

// What adds is refused while others leave too little room, and what deletes is not, be it one record, a range or a keyspace; and a batch
// larger than memory as the others.
func TestDiskThatOthersFill(t *testing.T) {
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	fsys := smallDisk(64 << 20)
	db, err := pando.Open("db", &pando.Options{FS: fsys, MemoryBytes: 1 << 20})
	ok(err)
	defer db.Close()
	ks, err := db.Keyspace("k", nil)
	ok(err)
	other, err := db.Keyspace("other", nil)
	ok(err)
	key := func(i int) []byte { return fmt.Appendf(nil, "%05d", i) }
	value := make([]byte, 800)
	rnd := rand.NewChaCha8([32]byte{})
	for i := range 20_000 {
		_, _ = rnd.Read(value)
		ok(ks.PutUnsynced(key(i), value))
	}
	ok(other.Put(key(1), nil))
	batch := func(write func(b *pando.Batch, i int) error) error {
		b := db.NewBatch()
		for i := range 10_000 {
			ok(write(b, i))
		}
		return db.Write(b)
	}
	more := func(b *pando.Batch, i int) error { return b.In(ks).Put(append(key(i), '+'), nil) }

	fsys.SetCapacity(fsys.Used() + 1<<20)
	ok(db.Checkpoint(t.Context())) // after which it looks again
	for name, write := range map[string]func() error{
		"a put":                 func() error { return ks.Put([]byte("new"), nil) },
		"a value apart":         func() error { return ks.Put([]byte("new"), make([]byte, 10_000)) },
		"one that is streamed":  func() error { return ks.PutReader([]byte("new"), bytes.NewReader(make([]byte, 10_000))) },
		"a batch beyond memory": func() error { return batch(more) },
	} {
		if err := write(); !errors.Is(err, pando.ErrDiskFull) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if m := db.Metrics(); m.DiskFree > 2<<20 || m.DiskNeeded <= m.DiskFree {
		t.Errorf("%d bytes free, %d needed", m.DiskFree, m.DiskNeeded)
	}
	ok(ks.Put(key(0), nil)) // less than there was
	ok(ks.Delete(key(0)))
	ok(ks.DeleteRange(key(1), key(100)))
	ok(db.DropKeyspace("other"))
	ok(batch(func(b *pando.Batch, i int) error { return b.In(ks).Delete(key(i)) }))
	if n, err := ks.Count(nil, nil); err != nil || n != 10_000 {
		t.Errorf("%d records, %v", n, err)
	}

	fsys.SetCapacity(64 << 20)
	ok(ks.Put([]byte("new"), make([]byte, 10_000)))
	ok(batch(more))
}
