package engine

import (
	"testing"
	"time"

	"github.com/pandodb/pando/internal/command"
	"github.com/pandodb/pando/internal/commit"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestLogIsMadeReadyWhileSettling: the next segment of the log is made ready once the present one is half full, so that writers need not
// do it, and that does not wait for the worker, who may be settling, nor for a sync.
func TestLogIsMadeReadyWhileSettling(t *testing.T) {
	for _, profile := range []Profile{Durable, Relaxed} {
		testLogIsMadeReady(t, profile)
	}
}

func testLogIsMadeReady(t *testing.T, profile Profile) {
	e, err := Open(Options{FS: memfs.New(), Dir: "/db", MemoryBytes: leastMemory, Profile: profile, SyncInterval: time.Hour})
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
	if _, err := e.freezeNow(); err != nil {
		t.Fatal(err)
	}
	write(int(e.sizes.logSegment) * 5 / 8)
	e.foreseen.Wait()
	if n := e.log.Reserved(); n < e.sizes.logSegment {
		t.Errorf("the log is prepared for %d bytes, a segment has %d", n, e.sizes.logSegment)
	}
}
