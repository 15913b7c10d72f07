package engine

import (
	"bytes"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pandodb/pando/internal/command"
	"github.com/pandodb/pando/internal/commit"
	"github.com/pandodb/pando/internal/value"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// A pause in which the log cannot be cut is one in which that is tried again: the next write, after which it would be, may be long in coming.
func TestLogThatCouldNotBeCutInAPauseIsCutLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := faultfs.New(memfs.New())
		e, err := Open(Options{FS: disk, Dir: "db", MemoryBytes: leastMemory})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		var enc command.Encoder
		enc.Put(DefaultID, []byte("key"), []byte("value"), 0)
		if err := e.Commit(&commit.Request{Commands: enc.Payload(), Count: 1, Bytes: enc.Data()}); err != nil {
			t.Fatal(err)
		}
		disk.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpTruncate), Times: 2})
		time.Sleep(longestIdle + shrinkDelay)
		if n := disk.Triggered(); n != 1 || e.log.Reserved() == 0 {
			t.Fatalf("cutting it has failed %d times, and %d bytes are in reserve", n, e.log.Reserved())
		}
		time.Sleep(3 * longestIdle)
		if n := e.log.Reserved(); n != 0 {
			t.Errorf("%d bytes of the log are in reserve behind a long pause", n)
		}
	})
}

// Somebody may commit a value apart right before the log is cut for a pause that has ended. The log is not made durable before the value:
// what a power cut leaves has both, or neither.
func TestLogIsCutBehindAValueApart(t *testing.T) {
	disk := memfs.New()
	o := Options{FS: disk, Dir: "db", MemoryBytes: leastMemory, Profile: Relaxed, SyncInterval: time.Hour}
	e, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	ks, long := e.Keyspace(DefaultID), bytes.Repeat([]byte("long"), 1000)
	hold := e.HoldValues()
	ref, err := hold.Store(ks, []byte("apart"), long)
	if err != nil {
		t.Fatal(err)
	}
	put := func(add func(enc *command.Encoder)) {
		t.Helper()
		var enc command.Encoder
		add(&enc)
		if err := e.Commit(&commit.Request{Commands: enc.Payload(), Count: 1, Bytes: enc.Data()}); err != nil {
			t.Fatal(err)
		}
	}
	put(func(enc *command.Encoder) { enc.PutApart(DefaultID, []byte("apart"), value.AppendRef(nil, ref), 0) })
	hold.Release()
	if done, err := e.shrinkLog(); !done || err != nil {
		t.Fatal("somebody else leads, or", err)
	}
	put(func(enc *command.Encoder) { enc.Put(DefaultID, []byte("behind"), nil, 0) }) // into a new file, which says what is durable before it
	o.FS = disk.CrashImage(memfs.Policy{Unsynced: memfs.None})
	again, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if got, err := again.Get(nil, again.Keyspace(DefaultID), []byte("apart")); err != nil && !errors.Is(err, ErrNotFound) || err == nil && !bytes.Equal(got, long) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}
