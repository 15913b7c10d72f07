package pando

import (
	"testing"

	"github.com/pandodb/pando/vfs/memfs"
)

// A Put that has found the disk full is no write of its transaction or batch.
func TestPutThatFailedIsNoWrite(t *testing.T) {
	fsys := memfs.New()
	db := openMem(t, fsys, Options{Compression: None})
	tx, err := db.Begin(true)
	must(t, err)
	b := db.NewBatch()
	fsys.SetCapacity(fsys.Used())
	long := make([]byte, 500_000) // a value that lies apart
	wantErr(t, "put", tx.Put([]byte("a"), long), ErrDiskFull)
	wantErr(t, "put", b.Put([]byte("b"), long), ErrDiskFull)
	if b.Len() != 0 || b.Size() != 0 {
		t.Errorf("the batch has %d writes of %d bytes", b.Len(), b.Size())
	}
	fsys.SetCapacity(0)
	must(t, db.Put([]byte("a"), nil))
	must(t, tx.Commit()) // it has written nothing, so nothing can be in conflict with it
}
