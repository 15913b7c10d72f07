package hash

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/layout/layouttest"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/segment"
)

// keyOfOneHash returns key i of those whose 64-bit hashes are all equal. They can be written down without any search, since XXH3 multiplies by
// zero when eight bytes of the key are those of its secret.
func keyOfOneHash(t *testing.T, i int) []byte {
	t.Helper()
	const secret = 0xbe4ba423396cfeb8
	key := func(i int) []byte {
		b := binary.LittleEndian.AppendUint64(nil, secret+layouttest.Keyspace)
		b = binary.LittleEndian.AppendUint64(b, uint64(i))
		return append(b, "sixteen bytes___"...)
	}
	if record.Hash(layouttest.Keyspace, key(i)) != record.Hash(layouttest.Keyspace, key(i+1)) {
		t.Fatal("these hashes differ")
	}
	return key(i)
}

// A walk meets all keys of one hash, forward and back, though they do not fit into a page.
func TestWalkOverManyKeysOfOneHash(t *testing.T) {
	w := layouttest.NewWorld(t, config(), 1, 8<<20, 0)
	var changes []layout.Change
	for i := range 20 {
		value := bytes.Repeat([]byte{byte(i)}, 60<<10)
		changes = append(changes, layout.Change{Key: keyOfOneHash(t, i), Record: layouttest.Inline(string(value))})
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
	w := layouttest.NewWorld(t, config(), 1, 80<<20, 0) // just so much that a chunk may take more than twice what is always kept
	var changes []layout.Change
	for i := range 150_000 {
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

// A walk makes room for records that it has found, not for what an index page says of records which are nowhere.
func TestWalkMakesNoRoomForWhatIsNotThere(t *testing.T) {
	w := layouttest.NewWorld(t, config(), 1, 0, 0)
	w.Apply(nil, put("old", "key"), layout.ApplyOptions{})
	forgePage(t, w, 0, func(depth int, list []entry) []byte {
		for i := range uint32(4000) {
			list = append(list, entry{hash: list[0].hash, at: segment.Piece{Segment: 1000 + i, Offset: 64, Length: 1<<lengthBits - 1}})
		}
		return new(imager).append(nil, depth, 0, list)
	})
	walk := windows{r: w.Root.(*root)}
	if err := walk.open(0); err != nil {
		t.Fatal(err)
	}
	if err := walk.read(0); !errors.Is(err, corrupt.Err) {
		t.Errorf("records of segments that are not there: %v", err)
	}
	if n := cap(walk.arena); n > 1<<20 {
		t.Errorf("room for %d bytes", n)
	}
	drop(t, w)
}

// Records of one hash, of which there may be any number, are written anew in several blobs: one of all of them may be longer than a blob can be.
func TestManyKeysOfOneHashMove(t *testing.T) {
	w := layouttest.NewWorld(t, config(), 1, 0, 0)
	var changes []layout.Change
	for i := range 20 {
		value := bytes.Repeat([]byte{byte(i)}, 60<<10)
		changes = append(changes, layout.Change{Key: keyOfOneHash(t, i), Record: layouttest.Inline(string(value))})
	}
	w.Apply(nil, changes, layout.ApplyOptions{})
	old := w.Segments(func(uint32) bool { return true })
	for _, o := range []layout.ApplyOptions{{Victims: old}, {Rewrite: &layout.Stretch{}}} {
		// One of them is written over, and one is deleted, while the others move.
		w.Apply(nil, append(put("new", string(keyOfOneHash(t, 7))), remove(string(keyOfOneHash(t, 11)))...), o)
		holds(t, w)
	}
	for _, s := range w.Env.Store.Segments() {
		err := w.Env.Store.Scan(t.Context(), s.ID, func(_ segment.Pointer, h segment.Header, raw []byte) error {
			if len(raw) > 2*piecesBytes {
				t.Errorf("segment %d: a blob of %d bytes", s.ID, len(raw))
			}
			return nil
		}, nil)
		if err != nil {
			t.Error(err)
		}
	}
}
