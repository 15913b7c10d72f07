package pando

import (
	"context"
	"fmt"
	"testing"

	"github.com/pandodb/pando/vfs/memfs"
)

// endingContext ends after it was asked some times.
type endingContext struct {
	context.Context
	left *int
}

func (c endingContext) Err() error {
	if *c.left--; *c.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestCheckpointCancelled ends a checkpoint's context at every moment: nothing may be missing from what it settles.
func TestCheckpointCancelled(t *testing.T) {
	for n := 0; ; n += 1 + n/4 {
		fs := memfs.New()
		db := openMem(t, fs, Options{})
		for i := range 300 {
			must(t, db.Put(fmt.Appendf(nil, "k%03d", i), make([]byte, 100)))
		}
		left := n
		err := db.Checkpoint(endingContext{context.Background(), &left})
		if err != nil {
			wantErr(t, "checkpoint", err, context.Canceled)
		}
		must(t, db.Put([]byte("more"), nil))
		must(t, db.Close())
		if got, e := openMem(t, fs, Options{}).Count(nil, nil); got != 301 || e != nil {
			t.Fatalf("ended after %d questions: %d pairs, %v, want 301; checkpoint: %v", n, got, e, err)
		}
		if err == nil {
			return
		}
	}
}

// TestCheckpointGivesLogBack: where the log has more in reserve than there is data, a checkpoint that settles everything gives it back, and
// writing goes on.
func TestCheckpointGivesLogBack(t *testing.T) {
	fs := memfs.New()
	db := openMem(t, fs, Options{Profile: Relaxed, MemoryBytes: 64 << 20})
	onDisk := func() (n int64) {
		names, err := fs.List("db/wal")
		must(t, err)
		for _, name := range names {
			stat, err := fs.Stat("db/wal/" + name)
			must(t, err)
			n += stat.Size
		}
		return n
	}
	const records = 2000
	for version := range 3 {
		for i := range records {
			must(t, db.Put(fmt.Appendf(nil, "k%05d", i), fmt.Appendf(nil, "%0200d", version)))
		}
		before := onDisk()
		must(t, db.Checkpoint(t.Context()))
		if after := onDisk(); 2*after > before {
			t.Errorf("version %d: the log takes %d bytes, and %d before", version, after, before)
		}
	}
	must(t, db.Put([]byte("more"), nil))
	must(t, db.Close())
	if got, err := openMem(t, fs, Options{}).Count(nil, nil); got != records+1 || err != nil {
		t.Fatalf("%d pairs, %v", got, err)
	}
}
