package pando

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// An iterator that is stopped by somebody else while it stands on a pair goes on showing it, and tells why it does not move on; where the
// value would have to be read it tells that at once, for it would pass for an empty one.
func TestStoppedIteratorShowsItsPair(t *testing.T) {
	const apart, inline = "apart", "inline"
	for _, settled := range []bool{false, true} {
		for _, key := range []string{apart, inline} {
			for name, stop := range map[string]func(*DB, *Snapshot) error{
				"snapshot": func(_ *DB, s *Snapshot) error { return s.Close() },
				"database": func(db *DB, _ *Snapshot) error { return db.Close() },
			} {
				db := openMem(t, memfs.New(), Options{})
				must(t, db.Put([]byte(apart), bytes.Repeat([]byte("v"), 5000)))
				must(t, db.Put([]byte(inline), []byte("v")))
				if settled {
					must(t, db.Checkpoint(context.Background()))
				}
				snap := db.Snapshot()
				it := snap.Iter(nil)
				if !it.SeekGE([]byte(key)) {
					t.Fatal(it.Err())
				}
				must(t, stop(db, snap))
				v := it.Value()
				switch err := it.Err(); {
				case string(it.Key()) != key:
					t.Errorf("%s, %s, settled %t: the key is %q", name, key, settled, it.Key())
				case key == apart && (v != nil || !errors.Is(err, ErrClosed)), key == inline && (string(v) != "v" || err != nil):
					t.Errorf("%s, %s, settled %t: the value is %q, the error %v", name, key, settled, v, err)
				}
				if it.Next() || !errors.Is(it.Err(), ErrClosed) {
					t.Errorf("%s, %s, settled %t: it goes on, with %q, %v", name, key, settled, it.Key(), it.Err())
				}
				must(t, it.Close())
				must(t, snap.Close())
			}
		}
	}
}

// What a transaction has written itself stays as long as an iterator shows it, and that it ends or takes it back does not change it; others
// have their own meanwhile.
func TestIteratorOfAnEndedTransactionShowsItsPair(t *testing.T) {
	for name, end := range map[string]func(*Tx, Savepoint) error{
		"rollback":  func(tx *Tx, _ Savepoint) error { return tx.Rollback() },
		"commit":    func(tx *Tx, _ Savepoint) error { return tx.Commit() },
		"savepoint": (*Tx).RollbackTo,
	} {
		db := openMem(t, memfs.New(), Options{})
		write := func(tx *Tx, what string) {
			for i := range 100 {
				must(t, tx.Put(fmt.Append(nil, what, " key ", i), fmt.Append(nil, what, " value ", i)))
			}
		}
		tx, err := db.Begin(true)
		must(t, err)
		before := tx.Savepoint()
		write(tx, "first")
		it := tx.Iter(nil)
		for it.Next() && string(it.Key()) != "first key 50" {
		}
		must(t, end(tx, before))
		for range 3 {
			other, err := db.Begin(true)
			must(t, err)
			write(other, "other")
			_, err = other.Get([]byte("other key 1"))
			must(t, err)
			must(t, other.Rollback())
			must(t, db.Checkpoint(t.Context()))
		}
		if string(it.Key()) != "first key 50" || string(it.Value()) != "first value 50" {
			t.Errorf("%s: it shows %q, %q, %v", name, it.Key(), it.Value(), it.Err())
		}
		must(t, it.Close())
		_ = tx.Rollback() // where it has not ended
		must(t, db.Close())
	}
}

// A walk that could not read a value goes on in neither direction.
func TestWalkEndsBehindAValueThatCannotBeRead(t *testing.T) {
	for name, move := range map[string]func(*Iterator) bool{
		"Next": (*Iterator).Next, "Prev": (*Iterator).Prev,
		"NextWanted": func(it *Iterator) bool { return it.NextWanted(func([]byte) bool { return true }) },
	} {
		fsys := faultfs.New(memfs.New())
		db := openMem(t, fsys, Options{})
		for _, key := range []string{"a", "b", "c", "e", "f", "g"} {
			must(t, db.Put([]byte(key), []byte("v")))
		}
		must(t, db.Put([]byte("d"), bytes.Repeat([]byte("v"), 5000)))
		must(t, db.Checkpoint(context.Background()))
		it := db.Iter(nil)
		if !it.SeekGE([]byte("d")) {
			t.Fatal(it.Err())
		}
		fsys.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpReadAt), Times: -1})
		if v := it.Value(); v != nil || !errors.Is(it.Err(), faultfs.ErrInjected) {
			t.Fatalf("%d bytes, %v", len(v), it.Err())
		}
		if move(it) {
			t.Errorf("%s goes on to %q", name, it.Key())
		}
		must(t, it.Close())
		fsys.Set()
	}
}
