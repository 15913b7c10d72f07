package pando

import (
	"fmt"
	"testing"

	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// A checkpoint that could not write to a segment, be it the last blob of all, is tried again, whatever kept it from that: nothing refers to
// what it wrote.
func TestCheckpointsWhoseWritesFailAreTriedAgain(t *testing.T) {
	for skip := 0; ; skip++ {
		fsys := faultfs.New(memfs.New())
		db := openMem(t, fsys, Options{})
		for i := range 1000 {
			must(t, db.Put(fmt.Appendf(nil, "key %d", i), make([]byte, 100)))
		}
		fsys.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpWriteAt), Name: "*.seg", Skip: skip})
		err := db.Checkpoint(t.Context())
		if fsys.Triggered() == 0 {
			must(t, err)
			if skip < 3 {
				t.Errorf("a checkpoint writes %d times", skip)
			}
			return
		}
		if err != nil { // else it was in the background, where the checkpoint was begun first, and this has been its second attempt
			wantErr(t, "checkpoint", err, faultfs.ErrInjected)
		}
		must(t, db.Put([]byte("another"), nil))
		must(t, db.Checkpoint(t.Context()))
		if n, err := db.Count(nil, nil); n != 1001 || err != nil {
			t.Errorf("%d keys, %v", n, err)
		}
	}
}
