package pando

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// A transaction that could not read what it has written to its file is told so, and does not answer without that the next time.
func TestOwnWritesThatCannotBeReadForAWhile(t *testing.T) {
	for failing := range 3 { // the call that fails: a file is opened, and its frames are read in two calls each
		fsys := faultfs.New(memfs.New())
		db := openMem(t, fsys, Options{})
		must(t, db.Put([]byte("spilled 0"), []byte("old")))
		must(t, db.Update(func(tx *Tx) error {
			must(t, fillSpill(db, tx.Put))
			must(t, fillSpill(db, func(key, value []byte) error { return tx.Put(append(key, "more"...), value) }))
			fsys.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpOpen, faultfs.OpReadAt), Name: "*.spill", Skip: failing})
			if _, err := tx.Get([]byte("spilled 0")); !errors.Is(err, faultfs.ErrInjected) {
				t.Errorf("call %d fails: %v", failing, err)
			}
			for i := range 3 {
				if v, err := tx.Get(fmt.Append(nil, "spilled ", i)); len(v) != 800 || err != nil {
					t.Errorf("call %d failed: record %d has %d bytes, %v", failing, i, len(v), err)
				}
			}
			return nil
		}))
	}
}

// A transaction reads behind as many range deletes as there may be.
func TestOwnRangeDeletes(t *testing.T) {
	const n = 100_000
	key := func(i int) []byte { return fmt.Appendf(nil, "%06d", i) }
	db := openMem(t, memfs.New(), Options{})
	for i := 0; i < n; i += 1000 {
		must(t, db.main.PutUnsynced(key(i), nil))
	}
	must(t, db.Update(func(tx *Tx) error {
		for i := range n / 2 {
			must(t, tx.DeleteRange(key(2*i), key(2*i+1)))
		}
		if there, err := tx.Has(key(2000)); there || err != nil {
			t.Errorf("a key that was deleted: %t, %v", there, err)
		}
		for i := range n / 2 {
			must(t, tx.DeleteRange(key(2*i+1), key(2*i+2)))
		}
		must(t, tx.Put(key(1), []byte("last")))
		if got := pairsOf(tx.Range(nil, nil)); got != " 000001=last" {
			t.Errorf("what is left:%s", got)
		}
		return nil
	}))
}

// Counts and positions agree with a walk where range deletes and changes alternate, over what has settled and in front of it.
func TestCountsAmongRangeDeletesAndChanges(t *testing.T) {
	const n = 500
	key := func(i int) []byte { return fmt.Appendf(nil, "%06d", i) }
	db := openMem(t, memfs.New(), Options{})
	for i := range 10 * n {
		must(t, db.main.PutUnsynced(key(i), nil))
	}
	must(t, db.Checkpoint(t.Context()))
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	must(t, db.Update(func(tx *Tx) error {
		for range n {
			at := rng.IntN(10 * n)
			must(t, tx.DeleteRange(key(at), key(at+rng.IntN(8))))
			must(t, tx.Put(key(rng.IntN(11*n)), nil))
			must(t, tx.Delete(key(rng.IntN(10*n))))
		}
		for range 30 {
			lo, hi := key(rng.IntN(11*n)), key(rng.IntN(11*n))
			var keys []string
			for k := range tx.Range(lo, hi) {
				keys = append(keys, string(k))
			}
			if c, err := tx.Count(lo, hi); c != int64(len(keys)) || err != nil {
				t.Errorf("from %s to %s there are %d, counted as %d, %v", lo, hi, len(keys), c, err)
			}
			for at := 0; at < len(keys); at += 1 + rng.IntN(len(keys)) {
				if k, _, err := tx.Nth(lo, hi, int64(at)); string(k) != keys[at] || err != nil {
					t.Errorf("from %s to %s number %d is %s, not %s, %v", lo, hi, at, keys[at], k, err)
				}
			}
		}
		return nil
	}))
}
