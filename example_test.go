package pando_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// must ends an example that goes wrong.
func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// openIn opens a database in memory, which an example leaves no trace of.
func openIn(fsys vfs.FS) *pando.DB {
	db, err := pando.Open("example", &pando.Options{FS: fsys, MemoryBytes: 4 << 20})
	must(err)
	return db
}

// planted opens a database with a few trees.
func planted() *pando.DB {
	db := openIn(memfs.New())
	b := db.NewBatch()
	for _, tree := range []string{"ash Fraxinus", "aspen Populus", "beech Fagus", "birch Betula", "oak Quercus"} {
		name, genus, _ := strings.Cut(tree, " ")
		must(b.Put([]byte(name), []byte(genus)))
	}
	must(db.Write(b))
	return db
}

// The first program of README.md, apart from the name of the directory.
func Example() {
	parent, err := os.MkdirTemp("", "pando")
	must(err)
	defer os.RemoveAll(parent)
	dir := filepath.Join(parent, "trees.pando")

	db, err := pando.Open(dir, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()

	if err := db.Put([]byte("aspen"), []byte("Populus tremuloides")); err != nil {
		log.Fatal(err)
	}
	value, err := db.Get([]byte("aspen"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("aspen: %s\n", value)
	// Output:
	// aspen: Populus tremuloides
}

func ExampleOpen() {
	fsys := memfs.New() // leave Options.FS out for files on disk
	_, err := pando.Open("trees", &pando.Options{FS: fsys, MustExist: true})
	fmt.Println(errors.Is(err, pando.ErrNotFound))

	db, err := pando.Open("trees", &pando.Options{
		FS:          fsys,
		Profile:     pando.Relaxed,
		MemoryBytes: 16 << 20,
		Compression: pando.Zstd,
	})
	must(err)
	fmt.Println(db.Metrics().Profile)

	_, err = pando.Open("trees", &pando.Options{FS: fsys})
	fmt.Println(errors.Is(err, pando.ErrLocked))
	must(db.Close())
	// Output:
	// true
	// relaxed
	// true
}

func ExampleDB_Get() {
	db := planted()
	defer db.Close()

	value, err := db.Get([]byte("oak"))
	must(err)
	fmt.Printf("%s\n", value)

	_, err = db.Get([]byte("palm"))
	fmt.Println(errors.Is(err, pando.ErrNotFound))

	buf := make([]byte, 0, 64) // used again and again: GetTo then allocates nothing
	for _, name := range []string{"ash", "birch"} {
		buf, err = db.GetTo(buf[:0], []byte(name))
		must(err)
		fmt.Printf("%s\n", buf)
	}
	// Output:
	// Quercus
	// true
	// Fraxinus
	// Betula
}

func ExampleDB_Range() {
	db := planted()
	defer db.Close()

	for name, genus := range db.Range([]byte("aspen"), []byte("birch")) { // birch is not in it
		fmt.Printf("%s %s\n", name, genus)
	}
	must(db.Err()) // a loop that fails ends early

	for name := range db.RangeReverse(nil, nil) {
		fmt.Printf("%s\n", name)
		break
	}
	must(db.Err())
	// Output:
	// aspen Populus
	// beech Fagus
	// oak
}

func ExampleDB_Prefix() {
	db := planted()
	defer db.Close()

	for name := range db.Prefix([]byte("b")) {
		fmt.Printf("%s\n", name)
	}
	must(db.Err())
	// Output:
	// beech
	// birch
}

func ExampleDB_Count() {
	db := planted()
	defer db.Close()

	n, err := db.Count([]byte("b"), nil)
	must(err)
	fmt.Println(n)

	name, _, err := db.Nth(nil, nil, n-1) // counted from 0
	must(err)
	fmt.Printf("%s\n", name)
	// Output:
	// 3
	// beech
}

func ExampleDB_Write() {
	db := planted()
	defer db.Close()
	heights, err := db.Keyspace("heights", nil)
	must(err)

	b := db.NewBatch()
	must(b.Put([]byte("pine"), []byte("Pinus")))
	must(b.Delete([]byte("ash")))
	must(b.In(heights).Put([]byte("pine"), []byte("25 m")))
	must(db.Write(b)) // all of it or nothing

	n, err := db.Count(nil, nil)
	must(err)
	height, err := heights.Get([]byte("pine"))
	must(err)
	fmt.Printf("%d trees, pine %s\n", n, height)
	// Output:
	// 5 trees, pine 25 m
}

func ExampleDB_Update() {
	db := planted()
	defer db.Close()

	rename := func(from, to string) error {
		return db.Update(func(tx *pando.Tx) error {
			genus, err := tx.Get([]byte(from))
			if err != nil {
				return err // nothing of the transaction remains
			}
			if err := tx.Delete([]byte(from)); err != nil {
				return err
			}
			return tx.Put([]byte(to), genus)
		})
	}
	must(rename("aspen", "trembling aspen"))
	fmt.Println(rename("palm", "coconut palm"))

	must(db.View(func(tx *pando.Tx) error { // one state, however long it takes
		for name := range tx.Range(nil, nil) {
			fmt.Printf("%s\n", name)
		}
		return nil // View returns what ended the loop early
	}))
	// Output:
	// not found
	// ash
	// beech
	// birch
	// oak
	// trembling aspen
}

// Optimistic transactions run side by side. Whoever commits first wins; the others run again.
func ExampleDB_Begin() {
	db := openIn(memfs.New())
	defer db.Close()
	key := []byte("leaves")

	grow := func() error {
		for {
			tx, err := db.Begin(true)
			if err != nil {
				return err
			}
			old, err := tx.Get(key)
			if err != nil && !errors.Is(err, pando.ErrNotFound) {
				return errors.Join(err, tx.Rollback())
			}
			var n uint64
			if len(old) == 8 {
				n = binary.BigEndian.Uint64(old)
			}
			if err := tx.Put(key, binary.BigEndian.AppendUint64(nil, n+1)); err != nil {
				return errors.Join(err, tx.Rollback())
			}
			if err = tx.Commit(); !errors.Is(err, pando.ErrConflict) {
				return err
			}
		}
	}

	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 25 {
				must(grow())
			}
		})
	}
	wg.Wait()
	n, err := db.Get(key)
	must(err)
	fmt.Println(binary.BigEndian.Uint64(n))
	// Output:
	// 100
}

func ExampleTx_Savepoint() {
	db := planted()
	defer db.Close()

	must(db.Update(func(tx *pando.Tx) error {
		if err := tx.Put([]byte("pine"), []byte("Pinus")); err != nil {
			return err
		}
		before := tx.Savepoint()
		if err := tx.DeleteRange(nil, nil); err != nil {
			return err
		}
		return tx.RollbackTo(before)
	}))
	n, err := db.Count(nil, nil)
	must(err)
	fmt.Println(n)
	// Output:
	// 6
}

func ExampleDB_Snapshot() {
	db := planted()
	defer db.Close()

	s := db.Snapshot()
	defer s.Close()
	must(db.DeleteRange(nil, nil))

	now, err := db.Count(nil, nil)
	must(err)
	then, err := s.Count(nil, nil)
	must(err)
	fmt.Println(now, then)
	// Output:
	// 0 5
}

func ExampleIterator() {
	db := planted()
	defer db.Close()

	it := db.Iter(&pando.IterOptions{Lower: []byte("ash"), Upper: []byte("c"), KeysOnly: true})
	defer it.Close()
	if it.SeekGE([]byte("b")) {
		fmt.Printf("first with b: %s\n", it.Key())
	}
	if it.Prev() {
		fmt.Printf("before it: %s\n", it.Key())
	}
	if it.Last() {
		fmt.Printf("last: %s\n", it.Key())
	}
	must(it.Err()) // false is the end, or an error
	// Output:
	// first with b: beech
	// before it: aspen
	// last: birch
}

// A key with an expiry is invisible from that moment on.
func ExampleKeyspace_PutExpiring() {
	db := openIn(memfs.New())
	defer db.Close()
	leaves := db.Default()

	must(leaves.PutExpiring([]byte("spring"), []byte("green"), time.Now().Add(24*time.Hour)))
	must(leaves.PutExpiring([]byte("autumn"), []byte("yellow"), time.Now().Add(-time.Second)))

	at, err := leaves.Expiry([]byte("spring"))
	must(err)
	fmt.Println(time.Until(at) > 23*time.Hour)
	_, err = leaves.Get([]byte("autumn"))
	fmt.Println(errors.Is(err, pando.ErrNotFound))
	// Output:
	// true
	// true
}

func ExampleKeyspace_Modify() {
	db := openIn(memfs.New())
	defer db.Close()
	rings := db.Default()

	for range 3 {
		must(rings.Modify([]byte("oak"), func(old []byte, found bool) ([]byte, error) {
			return append(bytes.Clone(old), 'o'), nil // nil would delete, ErrUnchanged leave it
		}))
	}
	done, err := rings.CompareAndSet([]byte("oak"), []byte("ooo"), []byte("felled"))
	must(err)
	value, err := rings.Get([]byte("oak"))
	must(err)
	fmt.Printf("%v %s\n", done, value)
	// Output:
	// true felled
}

func ExampleDB_DeleteRange() {
	db := planted()
	defer db.Close()

	must(db.DeleteRange([]byte("b"), []byte("c"))) // as cheap for five keys as for five million
	for name := range db.Range(nil, nil) {
		fmt.Printf("%s\n", name)
	}
	must(db.Err())
	// Output:
	// ash
	// aspen
	// oak
}

// Values up to 1 GiB go in and out in pieces, with a megabyte of memory.
func ExampleKeyspace_PutReader() {
	db := openIn(memfs.New())
	defer db.Close()
	images := db.Default()

	must(images.PutReader([]byte("forest"), io.LimitReader(endless{}, 3<<20)))

	r, err := images.OpenValue([]byte("forest"))
	must(err)
	defer r.Close()
	_, err = r.Seek(2<<20, io.SeekStart)
	must(err)
	n, err := io.Copy(io.Discard, r)
	must(err)
	fmt.Println(r.Size(), n)
	// Output:
	// 3145728 1048576
}

// endless is a source that never ends.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// A feed of all changes, in commit order. With Follow it waits for further ones.
func ExampleDB_Changes() {
	fsys := memfs.New()
	db, err := pando.Open("example", &pando.Options{FS: fsys, MemoryBytes: 4 << 20, KeepChanges: 1 << 20})
	must(err)
	defer db.Close()
	must(db.Put([]byte("ash"), []byte("Fraxinus")))
	must(db.Put([]byte("oak"), []byte("Quercus")))
	must(db.Delete([]byte("ash")))

	for c, err := range db.Changes(context.Background(), pando.ChangesOptions{}) {
		must(err)
		fmt.Printf("%d %v %s %s\n", c.Seq, c.Kind, c.Key, c.Value)
	}
	// Output:
	// 1 put ash Fraxinus
	// 2 put oak Quercus
	// 3 delete ash
}

func ExampleDB_Backup() {
	fsys := memfs.New()
	db := openIn(fsys)
	defer db.Close()
	must(db.Put([]byte("oak"), []byte("Quercus")))
	must(db.Backup(context.Background(), "copy"))
	must(db.Delete([]byte("oak")))

	backup, err := pando.Open("copy", &pando.Options{FS: fsys, ReadOnly: true})
	must(err)
	defer backup.Close()
	value, err := backup.Get([]byte("oak"))
	must(err)
	fmt.Printf("%s\n", value)
	// Output:
	// Quercus
}

func ExampleDB_Keyspace() {
	db := openIn(memfs.New())
	defer db.Close()

	zstd := pando.Zstd
	archive, err := db.Keyspace("archive", &pando.KeyspaceOptions{Compression: &zstd, LeafBytes: 32 << 10})
	must(err)
	must(archive.Put([]byte("oak"), []byte("Quercus")))

	list, err := db.Keyspaces()
	must(err)
	for _, k := range list {
		fmt.Println(k.Name, k.Layout)
	}
	must(db.DropKeyspace("archive"))
	_, err = archive.Get([]byte("oak"))
	fmt.Println(errors.Is(err, pando.ErrDropped))
	// Output:
	// archive tree
	// default tree
	// true
}

func ExampleDB_Check() {
	db := planted()
	defer db.Close()
	must(db.Checkpoint(context.Background())) // Check reads what has settled

	report, err := db.Check(context.Background())
	must(err)
	must(report.Err())
	fmt.Println(report.Keyspaces, len(report.Damage))
	// Output:
	// 1 0
}
