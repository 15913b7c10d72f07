package engine

import (
	"testing"

	"github.com/pandodb/pando/internal/root"
	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestOrderlyRootIsNotSyncedAgain counts the syncs of the root in an open: after an orderly close there is nothing that could be
// undurable; after a kill, and after a close of a database that failed, there may be.
func TestOrderlyRootIsNotSyncedAgain(t *testing.T) {
	open := func(fsys vfs.FS) *Engine {
		t.Helper()
		e, err := Open(Options{FS: fsys, Dir: "/db"})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	closed := func(e *Engine) {
		t.Helper()
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	rootSyncs := func(disk vfs.FS) int {
		t.Helper()
		counted, syncs := faultfs.New(disk), 0
		counted.OnCall(func(op faultfs.Op, name string) error {
			if op == faultfs.OpSync && name == "/db/"+root.Name {
				syncs++
			}
			return nil
		})
		e := open(counted)
		counted.OnCall(nil)
		closed(e)
		return syncs
	}
	disk := memfs.New()
	closed(open(disk))
	if n := rootSyncs(disk); n != 0 {
		t.Errorf("after an orderly close: %d syncs", n)
	}
	killed := open(disk)
	image := disk.KillImage()
	closed(killed)
	if n := rootSyncs(image); n == 0 {
		t.Error("after a kill: no sync")
	}
	if n := rootSyncs(image); n != 0 {
		t.Errorf("after an orderly close that follows a kill: %d syncs", n)
	}
	failed := open(disk)
	_ = failed.fail(ErrClosed)
	_ = failed.Close()
	if n := rootSyncs(disk); n == 0 {
		t.Error("after a failure: no sync")
	}
}
