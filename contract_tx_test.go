package pando

import (
	"errors"
	"testing"

	"github.com/pandodb/pando/vfs/memfs"
)

// begin starts a transaction that writes.
func begin(t *testing.T, db *DB) *Tx {
	t.Helper()
	tx, err := db.Begin(true)
	must(t, err)
	return tx
}

// TestUpdateThatFails leaves nothing behind, in any keyspace, when the function returns an error or panics.
func TestUpdateThatFails(t *testing.T) {
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
	for _, ks := range []*Keyspace{db.Default(), other} {
		if n, err := ks.Count(nil, nil); n != 0 || err != nil {
			t.Errorf("%s: %d pairs of transactions that were rolled back, %v", ks.Name(), n, err)
		}
	}
}

// TestUpdateThatFindsItsTransactionEnded: who ends it within the function is told so, and what was committed there is there.
func TestUpdateThatFindsItsTransactionEnded(t *testing.T) {
	db := openMem(t, memfs.New(), Options{})
	for name, end := range map[string]func(tx *Tx) error{"commit": (*Tx).Commit, "rollback": (*Tx).Rollback} {
		wantErr(t, name, db.Update(func(tx *Tx) error {
			must(t, tx.Put([]byte(name), nil))
			return end(tx)
		}), ErrTxDone)
		if there, err := db.Has([]byte(name)); there != (name == "commit") || err != nil {
			t.Errorf("%s: there %v, %v", name, there, err)
		}
	}
}

// TestIteratorsOfATransaction see what was written before they were made, and end with the transaction.
func TestIteratorsOfATransaction(t *testing.T) {
	db := openMem(t, memfs.New(), Options{})
	var late *Iterator
	must(t, db.Update(func(tx *Tx) error {
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
}

func TestTransactionThatIsDone(t *testing.T) {
	db := openMem(t, memfs.New(), Options{})
	var kept *Tx
	must(t, db.Update(func(tx *Tx) error {
		kept = tx
		return tx.Put([]byte("a"), []byte("1"))
	}))
	_, err := kept.Get([]byte("a"))
	wantErr(t, "get", err, ErrTxDone)
	wantErr(t, "put", kept.Put(nil, nil), ErrTxDone)
	wantErr(t, "commit", kept.Commit(), ErrTxDone)
	must(t, kept.Rollback())
}

func TestViewDoesNotWrite(t *testing.T) {
	db := openMem(t, memfs.New(), Options{})
	wantErr(t, "write in a view", db.View(func(tx *Tx) error { return tx.Delete(nil) }), ErrReadOnly)
}

func TestSecondCommitterConflicts(t *testing.T) {
	db := openMem(t, memfs.New(), Options{})
	must(t, db.Put([]byte("a"), []byte("1")))
	x, y := begin(t, db), begin(t, db)
	for _, tx := range []*Tx{x, y} {
		_, err := tx.Get([]byte("a"))
		must(t, err)
		must(t, tx.Put([]byte("sum"), []byte("x")))
	}
	must(t, x.Commit())
	wantErr(t, "second committer", y.Commit(), ErrConflict)
}

// TestWriteSkewConflicts commits two transactions of which each read what the other wrote.
func TestWriteSkewConflicts(t *testing.T) {
	db := openMem(t, memfs.New(), Options{})
	z, w := begin(t, db), begin(t, db)
	_, err := z.Count([]byte("p"), []byte("q"))
	must(t, err)
	must(t, z.Put([]byte("r1"), nil))
	_, err = w.Count([]byte("r"), []byte("s"))
	must(t, err)
	must(t, w.Put([]byte("p1"), nil))
	must(t, z.Commit())
	wantErr(t, "write skew", w.Commit(), ErrConflict)
}

func TestSavepointOfAnotherTransaction(t *testing.T) {
	db := openMem(t, memfs.New(), Options{})
	foreign := begin(t, db)
	p := foreign.Savepoint()
	must(t, foreign.Rollback())
	wantErr(t, "savepoint of a transaction that is done", foreign.RollbackTo(p), ErrTxDone)
	must(t, db.Update(func(tx *Tx) error {
		wantErr(t, "savepoint of another transaction", tx.RollbackTo(p), ErrSavepoint)
		return nil
	}))
}

// What a transaction held is used again by the next one, which its handle then cannot touch.
func TestDoneTransactionLeavesTheNextAlone(t *testing.T) {
	db := openMem(t, memfs.New(), Options{})
	other, err := db.Keyspace("other", nil)
	must(t, err)
	key := []byte("key")
	for round := range 20 {
		old := begin(t, db)
		p := old.Savepoint()
		must(t, old.Put(key, []byte("old")))
		must(t, old.In(other).Put(key, make([]byte, 5000)))
		must(t, old.Note([]byte("note")))
		if got, err := old.Get(key); string(got) != "old" || err != nil {
			t.Fatal(got, err)
		}
		walk := old.Iter(nil)
		must(t, old.Rollback())

		next := begin(t, db)
		_, err := next.Get(key)
		wantErr(t, "get what the one before wrote", err, ErrNotFound)
		wantErr(t, "put", old.Put(key, nil), ErrTxDone)
		wantErr(t, "delete", old.Delete(key), ErrTxDone)
		wantErr(t, "roll back to a savepoint", old.RollbackTo(p), ErrTxDone)
		wantErr(t, "roll back to a savepoint taken too late", old.RollbackTo(old.Savepoint()), ErrTxDone)
		must(t, next.Put([]byte{byte(round)}, nil))
		if walk.Next() {
			t.Error("an iterator outlives its transaction")
		}
		_, err = next.Get(key)
		wantErr(t, "get what the one before wrote", err, ErrNotFound)
		must(t, old.Rollback())
		must(t, next.Commit())
	}
	if n, err := db.Count(nil, nil); n != 20 || err != nil {
		t.Errorf("%d pairs, %v, want 20", n, err)
	}
	if n, err := other.Count(nil, nil); n != 0 || err != nil {
		t.Errorf("%d pairs in the other keyspace, %v", n, err)
	}
}

func TestSavepointOfAView(t *testing.T) {
	db := openMem(t, memfs.New(), Options{})
	must(t, db.View(func(tx *Tx) error {
		wantErr(t, "roll back a view", tx.RollbackTo(tx.Savepoint()), ErrReadOnly)
		return nil
	}))
}

// A keyspace that is dropped takes what a transaction has read of it along: that is a conflict, as any other change.
func TestDroppedKeyspaceIsAConflict(t *testing.T) {
	db := openMem(t, memfs.New(), Options{})
	k, err := db.Keyspace("k", nil)
	must(t, err)
	must(t, k.Put([]byte("x"), nil))
	for what, read := range map[string]func(tx *Tx) error{
		"a point": func(tx *Tx) error { _, err := tx.In(k).Get([]byte("x")); return err },
		"a range": func(tx *Tx) error { _, err := tx.In(k).Count(nil, nil); return err },
	} {
		tx, err := db.Begin(true)
		must(t, err)
		must(t, read(tx))
		must(t, tx.Put([]byte("k has"), []byte("x")))
		must(t, db.DropKeyspace("k"))
		wantErr(t, what, tx.Commit(), ErrConflict)
		k, err = db.Keyspace("k", nil)
		must(t, err)
		must(t, k.Put([]byte("x"), nil))
	}
}

// What a transaction has taken back is in no keyspace that must still be there. It has written there, which makes a conflict: whoever tries
// again finds out that there is none.
func TestRollbackToForgetsKeyspaces(t *testing.T) {
	db := openMem(t, memfs.New(), Options{})
	k, err := db.Keyspace("k", nil)
	must(t, err)
	tx, err := db.Begin(true)
	must(t, err)
	must(t, tx.Put([]byte("a"), nil))
	p := tx.Savepoint()
	must(t, tx.In(k).Put([]byte("b"), nil))
	must(t, tx.RollbackTo(p))
	must(t, db.DropKeyspace("k"))
	wantErr(t, "commit", tx.Commit(), ErrConflict)
}
