package engine

import (
	"testing"

	"github.com/pandodb/pando/internal/command"
	"github.com/pandodb/pando/internal/commit"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestMemoryIsBackBeforeLogFilesGo: the memory of a memtable that has settled is there for the next one before files of the log are
// removed, which takes so long that a writer may have begun another memtable meanwhile.
func TestMemoryIsBackBeforeLogFilesGo(t *testing.T) {
	fsys := faultfs.New(memfs.New())
	e, err := Open(Options{FS: fsys, Dir: "/db", MemoryBytes: leastMemory})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	e.cancel() // the worker, who settles and collects memory too, or gives it to the memtable in front: then there is none for a moment
	e.worker.Wait()
	var enc command.Encoder
	for enc.Data() < e.sizes.memtable*3/4 {
		enc.Put(DefaultID, make([]byte, 1+enc.Count()), make([]byte, 100), 0)
	}
	if err := e.Commit(&commit.Request{Commands: enc.Payload(), Count: enc.Count(), Bytes: enc.Data()}); err != nil {
		t.Fatal(err)
	}
	e.foreseen.Wait()
	removed := 0
	fsys.OnCall(func(op faultfs.Op, name string) error {
		if op == faultfs.OpRemove {
			if removed++; e.arenas.Waiting() == 0 {
				t.Errorf("%s is removed while the memory of what has settled is in use", name)
			}
		}
		return nil
	})
	if _, err := e.freezeNow(); err != nil {
		t.Fatal(err)
	}
	if err := e.settle(t.Context(), work{}); err != nil {
		t.Fatal(err)
	}
	fsys.OnCall(nil)
	if removed == 0 {
		t.Error("no file was removed: the test shows nothing")
	}
}
