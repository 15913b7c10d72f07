package fault

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// While nothing settles and the memtable is full, the mark of the clock, which records that expire want, waits as other writes do: were it
// the worker who waited, nobody would settle any more.
func TestClockWhileNothingSettles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ffs := faultfs.New(memfs.New())
		db, err := pando.Open("db", &pando.Options{FS: ffs, MemoryBytes: 1 << 20, ValueThreshold: 100})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		}()
		ffs.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpWriteAt), Name: "ROOT", Err: vfs.ErrNoSpace, Times: -1})
		err = db.Default().PutExpiring([]byte("short"), nil, time.Now().Add(time.Second))
		for i := 0; err == nil; i++ {
			err = db.Default().PutExpiring(fmt.Appendf(nil, "%06d", i), make([]byte, 20_000), time.Now().Add(time.Hour))
		}
		if !errors.Is(err, pando.ErrDiskFull) {
			t.Fatal(err)
		}
		for range 10 {
			time.Sleep(time.Second)
			if _, err := db.Get([]byte("short")); !errors.Is(err, pando.ErrNotFound) { // from now on the mark has to be kept
				t.Fatal(err)
			}
		}
		ffs.Set()
		if err := db.Put([]byte("k"), nil); err != nil {
			t.Errorf("there is space again: %v", err)
		}
	})
}

// The file of a segment that cannot be removed is when it can be, without waiting for the next open.
func TestFilesThatCannotBeRemovedForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := memfs.New()
		ffs := faultfs.New(base)
		db, err := pando.Open("db", &pando.Options{FS: ffs, MemoryBytes: 1 << 20, ValueThreshold: 100})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		}()
		ffs.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpRemove), Times: -1})
		var mu sync.Mutex // the worker removes files too
		var doomed []string
		ffs.OnCall(func(op faultfs.Op, name string) error {
			mu.Lock()
			defer mu.Unlock()
			if op == faultfs.OpRemove && inSegment(name) {
				doomed = append(doomed, name)
			}
			return nil
		})
		for round := range 3 {
			for i := range 1000 {
				if err := db.Put(fmt.Append(nil, i), noise(fmt.Sprint(round, i))); err != nil {
					t.Fatal(err)
				}
			}
			if err := db.Checkpoint(ctx); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second) // the worker comes round to what the last checkpoint has left
		ffs.OnCall(nil)
		ffs.Set()
		time.Sleep(10 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		if len(doomed) == 0 {
			t.Fatal("nothing was to be removed")
		}
		for _, name := range doomed {
			if _, err := base.Stat(name); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s is still there: %v", name, err)
			}
		}
	})
}

// A segment that nobody refers to any more, but an open snapshot, is removed once, however many checkpoints there are meanwhile.
func TestSegmentsThatASnapshotKeepsAreRemovedOnce(t *testing.T) {
	var told strings.Builder
	db, err := pando.Open("db", &pando.Options{
		FS: memfs.New(), MemoryBytes: 1 << 20, ValueThreshold: 100, Logger: slog.New(slog.NewTextHandler(&told, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	round := func(n int) {
		for i := range 200 {
			if err := db.Put(fmt.Append(nil, i), noise(fmt.Sprint(n, i))); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Checkpoint(ctx); err != nil {
			t.Fatal(err)
		}
	}
	round(0)
	snap := db.Snapshot()
	for n := range 8 {
		round(n)
	}
	err = snap.Close()
	round(8)
	if err := errors.Join(err, db.Close()); err != nil {
		t.Error(err)
	}
	if strings.Contains(told.String(), "stays") {
		t.Error(told.String())
	}
}

// A segment of values that is to be emptied, a part of which cannot be read for a while, is emptied when it can be.
func TestCleaningOfValuesThatCannotBeReadForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		device := &sectors{FS: memfs.New()}
		o := &pando.Options{FS: device, MemoryBytes: 1 << 20, ValueThreshold: 100}
		db, err := pando.Open("db", o)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		}()
		write := func(what string, keep int) {
			for i := range 1000 {
				if keep == 0 || i%keep != 0 {
					if err := db.Put(fmt.Append(nil, i), noise(what+fmt.Sprint(i))); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := db.Checkpoint(ctx); err != nil {
				t.Fatal(err)
			}
		}
		write("old", 0)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if db, err = pando.Open("db", o); err != nil { // the files are read from now on
			t.Fatal(err)
		}
		first, err := device.List("db/segments")
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(first)
		device.fails(func(name string, from, to int64) bool { return filepath.Base(name) == first[0] && leaf(name, from, to) })
		write("new", 20)
		write("newer", 20)
		if now, err := device.List("db/segments"); err != nil || !slices.Contains(now, first[0]) {
			t.Fatalf("%v, %v: %s is gone, a part of which could not be read", now, err, first[0])
		}
		device.fails(nil)
		time.Sleep(2 * time.Minute)
		write("newest", 20)
		write("and newest", 20)
		if now, err := device.List("db/segments"); err != nil || slices.Contains(now, first[0]) {
			t.Errorf("%v, %v: %s is still there", now, err, first[0])
		}
		for i := 0; i < 1000; i += 20 {
			if v, err := db.Get(fmt.Append(nil, i)); err != nil || string(v) != string(noise("old"+fmt.Sprint(i))) {
				t.Errorf("%d: %d bytes, %v", i, len(v), err)
			}
		}
	})
}

// A checkpoint that was on its way when the fault was in force fails, and who asks for one after the fault has passed has nothing to do
// with that: the next one is theirs.
func TestCheckpointAfterTheFault(t *testing.T) {
	for range 100 {
		if checkpointAfterTheFault(t) || t.Failed() {
			return
		}
	}
	t.Error("the worker was there before the checkpoint each time")
}

// checkpointAfterTheFault reports whether the round that failed was that of the checkpoint: the worker settles what the checkpoint has
// frozen as well, and where it was there first the failure is its own.
func checkpointAfterTheFault(t *testing.T) bool {
	ffs := faultfs.New(memfs.New())
	var log bytes.Buffer // by the worker alone, and read when it has ended
	db, err := pando.Open("db", &pando.Options{FS: ffs, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	put := func(key string) {
		t.Helper()
		if err := db.Put([]byte(key), []byte("value")); err != nil {
			t.Fatal(err)
		}
	}
	put("before")
	begun, end := make(chan struct{}), make(chan struct{})
	var once sync.Once
	ffs.OnCall(func(op faultfs.Op, name string) (err error) {
		if op == faultfs.OpWriteAt && filepath.Ext(name) == ".seg" {
			once.Do(func() {
				close(begun)
				<-end
				err = errDevice
			})
		}
		return err
	})
	during, after := make(chan error, 1), make(chan error, 1)
	go func() { during <- db.Checkpoint(ctx) }()
	<-begun
	put("after")
	go func() { after <- db.Checkpoint(ctx) }()
	time.Sleep(50 * time.Millisecond) // so that the second one waits for the first; were it later the test would show nothing
	close(end)
	failed := <-during
	if err := <-after; err != nil {
		t.Errorf("a checkpoint that was asked for meanwhile: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	if failed == nil && strings.Contains(log.String(), errDevice.Error()) {
		return false
	}
	if !errors.Is(failed, errDevice) {
		t.Errorf("a checkpoint whose write fails: %v", failed)
	}
	return true
}
