package pando

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// A file in the place of a directory once got a message about "ROOT" inside of it, and no name at all made a database of the directory
// that the process happened to be in.
func TestFilesAreNoDirectories(t *testing.T) {
	dir := t.TempDir()
	file, db := filepath.Join(dir, "file"), filepath.Join(dir, "db")
	must(t, os.WriteFile(file, []byte("precious"), 0o600))
	whole, err := Open(db, nil)
	must(t, err)
	defer whole.Close()
	for _, o := range []*Options{nil, {MustExist: true}, {ReadOnly: true}} {
		_, err := Open(file, o)
		wantErr(t, "open a file", err, ErrNotDatabase)
		if !strings.Contains(err.Error(), "is a file, not a directory") {
			t.Error(err)
		}
		_, err = Open("", o)
		wantErr(t, "open nothing", err, ErrOptions)
	}
	wantErr(t, "backup to a file", whole.Backup(t.Context(), file), ErrNotDatabase)
	wantErr(t, "backup to nothing", whole.Backup(t.Context(), ""), ErrOptions)
	for _, pair := range [][2]string{{file, db + "2"}, {db, file}} {
		_, err := Salvage(t.Context(), pair[0], pair[1], nil)
		wantErr(t, "salvage", err, ErrNotDatabase)
	}
	if text, err := os.ReadFile(file); string(text) != "precious" {
		t.Errorf("the file is %q, %v", text, err)
	}
}

// What Salvage refuses can be told apart: nothing to save, nowhere to put it, and somebody at work on it.
func TestWhatSalvageRefuses(t *testing.T) {
	fsys := memfs.New()
	o := &Options{FS: fsys, MemoryBytes: 1 << 20}
	db, err := Open("db", o)
	must(t, err)
	must(t, db.Put([]byte("k"), nil))
	salvage := func(dir, target string) error {
		_, err := Salvage(t.Context(), dir, target, o)
		return err
	}
	wantErr(t, "of a database at work", salvage("db", "saved"), ErrLocked)
	must(t, db.Close())
	must(t, fsys.MkdirAll("empty"))
	wantErr(t, "of an empty directory", salvage("empty", "saved"), ErrNotFound)
	wantErr(t, "into itself", salvage("db", "db"), ErrNotDatabase)
	wantErr(t, "inside of it", salvage("db", "db/saved"), ErrNotDatabase)
	must(t, salvage("db", "saved"))
	wantErr(t, "where something is", salvage("db", "saved"), fs.ErrExist)
}

// A backup inside of the database is refused: the database is what its directory holds, and a removed database must not take its backup
// along.
func TestBackupInsideOfTheDatabase(t *testing.T) {
	fsys := memfs.New()
	db := openMem(t, fsys, Options{})
	must(t, db.Put([]byte("k"), nil))
	for _, dir := range []string{"db/backup", "db/segments", "db/wal/x", "./db/../db/y"} {
		if err := db.Backup(t.Context(), dir); !errors.Is(err, ErrNotDatabase) {
			t.Errorf("%s: %v", dir, err)
		}
	}
	if names, err := fsys.List("db"); err != nil || len(names) > 4 {
		t.Errorf("the database has %q, %v", names, err)
	}
	must(t, db.Backup(t.Context(), "db.backup"))
}

// What the system says of a directory that it does not open is passed on, and nothing is made there.
func TestDirectoriesThatDoNotOpen(t *testing.T) {
	for _, cause := range []error{fs.ErrPermission, errors.New("read-only file system")} {
		for _, ops := range []faultfs.OpSet{faultfs.Ops(faultfs.OpStat), faultfs.Mutating, faultfs.Ops(faultfs.OpList)} {
			base := memfs.New()
			ffs := faultfs.New(base)
			ffs.Set(faultfs.Rule{Ops: ops, Times: -1, Err: cause})
			_, err := Open("db", &Options{FS: ffs})
			wantErr(t, "open", err, cause)
			if names, err := base.List("db"); err == nil && len(names) > 0 {
				t.Errorf("it has %q", names)
			}
		}
	}
}

// What an interrupted backup has left says so, and is mended by the next one.
func TestInterruptedBackupSaysSo(t *testing.T) {
	base := memfs.New()
	ffs := faultfs.New(base)
	db, err := Open("db", &Options{FS: ffs, MemoryBytes: 1 << 20})
	must(t, err)
	defer db.Close()
	must(t, db.Put([]byte("k"), []byte("v")))
	ffs.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpLink), Err: vfs.ErrNoSpace})
	wantErr(t, "backup", db.Backup(t.Context(), "backup"), ErrDiskFull)
	for _, o := range []Options{{}, {MustExist: true}, {ReadOnly: true}} {
		o.FS = base
		_, err := Open("backup", &o)
		wantErr(t, "open", err, ErrUnfinished)
		if !strings.Contains(err.Error(), "backup was interrupted") {
			t.Error(err)
		}
	}
	must(t, db.Backup(t.Context(), "backup"))
	whole, err := Open("backup", &Options{FS: base, ReadOnly: true})
	must(t, err)
	must(t, whole.Close())
}

// Who puts off Close before looking at the error of Open once got a panic instead of that error.
func TestClosingWhatWasNeverOpen(t *testing.T) {
	db, err := Open("", nil)
	wantErr(t, "open", err, ErrOptions)
	wantErr(t, "close nil", db.Close(), ErrClosed)
	wantErr(t, "close nothing", new(DB).Close(), ErrClosed)
}
