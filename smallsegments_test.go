package pando

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pandodb/pando/vfs/memfs"
)

// Where keys only grow, and little is written from one checkpoint to the next, nothing dies in what the earlier ones have left, and there is
// still no end of files. What that costs is that records are moved about once.
func TestCheckpointsOfAFewGrowingKeysDoNotLeaveAFileEach(t *testing.T) {
	fsys := memfs.New()
	db, err := Open("db", &Options{FS: fsys, MemoryBytes: 64 << 20, Profile: Relaxed})
	must(t, err)
	const checkpoints, records, length = 500, 100, 200
	value := make([]byte, length)
	noise := rand.NewChaCha8([32]byte{1})
	for i := range checkpoints {
		for j := range records {
			_, _ = noise.Read(value)
			must(t, db.Put(fmt.Appendf(nil, "%08d", i*records+j), value))
		}
		must(t, db.Checkpoint(context.Background()))
	}
	m := db.Metrics()
	if m.Segments > 150 {
		t.Errorf("%d checkpoints left %d segments", checkpoints, m.Segments)
	}
	if written := m.WriteAmplification; written > 5 {
		t.Errorf("write amplification of %.1f", written)
	}
	t.Logf("%d checkpoints left %d segments, write amplification %.1f", checkpoints, m.Segments, m.WriteAmplification)
	must(t, db.Close())
	db, err = Open("db", &Options{FS: fsys, MemoryBytes: 64 << 20, Profile: Relaxed})
	must(t, err)
	defer db.Close()
	if n, err := db.Count(nil, nil); err != nil || n != checkpoints*records {
		t.Errorf("%d records, %v", n, err)
	}
	if r, err := db.Check(context.Background()); err != nil || r.Err() != nil {
		t.Errorf("%v, %v", err, r.Err())
	}
}
