package pando

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestEverythingClosed asks each method of everything after the database was closed.
func TestEverythingClosed(t *testing.T) {
	fs := memfs.New()
	db := openMem(t, fs, Options{ValueThreshold: 100})
	ks, err := db.Keyspace("other", nil)
	must(t, err)
	must(t, db.Put([]byte("k"), []byte("v")))
	must(t, db.Put([]byte("apart"), make([]byte, 1000)))
	snap := db.Snapshot()
	reading, err := db.Begin(false)
	must(t, err)
	writing, err := db.Begin(true)
	must(t, err)
	must(t, writing.Put([]byte("mine"), nil))
	ofDB, ofSnap, ofTx := db.Iter(nil), snap.Iter(nil), writing.Iter(nil)
	for _, it := range []*Iterator{ofDB, ofSnap, ofTx} {
		if !it.First() {
			t.Fatal(it.Err())
		}
	}
	value, err := db.OpenValue([]byte("apart"))
	must(t, err)
	batch := db.NewBatch()
	must(t, batch.Put([]byte("b"), nil))
	must(t, db.Close())
	must(t, db.Close())

	k := []byte("k")
	ctx := context.Background()
	second := func(_ any, err error) error { return err }
	loop := func() error {
		for range db.Range(nil, nil) {
			t.Error("a closed database shows a pair")
		}
		return db.Err()
	}
	_, _, nth := db.Nth(nil, nil, 0)
	for what, err := range map[string]error{
		"get": second(db.Get(k)), "getTo": second(db.GetTo(nil, k)), "has": second(db.Has(k)), "put": db.Put(k, nil),
		"put apart": db.Put(k, make([]byte, 1000)), "put reader": db.PutReader(k, bytes.NewReader(make([]byte, 1000))),
		"delete": db.Delete(k), "deleteRange": db.DeleteRange(nil, nil), "count": second(db.Count(nil, nil)), "nth": nth,
		"write": db.Write(batch), "view": db.View(func(*Tx) error { return nil }), "update": db.Update(func(*Tx) error { return nil }),
		"begin": second(db.Begin(true)), "begin reading": second(db.Begin(false)), "keyspace": second(db.Keyspace("other", nil)),
		"new keyspace": second(db.Keyspace("new", nil)), "drop": db.DropKeyspace("other"), "keyspaces": second(db.Keyspaces()),
		"sync": db.Sync(), "checkpoint": db.Checkpoint(ctx), "compact": db.Compact(ctx, CompactOptions{}), "backup": db.Backup(ctx, "b"),
		"check": second(db.Check(ctx)), "range": loop(), "open value": second(db.OpenValue(k)), "iter": db.Iter(nil).Err(),
		"snapshot": second(db.Snapshot().Get(k)), "old snapshot": second(snap.Get(k)), "snapshot count": second(snap.Count(nil, nil)),
		"snapshot iter": snap.Iter(nil).Err(), "modify": db.Modify(k, func([]byte, bool) ([]byte, error) { return nil, nil }),
		"other": ks.Put(k, nil), "tx get": second(reading.Get(k)), "tx put": writing.Put(k, nil), "tx commit": writing.Commit(),
		"snapshot err": db.Snapshot().Err(),
	} {
		wantErr(t, what, err, ErrClosed)
	}
	for what, it := range map[string]*Iterator{"db": ofDB, "snapshot": ofSnap, "tx": ofTx} {
		if it.Next() || it.Valid() {
			t.Errorf("iterator of %s moves in a closed database", what)
		}
		wantErr(t, "iterator of "+what, it.Err(), ErrClosed)
		must(t, it.Close())
	}
	for range 2 {
		valueReaderIsClosed(t, value)
		must(t, value.Close())
	}
	must(t, snap.Close())
	must(t, reading.Rollback())
	must(t, writing.Rollback())
	wantErr(t, "done", writing.Commit(), ErrTxDone)
	_ = db.Metrics()
}

func valueReaderIsClosed(t *testing.T, r *ValueReader) {
	t.Helper()
	_, read := r.Read(make([]byte, 1))
	_, readAt := r.ReadAt(make([]byte, 1), 0)
	_, seek := r.Seek(0, io.SeekStart)
	_, writeTo := r.WriteTo(io.Discard)
	for what, err := range map[string]error{"read": read, "readAt": readAt, "seek": seek, "writeTo": writeTo} {
		wantErr(t, what+" of a value reader", err, ErrClosed)
	}
}

// A value that is being written somewhere ends with the chunk that is on its way when the database is closed.
func TestValueReaderEndsWithItsDatabase(t *testing.T) {
	const chunk = 1 << 20
	db := openMem(t, memfs.New(), Options{})
	must(t, db.Put([]byte("long"), make([]byte, 3*chunk)))
	r, err := db.OpenValue([]byte("long"))
	must(t, err)
	closing := writerFunc(func(p []byte) (int, error) { return len(p), db.Close() })
	n, err := r.WriteTo(closing)
	wantErr(t, "write a value to who closes the database", err, ErrClosed)
	if n != chunk {
		t.Errorf("%d bytes were written, want those of one chunk", n)
	}
	must(t, r.Close())
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestOpenErrors(t *testing.T) {
	fs := memfs.New()
	small := func(o Options) *Options {
		o.FS, o.MemoryBytes = fs, 1<<20
		return &o
	}
	_, err := Open("none", small(Options{MustExist: true}))
	wantErr(t, "MustExist", err, ErrNotFound)
	_, err = Open("none", small(Options{ReadOnly: true}))
	wantErr(t, "ReadOnly", err, ErrNotFound)
	for _, bad := range []Options{
		{FS: fs, MemoryBytes: 3}, *small(Options{ValueThreshold: -1}), *small(Options{SyncInterval: -1}), *small(Options{SyncBytes: -1}),
		*small(Options{KeepChanges: -1}), *small(Options{Profile: 100}),
	} {
		_, err = Open("none", &bad)
		wantErr(t, "options", err, ErrOptions)
	}
	if _, err := fs.Stat("none"); err == nil {
		t.Error("opening what is not there leaves a directory")
	}
	must(t, fs.MkdirAll("foreign"))
	must(t, vfs.WriteFile(fs, "foreign/letter.txt", []byte("dear")))
	_, err = Open("foreign", small(Options{}))
	wantErr(t, "foreign directory", err, ErrNotDatabase)
	must(t, fs.MkdirAll("false"))
	must(t, vfs.WriteFile(fs, "false/ROOT", bytes.Repeat([]byte("not a root at all"), 1000)))
	_, err = Open("false", small(Options{}))
	wantErr(t, "false root", err, ErrNotDatabase)

	db, err := Open("db", small(Options{}))
	must(t, err)
	_, err = Open("db", small(Options{}))
	wantErr(t, "second writer", err, ErrLocked)
	_, err = Open("db", small(Options{ReadOnly: true}))
	wantErr(t, "reader beside a writer", err, ErrLocked)
	must(t, db.Put([]byte("k"), []byte("v")))
	must(t, db.Close())
	r1, err := Open("db", small(Options{ReadOnly: true}))
	must(t, err)
	r2, err := Open("db", small(Options{ReadOnly: true}))
	must(t, err)
	_, err = Open("db", small(Options{}))
	wantErr(t, "writer beside readers", err, ErrLocked)
	for _, r := range []*DB{r1, r2} {
		if v, err := r.Get([]byte("k")); err != nil || string(v) != "v" {
			t.Errorf("reader: %q, %v", v, err)
		}
		ctx := context.Background()
		_, begin := r.Begin(true)
		_, create := r.Keyspace("new", nil)
		for what, err := range map[string]error{
			"put": r.Put(nil, nil), "delete": r.Delete(nil), "range": r.DeleteRange(nil, nil), "checkpoint": r.Checkpoint(ctx),
			"compact": r.Compact(ctx, CompactOptions{}), "update": r.Update(func(*Tx) error { return nil }), "begin": begin,
			"drop": r.DropKeyspace("default2"), "reader": r.PutReader(nil, strings.NewReader("")),
		} {
			wantErr(t, what, err, ErrReadOnly)
		}
		wantErr(t, "create a keyspace", create, ErrNotFound)
		must(t, r.View(func(tx *Tx) error { _, err := tx.Get([]byte("k")); return err }))
		must(t, r.Sync())
		must(t, r.Close())
	}
	for _, o := range []Options{{MemoryBytes: 1}, {ValueThreshold: -1}, {ValueThreshold: 1 << 20}, {SyncInterval: -1}, {Profile: 9}} {
		o.FS = fs
		if db, err := Open("bad", &o); err == nil {
			t.Errorf("%+v is accepted", o)
			db.Close()
		}
	}
}

// TestReadOnlyAfterCrash opens what a killed process left, without writing to it, and then Bench opens it, which settles it all.
func TestReadOnlyAfterCrash(t *testing.T) {
	fs := memfs.New()
	db := openMem(t, fs, Options{})
	for i := range 4000 { // several memtables, and logs
		must(t, db.Put(fmt.Appendf(nil, "k%05d", i), bytes.Repeat([]byte{byte(i)}, 200)))
	}
	image := fs.KillImage()
	before := image.Used()
	for _, o := range []Options{{ReadOnly: true}, {ReadOnly: true}, {Profile: Bench}, {Profile: Relaxed}} {
		r := openMem(t, image, o)
		if n, err := r.Count(nil, nil); err != nil || n != 4000 {
			t.Errorf("%+v: %d, %v", o, n, err)
		}
		if o.ReadOnly && image.Used() > before {
			t.Errorf("a reader wrote: %d bytes, were %d", image.Used(), before)
		}
		must(t, r.Close())
	}
}

// A root that was wiped out, and a log that is not there at all, are damage: what lies beside them tells that it was a database.
func TestMissingPartsAreDamage(t *testing.T) {
	for what, harm := range map[string]func(fs *memfs.FS) error{
		"wiped root": func(fs *memfs.FS) error {
			return vfs.WriteFile(fs, "db/ROOT", bytes.Repeat([]byte("nothing of a root"), 482))
		},
		"no log": func(fs *memfs.FS) error { return vfs.RemoveAll(fs, "db/wal") },
	} {
		fs := memfs.New()
		db := openMem(t, fs, Options{})
		must(t, db.Put([]byte("k"), []byte("v")))
		must(t, db.Close())
		must(t, harm(fs))
		for _, readOnly := range []bool{true, false} {
			_, err := Open("db", &Options{FS: fs, MemoryBytes: 1 << 20, ReadOnly: readOnly})
			wantErr(t, what, err, ErrCorrupt)
		}
		_, err := Salvage(t.Context(), "db", "saved", &Options{FS: fs, MemoryBytes: 1 << 20})
		must(t, err)
		saved, err := Open("saved", &Options{FS: fs, MemoryBytes: 1 << 20})
		must(t, err)
		if v, err := saved.Get([]byte("k")); err != nil || string(v) != "v" {
			t.Errorf("%s: salvaged %q, %v", what, v, err)
		}
		must(t, saved.Close())
	}
}

// TestCompressionThatIsNone asks for a compression that there is not, which once meant the default.
func TestCompressionThatIsNone(t *testing.T) {
	fs := memfs.New()
	none := Zstd + 1
	_, err := Open("db", &Options{FS: fs, Compression: none})
	wantErr(t, "open", err, ErrOptions)
	db := openMem(t, fs, Options{})
	_, err = db.Keyspace("new", &KeyspaceOptions{Compression: &none})
	wantErr(t, "keyspace", err, ErrOptions)
	wantErr(t, "compact", db.Compact(context.Background(), CompactOptions{Compression: none}), ErrOptions)
}
