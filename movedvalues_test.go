package pando

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// A checkpoint that moves values to other segments, and whose sync of the root fails for whatever reason, may be the one that the next open
// finds: the copies stay, also when values that somebody gives up are swept meanwhile.
func TestMovedValuesStayWhenTheRootMayReferToThem(t *testing.T) {
	for _, fault := range []error{vfs.ErrNoSpace, errors.New("the device fails")} {
		synctest.Test(t, func(t *testing.T) {
			fsys := faultfs.New(memfs.New())
			db := openMem(t, fsys, Options{})
			noise := rand.NewChaCha8([32]byte{1})
			value := make([]byte, 20<<10)
			put := func(from, to byte) {
				for i := from; i < to; i++ {
					_, _ = noise.Read(value)
					must(t, db.Put([]byte{i}, value))
				}
			}
			hold := db.e.HoldValues() // nothing is moved too early
			put(0, 24)
			must(t, db.Checkpoint(t.Context()))
			put(1, 24) // all but one of what the first segment holds is garbage now
			must(t, db.Checkpoint(t.Context()))
			tx, err := db.Begin(true)
			must(t, err)
			for i := range byte(4) {
				must(t, tx.Put([]byte{200, i}, make([]byte, 100<<10)))
			}
			must(t, db.Put([]byte("short"), nil))
			fsys.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpSync), Name: "ROOT", Err: fault})
			hold.Release()
			wantErr(t, "the checkpoint", db.Checkpoint(t.Context()), ErrFailed)
			fsys.Set()
			must(t, tx.Rollback())
			wantErr(t, "a write", db.Put([]byte("short"), nil), ErrFailed)
			time.Sleep(time.Minute)
			_ = db.Close()
			db = openMem(t, fsys, Options{})
			for i := range byte(24) {
				if v, err := db.Get([]byte{i}); len(v) != len(value) || err != nil {
					t.Errorf("%v: key %d: %d bytes, %v", fault, i, len(v), err)
				}
			}
			must(t, db.Close())
		})
	}
}

// A Compact that comes to nothing gives back what it had copied.
func TestCompactThatFailsLeavesNoLitter(t *testing.T) {
	for _, full := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			fsys := memfs.New()
			db := openMem(t, fsys, Options{MemoryBytes: 64 << 20, Profile: Relaxed})
			noise := rand.NewChaCha8([32]byte{1})
			value := make([]byte, 100<<10)
			for i := range byte(250) {
				_, _ = noise.Read(value)
				must(t, db.Put([]byte{i}, value))
			}
			must(t, db.Checkpoint(t.Context()))
			for i := range byte(250) {
				if i%10 >= 8 {
					must(t, db.Delete([]byte{i}))
				}
			}
			must(t, db.Checkpoint(t.Context()))
			time.Sleep(time.Minute)
			before := fsys.Used()
			ctx, cancel := context.WithCancel(t.Context())
			told, want := 0, context.Canceled
			o := CompactOptions{Progress: func(int64, int64) {
				if told++; told == 60 && !full {
					cancel()
				}
			}}
			if full {
				want = ErrDiskFull
				fsys.SetCapacity(before + 5<<20)
			}
			wantErr(t, "Compact", db.Compact(ctx, o), want)
			cancel()
			time.Sleep(time.Minute)
			if fsys.Used() > before+2<<20 {
				t.Errorf("full %t: %d bytes more than before", full, fsys.Used()-before)
			}
			must(t, db.Put([]byte("x"), make([]byte, 1<<20)))
			must(t, db.Close())
		})
	}
}

// After a large batch that failed, wherever that was, everything has settled when the database is at rest.
func TestNothingIsUnsettledBehindALargeBatchThatFailed(t *testing.T) {
	for calls := range 30 {
		synctest.Test(t, func(t *testing.T) {
			fsys := faultfs.New(memfs.New())
			db := openMem(t, fsys, Options{Profile: Relaxed})
			must(t, db.Put([]byte("first"), nil))
			b := db.NewBatch()
			for i := range 3000 {
				must(t, b.Put(fmt.Appendf(nil, "%06d", i), make([]byte, 100)))
			}
			fsys.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpWriteAt), Skip: calls, Err: vfs.ErrNoSpace})
			err := db.Write(b)
			fsys.Set()
			b.Reset()
			if !errors.Is(err, ErrFailed) {
				time.Sleep(time.Minute)
				if m := db.Metrics(); m.Settled != m.LastSeq {
					t.Errorf("after %d calls: settled up to %d of %d, %v", calls, m.Settled, m.LastSeq, err)
				}
			}
			_ = db.Close()
		})
	}
}
