package pando

import (
	"testing"

	"github.com/pandodb/pando/vfs/memfs"
)

// TestOtherDatabase passes what belongs to one database to another, in which a keyspace has the same number: nothing of that is read or
// written.
func TestOtherDatabase(t *testing.T) {
	db, other := openMem(t, memfs.New(), Options{}), openMem(t, memfs.New(), Options{})
	here, err := db.Keyspace("here", nil)
	must(t, err)
	must(t, here.Put([]byte("k"), []byte("v")))
	there, err := other.Keyspace("there", nil)
	must(t, err)
	snap := db.Snapshot()
	reading, err := db.Begin(false)
	must(t, err)
	writing, err := db.Begin(true)
	must(t, err)
	var reader Reader
	must(t, reader.Open(db, here))
	batch, foreign := db.NewBatch(), other.NewBatch()
	must(t, foreign.Put([]byte("k"), []byte("other")))
	k := []byte("k")
	second := func(_ any, err error) error { return err }
	for what, err := range map[string]error{
		"snapshot":    second(snap.In(there).Get(k)),
		"iterator":    snap.In(there).Iter(nil).Err(),
		"count":       second(snap.In(there).Count(nil, nil)),
		"tx get":      second(reading.In(there).Get(k)),
		"tx has":      second(writing.In(there).Has(k)),
		"tx iter":     writing.In(there).Iter(nil).Err(),
		"tx put":      writing.In(there).Put(k, nil),
		"tx delete":   writing.In(there).Delete(k),
		"tx range":    writing.In(there).DeleteRange(nil, nil),
		"update":      db.Update(func(tx *Tx) error { return tx.In(there).Put(k, make([]byte, 5000)) }),
		"reader":      second(reader.GetTo(nil, there, k)),
		"batch put":   batch.In(there).Put(k, nil),
		"batch":       db.Write(batch),
		"other batch": db.Write(foreign),
	} {
		wantErr(t, what, err, ErrOtherDatabase)
	}
	wantErr(t, "open a reader", reader.Open(db, here, there), ErrOtherDatabase)
	must(t, writing.Commit())
	must(t, reading.Rollback())
	must(t, snap.Close())
	if v, err := here.Get(k); err != nil || string(v) != "v" {
		t.Errorf("the keyspace with that number: %q, %v", v, err)
	}
	if n, err := other.Count(nil, nil); err != nil || n != 0 {
		t.Errorf("the other database has %d keys, %v", n, err)
	}
}
