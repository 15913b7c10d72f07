package pando

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pandodb/pando/vfs/memfs"
)

// Walks leap over stretches of deleted keys that earlier walks have come to. These tests compare what they show with what is there.

// gapState is the keys that are there, by number.
type gapState [gapKeys]bool

const gapKeys = 1500

func gapKey(n int) []byte { return fmt.Appendf(nil, "key%05d", n) }

// keys lists the keys that are there with numbers in [lo, hi), in order.
func (s *gapState) keys(lo, hi int) (list []string) {
	for n := lo; n < hi; n++ {
		if s[n] {
			list = append(list, string(gapKey(n)))
		}
	}
	return list
}

// gapReader is what walks are opened from: the database, a snapshot or a transaction.
type gapReader interface{ Iter(*IterOptions) *Iterator }

// checkGapWalks walks in several ways.
func checkGapWalks(t *testing.T, what string, r gapReader, s *gapState, rng *rand.Rand) {
	t.Helper()
	lo, hi := 0, gapKeys
	var o *IterOptions
	if rng.IntN(3) == 0 {
		lo = rng.IntN(gapKeys)
		hi = lo + rng.IntN(gapKeys-lo) + 1
		o = &IterOptions{Lower: gapKey(lo), Upper: gapKey(hi)}
	}
	want := s.keys(lo, hi)
	it := r.Iter(o)
	defer it.Close()
	walk := func(first bool, next func() bool) (list []string) {
		for ok := first; ok; ok = next() {
			list = append(list, string(it.Key()))
		}
		return list
	}
	compare := func(how string, got, want []string) {
		t.Helper()
		if !slices.Equal(got, want) || it.Err() != nil {
			t.Fatalf("%s, %s in [%d,%d): %d keys, want %d; %v\n%.300v\n%.300v", what, how, lo, hi, len(got), len(want), it.Err(), got, want)
		}
	}
	back := slices.Clone(want)
	slices.Reverse(back)
	at := lo + rng.IntN(hi-lo)
	from, _ := slices.BinarySearch(want, string(gapKey(at)))
	switch rng.IntN(5) {
	case 0:
		compare("forward", walk(it.First(), it.Next), want)
	case 1:
		compare("backward", walk(it.Last(), it.Prev), back)
	case 2:
		compare("from a key on", walk(it.SeekGE(gapKey(at)), it.Next), want[from:])
	case 3:
		compare("back from a key", walk(it.SeekLT(gapKey(at)), it.Prev), back[len(want)-from:])
	default:
		for range 10 { // to and fro: i is what is to come next
			i := from
			ok := it.SeekGE(gapKey(at))
			for range 6 {
				if ok != (i >= 0 && i < len(want)) || ok && string(it.Key()) != want[i] {
					t.Fatalf("%s, to and fro from %d: at %q, want number %d of %.300v", what, at, it.Key(), i, want)
				}
				if !ok {
					break
				}
				if rng.IntN(2) == 0 {
					i, ok = i+1, it.Next()
				} else {
					i, ok = i-1, it.Prev()
				}
			}
		}
	}
}

// gapWorld is a database and what should be in it.
type gapWorld struct {
	t     *testing.T
	db    *DB
	rng   *rand.Rand
	state gapState
}

type gapWriter interface {
	Put(key, value []byte) error
	Delete(key []byte) error
}

// write writes something at random, stretches of deletes above all.
func (w *gapWorld) write(to gapWriter, s *gapState) {
	n := w.rng.IntN(gapKeys)
	switch w.rng.IntN(6) {
	case 0: // fill a stretch
		for i := n; i < min(n+200, gapKeys); i++ {
			must(w.t, to.Put(gapKey(i), []byte("value")))
			s[i] = true
		}
	case 1, 2: // empty one
		for i := n; i < min(n+300, gapKeys); i++ {
			must(w.t, to.Delete(gapKey(i)))
			s[i] = false
		}
	case 3: // empty the front
		for i := range n / 2 {
			must(w.t, to.Delete(gapKey(i)))
			s[i] = false
		}
	default:
		must(w.t, to.Put(gapKey(n), []byte("value")))
		s[n] = true
	}
}

func TestWalksOverGaps(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and starts no goroutines: little for the race detector")
	}
	for seed := range uint64(gapSeeds) {
		db := openMem(t, memfs.New(), Options{Profile: Relaxed, MemoryBytes: 8 << 20})
		w := &gapWorld{t: t, db: db, rng: rand.New(rand.NewPCG(seed, 3))}
		var snap *Snapshot
		var then gapState
		for step := range 400 {
			what := fmt.Sprintf("seed %d, step %d", seed, step)
			switch w.rng.IntN(12) {
			case 0, 1:
				w.write(db, &w.state)
			case 2:
				w.update(what, true)
			case 3:
				w.update(what, false)
			case 4:
				if snap != nil {
					must(t, snap.Close())
				}
				snap, then = db.Snapshot(), w.state
			case 5:
				if w.rng.IntN(8) == 0 {
					must(t, db.Checkpoint(context.Background()))
				}
			case 6:
				lo := w.rng.IntN(gapKeys)
				hi := min(lo+w.rng.IntN(100)+1, gapKeys)
				must(t, db.DeleteRange(gapKey(lo), gapKey(hi)))
				clear(w.state[lo:hi])
			case 7, 8:
				if snap != nil {
					checkGapWalks(t, what+", snapshot", snap, &then, w.rng)
				}
			default:
				checkGapWalks(t, what, db, &w.state, w.rng)
			}
		}
		if snap != nil {
			must(t, snap.Close())
		}
	}
}

// update writes in a transaction, exclusive or optimistic, walks in it, and commits it or not.
func (w *gapWorld) update(what string, exclusive bool) {
	mine := w.state
	tx, err := w.db.Begin(true)
	if exclusive {
		must(w.t, tx.Rollback())
		tx, err = w.db.beginExclusive(w.db.main)
	}
	must(w.t, err)
	for range 4 {
		checkGapWalks(w.t, what+", transaction", tx, &mine, w.rng)
		if w.rng.IntN(2) == 0 {
			w.write(tx, &mine)
		}
	}
	if w.rng.IntN(2) == 0 {
		must(w.t, tx.Rollback())
		return
	}
	must(w.t, tx.Commit())
	w.state = mine
}

// What a bulk load puts into a gap, which goes past the memtable, is there all the same.
func TestBulkLoadIntoAGap(t *testing.T) {
	db := openMem(t, memfs.New(), Options{Profile: Relaxed, MemoryBytes: 2 << 20})
	for i := range 500 {
		must(t, db.Put(gapKey(i), nil))
	}
	for i := range 500 {
		must(t, db.Delete(gapKey(i)))
	}
	first := func() string {
		it := db.Iter(nil)
		defer it.Close()
		it.First()
		return string(it.Key())
	}
	if key := first(); key != "" {
		t.Fatalf("first key %q", key)
	}
	b := db.NewBatch()
	for i := range 100_000 {
		must(t, b.Put(fmt.Appendf(nil, "key%05d/%06d", 250, i), make([]byte, 30)))
	}
	must(t, db.Write(b))
	must(t, db.Put([]byte("other"), nil)) // what has settled alone has no gaps
	if key := first(); key != "key00250/000000" {
		t.Errorf("first key %q", key)
	}
}

// A walk of an old moment notes no gap where a key may have been put since, although that has settled.
func TestGapOfAnOldMoment(t *testing.T) {
	db := openMem(t, memfs.New(), Options{Profile: Relaxed, MemoryBytes: 2 << 20})
	for i := range 500 {
		must(t, db.Put(gapKey(i), nil))
		must(t, db.Delete(gapKey(i)))
	}
	snap := db.Snapshot()
	defer snap.Close()
	must(t, db.Put(gapKey(250), nil))
	must(t, db.Checkpoint(context.Background()))
	must(t, db.Put([]byte("other"), nil))
	it := snap.Iter(&IterOptions{Upper: gapKey(500)})
	if it.First() {
		t.Errorf("first key of the snapshot: %q", it.Key())
	}
	must(t, it.Close())
	if key := firstIn(db, nil, nil); !bytes.Equal(key, gapKey(250)) {
		t.Errorf("first key %q", key)
	}
}

// Readers look for the first of several queues' keys while others put and delete: what was put before they began, and is not deleted, they see.
func TestGapsBesideWriters(t *testing.T) {
	db := openMem(t, memfs.New(), Options{Profile: Relaxed, MemoryBytes: 4 << 20})
	const perQueue = 3000
	var wg sync.WaitGroup
	for q := range 2 {
		lo, hi := []byte{byte(q)}, []byte{byte(q + 1)}
		key := func(n int64) []byte { return append(slices.Clone(lo), fmt.Sprintf("%08d", n)...) }
		var front atomic.Int64 // all numbers from the one after the next on are there
		front.Store(perQueue)
		for n := int64(perQueue); n < 2*perQueue; n++ {
			must(t, db.Put(key(n), nil))
		}
		done := make(chan struct{})
		wg.Go(func() { // takes from the front, and puts in front of that now and then
			defer close(done)
			rng := rand.New(rand.NewPCG(uint64(q), 5))
			for n := int64(perQueue); n < 2*perQueue; n++ {
				must(t, db.Delete(key(n)))
				front.Store(n)
				if rng.IntN(20) == 0 {
					m := n - int64(rng.IntN(perQueue))
					must(t, db.Put(key(m), nil))
					if got := firstIn(db, lo, hi); !bytes.Equal(got, key(m)) {
						t.Errorf("first key %q, want %q, which has just been put", got, key(m))
					}
					must(t, db.Delete(key(m)))
				}
			}
		})
		for range 2 {
			wg.Go(func() {
				for {
					select {
					case <-done:
						return
					default:
					}
					got := firstIn(db, lo, hi)
					if most := front.Load() + 2; most < 2*perQueue && (got == nil || bytes.Compare(got, key(most)) > 0) {
						t.Errorf("first key %q, want at most %q", got, key(most))
					}
				}
			})
		}
	}
	wg.Wait()
}

func firstIn(db *DB, lo, hi []byte) []byte {
	it := db.Iter(&IterOptions{Lower: lo, Upper: hi})
	defer it.Close()
	it.First()
	return bytes.Clone(it.Key())
}
