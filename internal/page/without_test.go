package page_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pandodb/pando/internal/page"
	"github.com/pandodb/pando/internal/record"
)

// compareWithout leaves keys of a page, and others near them, out of its entries, and compares what there is before the place at which that
// stops.
func compareWithout(t *testing.T, p page.Page, rng *rand.Rand) {
	t.Helper()
	for range 50 {
		from, most := rng.IntN(p.Len()), 1+rng.IntN(page.BatchMost)
		to := from + rng.IntN(p.Len()+1-from)
		keys := keysFrom(p, from, rng)
		var b page.Batch
		b.Reset()
		before := b.Add(0, p, 0, rng.IntN(min(p.Len(), page.BatchMost-1)))
		added, entry, key := b.Without(before, most, p, from, to, keys)
		if added > most || before+added > page.BatchMost || entry < from || entry > max(from, to) || key > len(keys) {
			t.Fatalf("Without(%d, %d, [%d, %d), %d keys) = %d, %d, %d", before, most, from, to, len(keys), added, entry, key)
		}
		if key < len(keys) && entry > from && bytes.Compare(p.AppendKey(nil, entry-1), keys[key]) >= 0 {
			t.Fatalf("entry %d has been passed, and key %q has not", entry-1, keys[key])
		}
		if key > 0 && entry < to && bytes.Compare(keys[key-1], p.AppendKey(nil, entry)) >= 0 {
			t.Fatalf("key %q has been passed, and entry %d has not", keys[key-1], entry)
		}
		pairs := b.Pairs[before : before+added]
		for i := from; i < entry; i++ {
			k := p.AppendKey(nil, i)
			if _, out := slices.BinarySearchFunc(keys, k, bytes.Compare); out {
				continue
			}
			if len(pairs) == 0 || !bytes.Equal(pairs[0].Key, k) || !bytes.Equal(pairs[0].Value, p.Record(i).Value) {
				t.Fatalf("entry %d, %q, is not among %d pairs of [%d, %d) without %q", i, k, added, from, entry, keys)
			}
			pairs = pairs[1:]
		}
		if len(pairs) > 0 {
			t.Fatalf("%d pairs too many of [%d, %d) without %q", len(pairs), from, entry, keys)
		}
	}
}

// keysFrom returns some keys, most of them of entries from number from on, in order.
func keysFrom(p page.Page, from int, rng *rand.Rand) (keys [][]byte) {
	for i := from; i < p.Len() && len(keys) < page.KeysMost; i++ {
		if rng.IntN(2) == 0 {
			continue
		}
		k := p.AppendKey(nil, i)
		switch rng.IntN(20) {
		case 0:
			k = append(k, 0)
		case 1:
			k = k[:rng.IntN(len(k))]
		}
		keys = append(keys, k)
	}
	slices.SortFunc(keys, bytes.Compare)
	return slices.CompactFunc(keys, bytes.Equal)
}

// TestWithoutGoesOn: where keys differ early what has some of them left out ends only where the keys or the room do.
func TestWithoutGoesOn(t *testing.T) {
	var build page.Builder
	var keys [][]byte
	for i := range 100 {
		key := []byte{'p', byte(i), 1, 2, 3, 4, 5, 6, 7, 8, 9}
		if err := build.Add(key, record.Record{Kind: record.Inline, Value: key}); err != nil {
			t.Fatal(err)
		}
		if i%3 == 1 && len(keys) < page.KeysMost {
			keys = append(keys, key)
		}
	}
	p := load(t, build.Append(nil))
	var b page.Batch
	for _, c := range []struct{ keys, most, added, entry, key int }{
		{3, page.BatchMost, 5, 8, 3},
		{page.KeysMost, page.BatchMost, page.BatchMost, 24, 8},
		{page.KeysMost, 5, 5, 7, 2},
		{0, 5, 0, 0, 0},
	} {
		b.Reset()
		if added, entry, key := b.Without(0, c.most, p, 0, p.Len(), keys[:c.keys]); added != c.added || entry != c.entry || key != c.key {
			t.Errorf("%+v: %d, %d, %d", c, added, entry, key)
		}
	}
}
