package pando

import (
	"errors"
	"fmt"
	"testing"

	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// A transaction that could not read back what it has written, and moved to a file, reads it when the device gives it back: it does not go on
// as if that were not there.
func TestTransactionReadsBackAfterAFaultThatHasPassed(t *testing.T) {
	faults := faultfs.New(memfs.New())
	db := openMem(t, faults, Options{})
	tx, err := db.Begin(true)
	must(t, err)
	defer tx.Rollback()
	const records = 500
	key := func(i int) []byte { return fmt.Appendf(nil, "%03d", i) }
	for i := range records {
		must(t, tx.Put(key(i), make([]byte, 1000)))
	}
	faults.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpReadAt), Name: "*.spill", Skip: 1})
	if _, err := tx.Get(key(0)); !errors.Is(err, faultfs.ErrInjected) {
		t.Fatal(err)
	}
	for i := range records {
		if _, err := tx.Get(key(i)); err != nil {
			t.Fatalf("key %d: %v", i, err)
		}
	}
}

// An iterator of a transaction goes on showing what has been taken back since, and reads behind it do not.
func TestIteratorOverWritesThatWereTakenBack(t *testing.T) {
	db := openMem(t, memfs.New(), Options{})
	tx, err := db.Begin(true)
	must(t, err)
	defer tx.Rollback()
	var it *Iterator
	for i := range 100 {
		before := tx.Savepoint()
		must(t, tx.Put([]byte("k"), []byte{byte(i)}))
		if i == 50 {
			it = tx.Iter(nil)
			defer it.Close()
		}
		if v, err := tx.Get([]byte("k")); err != nil || v[0] != byte(i) {
			t.Fatal(v, err)
		}
		must(t, tx.RollbackTo(before))
		_, err := tx.Get([]byte("k"))
		wantErr(t, "what was taken back", err, ErrNotFound)
	}
	if !it.Next() || string(it.Key()) != "k" || it.Value()[0] != 50 || it.Next() || it.Err() != nil {
		t.Errorf("the iterator shows %q, %v", it.Key(), it.Err())
	}
	must(t, it.Close())
}
