package memtable

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/pandodb/pando/internal/record"
)

// TestLargeRun orders so many keys that their run lies outside of the heap, and merges it: what readers have of it stays valid, and its
// memory is counted until Free.
func TestLargeRun(t *testing.T) {
	const more = largeRun / 4
	table := newTable(t, LimitFor(largeRun+more, 8*(largeRun+more)))
	key := make([]byte, 8)
	put := func(from, to uint64) {
		for i := from; i < to; i++ {
			binary.BigEndian.PutUint64(key, i*0x9E3779B97F4A7C15)
			table.Put(1, record.Hash(1, key), key, i+1, inline(nil))
		}
	}
	put(0, largeRun)
	before := table.Bytes()
	early := table.NewCursor(1, always)
	if ordered := table.Bytes() - before; ordered != largeRun*entryBytes {
		t.Fatalf("%d bytes for the order", ordered)
	}
	put(largeRun, largeRun+more)
	before = table.Bytes()
	table.Settle(1)
	if merged := table.Bytes() - before; merged != (largeRun+more)*entryBytes {
		t.Fatalf("%d bytes for the merged order and what it replaced", merged)
	}
	for want, c := range map[int]*Cursor{largeRun: early, largeRun + more: table.NewCursor(1, always)} {
		n := 0
		for last := []byte(nil); c.Next(); n++ {
			if n > 0 && bytes.Compare(c.Key(), last) <= 0 {
				t.Fatalf("key %x after %x", c.Key(), last)
			}
			last = c.Key()
		}
		if n != want {
			t.Fatalf("%d keys, want %d", n, want)
		}
	}
}
