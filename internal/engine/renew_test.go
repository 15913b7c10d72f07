package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/pandodb/pando/internal/command"
	"github.com/pandodb/pando/internal/commit"
	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// After a pause a root says that the log goes on in a new file. Where there is no space for it, that passes like any want of space.
func TestDiskIsFullWhenTheLogIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := memfs.New()
		faults := faultfs.New(disk)
		e, err := Open(Options{FS: faults, Dir: "db", MemoryBytes: leastMemory})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		write := func(key string, bytes int) {
			t.Helper()
			var enc command.Encoder
			enc.Put(DefaultID, []byte(key), make([]byte, bytes), 0)
			if err := e.Commit(&commit.Request{Commands: enc.Payload(), Count: 1, Bytes: enc.Data(), Sync: true}); err != nil {
				t.Fatal(err)
			}
		}
		write("before", int(e.sizes.logSegment)*5/8)
		faults.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpWriteAt), Name: "ROOT", Skip: 1, Err: vfs.ErrNoSpace}) // behind that of the checkpoint
		time.Sleep(longestIdle)
		synctest.Wait()
		if faults.Triggered() != 1 {
			t.Fatal("the log was not renewed")
		}
		write("behind", 100)
		again, err := Open(Options{FS: disk.CrashImage(memfs.Policy{Unsynced: memfs.None}), Dir: "db", MemoryBytes: leastMemory})
		if err != nil {
			t.Fatal(err)
		}
		defer again.Close()
		for _, key := range []string{"before", "behind"} {
			if ok, err := again.Has(again.Keyspace(DefaultID), []byte(key)); err != nil || !ok {
				t.Error(key, ok, err)
			}
		}
		time.Sleep(2 * longestIdle)
		synctest.Wait()
		if e.settledSeq.Load() != e.visible.Load() {
			t.Error("not all has settled since")
		}
	})
}
