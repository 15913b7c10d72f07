package pando

import (
	"context"
	"fmt"
	"testing"

	"github.com/pandodb/pando/vfs/memfs"
)

// An upper bound that is empty but not nil makes an empty walk, of a reader too.
func TestReaderWithAnEmptyUpperBound(t *testing.T) {
	db := openMem(t, memfs.New(), Options{})
	must(t, db.Put([]byte("a"), nil))
	for range 2 {
		for _, lower := range [][]byte{nil, {}} {
			var r Reader
			must(t, r.Open(db))
			if it := r.Iter(db.Default(), lower, []byte{}); it.Next() || it.Last() || it.Err() != nil {
				t.Errorf("at %q, %v", it.Key(), it.Err())
			}
			if it := r.Iter(db.Default(), lower, nil); !it.Next() {
				t.Errorf("an open bound: %v", it.Err())
			}
			r.Close()
		}
		must(t, db.Checkpoint(context.Background()))
	}
}

// The bounds of a reader's next walk may be where its iterator stands, though that is closed by then.
func TestReaderGoesOnWhereItsIteratorStands(t *testing.T) {
	db := openMem(t, memfs.New(), Options{})
	for i := range 100 {
		must(t, db.Put(fmt.Appendf(nil, "key%02d", i), []byte("v")))
	}
	for range 2 {
		var r Reader
		must(t, r.Open(db))
		it := r.Iter(db.Default(), nil, nil)
		for i := 50; i < 90; i += 7 {
			want := fmt.Sprintf("key%02d", i)
			if !it.SeekGE([]byte(want)) {
				t.Fatal(it.Err())
			}
			if it = r.Iter(db.Default(), it.Key(), nil); !it.Next() || string(it.Key()) != want {
				t.Errorf("at %q instead of %s, %v", it.Key(), want, it.Err())
			}
			if it = r.Iter(db.Default(), nil, it.Key()); !it.Prev() || string(it.Key()) != fmt.Sprintf("key%02d", i-1) {
				t.Errorf("at %q, before %s, %v", it.Key(), want, it.Err())
			}
			it = r.Iter(db.Default(), nil, nil)
		}
		r.Close()
		must(t, db.Checkpoint(context.Background()))
	}
}
