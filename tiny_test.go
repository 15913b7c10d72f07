package pando

import (
	"encoding/binary"
	"os"
	"testing"
)

// A batch of very small records takes many times its bytes in a memtable, and a log that was written with much memory may be
// recovered with little.
func TestTinyRecordsAndShrinkingBudgets(t *testing.T) {
	dir := t.TempDir()
	const n = 60_000
	for _, memory := range []int64{1 << 20, 256 << 20} {
		db, err := Open(dir, &Options{Profile: Relaxed, MemoryBytes: memory})
		if err != nil {
			t.Fatal(err)
		}
		b := db.NewBatch()
		for i := range n {
			if err := b.Put(binary.BigEndian.AppendUint32(nil, uint32(i)), nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Write(b); err != nil {
			t.Fatal(err)
		}
		killed := killedCopy(t, dir)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		again := small(t, killed, Options{})
		if c, err := again.Count(nil, nil); c != n || err != nil {
			t.Fatalf("%d pairs after recovery, %v", c, err)
		}
	}
}

// killedCopy returns what a kill at this moment would leave of a database.
func killedCopy(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}
