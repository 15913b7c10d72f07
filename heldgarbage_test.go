package pando

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pandodb/pando/vfs/memfs"
)

// What a snapshot keeps is no garbage that cleaning could give back: checkpoints write as much beside one that is held as without it. They once
// moved all that there was again and again for its sake, which made the snapshot keep all of these copies.
func TestTheCleanerDoesNotWorkForWhatASnapshotKeeps(t *testing.T) {
	const checkpoints, records = 150, 100
	written := func(layout Layout, hold bool) float64 {
		db, err := Open("db", &Options{FS: memfs.New(), MemoryBytes: 64 << 20, Profile: Relaxed})
		must(t, err)
		defer db.Close()
		ks, err := db.Keyspace("keyspace", &KeyspaceOptions{Layout: layout})
		must(t, err)
		if hold {
			defer db.Snapshot().Close()
		}
		value, noise := make([]byte, 200), rand.NewChaCha8([32]byte{1})
		for i := range checkpoints {
			for j := range records {
				_, _ = noise.Read(value)
				must(t, ks.Put(fmt.Appendf(nil, "%08d", i*records+j), value))
			}
			must(t, db.Checkpoint(context.Background()))
		}
		return db.Metrics().WriteAmplification
	}
	for _, layout := range []Layout{Tree, Hash} {
		if without, beside := written(layout, false), written(layout, true); beside > without*1.15 {
			t.Errorf("%v: every byte was written %.1f times, and %.1f times beside a snapshot", layout, without, beside)
		}
	}
}
