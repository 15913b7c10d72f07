package pando

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/pandodb/pando/internal/clock"
	"github.com/pandodb/pando/internal/engine"
	"github.com/pandodb/pando/internal/view"
	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// openMem opens a small database in memory, which the test closes.
func openMem(t *testing.T, fs vfs.FS, o Options) *DB {
	t.Helper()
	o.FS = fs
	if o.MemoryBytes == 0 {
		o.MemoryBytes = 1 << 20
	}
	db, err := Open("db", &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantErr(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

// states runs a test on data that lies in the memtable, that has settled, and in both places.
func states(t *testing.T, fill func(db *DB, from, to int), test func(t *testing.T, db *DB)) {
	for _, mode := range []string{"memtable", "settled", "mixed", "reopened"} {
		t.Run(mode, func(t *testing.T) {
			fs := memfs.New()
			db := openMem(t, fs, Options{})
			fill(db, 0, 50)
			if mode != "memtable" {
				must(t, db.Checkpoint(context.Background()))
			}
			fill(db, 50, 100)
			if mode == "settled" {
				must(t, db.Checkpoint(context.Background()))
			}
			if mode == "reopened" {
				must(t, db.Close())
				db = openMem(t, fs, Options{})
			}
			test(t, db)
		})
	}
}

// fillEven stores even numbers; the parts of the fill interleave.
func fillEven(db *DB, from, to int) {
	for i := from; i < to; i++ {
		n := (i%50)*4 + i/50*2
		if err := db.Put(fmt.Appendf(nil, "k%03d", n), fmt.Appendf(nil, "v%d", n)); err != nil {
			panic(err)
		}
	}
}

func TestBounds(t *testing.T) {
	tests := []struct {
		name   string
		lo, hi []byte
		want   int
	}{
		{"open", nil, nil, 100},
		{"empty upper", nil, []byte{}, 0},
		{"empty upper with lower", []byte("k010"), []byte{}, 0},
		{"empty lower", []byte{}, nil, 100},
		{"exact", []byte("k010"), []byte("k020"), 5},
		{"between", []byte("k009"), []byte("k021"), 6},
		{"same", []byte("k010"), []byte("k010"), 0},
		{"reversed", []byte("k020"), []byte("k010"), 0},
		{"below", nil, []byte("a"), 0},
		{"above", []byte("z"), nil, 0},
		{"around", []byte("a"), []byte("z"), 100},
	}
	states(t, fillEven, func(t *testing.T, db *DB) {
		for _, tt := range tests {
			if n, err := db.Count(tt.lo, tt.hi); err != nil || n != int64(tt.want) {
				t.Errorf("%s: count %d, %v, want %d", tt.name, n, err, tt.want)
			}
			forward, back := 0, 0
			for range db.Range(tt.lo, tt.hi) {
				forward++
			}
			for range db.RangeReverse(tt.lo, tt.hi) {
				back++
			}
			if forward != tt.want || back != tt.want || db.Err() != nil {
				t.Errorf("%s: %d forward, %d back, want %d; %v", tt.name, forward, back, tt.want, db.Err())
			}
			if _, _, err := db.Nth(tt.lo, tt.hi, int64(tt.want)); !errors.Is(err, ErrNotFound) {
				t.Errorf("%s: nth behind the end: %v", tt.name, err)
			}
			if _, _, err := db.Nth(tt.lo, tt.hi, -1); !errors.Is(err, ErrNotFound) {
				t.Errorf("%s: nth -1: %v", tt.name, err)
			}
			if tt.want > 0 {
				if _, _, err := db.Nth(tt.lo, tt.hi, int64(tt.want-1)); err != nil {
					t.Errorf("%s: last: %v", tt.name, err)
				}
			}
		}
	})
}

func TestIteratorPositions(t *testing.T) {
	states(t, fillEven, func(t *testing.T, db *DB) {
		it := db.Iter(&IterOptions{Lower: []byte("k010"), Upper: []byte("k020")})
		defer it.Close()
		at := func(what string, ok bool, want string) {
			t.Helper()
			if ok != (want != "") || it.Valid() != ok || string(it.Key()) != want || it.Err() != nil {
				t.Errorf("%s: %v, valid %v, at %q, %v, want %q", what, ok, it.Valid(), it.Key(), it.Err(), want)
			}
		}
		if it.Valid() || it.Key() != nil || it.Value() != nil {
			t.Error("a new iterator stands on something")
		}
		at("next of new", it.Next(), "k010")
		at("prev before first", it.Prev(), "")
		at("prev again", it.Prev(), "")
		at("next from before first", it.Next(), "k010")
		at("last", it.Last(), "k018")
		at("next behind last", it.Next(), "")
		at("next again", it.Next(), "")
		at("prev from behind last", it.Prev(), "k018")
		at("seek between", it.SeekGE([]byte("k011")), "k012")
		at("prev after seek", it.Prev(), "k010")
		at("next after turning", it.Next(), "k012")
		at("seek below", it.SeekGE([]byte("a")), "k010")
		at("seek nil", it.SeekGE(nil), "k010")
		at("seek above", it.SeekGE([]byte("k020")), "")
		at("prev after failed seek", it.Prev(), "k018")
		at("seekLT above", it.SeekLT([]byte("z")), "k018")
		at("seekLT exact", it.SeekLT([]byte("k012")), "k010")
		at("seekLT lower", it.SeekLT([]byte("k010")), "")
		at("next after failed seekLT", it.Next(), "k010")
		at("seekLT nil", it.SeekLT(nil), "")
		must(t, it.Close())
		must(t, it.Close())
		if it.Next() || it.First() || it.SeekGE([]byte("k010")) || it.Valid() || it.Key() != nil || it.Value() != nil {
			t.Error("a closed iterator moves")
		}
		wantErr(t, "closed iterator", it.Err(), ErrClosed)

		back := db.Iter(nil)
		defer back.Close()
		if !back.Prev() || string(back.Key()) != "k198" {
			t.Errorf("prev of a new iterator: %q", back.Key())
		}
		keys := db.Iter(&IterOptions{KeysOnly: true})
		defer keys.Close()
		if !keys.Next() || keys.Value() != nil {
			t.Error("keys only shows a value")
		}
	})
}

func TestEmptyAndNil(t *testing.T) {
	states(t, func(db *DB, from, _ int) {
		for _, err := range []error{db.Put(nil, []byte("empty key")), db.Put([]byte("nil value"), nil), db.Put([]byte("empty value"), []byte{})} {
			if err != nil {
				panic(err)
			}
		}
	}, func(t *testing.T, db *DB) {
		for _, key := range [][]byte{nil, {}} {
			if v, err := db.Get(key); err != nil || string(v) != "empty key" {
				t.Errorf("empty key: %q, %v", v, err)
			}
		}
		for _, key := range []string{"nil value", "empty value"} {
			if v, err := db.Get([]byte(key)); err != nil || v == nil || len(v) != 0 {
				t.Errorf("%s: %v, %v", key, v, err)
			}
			if v, err := db.GetTo(nil, []byte(key)); err != nil || len(v) != 0 {
				t.Errorf("%s: %v, %v", key, v, err)
			}
		}
		if v, err := db.Get([]byte("absent")); v != nil || !errors.Is(err, ErrNotFound) {
			t.Errorf("absent: %v, %v", v, err)
		}
		n := 0
		for range db.Prefix(nil) {
			n++
		}
		if n != 3 {
			t.Errorf("the empty prefix has %d pairs", n)
		}
		must(t, db.Delete([]byte("absent")))
		must(t, db.Delete(nil))
		if ok, err := db.Has([]byte{}); ok || err != nil {
			t.Errorf("deleted empty key: %v, %v", ok, err)
		}
	})
}

func TestLimits(t *testing.T) {
	db := openMem(t, memfs.New(), Options{})
	long := bytes.Repeat([]byte{'k'}, MaxKeyBytes)
	must(t, db.Put(long, []byte("v")))
	if v, err := db.Get(long); err != nil || string(v) != "v" {
		t.Errorf("longest key: %q, %v", v, err)
	}
	tooLong := append(long, 'k')
	wantErr(t, "put", db.Put(tooLong, nil), ErrKeyTooLarge)
	wantErr(t, "delete", db.Delete(tooLong), ErrKeyTooLarge)
	wantErr(t, "delete range", db.DeleteRange(tooLong, nil), ErrKeyTooLarge)
	wantErr(t, "put reader", db.PutReader(tooLong, strings.NewReader("x")), ErrKeyTooLarge)
	wantErr(t, "put a value", db.Put([]byte("k"), make([]byte, MaxValueBytes+1)), ErrValueTooLarge)
	_, err := db.Get(tooLong)
	wantErr(t, "get", err, ErrNotFound)
	b := db.NewBatch()
	wantErr(t, "batch", b.Put(tooLong, nil), ErrKeyTooLarge)
	wantErr(t, "write", db.Write(b), ErrKeyTooLarge)
	err = db.Update(func(tx *Tx) error { return tx.Put(tooLong, nil) })
	wantErr(t, "update", err, ErrKeyTooLarge)
	for _, name := range []string{"", strings.Repeat("n", MaxNameBytes+1), "bad\xff"} {
		_, err := db.Keyspace(name, nil)
		wantErr(t, "keyspace", err, ErrName)
	}
	ks, err := db.Keyspace(strings.Repeat("n", MaxNameBytes), nil)
	must(t, err)
	must(t, ks.Put(nil, nil))
	_, err = db.Keyspace("hash", &KeyspaceOptions{Layout: Hash})
	wantErr(t, "hash layout", err, ErrLayout)
	wantErr(t, "drop the default", db.DropKeyspace("default"), ErrName)
	wantErr(t, "drop what is not there", db.DropKeyspace("none"), ErrNotFound)
	failing := io.MultiReader(strings.NewReader(strings.Repeat("x", 5000)), &brokenReader{})
	wantErr(t, "reader that fails", db.PutReader([]byte("broken"), failing), errBroken)
	_, err = db.Get([]byte("broken"))
	wantErr(t, "nothing stored", err, ErrNotFound)
}

var errBroken = errors.New("broken")

type brokenReader struct{}

func (*brokenReader) Read([]byte) (int, error) { return 0, errBroken }

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
	third := func(_, _ any, err error) error { return err }
	loop := func() error {
		for range db.Range(nil, nil) {
			t.Error("a closed database shows a pair")
		}
		return db.Err()
	}
	_ = third
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
	if _, err := io.ReadAll(value); err != nil && !errors.Is(err, ErrClosed) {
		t.Errorf("value reader behind Close: %v", err)
	}
	must(t, value.Close())
	if _, err := value.Read(make([]byte, 1)); !errors.Is(err, ErrClosed) {
		t.Errorf("closed value reader: %v", err)
	}
	must(t, snap.Close())
	must(t, reading.Rollback())
	must(t, writing.Rollback())
	wantErr(t, "done", writing.Commit(), ErrTxDone)
	_ = db.Metrics()
}

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

func TestSlicesMayChange(t *testing.T) {
	db := openMem(t, memfs.New(), Options{})
	buf := []byte("first")
	must(t, db.Put(buf, buf))
	copy(buf, "other")
	b := db.NewBatch()
	key := []byte("batch")
	must(t, b.Put(key, key))
	copy(key, "xxxxx")
	must(t, db.Write(b))
	for _, k := range []string{"first", "batch"} {
		v, err := db.Get([]byte(k))
		if err != nil || string(v) != k {
			t.Errorf("%s: %q, %v", k, v, err)
		}
		copy(v, "spoil") // it is the caller's own
		if w, _ := db.Get([]byte(k)); string(w) != k {
			t.Errorf("%s: %q after the caller changed what Get returned", k, w)
		}
	}
	lo := []byte("batch")
	it := db.Iter(&IterOptions{Lower: lo})
	defer it.Close()
	copy(lo, "zzzzz")
	if !it.Next() || string(it.Key()) != "batch" {
		t.Errorf("bound changed behind the iterator's back: %q", it.Key())
	}
}

func TestTransactions(t *testing.T) {
	db := openMem(t, memfs.New(), Options{})
	other, err := db.Keyspace("other", nil)
	must(t, err)
	giveUp := errors.New("give up")
	wantErr(t, "update that fails", db.Update(func(tx *Tx) error {
		must(t, tx.Put([]byte("a"), nil))
		must(t, tx.In(other).Put([]byte("a"), nil))
		return giveUp
	}), giveUp)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic is gone")
			}
		}()
		_ = db.Update(func(tx *Tx) error {
			must(t, tx.Put([]byte("a"), nil))
			panic("in the middle")
		})
	}()
	if n, _ := db.Count(nil, nil); n != 0 {
		t.Errorf("%d pairs of transactions that were rolled back", n)
	}
	var kept *Tx
	var late *Iterator
	must(t, db.Update(func(tx *Tx) error {
		kept = tx
		must(t, tx.Put([]byte("a"), []byte("1")))
		before := tx.Iter(nil)
		defer before.Close()
		must(t, tx.Put([]byte("b"), []byte("2")))
		late = tx.Iter(nil)
		n, m := 0, 0
		for before.Next() {
			n++
		}
		for late.Next() {
			m++
		}
		if n != 1 || m != 2 {
			t.Errorf("iterators see %d and %d pairs, want 1 and 2", n, m)
		}
		if !late.First() {
			t.Error(late.Err())
		}
		return nil
	}))
	if late.Next() {
		t.Error("an iterator outlives its transaction")
	}
	wantErr(t, "late iterator", late.Err(), ErrTxDone)
	must(t, late.Close())
	_, err = kept.Get([]byte("a"))
	wantErr(t, "get", err, ErrTxDone)
	wantErr(t, "put", kept.Put(nil, nil), ErrTxDone)
	wantErr(t, "commit", kept.Commit(), ErrTxDone)
	must(t, kept.Rollback())
	wantErr(t, "write in a view", db.View(func(tx *Tx) error { return tx.Delete(nil) }), ErrReadOnly)

	x, err := db.Begin(true)
	must(t, err)
	y, err := db.Begin(true)
	must(t, err)
	for _, tx := range []*Tx{x, y} {
		_, err := tx.Get([]byte("a"))
		must(t, err)
		must(t, tx.Put([]byte("sum"), []byte("x")))
	}
	must(t, x.Commit())
	wantErr(t, "second committer", y.Commit(), ErrConflict)
	z, err := db.Begin(true) // write skew: both read what the other writes
	must(t, err)
	w, err := db.Begin(true)
	must(t, err)
	_, err = z.Count([]byte("p"), []byte("q"))
	must(t, err)
	must(t, z.Put([]byte("r1"), nil))
	_, err = w.Count([]byte("r"), []byte("s"))
	must(t, err)
	must(t, w.Put([]byte("p1"), nil))
	must(t, z.Commit())
	wantErr(t, "write skew", w.Commit(), ErrConflict)

	foreign, err := db.Begin(true)
	must(t, err)
	p := foreign.Savepoint()
	must(t, foreign.Rollback())
	wantErr(t, "savepoint of a transaction that is done", foreign.RollbackTo(p), ErrTxDone)
	must(t, db.Update(func(tx *Tx) error {
		if tx.RollbackTo(p) == nil {
			t.Error("a savepoint of another transaction is taken")
		}
		return nil
	}))
}

func TestLoopErrorsReachTheCaller(t *testing.T) {
	fs := memfs.New()
	db := openMem(t, fs, Options{ValueThreshold: 10})
	must(t, db.Put([]byte("k"), make([]byte, 100)))
	must(t, db.Checkpoint(context.Background()))
	names, err := fs.List("db/segments")
	must(t, err)
	for _, n := range names { // damage every blob
		f, err := fs.OpenReadWrite("db/segments/" + n)
		must(t, err)
		size, err := f.Size()
		must(t, err)
		for at := int64(64); at < size; at++ {
			_, err := f.WriteAt([]byte{0x5a}, at)
			must(t, err)
		}
		must(t, f.Close())
	}
	loop := func(tx *Tx) error {
		for range tx.Range(nil, nil) {
		}
		if tx.Err() == nil {
			t.Error("Err of the transaction is nil")
		}
		return nil
	}
	wantErr(t, "view", db.View(loop), ErrCorrupt)
	wantErr(t, "update", db.Update(loop), ErrCorrupt)
	_, err = db.Get([]byte("k"))
	wantErr(t, "get", err, ErrCorrupt)
	var where *CorruptError
	if !errors.As(err, &where) || where.File == "" {
		t.Errorf("no place in %v", err)
	}
	r, err := db.Check(context.Background())
	must(t, err)
	wantErr(t, "check", r.Err(), ErrCorrupt)
}

func TestDroppedKeyspaces(t *testing.T) {
	states(t, func(*DB, int, int) {}, func(t *testing.T, db *DB) {
		ks, err := db.Keyspace("gone", nil)
		must(t, err)
		must(t, ks.Put([]byte("k"), []byte("v")))
		must(t, db.Checkpoint(context.Background()))
		must(t, ks.Put([]byte("k2"), []byte("v")))
		snap := db.Snapshot()
		defer snap.Close()
		must(t, db.DropKeyspace("gone"))
		_, _, nth := ks.Nth(nil, nil, 0)
		_, count := ks.Count(nil, nil)
		_, get := ks.Get([]byte("k"))
		_, has := ks.Has([]byte("k"))
		b := db.NewBatch()
		for what, err := range map[string]error{
			"put": ks.Put(nil, nil), "get": get, "has": has, "count": count, "nth": nth, "iter": ks.Iter(nil).Err(),
			"delete": ks.Delete(nil), "batch": b.In(ks).Put(nil, nil), "write": db.Write(b), "reader": ks.PutReader(nil, strings.NewReader("")),
			"update": db.Update(func(tx *Tx) error { return tx.In(ks).Put(nil, nil) }),
		} {
			wantErr(t, what, err, ErrDropped)
		}
		if n, err := snap.In(ks).Count(nil, nil); err != nil || n != 2 {
			t.Errorf("snapshot of a dropped keyspace: %d, %v", n, err)
		}
		again, err := db.Keyspace("gone", nil)
		must(t, err)
		if n, err := again.Count(nil, nil); err != nil || n != 0 {
			t.Errorf("a keyspace that was created again holds %d, %v", n, err)
		}
	})
}

// TestDropBetween writes a batch, and commits transactions, that were filled before their keyspace was dropped.
func TestDropBetween(t *testing.T) {
	fs := memfs.New()
	db := openMem(t, fs, Options{})
	ks, err := db.Keyspace("gone", nil)
	must(t, err)
	b := db.NewBatch()
	must(t, b.In(ks).Put([]byte("k"), nil))
	must(t, b.Put([]byte("k"), nil))
	tx, err := db.Begin(true)
	must(t, err)
	must(t, tx.In(ks).Put([]byte("k"), nil))
	must(t, db.DropKeyspace("gone"))
	wantErr(t, "batch", db.Write(b), ErrDropped)
	wantErr(t, "transaction", tx.Commit(), ErrDropped)
	b.Reset()
	must(t, db.Write(b))
	if ok, _ := db.Has([]byte("k")); ok {
		t.Error("half of a batch was written")
	}
}

func TestBigValues(t *testing.T) {
	fs := memfs.New()
	db := openMem(t, fs, Options{})
	data := make([]byte, 3<<20+12345)
	for i := range data {
		data[i] = byte(i >> 7 * 31)
	}
	must(t, db.Put([]byte("put"), data))
	must(t, db.PutReader([]byte("stream"), bytes.NewReader(data)))
	check := func(db *DB) {
		t.Helper()
		for _, k := range []string{"put", "stream"} {
			got, err := db.Get([]byte(k))
			if err != nil || !bytes.Equal(got, data) {
				t.Fatalf("%s: %d bytes, %v", k, len(got), err)
			}
			r, err := db.OpenValue([]byte(k))
			must(t, err)
			part := make([]byte, 100_000)
			if _, err := r.ReadAt(part, 1<<20-5000); err != nil || !bytes.Equal(part, data[1<<20-5000:][:100_000]) {
				t.Errorf("%s: part: %v", k, err)
			}
			var all bytes.Buffer
			if _, err := r.WriteTo(&all); err != nil || !bytes.Equal(all.Bytes(), data) {
				t.Errorf("%s: WriteTo: %d bytes, %v", k, all.Len(), err)
			}
			must(t, r.Close())
		}
	}
	check(db)
	must(t, db.Compact(context.Background(), CompactOptions{Compression: Zstd}))
	check(db)
	image := fs.CrashImage(memfs.Policy{})
	check(openMem(t, image, Options{}))
}

// withClock opens a database on a clock of the test's own.
func withClock(t *testing.T, fs vfs.FS, c clock.Clock) *DB {
	t.Helper()
	e, err := engine.Open(engine.Options{FS: fs, Dir: "db", Clock: c, MemoryBytes: 1 << 20})
	must(t, err)
	db := &DB{e: e, stops: map[*view.Stop]struct{}{}}
	db.main = &Keyspace{db: db, ks: e.Keyspace(engine.DefaultID)}
	db.puts.New = func() any { return new(putter) }
	t.Cleanup(func() { db.Close() })
	return db
}

func TestExpiry(t *testing.T) {
	fs := memfs.New()
	c := clock.NewManual(time.UnixMilli(1_000_000))
	db := withClock(t, fs, c)
	ks := db.Default()
	at := c.Now().Add(time.Minute)
	must(t, ks.PutExpiring([]byte("soon"), []byte("v"), at))
	must(t, db.Put([]byte("stays"), []byte("v")))
	if got, err := ks.Expiry([]byte("soon")); err != nil || !got.Equal(at) {
		t.Errorf("expiry: %v, %v", got, err)
	}
	if got, err := ks.Expiry([]byte("stays")); err != nil || !got.IsZero() {
		t.Errorf("expiry: %v, %v", got, err)
	}
	count := func(db *DB, want int64) {
		t.Helper()
		n, err := db.Count(nil, nil)
		walked := int64(0)
		for range db.Range(nil, nil) {
			walked++
		}
		for range db.RangeReverse(nil, nil) {
			walked++
		}
		if err != nil || n != want || walked != 2*want {
			t.Errorf("count %d, walked %d, %v, want %d", n, walked, err, want)
		}
	}
	count(db, 2)
	c.Advance(time.Minute - time.Millisecond)
	count(db, 2)
	c.Advance(time.Millisecond)
	count(db, 1)
	_, err := db.Get([]byte("soon"))
	wantErr(t, "expired", err, ErrNotFound)
	must(t, db.Checkpoint(context.Background()))
	count(db, 1)
	c.Set(time.UnixMilli(1_000_000)) // the wall clock jumps back
	count(db, 1)
	must(t, db.Close())
	db = withClock(t, fs, c)
	count(db, 1)
}

func TestModifyAndCompareAndSet(t *testing.T) {
	states(t, fillEven, func(t *testing.T, db *DB) {
		k := []byte("new")
		for _, step := range []struct {
			old, value []byte
			want       bool
		}{
			{[]byte{}, []byte("x"), false}, {nil, []byte{}, true}, {nil, []byte("x"), false}, {[]byte("y"), []byte("x"), false},
			{[]byte{}, []byte("x"), true}, {[]byte("x"), []byte("z"), true},
		} {
			if done, err := db.CompareAndSet(k, step.old, step.value); err != nil || done != step.want {
				t.Errorf("%q to %q: %v, %v", step.old, step.value, done, err)
			}
		}
		must(t, db.Modify(k, func(old []byte, found bool) ([]byte, error) { return append(old, '!'), nil }))
		if v, _ := db.Get(k); string(v) != "z!" {
			t.Errorf("modified to %q", v)
		}
		must(t, db.Modify(k, func([]byte, bool) ([]byte, error) { return nil, ErrUnchanged }))
		wantErr(t, "own error", db.Modify(k, func([]byte, bool) ([]byte, error) { return nil, errBroken }), errBroken)
		must(t, db.Modify(k, func([]byte, bool) ([]byte, error) { return nil, nil }))
		if ok, _ := db.Has(k); ok {
			t.Error("modify to nothing leaves the key")
		}
	})
}

// endingContext ends after it was asked some times.
type endingContext struct {
	context.Context
	left *int
}

func (c endingContext) Err() error {
	if *c.left--; *c.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestCheckpointCancelled ends a checkpoint's context at every moment: nothing may be missing from what it settles.
func TestCheckpointCancelled(t *testing.T) {
	for n := 0; ; n += 1 + n/4 {
		fs := memfs.New()
		db := openMem(t, fs, Options{})
		for i := range 300 {
			must(t, db.Put(fmt.Appendf(nil, "k%03d", i), make([]byte, 100)))
		}
		left := n
		err := db.Checkpoint(endingContext{context.Background(), &left})
		if err != nil {
			wantErr(t, "checkpoint", err, context.Canceled)
		}
		must(t, db.Put([]byte("more"), nil))
		must(t, db.Close())
		if got, e := openMem(t, fs, Options{}).Count(nil, nil); got != 301 || e != nil {
			t.Fatalf("ended after %d questions: %d pairs, %v, want 301; checkpoint: %v", n, got, e, err)
		}
		if err == nil {
			return
		}
	}
}
