package engine

import (
	"bytes"
	"testing"

	"github.com/pandodb/pando/internal/command"
	"github.com/pandodb/pando/internal/commit"
	"github.com/pandodb/pando/vfs/memfs"
)

// The log may be recycled between when it is asked where it begins and when it is read from there: who looks for what has gone goes on where
// it begins by then.
func TestLooksForGoneInALogThatIsRecycledMeanwhile(t *testing.T) {
	e, err := Open(Options{FS: memfs.New(), Dir: "db", MemoryBytes: leastMemory})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	_, before := e.log.Oldest()
	for range 120 {
		var enc command.Encoder
		enc.Put(DefaultID, bytes.Repeat([]byte("k"), 60<<10), nil, 0)
		if err := e.Commit(&commit.Request{Commands: enc.Payload(), Count: enc.Count(), Bytes: enc.Data()}); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, oldest := e.log.Oldest()
	if oldest == before {
		t.Fatal("the log was not recycled")
	}
	if next, err := e.findGoneFrom(before); next != oldest || err != nil {
		t.Errorf("to go on from %d, error %v; the log begins at %d", next, err, oldest)
	}
}
