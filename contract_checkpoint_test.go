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
