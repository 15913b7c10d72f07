package pando

import (
	"testing"
	"testing/synctest"

	"github.com/pandodb/pando/vfs/memfs"
)

// A batch that waits in line behind the drop of a keyspace that it writes to is written as a whole or, as here, not at all.
func TestKeyspaceIsDroppedWhileABatchWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := openMem(t, memfs.New(), Options{})
		ks, err := db.Keyspace("gone", nil)
		must(t, err)
		b := db.NewBatch()
		must(t, b.In(ks).Put([]byte("k"), nil))
		must(t, b.Put([]byte("k"), nil))
		dropped, written := make(chan error, 1), make(chan error, 1)
		must(t, db.Update(func(*Tx) error { // for which both wait
			go func() { dropped <- db.DropKeyspace("gone") }()
			synctest.Wait()
			go func() { written <- db.Write(b) }()
			synctest.Wait()
			return nil
		}))
		must(t, <-dropped)
		wantErr(t, "batch", <-written, ErrDropped)
		if ok, _ := db.Has([]byte("k")); ok {
			t.Error("half of a batch was written")
		}
	})
}
