package pando_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// A lock that one of several programs gets: a nil old value asks that there be none.
func ExampleDB_CompareAndSet() {
	db := openIn(memfs.New())
	defer db.Close()
	for _, owner := range []string{"first", "second"} {
		got, err := db.CompareAndSet([]byte("lock"), nil, []byte(owner))
		must(err)
		fmt.Println(owner, got)
	}
	// Output:
	// first true
	// second false
}

// Compact makes the files as small as they get. It can be ended at any time by its context, and tells how far it is.
func ExampleDB_Compact() {
	db := planted()
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	last := int64(0)
	err := db.Compact(ctx, pando.CompactOptions{
		Compression: pando.Zstd,
		Progress:    func(done, total int64) { last = 100 * done / max(total, 1) },
	})
	must(err)
	fmt.Println(last <= 100, db.Metrics().SegmentBytes > 0)
	// Output:
	// true true
}

// Any number of processes read a database that nobody has open for writing; a second writer is told who the first one is.
func ExampleOpen_readOnly() {
	fsys := memfs.New()
	db := openIn(fsys)
	must(db.Put([]byte("oak"), []byte("Quercus")))
	_, err := pando.Open("example", &pando.Options{FS: fsys})
	fmt.Println(errors.Is(err, pando.ErrLocked))
	must(db.Close())

	for range 2 {
		reader, err := pando.Open("example", &pando.Options{FS: fsys, ReadOnly: true})
		must(err)
		defer reader.Close()
		fmt.Println(errors.Is(reader.Put([]byte("elm"), nil), pando.ErrReadOnly))
	}
	// Output:
	// true
	// true
	// true
}

// A database whose root was overwritten does not open; what it holds comes over into a new one.
func ExampleSalvage() {
	fsys := memfs.New()
	db := openIn(fsys)
	must(db.Put([]byte("oak"), []byte("Quercus")))
	must(db.Close())
	must(vfs.WriteFile(fsys, "example/ROOT", []byte("something else")))

	_, err := pando.Open("example", &pando.Options{FS: fsys})
	var where *pando.CorruptError
	fmt.Println(errors.Is(err, pando.ErrCorrupt), errors.As(err, &where) && where.File == "ROOT")

	report, err := pando.Salvage(context.Background(), "example", "saved", &pando.Options{FS: fsys})
	must(err)
	fmt.Println(report.Records)
	saved, err := pando.Open("saved", &pando.Options{FS: fsys})
	must(err)
	defer saved.Close()
	value, err := saved.Get([]byte("oak"))
	must(err)
	fmt.Printf("%s\n", value)
	// Output:
	// true true
	// 1
	// Quercus
}

// How far a long call is: only the proportion of the two numbers means something.
func ExampleWithProgress() {
	db := planted()
	defer db.Close()
	last := 0.0
	ctx := pando.WithProgress(context.Background(), func(done, total int64) { last = float64(done) / float64(total) })
	report, err := db.Check(ctx)
	must(err)
	fmt.Printf("%.0f %% checked, %d damages\n", 100*last, len(report.Damage))
	// Output:
	// 100 % checked, 0 damages
}

// What is written for what was handed over, and whether anything waits to be settled.
func ExampleDB_Metrics() {
	db := planted()
	defer db.Close()
	must(db.Checkpoint(context.Background()))
	m := db.Metrics()
	fmt.Println(m.Commits, m.UserBytes, m.LastSeq == m.Settled, m.WriteAmplification > 1)
	// Output:
	// 1 54 true true
}

// Reads that belong together, again and again, without an allocation.
func ExampleReader() {
	db := planted()
	defer db.Close()
	var r pando.Reader
	defer r.Close()
	buffer := make([]byte, 0, 64)
	for _, name := range []string{"oak", "palm"} {
		must(r.Open(db, db.Default())) // shows the present
		genus, err := r.GetTo(buffer[:0], db.Default(), []byte(name))
		fmt.Printf("%s: %s %v\n", name, genus, errors.Is(err, pando.ErrNotFound))
	}
	// Output:
	// oak: Quercus false
	// palm:  true
}

// A program's own test of what a power cut leaves: a database in memory, and what its disk would hold if power failed now.
func ExampleOptions_powerCut() {
	fsys := memfs.New()
	db := openIn(fsys)
	must(db.Put([]byte("oak"), []byte("Quercus"))) // Durable: it has been synced
	after := fsys.CrashImage(memfs.Policy{})
	must(db.Close())

	db = openIn(after)
	defer db.Close()
	genus, err := db.Get([]byte("oak"))
	must(err)
	fmt.Printf("%s\n", genus)
	// Output:
	// Quercus
}
