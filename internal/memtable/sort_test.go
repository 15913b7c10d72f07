package memtable

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestSortHeads sorts heads that are spread evenly, that differ in few bits, that come in order, and that are nearly all equal.
func TestSortHeads(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 5))
	spreads := map[string]func(i int) uint64{
		"even":     func(int) uint64 { return rnd.Uint64() },
		"low bits": func(int) uint64 { return 1<<63 | rnd.Uint64N(500) },
		"digits":   func(int) uint64 { return rnd.Uint64()&0x0707070707070707 | 0x3030303030303030 },
		"skewed":   func(int) uint64 { return rnd.Uint64() >> rnd.UintN(64) },
		"equal":    func(i int) uint64 { return uint64(i / 1000) },
		"falling":  func(i int) uint64 { return -uint64(i) },
		"ordered":  func(i int) uint64 { return uint64(i) << 20 },
	}
	for name, head := range spreads {
		for _, n := range []int{1, 2, fewEntries, fewEntries + 1, 1000, manyEntries + 1, 20_000} {
			entries := make([]entry, n)
			want := make([]uint64, n)
			heads := map[ref]uint64{}
			for i := range entries {
				entries[i] = entry{head(i), ref(i)}
				want[i], heads[ref(i)] = entries[i].head, entries[i].head
			}
			slices.Sort(want)
			sortHeads(entries)
			for i, e := range entries {
				if e.head != want[i] || heads[e.node] != e.head {
					t.Fatalf("%s, %d heads: number %d is %#x of node %d, want %#x", name, n, i, e.head, e.node, want[i])
				}
				delete(heads, e.node)
			}
		}
	}
}
