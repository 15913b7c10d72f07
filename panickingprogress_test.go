package pando

import (
	"context"
	"fmt"
	"testing"

	"github.com/pandodb/pando/vfs/memfs"
)

// A compaction whose Progress panics in the midst of a round leaves nothing of that round.
func TestCompactWhoseProgressPanicsLeavesNothing(t *testing.T) {
	for _, layout := range []Layout{Tree, Hash} {
		t.Run(layout.String(), func(t *testing.T) {
			fsys := memfs.New()
			db := openMem(t, fsys, Options{MemoryBytes: 16 << 20, Compression: None})
			k, err := db.Keyspace("k", &KeyspaceOptions{Layout: layout})
			must(t, err)
			for i := range 20_000 {
				must(t, k.PutUnsynced(fmt.Appendf(nil, "key %08d", i), fmt.Appendf(nil, "value %0100d", i)))
			}
			must(t, db.Compact(context.Background(), CompactOptions{}))
			before := fsys.Used()
			for range 10 {
				func() {
					defer func() {
						if recover() == nil {
							t.Error("nothing has panicked")
						}
					}()
					_ = db.Compact(context.Background(), CompactOptions{Progress: func(done, total int64) {
						if done > total/2 {
							panic("of a caller")
						}
					}})
				}()
			}
			must(t, db.Checkpoint(context.Background()))
			if more := fsys.Used() - before; more > before/2 {
				t.Errorf("%d bytes are in use that were not before, of %d", more, before)
			}
			must(t, db.Compact(context.Background(), CompactOptions{}))
			if more := fsys.Used() - before; more > before/10 {
				t.Errorf("%d bytes more than after the same before", more)
			}
		})
	}
}
