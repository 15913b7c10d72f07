package pando

import (
	"errors"
	"testing"

	"github.com/pandodb/pando/vfs/memfs"
)

// A backup does not take the log along. One made by a reader of what a crash left once succeeded without what was only in the
// log: a backup that lacks acknowledged writes.
func TestBackupByAReaderIsNeverShort(t *testing.T) {
	fsys := memfs.New()
	db, err := Open("db", &Options{FS: fsys, MemoryBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Put([]byte("key"), []byte("value")); err != nil {
		t.Fatal(err)
	}
	crashed := fsys.KillImage()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	backup := func(fsys *memfs.FS) error {
		db, err := Open("db", &Options{FS: fsys, ReadOnly: true, MemoryBytes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		return errors.Join(db.Backup(t.Context(), "backup"), db.Close())
	}
	if err := backup(crashed); !errors.Is(err, ErrReadOnly) {
		t.Errorf("of what a crash left: %v, want ErrReadOnly", err)
	}
	if err := backup(fsys); err != nil {
		t.Errorf("of what was closed: %v", err)
	}
	copied, err := Open("backup", &Options{FS: fsys, MemoryBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer copied.Close()
	if v, err := copied.Get([]byte("key")); string(v) != "value" || err != nil {
		t.Errorf("the backup has %q, %v", v, err)
	}
}
