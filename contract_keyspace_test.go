package pando

import (
	"context"
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
