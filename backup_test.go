package pando

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pandodb/pando/vfs"
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

// A segment that is not there is damage to a backup too, and not just a file that cannot be found.
func TestBackupWithoutASegment(t *testing.T) {
	fsys := memfs.New()
	db, err := Open("db", &Options{FS: fsys, MemoryBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Put([]byte("key"), make([]byte, 4<<10)), db.Close()); err != nil {
		t.Fatal(err)
	}
	const ofTheValue = "segments/00000001.seg"
	if err := fsys.Remove(filepath.Join("db", ofTheValue)); err != nil {
		t.Fatal(err)
	}
	if db, err = Open("db", &Options{FS: fsys, ReadOnly: true, MemoryBytes: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var damage *CorruptError
	if err := db.Backup(t.Context(), "backup"); !errors.As(err, &damage) || damage.File != ofTheValue {
		t.Errorf("%v", err)
	}
}

// Backup replaces root and log in its directory. It once did so under the feet of whoever had that directory open, the
// database that was being backed up included.
func TestBackupOntoAnOpenDatabaseIsRefused(t *testing.T) {
	fsys := memfs.New()
	open := func(dir string, readOnly bool) *DB {
		t.Helper()
		db, err := Open(dir, &Options{FS: fsys, ReadOnly: readOnly, MemoryBytes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		return db
	}
	db := open("db", false)
	if err := db.Put([]byte("key"), nil); err != nil {
		t.Fatal(err)
	}
	if err := db.Backup(t.Context(), "db"); !errors.Is(err, ErrLocked) {
		t.Errorf("onto itself: %v, want ErrLocked", err)
	}
	if err := db.Backup(t.Context(), "backup"); err != nil {
		t.Fatal(err)
	}
	reader := open("backup", true)
	if err := db.Backup(t.Context(), "backup"); !errors.Is(err, ErrLocked) {
		t.Errorf("onto an open backup: %v, want ErrLocked", err)
	}
	if err := reader.Backup(t.Context(), "backup"); !errors.Is(err, ErrLocked) {
		t.Errorf("a reader onto itself: %v, want ErrLocked", err)
	}
	if err := reader.Close(); err != nil {
		t.Fatal(err)
	}
	if err := db.Backup(t.Context(), "backup"); err != nil {
		t.Errorf("onto a closed backup: %v", err)
	}
}

// A backup opens as a database, so somebody may write to it. Backing up onto it again then mixes the files of two histories.
func TestBackupOntoOneThatWasWrittenTo(t *testing.T) {
	fsys := memfs.New()
	with := func(dir string, fn func(db *DB) error) error {
		db, err := Open(dir, &Options{FS: fsys, MemoryBytes: 1 << 20})
		if err != nil {
			return err
		}
		return errors.Join(fn(db), db.Close())
	}
	put := func(key string) func(*DB) error {
		return func(db *DB) error { return db.Put([]byte(key), []byte(key)) }
	}
	backup := func(db *DB) error { return db.Backup(t.Context(), "backup") }
	for _, err := range []error{with("db", put("a")), with("db", backup), with("backup", put("b")), with("db", put("c"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := with("db", backup); err == nil {
		t.Error("a backup was made onto a database that was written to")
	}
	if err := with("backup", func(db *DB) error {
		_, err1 := db.Get([]byte("a"))
		_, err2 := db.Get([]byte("b"))
		return errors.Join(err1, err2)
	}); err != nil {
		t.Errorf("what was written to the backup is damaged: %v", err)
	}
}

// Backup and Open make directories for segments and log, and remove what an unfinished attempt has left in them. They once removed
// what others keep under such names.
func TestSomebodyElsesFilesStay(t *testing.T) {
	fsys := memfs.New()
	o := func() *Options { return &Options{FS: fsys, MemoryBytes: 1 << 20} }
	write := func(name string) {
		t.Helper()
		if err := fsys.MkdirAll(filepath.Dir(name)); err != nil {
			t.Fatal(err)
		}
		if err := vfs.WriteFile(fsys, name, []byte("precious")); err != nil {
			t.Fatal(err)
		}
	}
	db, err := Open("db", o())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, name := range []string{"a/wal/000001", "b/wal/deep/down/file", "c/segments/data", "d/notes.txt"} {
		write(name)
		dir, _, _ := strings.Cut(name, "/")
		if err := db.Backup(t.Context(), dir); !errors.Is(err, ErrNotDatabase) {
			t.Errorf("backup where %s is: %v", name, err)
		}
		if names, err := fsys.List(dir); err != nil || len(names) != 1 {
			t.Errorf("a refused backup leaves %v, %v", names, err)
		}
		if _, err := Open(dir, o()); err == nil {
			t.Errorf("a database was made where %s is", name)
		}
		if _, err := fsys.Stat(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}

	// So do other databases, and backups of them.
	other, err := Open("other", o())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(other.Put([]byte("key"), []byte("value")), other.Backup(t.Context(), "theirs"), other.Close()); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"other", "theirs"} {
		if err := db.Backup(t.Context(), dir); err == nil {
			t.Errorf("a backup replaces %s", dir)
		}
		if other, err = Open(dir, o()); err != nil {
			t.Fatal(err)
		}
		if v, err := other.Get([]byte("key")); string(v) != "value" || err != nil {
			t.Errorf("%s behind a refused backup: %q, %v", dir, v, err)
		}
		if err := other.Close(); err != nil {
			t.Fatal(err)
		}
	}

	// A database that has lost its root can be salvaged.
	if err := fsys.Remove("other/ROOT"); err != nil {
		t.Fatal(err)
	}
	if err := db.Backup(t.Context(), "other"); !errors.Is(err, ErrNotDatabase) {
		t.Errorf("backup onto another database without its root: %v", err)
	}
	if _, err := Salvage(t.Context(), "other", "salvaged", o()); err != nil {
		t.Error(err)
	}
}

// TestFilesBesideABackupStay: a note that somebody puts beside a backup neither keeps it from being brought up to date nor goes.
func TestFilesBesideABackupStay(t *testing.T) {
	fsys := memfs.New()
	db := openMem(t, fsys, Options{})
	must(t, db.Backup(t.Context(), "backup"))
	must(t, vfs.WriteFile(fsys, "backup/notes.txt", []byte("of today")))
	must(t, db.Put([]byte("key"), []byte("value")))
	must(t, db.Backup(t.Context(), "backup"))
	if text, err := vfs.ReadFile(fsys, "backup/notes.txt", 100); err != nil || string(text) != "of today" {
		t.Errorf("the note: %q, %v", text, err)
	}
	copied, err := Open("backup", &Options{FS: fsys, ReadOnly: true, MemoryBytes: 1 << 20})
	must(t, err)
	defer copied.Close()
	if _, err := copied.Get([]byte("key")); err != nil {
		t.Error(err)
	}
}
