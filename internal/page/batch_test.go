package page_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/pandodb/pando/internal/page"
	"github.com/pandodb/pando/internal/record"
)

// TestBatchesAreWhatEntriesAre: from any entry on a batch has the pairs that follow, up to the first that it cannot have, whatever the
// lengths of keys, prefixes and values.
func TestBatchesAreWhatEntriesAre(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	for _, prefix := range []int{0, 1, 7, 8, 9, 15, 16, 24, 100, 300, 2000} {
		for _, suffix := range []int{1, 8, 12, 16, 17, 40, 200} {
			var build page.Builder
			usual := record.Inline + record.Kind(rng.IntN(2))
			shared, count := bytes.Repeat([]byte{'p'}, prefix), 1+rng.IntN(rng.IntN(100)+1)
			for i := range count {
				key := fmt.Appendf(bytes.Clone(shared), "%03d", i)
				for range rng.IntN(suffix) {
					key = append(key, byte(rng.Uint32()))
				}
				r := record.Record{Kind: usual, Value: bytes.Repeat([]byte{byte(i)}, rng.IntN(300))}
				switch rng.IntN(40) {
				case 0:
					r.Kind = record.Inline + record.Apart - usual
				case 1:
					r.Expiry = 1 << 40
				}
				if err := build.Add(key, r); err != nil {
					t.Fatal(err)
				}
			}
			p := load(t, build.Append(nil))
			compareBatches(t, p)
			comparePositions(t, p, rng)
			compareWithout(t, p, rng)
		}
	}
}

// compareBatches compares all batches of a page with its entries.
func compareBatches(t *testing.T, p page.Page) {
	t.Helper()
	for _, kind := range []record.Kind{record.Inline, record.Apart} {
		for from := range p.Len() {
			for _, to := range []int{from, from + 1, from + 5, p.Len()} {
				compareBatch(t, p, from, min(to, p.Len()), kind)
			}
		}
	}
}

func compareBatch(t *testing.T, p page.Page, from, to int, kind record.Kind) {
	t.Helper()
	var b page.Batch
	n := b.Fill(p, from, to, kind)
	if n > to-from || n > page.BatchMost {
		t.Fatalf("%d pairs of [%d, %d)", n, from, to)
	}
	for i := range n {
		r := p.Record(from + i)
		if key := p.AppendKey(nil, from+i); !bytes.Equal(b.Pairs[i].Key, key) || !bytes.Equal(b.Pairs[i].Value, r.Value) {
			t.Fatalf("entry %d: %q %q instead of %q %q", from+i, b.Pairs[i].Key, b.Pairs[i].Value, key, r.Value)
		}
		if r.Kind != kind || r.Expiry != 0 {
			t.Fatalf("entry %d, %v, is in a batch of kind %v", from+i, r, kind)
		}
	}
	if n == to-from || n == page.BatchMost {
		return
	}
	if suffix, r := p.Entry(from + n); n == 0 && p.Len() >= 4 && len(p.Prefix())+len(suffix) < 100 && len(suffix) < 0x80 && r.Kind == kind && r.Expiry == 0 {
		t.Fatalf("entry %d is not in a batch of kind %v", from, kind)
	}
}

// comparePositions compares what Before says of keys of the page, and of others near them, with what Search does, and fills a batch from two
// places.
func comparePositions(t *testing.T, p page.Page, rng *rand.Rand) {
	t.Helper()
	for range 50 {
		key := p.AppendKey(nil, rng.IntN(p.Len()))
		switch rng.IntN(4) {
		case 0:
			key[rng.IntN(len(key))] += byte(rng.IntN(3)) - 1
		case 1:
			key = key[:rng.IntN(len(key))]
		case 2:
			key = append(key, 0)
		}
		from := rng.IntN(p.Len() + 1)
		to := from + rng.IntN(p.Len()+1-from)
		i, exact := p.Before(key, from, to)
		want, there := p.Search(key)
		there = there && from <= want && want < to
		if want = min(max(want, from), to); i != want || exact != there {
			t.Fatalf("%q lies at %d, %v of [%d, %d); want %d, %v", key, i, exact, from, to, want, there)
		}
		var b, whole page.Batch
		n := b.Fill(p, from, i, record.Inline)
		n += b.Add(n, p, from+n, to)
		if n != whole.Fill(p, from, to, record.Inline) {
			t.Fatalf("[%d, %d) by way of %d has %d pairs", from, to, i, n)
		}
		for j := range n {
			if !bytes.Equal(b.Pairs[j].Key, whole.Pairs[j].Key) || !bytes.Equal(b.Pairs[j].Value, whole.Pairs[j].Value) {
				t.Fatalf("pair %d of [%d, %d) by way of %d is %q", j, from, to, i, b.Pairs[j].Key)
			}
		}
	}
}
