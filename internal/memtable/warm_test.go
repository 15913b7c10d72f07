package memtable

import (
	"encoding/binary"
	"testing"

	"github.com/pandodb/pando/internal/record"
)

// TestBatchesOfAWalk: a walk loads each entry once, and ever more of them at a time.
func TestBatchesOfAWalk(t *testing.T) {
	const n = 1000
	for _, from := range []int{0, 1, 500, n - 1} {
		var w batch
		batches, end := 0, from
		for i := from; i < n; i++ {
			if w.holds(i) {
				continue
			}
			if i != end {
				t.Fatalf("entry %d: the last batch ended before %d", i, end)
			}
			end = w.forward(i, n)
			batches++
		}
		if want := 6 + (n-from)/warmMost; end != n || batches > want {
			t.Fatalf("forward from %d: %d batches to %d; want at most %d", from, batches, end, want)
		}
		batches, end = 0, from+1
		for i := from; i >= 0; i-- { // what the walk forward loaded last is not forgotten
			if w.holds(i) {
				end = min(end, i)
				continue
			}
			if i != end-1 {
				t.Fatalf("entry %d: the last batch began with %d", i, end)
			}
			end = w.backward(i + 1)
			batches++
		}
		if want := 6 + from/warmMost; end != 0 || batches > want {
			t.Fatalf("backward from %d: %d batches to %d; want at most %d", from, batches, end, want)
		}
	}
}

// TestWalkOfAFullTable: what a walk loads ahead lies in the arena, up to its last item.
func TestWalkOfAFullTable(t *testing.T) {
	for _, size := range []int{0, 1, 200, 5000} {
		table := newTable(t, 60_000)
		var key [8]byte
		value := make([]byte, size)
		n := 0
		for ; table.Fits(1, len(key)+size); n++ {
			binary.BigEndian.PutUint64(key[:], uint64(n))
			table.Put(1, record.Hash(1, key[:]), key[:], uint64(n+1), inline(value))
		}
		c := table.NewCursor(1, always)
		got := 0
		for c.Next() {
			if r, _ := c.Record(); len(r.Value) != size {
				t.Fatalf("a value of %d bytes, want %d", len(r.Value), size)
			}
			got++
		}
		for c.Prev() {
			got++
		}
		if got != 2*n {
			t.Fatalf("values of %d bytes: %d records forward and backward, want %d", size, got, 2*n)
		}
	}
}
