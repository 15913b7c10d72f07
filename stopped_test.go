package pando

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// An iterator that was stopped by somebody else while it stood on a pair says so where it cannot show that any more: without a word its
// value would pass for an empty one.
func TestPairOfAStoppedIteratorIsAnError(t *testing.T) {
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
				if it.Value() == nil && !errors.Is(it.Err(), ErrClosed) {
					t.Errorf("%s, %s, settled %t: no value, and the error is %v", name, key, settled, it.Err())
				}
				if it.Key() == nil && !errors.Is(it.Err(), ErrClosed) {
					t.Errorf("%s, %s, settled %t: no key, and the error is %v", name, key, settled, it.Err())
				}
				must(t, it.Close())
				must(t, snap.Close())
			}
		}
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
