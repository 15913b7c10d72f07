package pando

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime/debug"
	"testing"

	"github.com/pandodb/pando/internal/offheap"
)

// small is a database whose thresholds are all reached within a moment.
func small(t *testing.T, dir string, o Options) *DB {
	t.Helper()
	o.MemoryBytes = 1 << 20
	db, err := Open(dir, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// A batch of any size is one commit, whatever the memory.
func TestBatchLargerThanMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and starts no goroutines: little for the race detector")
	}
	for _, profile := range []Profile{Durable, Relaxed, Bench} {
		t.Run(profile.String(), func(t *testing.T) {
			dir := t.TempDir()
			db := small(t, dir, Options{Profile: profile})
			other, err := db.Keyspace("other", nil)
			if err != nil {
				t.Fatal(err)
			}
			const n = 15_000
			if err := db.Put([]byte("before"), []byte("x")); err != nil {
				t.Fatal(err)
			}
			b := db.NewBatch()
			for i := range n {
				key := binary.BigEndian.AppendUint32(nil, uint32(i*7919%n))
				if err := errors.Join(b.Put(key, fmt.Appendf(nil, "value %d", i)), b.In(other).Put(key, make([]byte, 100))); err != nil {
					t.Fatal(err)
				}
			}
			if err := errors.Join(b.Delete([]byte("before")), b.DeleteRange([]byte{0, 0, 0, 0}, []byte{0, 0, 0, 10})); err != nil {
				t.Fatal(err)
			}
			if b.Len() != 2*n+2 {
				t.Fatalf("Len is %d, want %d", b.Len(), 2*n+2)
			}
			if c, err := db.Count(nil, nil); c != 1 || err != nil {
				t.Fatalf("before Write: %d, %v", c, err)
			}
			if err := db.Write(b); err != nil {
				t.Fatal(err)
			}
			if err := db.Write(b); !errors.Is(err, ErrBatchWritten) {
				t.Errorf("a second Write: %v", err)
			}
			check := func(db *DB) {
				t.Helper()
				other, err := db.Keyspace("other", nil)
				if err != nil {
					t.Fatal(err)
				}
				mine, err1 := db.Count(nil, nil)
				theirs, err2 := other.Count(nil, nil)
				if mine != n-10 || theirs != n || errors.Join(err1, err2) != nil {
					t.Fatalf("%d and %d pairs, want %d and %d; %v, %v", mine, theirs, n-10, n, err1, err2)
				}
			}
			check(db)
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			check(small(t, dir, Options{Profile: profile}))
		})
	}
}

// The memtables that a large batch passes through go back to the system, or to the next one.
func TestLargeBatchesLeaveNoMemory(t *testing.T) {
	db := small(t, t.TempDir(), Options{Profile: Bench})
	write := func() {
		b := db.NewBatch()
		for i := range 3000 {
			if err := b.Put(fmt.Appendf(nil, "key %d", i), make([]byte, 1000)); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	resident := func() int64 {
		debug.FreeOSMemory() // of garbage it is not known when it goes
		bytes, _ := offheap.Usage()
		return bytes
	}
	write()
	before := resident()
	if raceEnabled || before == 0 {
		t.Skip("memtables are on the heap, or the system does not tell how much memory there is")
	}
	const batches = 15
	for range batches {
		write()
	}
	after := resident()
	if most := int64(batches * 3000 * 1000 / 2); after-before > most {
		t.Errorf("%d bytes of memory before %d batches, %d after", before, batches, after)
	}
}

// A transaction of any size reads behind its own writes.
func TestTransactionLargerThanMemory(t *testing.T) {
	db := small(t, t.TempDir(), Options{Profile: Relaxed})
	const n = 20_000
	key := func(i int) []byte { return fmt.Appendf(nil, "%08d", i) }
	err := db.Update(func(tx *Tx) error {
		for i := range n {
			if err := tx.Put(key(i), make([]byte, 50)); err != nil {
				return err
			}
			if i%1000 == 0 {
				if _, err := tx.Get(key(i / 2)); err != nil {
					return fmt.Errorf("read %d after %d writes: %w", i/2, i, err)
				}
				if c, err := tx.Count(nil, nil); c != int64(i)+1 || err != nil {
					return fmt.Errorf("%d pairs after %d writes: %w", c, i+1, err)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if c, err := db.Count(nil, nil); c != n || err != nil {
		t.Fatalf("%d pairs, %v", c, err)
	}
	tx, err := db.Begin(true)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if err := tx.Delete(key(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Put(key(3), nil); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); !errors.Is(err, ErrConflict) {
		t.Errorf("commit: %v", err)
	}
	if c, err := db.Count(nil, nil); c != n || err != nil {
		t.Fatalf("%d pairs after the conflict, %v", c, err)
	}
}
