package pando

import (
	"fmt"
	"testing"

	"github.com/pandodb/pando/vfs/memfs"
)

// A savepoint of a future that was rolled back is refused, also when the transaction has written as much again since: going back there
// would leave a part of a command.
func TestSavepointOfAFutureThatWasRolledBack(t *testing.T) {
	fsys := memfs.New()
	db := openMem(t, fsys, Options{})
	other, err := db.Keyspace("other", nil)
	must(t, err)
	must(t, db.Update(func(tx *Tx) error {
		must(t, tx.Put([]byte("a"), []byte("before")))
		first := tx.Savepoint()
		must(t, tx.Put([]byte("b"), []byte("forgotten")))
		must(t, tx.In(other).Put([]byte("b"), []byte("forgotten")))
		second := tx.Savepoint()
		must(t, tx.RollbackTo(first))
		wantErr(t, "at once", tx.RollbackTo(second), ErrSavepoint)
		must(t, tx.Put([]byte("c"), make([]byte, 100)))
		wantErr(t, "when as much was written", tx.RollbackTo(second), ErrSavepoint)
		must(t, tx.RollbackTo(first)) // which one may come back to as often as one likes
		must(t, tx.Put([]byte("d"), []byte("behind")))
		third := tx.Savepoint()
		must(t, tx.Put([]byte("e"), nil))
		wantErr(t, "when there is another one", tx.RollbackTo(second), ErrSavepoint)
		return tx.RollbackTo(third)
	}))
	must(t, db.Close())
	db = openMem(t, fsys, Options{})
	if got := pairsOf(db.Range(nil, nil)); got != " a=before d=behind" || db.Err() != nil {
		t.Errorf("after the commit:%s, %v", got, db.Err())
	}
}

// Savepoints may be taken at the same place, and go back in any order that leads to the past.
func TestSavepointsWithinEachOther(t *testing.T) {
	db := openMem(t, memfs.New(), Options{})
	must(t, db.Update(func(tx *Tx) error {
		var points []Savepoint
		for i := range 6 {
			points = append(points, tx.Savepoint(), tx.Savepoint())
			must(t, tx.Put(fmt.Append(nil, i), nil))
		}
		for _, at := range []int{11, 10, 6, 5, 5, 0} {
			must(t, tx.RollbackTo(points[at]))
			if n, err := tx.Count(nil, nil); n != int64(at/2) || err != nil {
				t.Errorf("back at %d: %d records, %v", at, n, err)
			}
		}
		wantErr(t, "one that was rolled back", tx.RollbackTo(points[1]), ErrSavepoint)
		return nil
	}))
}

// What a transaction looked through before it went back is given up, as soon as no iterator looks through it any more: those that do are not
// disturbed.
func TestRollingBackGivesMemoryBack(t *testing.T) {
	db := openMem(t, memfs.New(), Options{})
	must(t, db.Update(func(tx *Tx) error {
		must(t, tx.Put([]byte("a"), nil))
		for i := range 20 {
			point := tx.Savepoint()
			must(t, tx.Put([]byte("b"), fmt.Append(nil, i)))
			if there, err := tx.Has([]byte("b")); !there || err != nil {
				t.Errorf("round %d: %t, %v", i, there, err)
			}
			var it *Iterator
			if i%2 == 0 {
				it = tx.Iter(nil)
			}
			forgotten := tx.state.overlay
			must(t, tx.RollbackTo(point))
			if n, err := tx.Count(nil, nil); n != 1 || err != nil {
				t.Errorf("round %d: %d records, %v", i, n, err)
			}
			if it != nil {
				if !it.Last() || string(it.Key()) != "b" || string(it.Value()) != fmt.Sprint(i) || !it.Prev() || it.Prev() {
					t.Errorf("round %d: %q %q, %v", i, it.Key(), it.Value(), it.Err())
				}
				must(t, it.Close())
			}
			if len(forgotten.Layers()) > 0 {
				t.Errorf("round %d: what was forgotten is kept", i)
			}
		}
		return nil
	}))
}

// A read of a transaction that fails before all of its writes are where reads look, for want of memory say, leaves nothing there that a
// RollbackTo has taken back since: those before the failure were once seen by all later reads.
func TestRollbackBehindAReadThatFailed(t *testing.T) {
	db := openMem(t, memfs.New(), Options{})
	tx, err := db.Begin(true)
	must(t, err)
	defer tx.Rollback()
	must(t, tx.Put([]byte("a"), []byte("kept")))
	before := tx.Savepoint()
	must(t, tx.Put([]byte("a"), []byte("taken back")))
	must(t, tx.Put([]byte("b"), []byte("taken back")))
	at := len(tx.state.enc.Payload())
	must(t, tx.Put([]byte("c"), nil))
	tx.state.enc.Payload()[at] = 0xff // no command: to read it fails at will, which to take memory does not
	if _, err := tx.Get([]byte("a")); err == nil {
		t.Fatal("the read did not fail")
	}
	must(t, tx.RollbackTo(before))
	if got := pairsOf(tx.Range(nil, nil)); got != " a=kept" || tx.Err() != nil {
		t.Errorf("behind the rollback:%s, %v", got, tx.Err())
	}
	must(t, tx.Put([]byte("d"), nil))
	if got := pairsOf(tx.Range(nil, nil)); got != " a=kept d=" || tx.Err() != nil {
		t.Errorf("behind another write:%s, %v", got, tx.Err())
	}
}
