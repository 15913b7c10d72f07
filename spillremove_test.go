package pando

import (
	"errors"
	"fmt"
	"testing"

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
