package memtable

import (
	"encoding/binary"
	"testing"

	"github.com/pandodb/pando/internal/record"
)

// TestWindowOfAWalk: a walk asks for each entry once, before it gets there, and ever more of them at a time; and it chases each once, after
// it was asked for.
func TestWindowOfAWalk(t *testing.T) {
	const n = 1000
	for _, from := range []int{0, 1, 500, n - 1} {
		var w window
		batches, asked, chased := 0, from, from
		for i := from; i < n; i++ {
			if !w.holds(i) {
				ask, chase := w.forward(i, n)
				if ask.from != asked || chase.from != chased || chase.to > ask.to {
					t.Fatalf("entry %d: asks for %v and chases %v, after %d and %d", i, ask, chase, asked, chased)
				}
				asked, chased = ask.to, chase.to
				batches++
			}
			if asked <= i || chased <= i {
				t.Fatalf("entry %d: asked up to %d, chased up to %d", i, asked, chased)
			}
		}
		if want := 4 + (n-from)/warmMost; asked != n || chased != n || batches > want {
			t.Fatalf("forward from %d: %d batches up to %d and %d; want at most %d", from, batches, asked, chased, want)
		}
		batches, asked, chased = 0, n, n
		for i := from; i >= 0; i-- { // the batch at hand is not forgotten
			if !w.holds(i) {
				ask, chase := w.backward(i + 1)
				if batches > 0 && (ask.to != asked || chase.to != chased) || chase.from < ask.from {
					t.Fatalf("entry %d: asks for %v and chases %v, after %d and %d", i, ask, chase, asked, chased)
				}
				asked, chased = ask.from, chase.from
				batches++
			}
			if batches > 0 && (asked > i || chased > i) {
				t.Fatalf("entry %d: asked down to %d, chased down to %d", i, asked, chased)
			}
		}
		if want := 4 + from/warmMost; batches > want || batches > 0 && asked+chased != 0 {
			t.Fatalf("backward from %d: %d batches down to %d and %d; want at most %d", from, batches, asked, chased, want)
		}
	}
}

// TestWindowAfterATurn: what a walk has asked for in one direction is not taken for what it needs in the other.
func TestWindowAfterATurn(t *testing.T) {
	const n = 1000
	var w window
	for i := 400; i < 500; i++ {
		if !w.holds(i) {
			w.forward(i, n)
		}
	}
	for i := 499; i >= 300; i-- {
		if !w.holds(i) {
			if ask, _ := w.backward(i + 1); ask.to != i+1 && ask.to > w.batch.from {
				t.Fatalf("backward at %d: asks for %v", i, ask)
			}
			if w.asked > i {
				t.Fatalf("backward at %d: asked down to %d", i, w.asked)
			}
		}
	}
	for i := 300; i < 400; i++ {
		if !w.holds(i) {
			w.forward(i, n)
			if w.asked <= i {
				t.Fatalf("forward at %d: asked up to %d", i, w.asked)
			}
		}
	}
}

// TestWalkOfAFullTable: a walk finds all that lies in an arena, up to its last item, whatever it asks for ahead.
func TestWalkOfAFullTable(t *testing.T) {
	for _, size := range []int{0, 1, 200, 5000} {
		table := newTable(t, 60_000)
		var key [8]byte
		value := make([]byte, size)
		n := 0
		for ; table.Fits(2, 2*len(key)+2*size); n++ {
			binary.BigEndian.PutUint64(key[:], uint64(n))
			table.Put(1, record.Hash(1, key[:]), key[:], uint64(2*n+1), inline(value))
			if n%3 == 0 { // newer versions lie elsewhere
				binary.BigEndian.PutUint64(key[:], uint64(n/2))
				table.Put(1, record.Hash(1, key[:]), key[:], uint64(2*n+2), inline(value))
			}
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
