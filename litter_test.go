package pando

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"path"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/pandodb/pando/internal/root"
	"github.com/pandodb/pando/internal/segment"
	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// A value that fails half-way, on a disk that it has filled, gives its space back by itself.
func TestValueThatFailsLeavesNoLitter(t *testing.T) {
	fsys := memfs.New()
	db, err := Open("db", &Options{FS: fsys, MemoryBytes: 1 << 20, Profile: Relaxed})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Put([]byte("small"), []byte("value")); err != nil {
		t.Fatal(err)
	}
	fsys.SetCapacity(fsys.Used() + 6<<20)
	noise := rand.NewChaCha8([32]byte{1}) // does not compress
	broken := io.MultiReader(io.LimitReader(noise, 3<<20), iotest.ErrReader(io.ErrUnexpectedEOF))
	if err := db.PutReader([]byte("broken"), broken); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatalf("a reader that fails: %v", err)
	}
	if err := db.PutReader([]byte("large"), io.LimitReader(noise, 100<<20)); !errors.Is(err, ErrDiskFull) {
		t.Fatalf("a value larger than the disk: %v", err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		names, err := fsys.List("db/" + segment.DirName)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		if len(names) <= 1 { // what was settled meanwhile
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("still there: %v", names)
		}
	}
	if v, err := db.Get([]byte("small")); string(v) != "value" || err != nil {
		t.Errorf("%q, %v", v, err)
	}
	if err := db.Put([]byte("next"), make([]byte, 1<<20)); err != nil {
		t.Errorf("there is space again, yet: %v", err)
	}
}

// Long values that are overwritten again and again do not wait for their memtable to be full, which holds little of them.
func TestOverwrittenValuesGiveTheirSpaceBack(t *testing.T) {
	for _, profile := range []Profile{Durable, Relaxed, Bench} {
		synctest.Test(t, func(t *testing.T) {
			fsys := memfs.New()
			db := openMem(t, fsys, Options{Profile: profile})
			value := make([]byte, 64<<10)
			noise := rand.NewChaCha8([32]byte{1})
			var written, most int64
			for i := range 600 {
				_, _ = noise.Read(value) // never fails
				must(t, db.Put([]byte{byte(i % 8)}, value))
				written += int64(len(value))
				most = max(most, fsys.Used())
				synctest.Wait() // for the background, which nobody gives a processor otherwise
			}
			if most > written/2 {
				t.Errorf("%v: %d bytes on the disk for 8 values of %d", profile, most, len(value))
			}
		})
	}
}

// Whoever writes long values waits when settling cannot follow, as whoever writes short ones does: what there is on the disk stays
// within what two memtables may bring.
func TestLongValuesWaitForSettling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const memory = 8 << 20
		fsys, goOn := faultfs.New(memfs.New()), make(chan struct{})
		db := openMem(t, fsys, Options{MemoryBytes: memory})
		fsys.OnCall(func(_ faultfs.Op, name string) error {
			if path.Base(name) == root.Name {
				<-goOn
			}
			return nil
		})
		const length, count, limit = 32 << 10, 1000, 4 * memory / 4 // four segments
		var written atomic.Int64
		done := make(chan error, 1)
		go func() {
			value, noise := make([]byte, length), rand.NewChaCha8([32]byte{1})
			var err error
			for i := 0; i < count && err == nil; i++ {
				_, _ = noise.Read(value) // never fails
				err = db.Put([]byte{byte(i % 8)}, value)
				written.Add(length)
			}
			done <- err
		}()
		time.Sleep(time.Hour)
		if n := written.Load(); n < 2*limit-4*length || n > 2*limit+4*length {
			t.Errorf("%d bytes of values were written while nothing settled", n)
		}
		if db.Metrics().Stalls == 0 {
			t.Error("the writer was not slowed down before it was stopped")
		}
		close(goOn)
		must(t, <-done)
	})
}

// A value that is about to be replaced is not copied before, only because the rest of its segment is garbage.
func TestReplacedValuesAreNotMoved(t *testing.T) {
	for _, replace := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			ctx := context.Background()
			fsys := faultfs.New(memfs.New())
			db := openMem(t, fsys, Options{})
			value := make([]byte, 20<<10)
			noise := rand.NewChaCha8([32]byte{1})
			put := func(from, to int) {
				for i := from; i < to; i++ {
					_, _ = noise.Read(value) // never fails
					must(t, db.Put([]byte{byte(i)}, value))
				}
			}
			hold := db.e.HoldValues() // nothing is moved too early
			put(0, 24)                // two segments
			must(t, db.Checkpoint(ctx))
			put(1, 24) // all but one of what the first holds is garbage now
			must(t, db.Checkpoint(ctx))
			synctest.Wait() // for the background, which might begin one more
			if replace {
				must(t, db.Delete([]byte{0}))
			} else {
				must(t, db.Put([]byte("short"), nil))
			}
			before := segmentFiles(t, fsys)
			hold.Release()
			must(t, db.Checkpoint(ctx))
			moved := false
			for name, size := range segmentFiles(t, fsys) {
				moved = moved || before[name] == 0 && size >= int64(len(value))
			}
			if moved == replace {
				t.Errorf("replaced: %t, moved: %t", replace, moved)
			}
		})
	}
}

// segmentFiles returns the sizes of the segments.
func segmentFiles(t *testing.T, fsys vfs.FS) map[string]int64 {
	t.Helper()
	names, err := fsys.List("db/" + segment.DirName)
	must(t, err)
	sizes := map[string]int64{}
	for _, name := range names {
		stat, err := fsys.Stat(path.Join("db", segment.DirName, name))
		must(t, err)
		sizes[name] = stat.Size
	}
	return sizes
}

// A value for whose last part there is no space gives the space of the others back.
func TestValueThatFailsAtItsEndLeavesNoLitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := memfs.New()
		db := openMem(t, fsys, Options{MemoryBytes: 16 << 20, Profile: Relaxed})
		must(t, db.Put([]byte("small"), []byte("value")))
		must(t, db.Checkpoint(context.Background()))
		before := fsys.Used()
		fsys.SetCapacity(before + 4<<20 + 400<<10)
		noise := rand.NewChaCha8([32]byte{1})
		wantErr(t, "a value larger than the disk", db.PutReader([]byte("large"), io.LimitReader(noise, 4<<20+900<<10)), ErrDiskFull)
		time.Sleep(3 * time.Second)
		if fsys.Used() > before+2<<20 {
			t.Errorf("%d bytes more than before", fsys.Used()-before)
		}
		must(t, db.Put([]byte("next"), make([]byte, 1<<20)))
		must(t, db.Close())
	})
}

// The values of transactions and batches that come to nothing give their space back while nobody commits anything.
func TestValuesThatAreGivenUpLeaveNoLitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := memfs.New()
		db := openMem(t, fsys, Options{MemoryBytes: 1 << 20, Profile: Relaxed})
		must(t, db.Put([]byte("small"), []byte("value")))
		must(t, db.Checkpoint(context.Background()))
		time.Sleep(time.Minute)
		before := fsys.Used()
		noise := rand.NewChaCha8([32]byte{1})
		value := make([]byte, 1<<20)
		for range 10 {
			tx, err := db.Begin(true)
			must(t, err)
			_, _ = noise.Read(value)
			must(t, tx.Put([]byte("k"), value))
			must(t, tx.Rollback())
			batch := db.NewBatch()
			batch.Put([]byte("k"), value)
			batch.Reset()
		}
		time.Sleep(time.Minute)
		if fsys.Used() > before+2<<20 {
			t.Errorf("%d bytes more than before", fsys.Used()-before)
		}
		must(t, db.Close())
	})
}

// Where there is space for a checkpoint, but not for what the cleaner would like to move on its way, the checkpoint gets it.
func TestTheCleanerLeavesTheLastSpaceToTheCheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := memfs.New()
		db := openMem(t, fsys, Options{MemoryBytes: 64 << 20, Profile: Relaxed})
		noise := rand.NewChaCha8([32]byte{1})
		value := make([]byte, 100<<10)
		const n = 300
		for i := range byte(n / 2) {
			_, _ = noise.Read(value)
			must(t, db.Put([]byte{0, i}, value))
			must(t, db.Put([]byte{1, i}, value))
		}
		must(t, db.Checkpoint(context.Background()))
		for i := range byte(n / 2) {
			if i%10 >= 3 {
				must(t, db.Delete([]byte{0, i}))
				must(t, db.Delete([]byte{1, i}))
			}
		}
		must(t, db.Checkpoint(context.Background()))
		fsys.SetCapacity(fsys.Used() + 2<<20)
		must(t, db.Put([]byte("small"), []byte("value")))
		must(t, db.Checkpoint(context.Background()))
		fsys.SetCapacity(1 << 30)
		for range 3 { // the cleaner tries again, a bit at a time
			time.Sleep(5 * time.Minute)
			must(t, db.Put([]byte("small"), []byte("value")))
			must(t, db.Checkpoint(context.Background()))
		}
		if used := fsys.Used(); used > 20<<20 {
			t.Errorf("%d MB for 9 MB of values", used>>20)
		}
		must(t, db.Close())
	})
}

// The same for a batch larger than memory, wherever in it the space comes to an end.
func TestTheCleanerLeavesTheLastSpaceToALargeBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := memfs.New()
		db := openMem(t, fsys, Options{MemoryBytes: 16 << 20, Profile: Relaxed})
		noise := rand.NewChaCha8([32]byte{1})
		value := make([]byte, 100<<10)
		for i := range byte(100) {
			_, _ = noise.Read(value)
			must(t, db.Put([]byte{0, i}, value))
		}
		must(t, db.Checkpoint(context.Background()))
		for i := range byte(100) {
			if i%10 >= 4 {
				must(t, db.Delete([]byte{0, i}))
			}
		}
		must(t, db.Checkpoint(context.Background()))
		batch := db.NewBatch()
		for i := range 12_000 {
			_, _ = noise.Read(value[:1000])
			must(t, batch.Put(fmt.Appendf(nil, "%06d", i), value[:1000]))
		}
		fsys.SetCapacity(fsys.Used() + 12_000*1000 + 2<<20)
		must(t, db.Write(batch))
		must(t, db.Close())
	})
}

// Compact empties segments too that the cleaner has left alone for a moment, as there was no space for what it wanted to move.
func TestCompactTakesWhatTheCleanerHasLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := memfs.New()
		db := openMem(t, fsys, Options{MemoryBytes: 64 << 20, Profile: Relaxed})
		noise := rand.NewChaCha8([32]byte{1})
		value := make([]byte, 100<<10)
		for i := range byte(200) {
			_, _ = noise.Read(value)
			must(t, db.Put([]byte{i}, value))
		}
		must(t, db.Checkpoint(t.Context()))
		for i := range byte(200) {
			if i%10 >= 3 {
				must(t, db.Delete([]byte{i}))
			}
		}
		must(t, db.Checkpoint(t.Context()))
		fsys.SetCapacity(fsys.Used() + 2<<20)
		must(t, db.Put([]byte("small"), []byte("value")))
		must(t, db.Checkpoint(t.Context()))
		before := db.Metrics().SegmentBytes
		fsys.SetCapacity(1 << 30)
		must(t, db.Compact(t.Context(), CompactOptions{}))
		if after := db.Metrics(); after.SegmentBytes > after.LiveBytes+1<<20 {
			t.Errorf("%d bytes are left of %d, of which %d are in use", after.SegmentBytes, before, after.LiveBytes)
		}
		must(t, db.Close())
	})
}
