package pando

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/pandodb/pando/internal/spill"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// A large transaction whose file could not be removed behind the commit once answered with an error, as if it had not been committed.
func TestCommitsWhoseSpillFileStaysAreCommitted(t *testing.T) {
	fsys := faultfs.New(memfs.New())
	db, err := Open("db", &Options{FS: fsys, MemoryBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	const records = 6000
	fsys.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpRemove), Name: "*.spill", Times: -1})
	err = db.Update(func(tx *Tx) error {
		for i := range records {
			if err := tx.Put(fmt.Append(nil, i), make([]byte, 100)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || fsys.Triggered() == 0 {
		t.Errorf("the commit answers %v, and %d removals failed", err, fsys.Triggered())
	}
	fsys.Set()
	if n, err := db.Count(nil, nil); n != records || err != nil {
		t.Errorf("%d records, %v", n, err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if db, err = Open("db", &Options{FS: fsys, MemoryBytes: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	names, err := fsys.List("db/spill")
	if err = errors.Join(err, db.Close()); err != nil || len(names) != 0 {
		t.Errorf("the next open leaves %q, %v", names, err)
	}
}

// The file of a batch that could neither be written to nor be made what it was is not left open by a batch that is given up when its database
// has been closed.
func TestLostSpillFileIsClosedBehindItsDatabase(t *testing.T) {
	fsys := faultfs.New(memfs.New())
	db, err := Open("db", &Options{FS: fsys, MemoryBytes: 1 << 20})
	must(t, err)
	b := db.NewBatch()
	must(t, longRecords(b.Put))
	fsys.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpWriteAt, faultfs.OpTruncate), Name: "*.spill", Times: -1, Err: ErrDiskFull})
	wantErr(t, "put", longRecords(b.Put), ErrDiskFull)
	must(t, db.Close())
	b.Reset()
	if leaks := fsys.Leaks(); len(leaks) > 0 {
		t.Errorf("open are %q", leaks)
	}
}

// The file of a large batch is kept for those who read the changes, as long as the log has its record, also where the database was opened
// again meanwhile. Then it gives its space back.
func TestSpillFilesGoWithTheLogThatRefersToThem(t *testing.T) {
	fsys := memfs.New()
	o := Options{KeepChanges: 256 << 10, Profile: Relaxed}
	db := openMem(t, fsys, o)
	files := func() int {
		names, err := fsys.List("db/" + spill.DirName)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		return len(names)
	}
	large := func() {
		b := db.NewBatch()
		for i := range 3000 {
			must(t, b.Put(fmt.Appendf(nil, "%04d", i), make([]byte, 100)))
		}
		must(t, db.Write(b))
	}
	move := func() { // the log on
		for i := range 4000 {
			must(t, db.Put(fmt.Appendf(nil, "%04d", i), make([]byte, 200)))
		}
		must(t, db.Checkpoint(t.Context()))
	}
	large()
	if files() != 1 {
		t.Fatalf("%d files after a large batch", files())
	}
	move()
	if files() != 0 {
		t.Errorf("%d files when the log has moved on", files())
	}
	large()
	must(t, db.Close())
	db = openMem(t, fsys, o)
	if files() != 1 {
		t.Errorf("%d files after the database was opened again", files())
	}
	move()
	if files() != 0 {
		t.Errorf("%d files when the log has moved on after that", files())
	}
	must(t, db.Close())
}
