package pando

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pandodb/pando/vfs/memfs"
)

// panicReader gives so many bytes, and panics behind them.
type panicReader struct{ left int }

func (r *panicReader) Read(p []byte) (int, error) {
	if r.left == 0 {
		panic("of a reader")
	}
	n := min(len(p), r.left)
	r.left -= n
	return n, nil
}

// A value whose reader panics leaves nothing behind: its space comes back by itself, and so does that of values which are written later and
// replaced.
func TestPutReaderThatPanicsLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := memfs.New()
		db := openMem(t, fsys, Options{MemoryBytes: 1 << 20, Compression: None})
		must(t, db.Checkpoint(context.Background()))
		before := fsys.Used()
		func() {
			defer func() {
				if recover() == nil {
					t.Error("nothing has panicked")
				}
			}()
			_ = db.PutReader([]byte("a"), &panicReader{left: 8 << 20})
		}()
		time.Sleep(5 * time.Second) // the background gives space back
		synctest.Wait()
		if more := fsys.Used() - before; more > 1<<20 {
			t.Errorf("%d bytes are in use that were not before", more)
		}
		for range 40 {
			must(t, db.Put([]byte("b"), make([]byte, 1<<20)))
		}
		must(t, db.Checkpoint(context.Background()))
		must(t, db.Checkpoint(context.Background()))
		if n := db.Metrics().SegmentBytes; n > 4<<20 {
			t.Errorf("segments of %d bytes hold a value of one MiB", n)
		}
	})
}
