package pando

import (
	"testing"

	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// Commit is the end of a transaction, also where the database was closed before: nothing that it holds stays.
func TestCommitBehindCloseEndsTheTransaction(t *testing.T) {
	for _, writable := range []bool{false, true} {
		fsys := faultfs.New(memfs.New())
		db := openMem(t, fsys, Options{})
		rewriteAll(t, db)
		tx, err := db.Begin(writable)
		must(t, err)
		if writable {
			must(t, tx.Put([]byte("too late"), nil))
		}
		must(t, db.Close())
		wantErr(t, "Commit", tx.Commit(), ErrClosed)
		if leaks := fsys.Leaks(); len(leaks) > 0 {
			t.Errorf("writable %t: open still: %q", writable, leaks)
		}
		wantErr(t, "Commit once more", tx.Commit(), ErrTxDone)
		must(t, tx.Rollback())
	}
}
