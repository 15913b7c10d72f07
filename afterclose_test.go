package pando

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/pandodb/pando/internal/segment"
	"github.com/pandodb/pando/internal/spill"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// rewriteAll writes the same keys a few times, in between settling them, so that segments die.
func rewriteAll(t *testing.T, db *DB) {
	t.Helper()
	for round := range 4 {
		for i := range 1500 {
			must(t, db.main.PutUnsynced(fmt.Appendf(nil, "%08d", i), fmt.Appendf(nil, "value %d of round %d", i, round)))
		}
		must(t, db.Checkpoint(context.Background()))
	}
}

// noDamage checks that all of a database is there.
func noDamage(t *testing.T, db *DB) {
	t.Helper()
	report, err := db.Check(context.Background())
	must(t, err)
	for _, d := range report.Damage {
		t.Error(d.Err)
	}
}

// incompressible returns a value that is stored as it is.
func incompressible(length int) []byte {
	value := make([]byte, length)
	_, _ = rand.NewChaCha8([32]byte{byte(length)}).Read(value) // never fails
	return value
}

// A database that is closed leaves its directory alone, whatever is done with what is left of it.
func TestNothingChangesTheDirectoryAfterClose(t *testing.T) {
	for name, keep := range map[string]int64{"plain": 0, "with a kept log": 64 << 20} {
		t.Run(name, func(t *testing.T) {
			fsys := faultfs.New(memfs.New())
			db, err := Open("db", &Options{FS: fsys, MemoryBytes: 1 << 20, Profile: Relaxed, KeepChanges: keep})
			must(t, err)
			overwriteLong(t, db, 1)
			snap := db.Snapshot()
			rewriteAll(t, db) // which moves the snapshot to segments of its own
			it := db.Iter(nil)
			it.Next()
			long, err := db.main.OpenValue([]byte("key1"))
			must(t, err)
			overwriteLong(t, db, 2)
			rewriteAll(t, db)
			batch := spilled(t, db)
			tx, err := db.Begin(true)
			must(t, err)
			must(t, fillSpill(db, tx.Put))
			source, sink := io.Pipe()
			streamed := make(chan error)
			go func() { streamed <- db.main.PutReader([]byte("streamed"), source) }()
			_, err = sink.Write(incompressible(3 << 20)) // part of it lies in a segment by then
			must(t, err)

			must(t, db.Close())
			before, files := fsys.Mutations(), everything(t, fsys)
			if files := list(t, fsys, "db/"+spill.DirName); len(files) > 0 {
				t.Errorf("Close leaves %q", files)
			}
			closed := func(what string, err error) {
				t.Helper()
				if !errors.Is(err, ErrClosed) {
					t.Errorf("%s: %v", what, err)
				}
			}
			closed("Put", db.Put([]byte("too late"), incompressible(100<<10)))
			closed("PutReader", db.main.PutReader([]byte("too late"), bytes.NewReader(incompressible(100<<10))))
			closed("Put of a new batch", db.NewBatch().Put([]byte("too late"), incompressible(100<<10)))
			closed("Put of an old batch", fillSpill(db, batch.Put))
			go func() {
				_, _ = sink.Write(incompressible(3 << 20)) // of which not all is taken
				_ = sink.Close()
			}()
			closed("a stream", <-streamed)
			must(t, source.Close())
			closed("Commit", tx.Commit())
			must(t, tx.Rollback())
			batch.Reset()
			must(t, errors.Join(long.Close(), it.Close(), snap.Close()))
			if n := fsys.Mutations() - before; n > 0 || everything(t, fsys) != files {
				t.Errorf("%d calls changed what is stored", n)
			}
			if leaks := fsys.Leaks(); len(leaks) > 0 {
				t.Errorf("open still: %q", leaks)
			}
			db, err = Open("db", &Options{FS: fsys, MemoryBytes: 1 << 20})
			must(t, err)
			noDamage(t, db)
			must(t, db.Close())
		})
	}
}

// spilled returns a batch of which a part lies in a file, and a value in a segment.
func spilled(t *testing.T, db *DB) *Batch {
	t.Helper()
	b := db.NewBatch()
	must(t, b.Put([]byte("apart"), incompressible(100<<10)))
	must(t, fillSpill(db, b.Put))
	return b
}

// fillSpill puts so much that not all of it stays in memory.
func fillSpill(db *DB, put func(key, value []byte) error) error {
	var err error
	for i := 0; i < db.e.SpillBytes()/400 && err == nil; i++ {
		err = put(fmt.Append(nil, "spilled ", i), make([]byte, 800))
	}
	return err
}

func list(t *testing.T, fsys *faultfs.FS, dir string) []string {
	t.Helper()
	names, err := fsys.List(dir)
	must(t, err)
	return names
}

// everything describes the files of a database.
func everything(t *testing.T, fsys *faultfs.FS) string {
	t.Helper()
	var all string
	for _, dir := range []string{"db", "db/wal", "db/spill", "db/segments"} {
		for _, name := range list(t, fsys, dir) {
			info, err := fsys.Stat(dir + "/" + name)
			must(t, err)
			all += fmt.Sprintln(dir, name, info.Size)
		}
	}
	return all
}

// A database that is opened again beside an iterator of the closed one is not written to by who still has the old handle.
func TestOldHandleDoesNotWriteIntoTheReopenedDatabase(t *testing.T) {
	dir := t.TempDir()
	old, err := Open(dir, &Options{MemoryBytes: 1 << 20})
	must(t, err)
	rewriteAll(t, old)
	must(t, old.Put([]byte("long"), incompressible(20<<10)))
	it := old.Iter(nil)
	defer it.Close()
	must(t, old.Close())

	db := small(t, dir, Options{})
	rewriteAll(t, db)
	must(t, db.Put([]byte("long"), incompressible(20<<10)))
	for range 10 {
		if err := old.Put([]byte("too late"), incompressible(100<<10)); !errors.Is(err, ErrClosed) {
			t.Errorf("a write through the old handle: %v", err)
		}
	}
	noDamage(t, db)
	must(t, db.Close())
	noDamage(t, small(t, dir, Options{}))
}

// What is left of a database that is gone does not remove files of the one that was made in its place.
func TestWhatIsLeftOfADatabaseSparesTheOneInItsPlace(t *testing.T) {
	for name, hold := range map[string]func(db *DB) io.Closer{
		"snapshot": func(db *DB) io.Closer { return db.Snapshot() },
		"iterator": func(db *DB) io.Closer {
			it := db.Iter(nil)
			it.Next()
			return it
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir() + "/db"
			old, err := Open(dir, &Options{MemoryBytes: 1 << 20})
			must(t, err)
			rewriteAll(t, old)
			held := hold(old)
			rewriteAll(t, old)
			must(t, old.Close())
			must(t, os.RemoveAll(dir))

			db := small(t, dir, Options{})
			rewriteAll(t, db)
			must(t, held.Close())
			noDamage(t, db)
			must(t, db.Close())
			noDamage(t, small(t, dir, Options{}))
		})
	}
}

// What is not removed because a snapshot reads it while the database is closed goes when it is open again, with the first checkpoint at the
// latest.
func TestWhatASnapshotKeptGoesWithTheNextOpen(t *testing.T) {
	fsys := faultfs.New(memfs.New())
	db, err := Open("db", &Options{FS: fsys, MemoryBytes: 1 << 20})
	must(t, err)
	overwriteLong(t, db, 1)
	rewriteAll(t, db)
	snap := db.Snapshot()
	overwriteLong(t, db, 2)
	rewriteAll(t, db)
	must(t, db.Close())
	must(t, snap.Close())
	left := list(t, fsys, "db/"+segment.DirName)

	db = openMem(t, fsys, Options{})
	must(t, db.Put([]byte("key"), []byte("value")))
	must(t, db.Checkpoint(context.Background()))
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		names := list(t, fsys, "db/"+segment.DirName)
		stay := slices.DeleteFunc(slices.Clone(left), func(name string) bool { return !slices.Contains(names, name) })
		if m := db.Metrics(); len(names) == m.Segments && len(stay) < len(left)/2 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d files stay: %q", len(stay), len(left), stay)
		}
	}
	noDamage(t, db)
}
