package engine

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pandodb/pando/internal/clock"
	"github.com/pandodb/pando/internal/command"
	"github.com/pandodb/pando/internal/commit"
	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// expiring opens a database with a key that expires in the given time.
func expiring(t *testing.T, fsys vfs.FS, in time.Duration) (*Engine, *Keyspace) {
	t.Helper()
	e, err := Open(Options{FS: fsys, Dir: "db", MemoryBytes: leastMemory})
	if err != nil {
		t.Fatal(err)
	}
	var enc command.Encoder
	enc.Put(DefaultID, []byte("k"), []byte("v"), uint64(time.Now().Add(in).UnixMilli()))
	if err := e.Commit(&commit.Request{Commands: enc.Payload(), Count: 1, Bytes: enc.Data(), Sync: true}); err != nil {
		t.Fatal(err)
	}
	return e, e.Keyspace(DefaultID)
}

// wantMark looks whether what a power cut leaves knows that it is not earlier than at most two seconds ago.
func wantMark(t *testing.T, disk *memfs.FS) {
	t.Helper()
	synctest.Wait()
	now := uint64(time.Now().UnixMilli())
	again, err := Open(Options{FS: disk.CrashImage(memfs.Policy{Unsynced: memfs.None}), Dir: "db", MemoryBytes: leastMemory, Clock: clock.NewManual(time.UnixMilli(0))})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if high := again.clock.high.Load(); high+2000 < now {
		t.Errorf("the mark is %d ms behind what readers were told", now-high)
	}
}

// Whatever the worker does, and for however long, what readers do not see any more stays away after a crash.
func TestClockIsMarkedWhileSettlingTakesLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := memfs.New()
		faults := faultfs.New(disk)
		e, ks := expiring(t, faults, 2*time.Minute)
		defer e.Close()
		slow := make(chan struct{})
		faults.OnCall(func(op faultfs.Op, name string) error {
			if op == faultfs.OpSync && strings.HasSuffix(name, ".seg") {
				<-slow
			}
			return nil
		})
		defer close(slow)
		time.Sleep(3 * time.Minute) // the worker has begun to settle
		for range 20 {
			if _, err := e.Get(nil, ks, []byte("k")); !errors.Is(err, ErrNotFound) {
				t.Fatal(err)
			}
			time.Sleep(time.Second / 2)
		}
		if e.settledSeq.Load() > 0 {
			t.Fatal("all has settled")
		}
		wantMark(t, disk)
	})
}

// Nor does it matter that somebody writes all the time.
func TestClockIsMarkedWhileOthersWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := memfs.New()
		e, ks := expiring(t, disk, time.Second)
		defer e.Close()
		time.Sleep(3 * time.Second)
		var r commit.Request
		for range 40 { // the lead is free for no time
			e.pipeline.Acquire(&r)
			if _, err := e.Get(nil, ks, []byte("k")); !errors.Is(err, ErrNotFound) {
				t.Fatal(err)
			}
			time.Sleep(time.Second / 4)
			e.pipeline.Release()
		}
		wantMark(t, disk)
	})
}

// A mark that found the disk full is written when there is space.
func TestClockIsMarkedAfterAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := memfs.New()
		faults := faultfs.New(disk)
		e, ks := expiring(t, faults, time.Second)
		defer e.Close()
		faults.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpWriteAt, faultfs.OpAllocate), Times: -1, Err: vfs.ErrNoSpace})
		var r commit.Request
		e.pipeline.Acquire(&r)
		if err := e.log.Shrink(); err != nil { // so that the mark needs space
			t.Fatal(err)
		}
		e.pipeline.Release()
		time.Sleep(3 * time.Second)
		if _, err := e.Get(nil, ks, []byte("k")); !errors.Is(err, ErrNotFound) {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		faults.Set()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if written := e.clock.written.Load(); written == 0 {
			t.Error("no mark was written")
		}
	})
}

// Marks of the clock are no writes of anybody: what was written settles though they go on, since somebody reads what has expired.
func TestMarksOfTheClockAreNoWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, ks := expiring(t, memfs.New(), time.Second)
		defer e.Close()
		written := e.visible.Load()
		time.Sleep(2 * time.Second)
		for range 4 * longestIdle / time.Second {
			if _, err := e.Get(nil, ks, []byte("k")); !errors.Is(err, ErrNotFound) {
				t.Fatal(err)
			}
			time.Sleep(time.Second / 2)
		}
		synctest.Wait()
		if settled := e.settledSeq.Load(); settled < written {
			t.Errorf("command %d has not settled, %d have", written, settled)
		}
		if n := e.counters.checkpoints.Load(); n > 3 {
			t.Errorf("%d checkpoints for one write", n)
		}
	})
}
