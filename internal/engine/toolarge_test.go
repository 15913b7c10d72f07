package engine

import (
	"errors"
	"testing"

	"github.com/pandodb/pando/internal/command"
	"github.com/pandodb/pando/internal/spill"
	"github.com/pandodb/pando/internal/wal"
	"github.com/pandodb/pando/vfs/memfs"
)

// What is committed from memory fits into a record of the log, and what waits for a spill file into a frame, whatever the budget.
func TestCommitsFitIntoARecordOfTheLog(t *testing.T) {
	for memory := int64(leastMemory); memory <= 1<<40; memory *= 2 {
		e := &Engine{sizes: sizesFor(memory)}
		if n := e.CommitBytes(); n > wal.MaxPayload || n < e.SpillBytes() {
			t.Errorf("with %d bytes of memory a commit may have %d bytes, a record of the log %d", memory, n, wal.MaxPayload)
		}
		const longest = command.MaxKey + command.MaxValue + 64
		if n := e.SpillBytes() + longest; n > spill.MaxFrame {
			t.Errorf("with %d bytes of memory a frame has up to %d bytes, at most %d are read", memory, n, spill.MaxFrame)
		}
	}
}

// A commit that the log has no record for once ended all writing.
func TestRecordThatIsTooLargeIsOnlyAnErrorOfItsCommit(t *testing.T) {
	e, err := Open(Options{FS: memfs.New(), Dir: "db", MemoryBytes: leastMemory})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	err = e.Commit(&request{Commands: make([]byte, wal.MaxPayload+1), Count: 1})
	if !errors.Is(err, wal.ErrTooLarge) || errors.Is(err, ErrFailed) {
		t.Errorf("a record that is too large: %v", err)
	}
	var enc command.Encoder
	enc.Put(1, []byte("key"), nil, 0)
	if err := e.Commit(&request{Commands: enc.Payload(), Count: 1, Bytes: enc.Data()}); err != nil {
		t.Errorf("the next commit: %v", err)
	}
}
