package engine

import (
	"testing"
	"time"

	"github.com/pandodb/pando/internal/command"
	"github.com/pandodb/pando/internal/commit"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestLogIsMadeReadyWhileSettling: with a profile that syncs in the background, the next segment of the log is made ready by whoever does
// that, so that writers need not do it while the worker is settling.
func TestLogIsMadeReadyWhileSettling(t *testing.T) {
	e, err := Open(Options{FS: memfs.New(), Dir: "/db", MemoryBytes: leastMemory, Profile: Relaxed, SyncInterval: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	write := func(bytes int) {
		t.Helper()
		var enc command.Encoder
		for enc.Data() < bytes {
			enc.Put(DefaultID, make([]byte, 1+enc.Count()), make([]byte, 100), 0)
		}
		if err := e.Commit(&commit.Request{Commands: enc.Payload(), Count: enc.Count(), Bytes: enc.Data()}); err != nil {
			t.Fatal(err)
		}
	}
	write(1)
	e.settling.Lock()
	defer e.settling.Unlock() // the worker waits until then
	if err := e.freezeNow(); err != nil {
		t.Fatal(err)
	}
	write(int(e.sizes.logSegment) * 5 / 8)
	e.syncRelaxed()
	if n := e.log.Reserved(); n < e.sizes.logSegment {
		t.Errorf("the log is prepared for %d bytes, a segment has %d", n, e.sizes.logSegment)
	}
}
