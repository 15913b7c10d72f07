package corrupt

import (
	"errors"
	"fmt"
	"testing"

	"github.com/pandodb/pando"
)

// A walk ends at damage, with an error: what comes behind it must not be shown as if it came next, only because it has not settled yet.
func TestWalksEndAtDamage(t *testing.T) {
	fsys, o, db := uncompressed(t)
	const n = 2000
	key := func(i int) []byte { return fmt.Appendf(nil, "key%05d", i) }
	value := func(i int) []byte { return append(distinct(i)[:60:60], key(i)...) }
	for i := range n {
		must(t, db.Put(key(i), value(i)))
	}
	must(t, db.Checkpoint(t.Context()))
	must(t, db.Close())
	if damageValues(t, fsys, value(1000)) != 1 {
		t.Fatal("the value is not where it was looked for")
	}
	db, err := pando.Open(dir, o)
	must(t, err)
	defer db.Close()
	if _, err := db.Get(key(1000)); !errors.Is(err, pando.ErrCorrupt) {
		t.Fatal(err)
	}
	walk := func(what string, it *pando.Iterator, ok bool, next func() bool, step int, at int) {
		t.Helper()
		defer it.Close()
		for ; ok; ok = next() {
			if string(it.Key()) != string(key(at)) {
				t.Errorf("%s: shows %s as what comes next, where %s is; Err: %v", what, it.Key(), key(at), it.Err())
				return
			}
			at += step
		}
		if !errors.Is(it.Err(), pando.ErrCorrupt) {
			t.Errorf("%s: ends at %d: %v", what, at, it.Err())
		}
	}
	all := func(state string) {
		it := db.Iter(nil)
		walk(state+": forward", it, it.First(), it.Next, 1, 0)
		it = db.Iter(nil)
		walk(state+": backward", it, it.Last(), it.Prev, -1, n-1)
		it = db.Iter(nil)
		walk(state+": sought", it, it.SeekGE(key(1000)), it.Next, 1, 1000)
		it = db.Iter(nil)
		walk(state+": sought below", it, it.SeekLT(key(1001)), it.Prev, -1, 1000)
	}
	all("settled")
	must(t, db.Put(key(100), value(100)))
	must(t, db.Put(key(1900), value(1900)))
	all("beside a memtable")
	must(t, db.DeleteRange([]byte("x"), []byte("y")))
	all("beside a memtable with a range")
}
