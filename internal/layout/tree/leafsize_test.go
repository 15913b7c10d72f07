package tree

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/layout/layouttest"
	"github.com/pandodb/pando/internal/page"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/segment"
)

// Leaves that are filled in order end where the frames of the cache do, where that costs no more than an eighth of a leaf: none takes a
// larger frame for the last few of its records. So it is at the first leaf and when records come behind those that there are.
func TestFilledLeavesFitIntoFrames(t *testing.T) {
	const records, least = 3000, 7 // of the leaf that may be written again before long nothing is said
	for length := 20; length < 500; length += 37 {
		t.Run(fmt.Sprint(length), func(t *testing.T) {
			w := layouttest.NewWorld(t, config(), 1, 64<<20, 0)
			for from := 0; from < records; from += records / 2 {
				w.Apply(nil, valued(w.Rand, from, from+records/2, length), layout.ApplyOptions{Codec: segment.None})
			}
			pages := residentPages(t, w)
			if len(pages) < least {
				t.Fatalf("%d leaves", len(pages))
			}
			for i, p := range pages[:len(pages)-1] {
				resident, err := page.ResidentSize(p.Raw())
				if err != nil {
					t.Fatal(err)
				}
				without := resident - resident/snugShare + 2*resident/p.Len()
				if got, want := w.Env.Cache.Frame(resident), w.Env.Cache.Frame(without); got != want {
					t.Errorf("leaf %d of %d: %d records in %d bytes take %d of the cache, one of %d bytes %d", i, len(pages), p.Len(), resident, got, without, want)
				}
			}
		})
	}
}

// valued puts records with values of some length. What their keys have in common does not become less as a leaf fills up: that would make
// it larger by more than one record.
func valued(r *rand.Rand, from, to, length int) (changes []layout.Change) {
	for i := from; i < to; i++ {
		value := bytes.Repeat([]byte{byte(r.Uint32())}, length)
		changes = append(changes, layout.Change{Key: binary.BigEndian.AppendUint32(nil, uint32(i)<<20), Record: layouttest.Inline(string(value))})
	}
	return changes
}

// residentPages returns the pages of all leaves, in order, which must be in the cache.
func residentPages(t *testing.T, w *layouttest.World) (pages []page.Page) {
	t.Helper()
	guard := w.Env.Epoch.Enter()
	defer guard.Exit()
	var descend func(n *node)
	descend = func(n *node) {
		b := n.body.Load()
		for _, child := range b.children {
			descend(child)
		}
		for i := range b.handles {
			p, ok := cachedPage(w.Env, b.handles[i].Load())
			if !ok {
				t.Fatalf("leaf %d is not in the cache", i)
			}
			pages = append(pages, p)
		}
	}
	descend(w.Root.(*root).node)
	return pages
}

// A leaf of the largest size that LeafBytes allows, whose last key does not begin like the others, can be read with all the deltas that it
// may have.
func TestLeafWithAllItsDeltasFitsIntoAPage(t *testing.T) {
	w := layouttest.NewWorld(t, config(), 1, 0, 0)
	bytesOf := func(n int) []byte {
		v := make([]byte, n)
		for j := range v {
			v[j] = byte(w.Rand.Uint32())
		}
		return v
	}
	inline := func(key, value []byte) layout.Change {
		return layout.Change{Key: key, Record: record.Record{Kind: record.Inline, Value: value}}
	}
	prefix := bytes.Repeat([]byte("b"), 131)
	alike := func(i int) []byte { return fmt.Appendf(bytes.Clone(prefix), "%04d", i) }
	var list []layout.Change
	for i := range 2000 {
		list = append(list, inline(alike(i), bytesOf(124)))
	}
	list = append(list, inline(append([]byte("c"), make([]byte, record.MaxKey-1)...), bytesOf(record.MaxInline)))
	for i := range 70_000 {
		list = append(list, inline(fmt.Appendf(nil, "d%06d", i), []byte("small")))
	}
	o := layout.ApplyOptions{LeafBytes: 256 << 10, Codec: segment.S2}
	w.Apply(nil, list, o)
	o.Rewrite = new(layout.Stretch)
	w.Apply(nil, list[:1], o)
	o.Rewrite = nil
	for i := range 14 {
		key := fmt.Appendf(append([]byte("c"), bytes.Repeat([]byte("z"), 20_000)...), "%02d", i)
		if i == 0 {
			key = alike(7) // from here on it is not known how many records there are
		}
		w.Apply(nil, []layout.Change{inline(key, make([]byte, deltaMost-batchOverhead-len(key)))}, o)
		deltas := len(pointers(t, w, segment.KindDelta))
		if 0 < deltas && deltas < 12 { // who reads the leaf finds out how many records there are, and then it gets fewer deltas
			continue
		}
		c := w.Root.NewCursor()
		for ok := c.First(); ok; ok = c.Next() {
		}
		if c.Err() != nil {
			t.Errorf("with %d deltas: %v", deltas, c.Err())
		}
		_ = c.Close()
	}
	w.Apply(nil, nil, layout.ApplyOptions{Rewrite: &layout.Stretch{}})
}
