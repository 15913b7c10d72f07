package pando

import (
	"errors"
	"fmt"
	"testing"

	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// A transaction that could not read what it has written to its file is told so, and does not answer without that the next time.
func TestOwnWritesThatCannotBeReadForAWhile(t *testing.T) {
	for failing := range 3 { // the call that fails: a file is opened, and its frames are read in two calls each
		fsys := faultfs.New(memfs.New())
		db := openMem(t, fsys, Options{})
		must(t, db.Put([]byte("spilled 0"), []byte("old")))
		must(t, db.Update(func(tx *Tx) error {
			must(t, fillSpill(db, tx.Put))
			must(t, fillSpill(db, func(key, value []byte) error { return tx.Put(append(key, "more"...), value) }))
			fsys.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpOpen, faultfs.OpReadAt), Name: "*.spill", Skip: failing})
			if _, err := tx.Get([]byte("spilled 0")); !errors.Is(err, faultfs.ErrInjected) {
				t.Errorf("call %d fails: %v", failing, err)
			}
			for i := range 3 {
				if v, err := tx.Get(fmt.Append(nil, "spilled ", i)); len(v) != 800 || err != nil {
					t.Errorf("call %d failed: record %d has %d bytes, %v", failing, i, len(v), err)
				}
			}
			return nil
		}))
	}
}

// A transaction reads behind as many range deletes as there may be.
func TestOwnRangeDeletes(t *testing.T) {
	const n = 100_000
	key := func(i int) []byte { return fmt.Appendf(nil, "%06d", i) }
	db := openMem(t, memfs.New(), Options{})
	for i := 0; i < n; i += 1000 {
		must(t, db.main.PutUnsynced(key(i), nil))
	}
	must(t, db.Update(func(tx *Tx) error {
		for i := range n / 2 {
			must(t, tx.DeleteRange(key(2*i), key(2*i+1)))
		}
		if there, err := tx.Has(key(2000)); there || err != nil {
			t.Errorf("a key that was deleted: %t, %v", there, err)
		}
		for i := range n / 2 {
			must(t, tx.DeleteRange(key(2*i+1), key(2*i+2)))
		}
		must(t, tx.Put(key(1), []byte("last")))
		if got := pairsOf(tx.Range(nil, nil)); got != " 000001=last" {
			t.Errorf("what is left:%s", got)
		}
		return nil
	}))
}
