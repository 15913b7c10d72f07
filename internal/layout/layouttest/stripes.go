package layouttest

import (
	"fmt"
	"testing"

	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/segment"
)

// testStripes takes every few of neighbouring rows away, and brings some back, where what is in memory changes all the time: pages get empty by
// many small changes, none of which takes most of what is in one.
func testStripes(t *testing.T, c Config) {
	for _, s := range []shape{
		{"cold", 0, layout.ApplyOptions{LeafBytes: 600, Fanout: 8}, 0, 30, 0},
		{"few", 64 << 10, layout.ApplyOptions{LeafBytes: 4000, MaxDeltas: 16}, 0, 200, 0},
		{"evicted", 1 << 20, layout.ApplyOptions{LeafBytes: 2000, Fanout: 8, Codec: segment.S2}, 2000, 100, 0},
		{"sparing", 64 << 10, layout.ApplyOptions{LeafBytes: 4000, MaxDeltas: 3, Sparing: true, Room: 2000}, 0, 100, 0},
		{"defaults", 1 << 20, layout.ApplyOptions{}, 0, 400, 0},
	} {
		for _, seed := range c.seeds() {
			t.Run(fmt.Sprintf("%s/%d", s.name, seed), func(t *testing.T) { stripes(t, c, s, seed) })
		}
	}
}

// stripes runs a random program over rows. The values are that long that few rows fill a page.
func stripes(t *testing.T, c Config, s shape, seed uint64) {
	const rows = 400
	w := NewWorld(t, c, seed, s.cache, 16<<10)
	w.Env.InnerBytes = s.inner
	row := func(i int) []byte { return fmt.Appendf(nil, "row%06d", i) }
	for i := range 40 {
		o := s.options
		from := w.Rand.IntN(rows)
		to := from + w.Rand.IntN(rows-from) + 1
		var changes []layout.Change
		switch op := w.Rand.IntN(8); op {
		case 0: // what is missing comes back
			for k := from; k < to; k++ {
				if _, there := w.Model[string(row(k))]; !there {
					changes = append(changes, layout.Change{Key: row(k), Record: Inline(string(w.bytes(w.Rand.IntN(2 * s.changes))))})
				}
			}
		case 1:
			bit := w.Rand.Uint32() & 1
			o.Victims = w.Segments(func(id uint32) bool { return id&1 == bit })
		case 2:
			o.Rewrite = w.stretch()
		default: // a stripe goes
			width := 2 + w.Rand.IntN(3)
			for k := from - from%width + op%width; k < to; k += width {
				changes = append(changes, layout.Change{Key: row(k)})
			}
		}
		w.Apply(nil, changes, o)
		w.Audit()
		if w.Rand.IntN(2) == 0 {
			w.Root = w.Reload() // nothing is in memory
		}
		w.ask(row, from, min(to, from+50))
		if i%4 == 0 {
			w.Verify(w.Root, w.Model, w.Now)
			w.Check(w.Root)
		}
		if t.Failed() {
			t.Fatalf("after step %d of seed %d", i, seed)
		}
	}
	w.Verify(w.Reload(), w.Model, w.Now)
}

// ask reads some rows as often as a cache may want to be asked before it takes a page.
func (w *World) ask(row func(int) []byte, from, to int) {
	var s layout.Scratch
	for range w.Rand.IntN(4) {
		for k := from; k < to; k++ {
			if _, _, err := w.Root.GetRead(&s, record.Hash(Keyspace, row(k)), row(k)); err != nil {
				w.T.Fatal(err)
			}
		}
	}
}
