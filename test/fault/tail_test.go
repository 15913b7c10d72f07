package fault

import (
	"bytes"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs/memfs"
)

// After a power cut the end of the log may refer to values that never reached the disk: such records do not count, nor does what follows.
// Values that the device only does not give back, while the database is opened, are no such values: what was acknowledged is there.
func TestValuesThatCannotBeReadWhileTheLogIs(t *testing.T) {
	base := memfs.New()
	open := func(fs *sectors) *pando.DB {
		db, err := pando.Open("db", &pando.Options{FS: fs, MemoryBytes: 1 << 20, ValueThreshold: 300})
		if err != nil {
			t.Fatal(err)
		}
		return db
	}
	db := open(&sectors{FS: base})
	long := bytes.Repeat(noise("long"), 10)
	if err := db.Put([]byte("long"), long); err != nil {
		t.Fatal(err)
	}
	if err := db.Put([]byte("short"), []byte("behind it")); err != nil {
		t.Fatal(err)
	}
	if err := db.Put([]byte("last"), long); err != nil {
		t.Fatal(err)
	}
	disk := &sectors{FS: base.CrashImage(memfs.Policy{})}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}

	disk.fails(func(name string, _, _ int64) bool { return inSegment(name) })
	db = open(disk)
	if v, err := db.Get([]byte("last")); !errors.Is(err, errDevice) {
		t.Errorf("last has %d bytes, %v", len(v), err)
	}
	if v, err := db.Get([]byte("short")); string(v) != "behind it" {
		t.Errorf("short is %q, %v", v, err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	disk.fails(nil)
	db = open(disk)
	for _, key := range []string{"long", "last"} {
		if v, err := db.Get([]byte(key)); err != nil || !bytes.Equal(v, long) {
			t.Errorf("%s has %d bytes, %v", key, len(v), err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// In Relaxed a power cut may take the values at the end of the log, and while the device does not tell whether it has, their records
// count. Once it does tell they are damage, until they are written over; what follows them is there.
func TestValuesThatAPowerCutMayHaveTaken(t *testing.T) {
	base := memfs.New()
	open := func(fs *sectors) *pando.DB {
		db, err := pando.Open("db", &pando.Options{
			FS: fs, MemoryBytes: 1 << 20, ValueThreshold: 300, Profile: pando.Relaxed, SyncInterval: time.Hour, SyncBytes: 1 << 30,
		})
		if err != nil {
			t.Fatal(err)
		}
		return db
	}
	db := open(&sectors{FS: base})
	if err := db.Put([]byte("long"), bytes.Repeat(noise("long"), 10)); err != nil {
		t.Fatal(err)
	}
	if err := db.Put([]byte("short"), []byte("behind it")); err != nil {
		t.Fatal(err)
	}
	image := base.CrashImage(memfs.Policy{Unsynced: memfs.All})
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	wipeValues(t, image)

	disk := &sectors{FS: image}
	disk.fails(func(name string, _, _ int64) bool { return inSegment(name) })
	db = open(disk)
	if _, err := db.Get([]byte("long")); !errors.Is(err, errDevice) {
		t.Errorf("long, while the device does not give it back: %v", err)
	}
	disk.fails(nil)
	if _, err := db.Get([]byte("long")); !errors.Is(err, pando.ErrCorrupt) {
		t.Errorf("long, which is gone: %v", err)
	}
	if v, err := db.Get([]byte("short")); string(v) != "behind it" {
		t.Errorf("short is %q, %v", v, err)
	}
	if err := db.Put([]byte("long"), []byte("anew")); err != nil {
		t.Fatal(err)
	}
	if err := db.Checkpoint(ctx); err != nil {
		t.Fatal(err)
	}
	if report, err := db.Check(ctx); err != nil || report.Err() != nil {
		t.Errorf("after it was written over: %v, %v", err, report.Err())
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// wipeValues writes zeros over all segments but their header blocks.
func wipeValues(t *testing.T, fs *memfs.FS) {
	t.Helper()
	dir := filepath.Join("db", "segments")
	names, err := fs.List(dir)
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		f, err := fs.OpenReadWrite(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		size, err := f.Size()
		if err == nil && size > 64 {
			_, err = f.WriteAt(make([]byte, size-64), 64)
		}
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
}
