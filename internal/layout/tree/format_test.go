package tree

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/segment"
	"github.com/pandodb/pando/test/golden"
)

func pointer(n uint32) segment.Pointer {
	return segment.Pointer{Segment: n, Offset: 64 + n*16, Length: 100 + n, Sum: 0x0102030405060700 + uint64(n)}
}

// sample builds a node with the given separators (from the second child on).
func sample(level int, separators ...string) *body {
	b := &body{level: level}
	b.allot(len(separators) + 1)
	for i := range b.slots {
		if i > 0 {
			b.keys = append(b.keys, separators[i-1]...)
		}
		b.ends[i] = uint32(len(b.keys))
		b.slots[i] = slot{ptr: pointer(uint32(i + 1)), filter: noFilter}
		b.counts[i].Store(uint64(10 * (i + 1)))
	}
	b.index()
	b.attach()
	return b
}

// sampleLeaves is a node of the lowest level that uses every field.
func sampleLeaves() *body {
	b := sample(0, "key/b", "key/bcd", "key/x")
	b.filterPtr = pointer(9)
	b.slots[0].filter = 0
	b.slots[1].apart, b.slots[1].expiry = true, 1_700_000_000_000
	b.slots[2].filter = 2
	b.counts[2].Store(joinCount(300, false))
	b.deltas = []delta{{Pointer: pointer(20), digest: 0x0102_0304_0506_0708}, {Pointer: pointer(21)}}
	b.slots[3].deltas = 2
	return b
}

// sampleFilters gives the leaves of sampleLeaves filters, none for leaf 3.
func sampleFilters() *body {
	b := sampleLeaves()
	for i, n := range []int{30, 1, 20, 0} {
		if n > 0 {
			f := make([]byte, filterSize(n))
			for j := range n {
				filterAdd(f, uint64(j)*0x9E3779B97F4A7C15)
			}
			b.filters = append(b.filters, f...)
		}
		b.filterEnds[i] = uint32(len(b.filters))
	}
	return b
}

func TestGoldenBytes(t *testing.T) {
	inner := sample(1, "m")
	blobs := []struct {
		name string
		raw  []byte
	}{
		{"node of leaves", appendNode(nil, sampleLeaves())},
		{"node of nodes", appendNode(nil, inner)},
		{"filters", appendFilters(nil, sampleFilters())},
		{"root", appendRoot(nil, rootInfo{ptr: pointer(5), level: 2, count: joinCount(1000, true)})},
		{"root, open", appendRoot(nil, rootInfo{ptr: pointer(5), count: joinCount(70, false), expiry: 99, apart: true})},
	}
	var text strings.Builder
	for _, g := range blobs {
		fmt.Fprintf(&text, "# %s, %d bytes\n%s\n", g.name, len(g.raw), hex.Dump(g.raw))
	}
	golden.Compare(t, "format.txt", text.String())
}

func TestNodeRoundTrip(t *testing.T) {
	for _, b := range []*body{sampleLeaves(), sample(1, "m"), sample(3), sample(2, "", "a"), sample(1, "a\x00", "a\x00\x00")} {
		raw := appendNode(nil, b)
		got, err := decodeNode(raw, b.level)
		if err != nil {
			t.Fatal(err)
		}
		if again := appendNode(nil, got); !bytes.Equal(again, raw) {
			t.Errorf("round trip of %x gives %x", raw, again)
		}
		for n := range raw {
			if _, err := decodeNode(raw[:n], b.level); !errors.Is(err, corrupt.Err) {
				t.Fatalf("%d of %d bytes: %v", n, len(raw), err)
			}
		}
		for _, other := range []int{b.level - 1, b.level + 1} { // or a damaged tree could lead round in circles
			if _, err := decodeNode(raw, other); !errors.Is(err, corrupt.Err) {
				t.Errorf("a node of level %d where there is one of level %d: %v", b.level, other, err)
			}
		}
	}
}

// TestNodesInOneBody: a body that has been that of another node before is like a new one.
func TestNodesInOneBody(t *testing.T) {
	nodes := []*body{sampleLeaves(), sample(1, "m"), sample(3), sampleLeaves(), sample(2, "", "a"), sample(0, "a\x00", "a\x00\x00"), sample(0), sampleLeaves()}
	used := new(body)
	for i, b := range nodes {
		raw := appendNode(nil, b)
		fresh, err := decodeNode(raw, b.level)
		if err != nil {
			t.Fatal(err)
		}
		if err := used.decode(raw, b.level); err != nil {
			t.Fatal(err)
		}
		if again := appendNode(nil, used); !bytes.Equal(again, raw) {
			t.Errorf("node %d: %x gives %x", i, raw, again)
		}
		for _, key := range []string{"", "a", "a\x00", "a\x00\x00b", "b", "m", "z"} {
			if got, want := used.find([]byte(key)), fresh.find([]byte(key)); got != want {
				t.Errorf("node %d: %q is in child %d, not %d", i, key, got, want)
			}
		}
		if used.level > 0 {
			continue
		}
		for j := range used.handles {
			if used.handles[j].Load() != 0 || len(used.filterOf(j)) > 0 || len(used.deltasOf(j)) != len(fresh.deltasOf(j)) {
				t.Errorf("node %d: leaf %d has a page, a filter, or deltas, of a node before", i, j)
			}
			used.handles[j].Store(1) // is not to be there in the next one
		}
	}
}

func TestRootRefusesNonsense(t *testing.T) {
	good := appendRoot(nil, rootInfo{ptr: pointer(5), level: 2, count: 7, expiry: 3})
	for i := range good {
		for _, bad := range [][]byte{good[:i], append(slices.Clone(good), 0)} {
			if _, err := decodeRoot(bad); !errors.Is(err, corrupt.Err) {
				t.Errorf("%x: %v", bad, err)
			}
		}
	}
}

func TestFind(t *testing.T) {
	for _, separators := range [][]string{
		{"b"}, {"b", "d", "f"}, {"same/prefix/a", "same/prefix/ab", "same/prefix/b"},
		{"x", "x\x00", "x\x00\x00", "x\x00\x01"},
		{"prefix\x00a", "prefix\x00b"}, {"eightby\x00", "eightby\x00\x00"}, {"eightbyt1", "eightbyt2"},
		{"aaaaaaaabbbbbbbb1", "aaaaaaaabbbbbbbb2", "aaaaaaaabbbbbbbb3", "aaaaaaaaccccccccc", "b"},
	} {
		b := sample(1, separators...)
		keys := []string{"", "a", "zzz", "same", "same/prefiw", "same/prefix/", "x\x00\x00\x00", "aaaaaaaabbbbbbbb", "aaaaaaaa",
			"prefix", "prefix\x00", "prefiw\xff", "eightby", "eightbyt", "eightbys\xff", "eightbyu"}
		for _, s := range separators {
			keys = append(keys, s, s+"\x00", s[:len(s)-1], s+"zzzzzzzzzzzzz")
		}
		for _, key := range keys {
			want := 0
			for _, s := range separators {
				if s <= key {
					want++
				}
			}
			if got := b.find([]byte(key)); got != want {
				t.Errorf("find(%q) among %q: child %d, want %d", key, separators, got, want)
			}
		}
	}
}

func TestFilterRate(t *testing.T) {
	const keys, probes = 70, 20_000
	let := 0
	f := make([]byte, filterSize(keys))
	hash := func(i int) uint64 {
		x := uint64(i+1) * 0xD1342543DE82EF95
		x ^= x >> 32
		x *= 0x9E3779B97F4A7C15
		return x ^ x>>29
	}
	for i := range keys {
		filterAdd(f, hash(i))
	}
	for i := range keys + probes {
		has := filterHas(f, hash(i))
		if i < keys && !has {
			t.Fatalf("key %d is denied", i)
		}
		if i >= keys && has {
			let++
		}
	}
	if rate := float64(let) / probes; rate > 0.03 {
		t.Errorf("%.1f %% of absent keys are let through", 100*rate)
	}
}

func FuzzNode(f *testing.F) {
	f.Add(appendNode(nil, sampleLeaves()), uint8(0))
	f.Add(appendNode(nil, sample(1, "a", "b")), uint8(1))
	f.Add(appendNode(nil, sample(2)), uint8(2))
	f.Fuzz(func(t *testing.T, raw []byte, level uint8) {
		b, err := decodeNode(raw, int(level))
		if err != nil {
			if !errors.Is(err, corrupt.Err) {
				t.Fatal(err)
			}
			return
		}
		for i := range b.slots {
			if at := b.find(b.separator(i)); i > 0 && at != i {
				t.Fatalf("separator %d leads to child %d", i, at)
			}
			if b.level == 0 {
				_, _ = b.deltasOf(i), b.filterOf(i)
			}
		}
		again, err := decodeNode(appendNode(nil, b), int(level))
		if err != nil || again.len() != b.len() || !bytes.Equal(again.keys, b.keys) {
			t.Fatalf("round trip: %v", err)
		}
	})
}

func FuzzFilters(f *testing.F) {
	f.Add(appendFilters(nil, sampleFilters()))
	f.Fuzz(func(t *testing.T, raw []byte) {
		ends, bits, err := decodeFilters(raw)
		if err != nil {
			if !errors.Is(err, corrupt.Err) {
				t.Fatal(err)
			}
			return
		}
		b := sampleLeaves()
		b.adoptFilters(ends, bits)
		for i := range b.slots {
			_ = filterHas(b.filterOf(i), 0xfedcba9876543210)
		}
	})
}

func FuzzRoot(f *testing.F) {
	f.Add(appendRoot(nil, rootInfo{ptr: pointer(5), level: 2, count: 7, expiry: 3, apart: true}))
	f.Fuzz(func(t *testing.T, raw []byte) {
		info, err := decodeRoot(raw)
		if err != nil {
			if !errors.Is(err, corrupt.Err) {
				t.Fatal(err)
			}
			return
		}
		if again, err := decodeRoot(appendRoot(nil, info)); err != nil || again != info {
			t.Fatalf("round trip of %+v: %+v %v", info, again, err)
		}
	})
}
