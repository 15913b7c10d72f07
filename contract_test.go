package pando

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

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
	if err != nil {
		t.Helper() // not before: it walks the stack, and this is in inner loops
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
	for _, layout := range []Layout{Flex, Hash + 1} {
		_, err = db.Keyspace("other", &KeyspaceOptions{Layout: layout})
		wantErr(t, layout.String(), err, ErrLayout)
	}
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
