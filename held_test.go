package pando

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// Snapshots that are held while everything is overwritten many times go on showing their moment, long after the memtables of
// that moment have settled, and so do the iterators that were opened before.
func TestHeldSnapshotsOutliveTheirMemtables(t *testing.T) {
	db := small(t, t.TempDir(), Options{Profile: Relaxed})
	const keys, rounds = 3000, 12
	key := func(i int) []byte { return fmt.Appendf(nil, "key%06d", i) }
	type moment struct {
		round int
		snap  *Snapshot
		it    *Iterator
		tx    *Tx
	}
	var moments []moment
	for round := range rounds {
		for i := range keys {
			if err := db.Put(key(i), fmt.Appendf(nil, "round %d of key %d, and some more bytes", round, i)); err != nil {
				t.Fatal(err)
			}
			if i == keys/2 {
				s := db.Snapshot()
				tx, err := db.Begin(false)
				if err != nil {
					t.Fatal(err)
				}
				it := s.Iter(nil)
				it.SeekGE(key(100))
				moments = append(moments, moment{round, s, it, tx})
			}
		}
		if round%3 == 2 {
			if err := db.DeleteRange(key(10), key(20)); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Checkpoint(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range moments {
		want := func(i int) string {
			round := m.round
			if i > keys/2 {
				round--
			}
			return fmt.Sprintf("round %d of key %d, and some more bytes", round, i)
		}
		n := 0
		for k, v := range m.snap.Range(key(30), nil) {
			i := n + 30
			if string(k) != string(key(i)) || string(v) != want(i) {
				t.Fatalf("round %d: pair %d is %q: %q", m.round, i, k, v)
			}
			n++
		}
		total := keys
		if m.round == 0 {
			total = keys/2 + 1
		}
		if c, err := m.snap.Count(nil, nil); c != int64(total) || err != nil || m.snap.Err() != nil {
			t.Errorf("round %d: %d pairs, want %d; %v", m.round, c, total, err)
		}
		for i := 100; i < 200; i++ {
			if string(m.it.Key()) != string(key(i)) || string(m.it.Value()) != want(i) {
				t.Fatalf("round %d: iterator shows %q: %q", m.round, m.it.Key(), m.it.Value())
			}
			if !m.it.Next() {
				t.Fatal(m.it.Err())
			}
		}
		if v, err := m.tx.Get(key(7)); string(v) != want(7) || err != nil {
			t.Errorf("round %d: %q, %v", m.round, v, err)
		}
		m.it.Close()
		m.snap.Close()
		m.tx.Rollback()
	}
	if r, err := db.Check(context.Background()); err != nil || r.Err() != nil {
		t.Errorf("%v, %v", err, r.Err())
	}
}

// Close writes nothing for snapshots that are still open: nobody reads them any more.
func TestCloseWritesNothingForOpenSnapshots(t *testing.T) {
	made := map[bool]int{}
	for _, held := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			ffs := faultfs.New(memfs.New())
			db, err := Open("db", &Options{FS: ffs, MemoryBytes: 1 << 20})
			must(t, err)
			must(t, db.Put([]byte("key"), make([]byte, 900)))
			if held {
				snap := db.Snapshot()
				defer snap.Close()
			}
			must(t, db.Checkpoint(t.Context())) // what the snapshot has in memory has settled
			synctest.Wait()
			must(t, db.Put([]byte("key"), nil))
			before := ffs.Count(faultfs.OpCreate)
			must(t, db.Close())
			made[held] = ffs.Count(faultfs.OpCreate) - before
		})
	}
	if made[true] != made[false] {
		t.Errorf("%d files are made with an open snapshot, %d without", made[true], made[false])
	}
}

// What a snapshot needs of memtables that have settled is merged into leaves of its own, so that it keeps none of them in memory: once for
// all snapshots of one moment, however many there are.
func TestSnapshotsOfOneMomentShareWhatTheyKeep(t *testing.T) {
	made := map[int]int{}
	for _, n := range []int{0, 1, 20} {
		synctest.Test(t, func(t *testing.T) {
			ffs := faultfs.New(memfs.New())
			db, err := Open("db", &Options{FS: ffs, MemoryBytes: 1 << 20})
			must(t, err)
			settle := func(value string) {
				must(t, db.Put([]byte("key"), []byte(value)))
				must(t, db.Checkpoint(t.Context()))
				synctest.Wait()
			}
			must(t, db.Put([]byte("key"), []byte("first")))
			var list []*Snapshot
			for range n {
				list = append(list, db.Snapshot())
			}
			settle("second") // what they have in memory has settled, and leaves it when more settles
			before := ffs.Count(faultfs.OpCreate)
			settle("third")
			made[n] = ffs.Count(faultfs.OpCreate) - before
			for _, snap := range list {
				if v, err := snap.Get([]byte("key")); string(v) != "first" || err != nil {
					t.Errorf("%q, %v", v, err)
				}
				must(t, snap.Close())
			}
			if m := db.Metrics(); m.Segments > 2 {
				t.Errorf("%d segments are left", m.Segments)
			}
			must(t, db.Close())
		})
	}
	if made[1] <= made[0] {
		t.Errorf("%d files are made beside a snapshot, %d without one", made[1], made[0])
	}
	if made[20] != made[1] {
		t.Errorf("%d files are made beside 20 snapshots, %d beside one", made[20], made[1])
	}
}
