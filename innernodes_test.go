package pando

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// What checkpoints have made that failed, and what held snapshots were moved to, is in nobody's memory when it is over. The nodes of both
// once stayed with those of the tree, until they had all that inner nodes may have, and the page cache an eighth.
func TestInnerNodesOfNobodyLeaveTheMemory(t *testing.T) {
	overwrite := func(t *testing.T, db *DB, round int) {
		for from := 0; from < 10_000; from += 1000 {
			b := db.NewBatch()
			for i := from; i < from+1000; i++ {
				must(t, b.Put(fmt.Appendf(nil, "key %08d", i*7919%10_000), fmt.Appendf(nil, "value %d %0100d", round, i)))
			}
			must(t, db.Write(b))
		}
	}
	for what, disturb := range map[string]func(t *testing.T, db *DB, fsys *faultfs.FS){
		"checkpoints that fail": func(t *testing.T, db *DB, fsys *faultfs.FS) {
			fsys.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpWriteAt), Name: "ROOT", Times: -1, Err: vfs.ErrNoSpace})
			wantErr(t, "checkpoint", db.Checkpoint(t.Context()), ErrDiskFull)
			time.Sleep(disturbances * time.Second) // it is tried again every half second
			fsys.Set()
		},
		"snapshots that are moved": func(t *testing.T, db *DB, _ *faultfs.FS) {
			for round := range disturbances {
				s := db.Snapshot()
				must(t, db.Checkpoint(t.Context()))
				overwrite(t, db, round)
				must(t, db.Checkpoint(t.Context()))
				must(t, s.Close())
				overwrite(t, db, round)
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fsys := faultfs.New(memfs.New())
				db := openMem(t, fsys, Options{MemoryBytes: 16 << 20})
				overwrite(t, db, 0)
				must(t, db.Checkpoint(context.Background()))
				before := db.Metrics().InnerBytes
				overwrite(t, db, 1)
				disturb(t, db, fsys)
				must(t, db.Checkpoint(context.Background()))
				if now := db.Metrics().InnerBytes; now > 3*before { // leaves that are written anew are not as full
					t.Errorf("%d bytes of inner nodes are in memory, %d were before", now, before)
				}
			})
		})
	}
}
