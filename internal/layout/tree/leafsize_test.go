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
