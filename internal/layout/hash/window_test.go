package hash

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/layout/layouttest"
	"github.com/pandodb/pando/internal/record"
)

// Keys whose 64-bit hashes are all equal can be written down without any search, since XXH3 multiplies by zero when eight bytes of the key
// are those of its secret. A walk meets all of them, forward and back, though they do not fit into a page.
func TestWalkOverManyKeysOfOneHash(t *testing.T) {
	const secret = 0xbe4ba423396cfeb8
	key := func(i int) []byte {
		b := binary.LittleEndian.AppendUint64(nil, secret+layouttest.Keyspace)
		b = binary.LittleEndian.AppendUint64(b, uint64(i))
		return append(b, "sixteen bytes___"...)
	}
	if record.Hash(layouttest.Keyspace, key(1)) != record.Hash(layouttest.Keyspace, key(2)) {
		t.Fatal("these hashes differ")
	}
	w := layouttest.NewWorld(t, config(), 1, 8<<20, 0)
	var changes []layout.Change
	for i := range 20 {
		changes = append(changes, layout.Change{Key: key(i), Record: layouttest.Inline(string(bytes.Repeat([]byte{byte(i)}, 60<<10)))})
	}
	w.Apply(nil, changes, layout.ApplyOptions{})
	c := w.Root.NewCursor()
	defer c.Close()
	var forward, back []string
	for ok := c.First(); ok; ok = c.Next() {
		forward = append(forward, string(c.Key())+string(c.Record().Value[:1]))
	}
	for ok := c.Last(); ok; ok = c.Prev() {
		back = append(back, string(c.Key())+string(c.Record().Value[:1]))
	}
	slices.Reverse(back)
	if c.Err() != nil || len(slices.Compact(forward)) != 20 || !slices.Equal(forward, back) {
		t.Errorf("%d records forward, %d back: %v", len(forward), len(back), c.Err())
	}
}

// What is kept for the next Apply is bounded.
func TestKeptChunkIsBounded(t *testing.T) {
	w := layouttest.NewWorld(t, config(), 1, 256<<20, 0)
	var changes []layout.Change
	for i := range 400_000 {
		changes = append(changes, layout.Change{Key: fmt.Appendf(nil, "%06x", i), Record: layouttest.Inline("")})
	}
	w.Apply(nil, changes, layout.ApplyOptions{})
	if c := w.Layout.(*Hash).chunk.Load(); c != nil {
		n := cap(c.changes)*24 + (cap(c.order)+cap(c.other))*16 + cap(c.keys) + cap(c.pieces.raw) + cap(c.pieces.ends)*8
		if most := chunkBytes(w.Env); n > most {
			t.Errorf("%d bytes are kept for the next Apply, at most %d should be", n, most)
		}
	}
}
