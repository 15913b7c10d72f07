package fault

import (
	"bytes"
	"errors"
	"testing"

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
