package pando

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// What a failed sync left unacknowledged is not shown, also where commits that come behind it fail.
func TestCommitsOfAFailedSyncStayInvisible(t *testing.T) {
	for range 20 {
		ffs := faultfs.New(memfs.New())
		db := openMem(t, ffs, Options{MemoryBytes: 1 << 20})
		must(t, db.Put([]byte("first"), nil))
		ffs.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpSync), Times: -1})
		ffs.OnCall(func(op faultfs.Op, _ string) error {
			if op == faultfs.OpSync {
				time.Sleep(time.Millisecond) // others come up meanwhile
			}
			return nil
		})
		var wg sync.WaitGroup
		for i := range byte(16) {
			wg.Go(func() {
				if err := db.Put([]byte{i}, nil); !errors.Is(err, ErrFailed) {
					t.Errorf("Put: %v", err)
				}
			})
		}
		wg.Wait()
		for i := range byte(16) {
			if there, err := db.Has([]byte{i}); there || err != nil {
				t.Fatalf("key %d: there %v, %v", i, there, err)
			}
		}
		ffs.Set()
		ffs.OnCall(nil)
		_ = db.Close()
	}
}

// A keyspace whose dropping a failed sync refuses stays readable, and one whose making it refuses is not there.
func TestKeyspacesOfAFailedSync(t *testing.T) {
	ffs := faultfs.New(memfs.New())
	db := openMem(t, ffs, Options{})
	kept, err := db.Keyspace("kept", nil)
	must(t, err)
	must(t, kept.Put([]byte("key"), []byte("value")))
	snap := db.Snapshot()
	defer snap.Close()
	ffs.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpSync)})
	wantErr(t, "drop", db.DropKeyspace("kept"), ErrFailed)
	_, err = db.Keyspace("new", nil)
	wantErr(t, "make", err, ErrFailed)
	again, err := db.Keyspace("kept", nil)
	must(t, err)
	for what, get := range map[string]func([]byte) ([]byte, error){
		"the old handle": kept.Get, "a new handle": again.Get, "a snapshot": snap.In(kept).Get,
	} {
		if v, err := get([]byte("key")); string(v) != "value" || err != nil {
			t.Errorf("through %s: %q, %v", what, v, err)
		}
	}

	ffs = faultfs.New(memfs.New())
	db = openMem(t, ffs, Options{})
	ffs.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpSync)})
	for range 2 {
		_, err = db.Keyspace("new", nil)
		wantErr(t, "make", err, ErrFailed)
	}
	if list, err := db.Keyspaces(); len(list) != 1 || err != nil {
		t.Errorf("%d keyspaces, %v", len(list), err)
	}
}

// After a failed sync the system may call pages clean that the device never got. The next open reads them, and shows what they hold: a
// value that lies apart has to be written again, as the log is, or the next power cut takes it from under what refers to it.
func TestValuesOfAFailedSyncAreWrittenAgain(t *testing.T) {
	for _, fault := range []faultfs.Fault{faultfs.DropSync, faultfs.DropSyncOnce} {
		for _, length := range []int{5000, 3 << 19} {
			for skip := 0; ; skip++ {
				var hit bool
				var err error
				synctest.Test(t, func(*testing.T) { hit, err = valuesAfterFailedSync(faultfs.Rule{Skip: skip, Fault: fault}, length) })
				if err != nil {
					t.Errorf("fault %d of sync %d, values of %d bytes: %v", fault, skip, length, err)
				}
				if !hit {
					break
				}
			}
		}
	}
}

func valuesAfterFailedSync(rule faultfs.Rule, length int) (hit bool, err error) {
	base := memfs.New()
	ffs := faultfs.New(base)
	o := func() *Options { return &Options{FS: ffs, MemoryBytes: 1 << 20, ValueThreshold: 100} }
	db, err := Open("db", o())
	if err != nil {
		return false, err
	}
	value := incompressible(length)
	ffs.Set(rule)
	for i := range byte(3) {
		err = errors.Join(err, db.Put([]byte{i}, value))
	}
	synctest.Wait() // the background syncs too
	hit = ffs.Triggered() > 0
	ffs.Set()
	if hit && err == nil {
		err = db.Put([]byte{3}, nil) // then the next one says so
	}
	if hit != errors.Is(err, ErrFailed) {
		return hit, fmt.Errorf("the sync failed is %v, and the puts answer %w", hit, err)
	}
	if err := db.Close(); err != nil {
		return hit, err
	}
	if db, err = Open("db", o()); err != nil {
		return hit, err
	}
	defer db.Close()
	var there []byte
	for i := range byte(3) {
		if v, err := db.Get([]byte{i}); err == nil && len(v) == length {
			there = append(there, i)
		}
	}
	// Open has made durable what it shows, and nothing takes it back.
	if err := haveOutlived(base, there); err != nil {
		return hit, err
	}
	if err := db.Sync(); err != nil {
		return hit, err
	}
	return hit, haveOutlived(base, there)
}

// haveOutlived tells which of the keys a power cut takes now, or nil.
func haveOutlived(base *memfs.FS, keys []byte) error {
	cut, err := Open("db", &Options{FS: base.CrashImage(memfs.Policy{}), MemoryBytes: 1 << 20, ValueThreshold: 100})
	if err != nil {
		return fmt.Errorf("after the power cut: %w", err)
	}
	defer cut.Close()
	for _, i := range keys {
		if _, err := cut.Get([]byte{i}); err != nil {
			return fmt.Errorf("key %d was there before the power cut: %w", i, err)
		}
	}
	return nil
}

// A database that has failed is not closed as if all were well when what was acknowledged may not outlive a power cut.
func TestCloseTellsThatWhatWasAcknowledgedIsNotDurable(t *testing.T) {
	for _, profile := range []Profile{Durable, Relaxed, Bench} {
		synctest.Test(t, func(t *testing.T) {
			base := memfs.New()
			ffs := faultfs.New(base)
			o := &Options{FS: ffs, Profile: profile, MemoryBytes: 1 << 20}
			db, err := Open("db", o)
			if err == nil {
				err = db.Put([]byte("k"), nil)
			}
			if err != nil {
				t.Fatal(err)
			}
			ffs.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpSync, faultfs.OpSyncDir), Times: -1})
			if err := db.Checkpoint(t.Context()); !errors.Is(err, ErrFailed) {
				t.Fatalf("%v: the checkpoint answers %v", profile, err)
			}
			err = db.Close()
			o.FS = base.CrashImage(memfs.Policy{})
			cut, openErr := Open("db", o)
			if openErr != nil {
				t.Fatal(openErr)
			}
			defer cut.Close()
			there, readErr := cut.Has([]byte("k"))
			if readErr != nil {
				t.Fatal(readErr)
			}
			if profile == Durable && err != nil || !there && !errors.Is(err, ErrFailed) {
				t.Errorf("%v: Close answers %v, and the key is there after a power cut: %v", profile, err, there)
			}
		})
	}
}

// A disk that says only in a sync that it is full has not said what it keeps: the database is as after any other sync that failed.
func TestSyncOfASegmentThatFindsTheDiskFull(t *testing.T) {
	ffs := faultfs.New(memfs.New())
	db := openMem(t, ffs, Options{})
	must(t, db.Put([]byte("k"), []byte("v")))
	ffs.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpSync), Name: "*.seg", Err: vfs.ErrNoSpace})
	wantErr(t, "the checkpoint", db.Checkpoint(t.Context()), ErrFailed)
	wantErr(t, "the next write", db.Put([]byte("k"), []byte("w")), ErrFailed)
	ffs.Set()
	_ = db.Close()
	db = openMem(t, ffs, Options{})
	if v, err := db.Get([]byte("k")); string(v) != "v" || err != nil {
		t.Errorf("%q, %v", v, err)
	}
}
