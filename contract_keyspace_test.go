package pando

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/pandodb/pando/vfs/memfs"
)

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

// TestOldHandleOfADroppedKeyspace reads in moments after a drop, which once answered with what had not been given back yet, or with
// nothing, and in those before it.
func TestOldHandleOfADroppedKeyspace(t *testing.T) {
	for _, settled := range []bool{false, true} {
		db := openMem(t, memfs.New(), Options{})
		old, err := db.Keyspace("name", nil)
		must(t, err)
		must(t, old.Put([]byte("k"), []byte("old")))
		before := db.Snapshot()
		began, err := db.Begin(false)
		must(t, err)
		must(t, db.DropKeyspace("name"))
		fresh, err := db.Keyspace("name", nil)
		must(t, err)
		must(t, fresh.Put([]byte("k"), []byte("new")))
		if settled {
			must(t, db.Checkpoint(context.Background()))
		}
		after := db.Snapshot()
		later, err := db.Begin(false)
		must(t, err)
		var reader Reader
		must(t, reader.Open(db, fresh))
		for what, fn := range map[string]func() error{
			"get": func() error { _, err := after.In(old).Get([]byte("k")); return err },
			"has": func() error { _, err := after.In(old).Has([]byte("k")); return err },
			"iter": func() error {
				it := after.In(old).Iter(nil)
				defer it.Close()
				it.First()
				return it.Err()
			},
			"count":    func() error { _, err := after.In(old).Count(nil, nil); return err },
			"nth":      func() error { _, _, err := after.In(old).Nth(nil, nil, 0); return err },
			"tx get":   func() error { _, err := later.In(old).Get([]byte("k")); return err },
			"tx has":   func() error { _, err := later.In(old).Has([]byte("k")); return err },
			"tx iter":  func() error { return later.In(old).Iter(nil).Err() },
			"tx count": func() error { _, err := later.In(old).Count(nil, nil); return err },
			"tx nth":   func() error { _, _, err := later.In(old).Nth(nil, nil, 0); return err },
			"reader":   func() error { _, err := reader.GetTo(nil, old, []byte("k")); return err },
		} {
			wantErr(t, what, fn(), ErrDropped)
		}
		for what, fn := range map[string]func() ([]byte, error){
			"snapshot": func() ([]byte, error) { return before.In(old).Get([]byte("k")) },
			"tx":       func() ([]byte, error) { return began.In(old).Get([]byte("k")) },
		} {
			if v, err := fn(); err != nil || string(v) != "old" {
				t.Errorf("%s from before the drop: %q, %v", what, v, err)
			}
		}
		for what, fn := range map[string]func() ([]byte, error){
			"snapshot": func() ([]byte, error) { return after.In(fresh).Get([]byte("k")) },
			"tx":       func() ([]byte, error) { return later.In(fresh).Get([]byte("k")) },
		} {
			if v, err := fn(); err != nil || string(v) != "new" {
				t.Errorf("%s of the keyspace that was made again: %q, %v", what, v, err)
			}
		}
		reader.Close()
		must(t, before.Close())
		must(t, after.Close())
		must(t, began.Rollback())
		must(t, later.Rollback())
	}
}

// TestLeafBytesThatCannotBe asks for leaves beyond their bounds.
func TestLeafBytesThatCannotBe(t *testing.T) {
	db := openMem(t, memfs.New(), Options{})
	for _, n := range []int{-1, 1, 1 << 20} {
		_, err := db.Keyspace("new", &KeyspaceOptions{LeafBytes: n})
		wantErr(t, "keyspace", err, ErrOptions)
	}
}

// readerOf reads what a function says.
type readerOf func(p []byte) (int, error)

func (r readerOf) Read(p []byte) (int, error) { return r(p) }

// A value that comes slowly may find its keyspace dropped when all of it is there: that is told, as it would have been before.
func TestDropWhileAValueComes(t *testing.T) {
	db := openMem(t, memfs.New(), Options{})
	for _, length := range []int{10, 5000, 3 << 20} {
		ks, err := db.Keyspace("gone", nil)
		must(t, err)
		value := bytes.NewReader(make([]byte, length))
		err = ks.PutReader([]byte("key"), readerOf(func(p []byte) (int, error) {
			n, err := value.Read(p)
			if err == io.EOF {
				must(t, db.DropKeyspace("gone"))
			}
			return n, err
		}))
		wantErr(t, fmt.Sprintf("a value of %d bytes", length), err, ErrDropped)
	}
}
