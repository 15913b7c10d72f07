package pando

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/pandodb/pando/vfs/memfs"
)

// readerKey is a key of fillReader, under which there may be nothing.
func readerKey(i int) []byte { return fmt.Appendf(nil, "key%04d", i) }

// fillReader writes, overwrites and deletes: values of all sizes, some that expire late or have expired.
func fillReader(t *testing.T, db *DB) func(from, to int) {
	return func(from, to int) {
		r := rand.New(rand.NewPCG(uint64(from), 1))
		for i := from; i < to; i++ {
			key, value := readerKey(r.IntN(200)), bytes.Repeat([]byte{byte(i)}, r.IntN(300))
			switch r.IntN(8) {
			case 0:
				must(t, db.Delete(key))
			case 1:
				must(t, db.Default().PutExpiring(key, value, time.Now().Add(time.Hour)))
			case 2:
				must(t, db.Default().PutExpiring(key, value, time.Unix(1, 0)))
			case 3:
				must(t, db.Put(key, bytes.Repeat(value, 100)))
			case 4:
				k := r.IntN(200)
				must(t, db.DeleteRange(readerKey(k), readerKey(k+3)))
			default:
				must(t, db.Put(key, value))
			}
		}
	}
}

// A reader finds what the database held when it was opened, one key at a time, several at a time, and in order.
func TestAReaderShowsOneMoment(t *testing.T) {
	states(t, func(db *DB, from, to int) { fillReader(t, db)(from*5, to*5) }, func(t *testing.T, db *DB) {
		var r Reader
		ks := db.Default()
		for round := range 3 {
			must(t, r.Open(db, ks))
			var keys, want List
			var first []byte
			for i := range 200 {
				value, err := db.Get(readerKey(i))
				if err != nil {
					wantErr(t, "a key that is not there", err, ErrNotFound)
					continue
				}
				if first == nil {
					first = readerKey(i)
				}
				keys.Append(readerKey(i))
				want.Append(value)
			}
			fillReader(t, db)(1000*round, 1000*round+100)
			checkReader(t, &r, ks, &keys, &want)
			must(t, db.Checkpoint(context.Background()))
			checkReader(t, &r, ks, &keys, &want)
			it := r.Iter(ks, first, nil)
			if !it.Next() || !bytes.Equal(it.Key(), first) || it.Prev() {
				t.Errorf("the first pair at or above the lower bound: %q, %v", it.Key(), it.Err())
			}
		}
		r.Close()
		wantErr(t, "a closed reader", r.GetMany(new(List), ks, new(List), 0, 0), ErrClosed)
	})
}

func checkReader(t *testing.T, r *Reader, ks *Keyspace, keys, want *List) {
	t.Helper()
	var got List
	must(t, r.GetMany(&got, ks, keys, 0, keys.Len()))
	it := r.Iter(ks, readerKey(0), []byte("l"))
	for i := range keys.Len() {
		one, err := r.GetTo(nil, ks, keys.At(i))
		must(t, err)
		if !it.Next() {
			t.Fatalf("an iterator ends before %q: %v", keys.At(i), it.Err())
		}
		for what, value := range map[string][]byte{"GetTo": one, "GetMany": got.At(i), "Iter": it.Value()} {
			if !bytes.Equal(value, want.At(i)) {
				t.Fatalf("%s of %q: %d bytes, want %d", what, keys.At(i), len(value), len(want.At(i)))
			}
		}
	}
	if it.Next() || it.Err() != nil {
		t.Fatalf("an iterator goes on at %q, %v", it.Key(), it.Err())
	}
}

// GetMany stops where a key is missing, and says how far it came.
func TestGetManyStopsAtAMissingKey(t *testing.T) {
	db := openMem(t, memfs.New(), Options{})
	fillReaderPlain(t, db, 40)
	for _, settled := range []bool{false, true} {
		if settled {
			must(t, db.Checkpoint(context.Background()))
		}
		for _, missing := range []int{0, 1, 15, 16, 17, 39} {
			var keys, got List
			for i := range 40 {
				if i == missing {
					keys.Append([]byte("none"))
				}
				keys.Append(readerKey(i))
			}
			var r Reader
			must(t, r.Open(db))
			wantErr(t, fmt.Sprint("missing: ", missing), r.GetMany(&got, db.Default(), &keys, 0, keys.Len()), ErrNotFound)
			if got.Len() != missing {
				t.Errorf("%d values before missing key %d", got.Len(), missing)
			}
			r.Close()
		}
	}
}

func fillReaderPlain(t *testing.T, db *DB, n int) {
	for i := range n {
		must(t, db.Put(readerKey(i), readerKey(i)))
	}
}

// A keyspace that is gone when a reader is opened cannot be read; one that goes later can. A database that is closed cannot.
func TestAReaderOutlivesADrop(t *testing.T) {
	db := openMem(t, memfs.New(), Options{})
	ks, err := db.Keyspace("going", nil)
	must(t, err)
	must(t, ks.Put([]byte("k"), []byte("v")))
	var r Reader
	must(t, r.Open(db, ks))
	must(t, db.DropKeyspace("going"))
	if v, err := r.GetTo(nil, ks, []byte("k")); string(v) != "v" {
		t.Errorf("%q, %v", v, err)
	}
	wantErr(t, "opened after the drop", r.Open(db, ks), ErrDropped)
	must(t, r.Open(db))
	it := r.Iter(db.Default(), nil, nil)
	must(t, db.Close())
	if it.Next() {
		t.Error("an iterator goes on after Close")
	}
	wantErr(t, "after Close", it.Err(), ErrClosed)
	_, err = r.GetTo(nil, db.Default(), []byte("k"))
	wantErr(t, "after Close", err, ErrClosed)
	r.Close()
	r.Close()
}

// Absent agrees with Has, whatever became of a key, in memory and settled.
func TestAbsentAgreesWithHas(t *testing.T) {
	db := openMem(t, memfs.New(), Options{})
	ks := db.Default()
	var keys [][]byte
	for i := range 200 {
		key := readerKey(i)
		keys = append(keys, key)
		if i%3 > 0 {
			must(t, ks.Put(key, bytes.Repeat([]byte("v"), i*i))) // the longest ones lie apart
		}
	}
	must(t, ks.DeleteRange(readerKey(50), readerKey(60)))
	check := func() {
		t.Helper()
		var r Reader
		must(t, r.Open(db))
		defer r.Close()
		absent := make([]bool, len(keys))
		must(t, r.Absent(absent, ks, keys))
		for i, key := range keys {
			if there, err := r.db.Default().Has(key); err != nil || there == absent[i] {
				t.Errorf("%q: there %v, absent %v, %v", key, there, absent[i], err)
			}
		}
	}
	check()
	must(t, db.Checkpoint(context.Background()))
	check()
	for i := 0; i < 200; i += 7 {
		must(t, ks.Delete(readerKey(i)))
	}
	check()
	must(t, db.Checkpoint(context.Background()))
	check()
	var r Reader
	wantErr(t, "a closed reader", r.Absent(make([]bool, 1), ks, keys[:1]), ErrClosed)
}

// What a reader holds is read again at the same moment, by way of a snapshot, whatever has been written, settled and dropped since.
func TestAReaderHoldsItsMoment(t *testing.T) {
	db, err := Open("db", &Options{FS: memfs.New()})
	must(t, err)
	defer func() { must(t, db.Close()) }()
	ks, err := db.Keyspace("some", nil)
	must(t, err)
	must(t, ks.Put([]byte("a"), []byte("then")))
	var r Reader
	if _, err := r.Hold(); err != ErrClosed {
		t.Errorf("a closed reader holds something: %v", err)
	}
	must(t, r.Open(db, ks))
	held, err := r.Hold()
	must(t, err)
	held = held.In(ks)
	r.Close()
	must(t, ks.Put([]byte("a"), []byte("now")))
	must(t, db.Checkpoint(context.Background()))
	must(t, db.DropKeyspace("some"))
	for range 2 {
		must(t, r.OpenAt(held))
		value, err := r.GetTo(nil, ks, []byte("a"))
		must(t, err)
		if string(value) != "then" {
			t.Errorf("%q", value)
		}
	}
	must(t, held.Close())
	if value, err := r.GetTo(nil, ks, []byte("a")); err != nil || string(value) != "then" {
		t.Errorf("a reader after the snapshot at which it was opened: %q, %v", value, err)
	}
	wantErr(t, "a reader at a closed snapshot", r.OpenAt(held), ErrClosed)
}
