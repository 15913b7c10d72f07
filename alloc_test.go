package pando

import (
	"context"
	"fmt"
	"testing"
)

// What the documentation says of allocations: none for a GetTo that fits and for a step of an iterator, on settled data and
// in the memtable; two for a walk; at most one for a Put. A transaction is one, and a few more for the
// memtable that it reads its own writes through; a batch that is used again none.
func TestAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	db, err := Open(t.TempDir(), &Options{Profile: Relaxed, MemoryBytes: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	const n = 5000
	keys := make([][]byte, n)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "key%06d", i)
		if err := db.Put(keys[i], make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
	}
	apart := []byte("apart")
	if err := db.Put(apart, make([]byte, 5000)); err != nil {
		t.Fatal(err)
	}
	long := make([]byte, 0, 5200)
	dst := make([]byte, 0, 200)
	absent := []byte("none")
	for _, where := range []string{"memtable", "settled"} {
		i := 0
		next := func() []byte { i = (i + 1) % n; return keys[i] }
		measure(t, where+": GetTo", 0, func() {
			if _, err := db.GetTo(dst, next()); err != nil {
				t.Fatal(err)
			}
		})
		measure(t, where+": GetTo of a value apart", 0, func() {
			if got, err := db.GetTo(long, apart); err != nil || len(got) != 5000 {
				t.Fatal(len(got), err)
			}
		})
		measure(t, where+": GetTo of an absent key", 0, func() {
			if _, err := db.GetTo(dst, absent); err != ErrNotFound {
				t.Fatal(err)
			}
		})
		it := db.Iter(nil)
		measure(t, where+": a step of an iterator", 0, func() {
			if !it.Next() && !it.First() {
				t.Fatal(it.Err())
			}
			_, _ = it.Key(), it.Value()
		})
		it.Close()
		measureWalks(t, where, db, next, apart)
		s := db.Snapshot()
		measure(t, where+": GetTo of a snapshot", 0, func() {
			if _, err := s.GetTo(dst, next()); err != nil {
				t.Fatal(err)
			}
		})
		s.Close()
		measure(t, where+": GetTo in a view", 1, func() {
			if err := db.View(func(tx *Tx) error { _, err := tx.GetTo(dst, next()); return err }); err != nil {
				t.Fatal(err)
			}
		})
		measureReader(t, where, db, next)
		if err := db.Checkpoint(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	measureWrites(t, db, keys, dst)
}

func measureWalks(t *testing.T, where string, db *DB, next func() []byte, apart []byte) {
	measure(t, where+": a short walk", 2, func() {
		it := db.Iter(nil)
		if !it.SeekGE(next()) || !it.Next() && it.Err() != nil {
			t.Fatal(it.Err())
		}
		it.Close()
	})
	measure(t, where+": a short walk to a value apart", 1, func() {
		it := db.Iter(nil)
		if !it.SeekGE(apart) || len(it.Value()) != 5000 {
			t.Fatal(it.Err())
		}
		it.Close()
	})
}

func measureWrites(t *testing.T, db *DB, keys [][]byte, dst []byte) {
	update := func(fn func(tx *Tx) error) func() {
		return func() {
			if err := db.Update(fn); err != nil {
				t.Fatal(err)
			}
		}
	}
	measure(t, "Put", 1, func() {
		if err := db.Put(keys[0], dst[:100]); err != nil {
			t.Fatal(err)
		}
	})
	write := func(tx *Tx) error {
		if _, err := tx.GetTo(dst, keys[0]); err != nil {
			return err
		}
		return tx.Put(keys[0], dst[:100])
	}
	measure(t, "an update of one", 1, update(write))
	measure(t, "an update of ten", 1, update(func(tx *Tx) error {
		for _, key := range keys[:10] {
			if err := tx.Put(key, dst[:100]); err != nil {
				return err
			}
		}
		return nil
	}))
	measure(t, "an update that reads what it has written", 15, update(func(tx *Tx) error {
		if err := tx.Put(keys[0], dst[:100]); err != nil {
			return err
		}
		return write(tx)
	}))
	batch := db.NewBatch()
	measure(t, "a batch that is used again", 0, func() {
		batch.Reset()
		for _, key := range keys[:10] {
			batch.Put(key, dst[:100]) // Write returns the error
		}
		if err := db.Write(batch); err != nil {
			t.Fatal(err)
		}
	})
	measure(t, "an optimistic transaction", 4, func() {
		tx, err := db.Begin(true)
		if err == nil {
			err = write(tx)
		}
		if err == nil {
			err = tx.Commit()
		}
		if err != nil {
			t.Fatal(err)
		}
	})
}

// measureReader is what a reader does for a query: a walk over a few keys, and what lies under others.
func measureReader(t *testing.T, where string, db *DB, next func() []byte) {
	var r Reader
	var keys, values List
	measure(t, where+": a walk and ten values of a reader", 0, func() {
		keys.Reset()
		values.Reset()
		if err := r.Open(db); err != nil {
			t.Fatal(err)
		}
		it := r.Iter(db.Default(), next(), nil)
		for keys.Len() < 10 && (it.Next() || it.First()) {
			keys.Append(it.Key())
		}
		if err := r.GetMany(&values, db.Default(), &keys, 0, keys.Len()); err != nil || values.Len() != keys.Len() {
			t.Fatal(values.Len(), err)
		}
		r.Close()
	})
}

func measure(t *testing.T, what string, most float64, fn func()) {
	t.Helper()
	if got := testing.AllocsPerRun(2000, fn); got > most {
		t.Errorf("%s: %v allocations, want at most %v", what, got, most)
	}
}
