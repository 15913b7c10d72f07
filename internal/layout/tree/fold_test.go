package tree

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/page"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/segment"
)

func rawPage(t testing.TB, changes ...layout.Change) []byte {
	t.Helper()
	var b page.Builder
	for _, c := range changes {
		if err := b.Add(c.Key, c.Record); err != nil {
			t.Fatal(err)
		}
	}
	return b.Append(nil)
}

// FuzzFold merges two raw pages that may hold anything, as a leaf and its delta are merged.
func FuzzFold(f *testing.F) {
	inline := record.Record{Kind: record.Inline, Value: []byte("v"), Expiry: 9}
	base := rawPage(f, layout.Change{Key: []byte("ka"), Record: inline}, layout.Change{Key: []byte("kb"), Record: inline})
	f.Add(base, rawPage(f, layout.Change{Key: []byte("kb")}, layout.Change{Key: []byte("z"), Record: inline}))
	f.Add(base, rawPage(f))
	f.Fuzz(func(t *testing.T, base, delta []byte) {
		var s layout.Scratch
		if err := fold(&s.Builder, &s, base, delta, false); err != nil {
			if !errors.Is(err, corrupt.Err) && !errors.Is(err, page.ErrFull) {
				t.Fatal(err)
			}
			return
		}
		// What came out is a page again, and holds the newer record of every key.
		raw := s.Builder.Append(nil)
		var out, in page.Iterator
		if err := out.Reset(raw); err != nil {
			t.Fatal(err)
		}
		var last []byte
		for first := true; out.Next(); first = false {
			if !first && bytes.Compare(last, out.Key()) >= 0 {
				t.Fatal("keys out of order")
			}
			last = append(last[:0], out.Key()...)
		}
		if out.Err() != nil || in.Reset(delta) != nil {
			t.Fatal(out.Err())
		}
		for in.Next() {
			r, ok, err := page.Find(raw, in.Key())
			dropped := in.Record().Kind == record.Tombstone
			if err != nil || ok == dropped || (ok && !bytes.Equal(r.Value, in.Record().Value)) {
				t.Fatalf("key %x: %v %v %v", in.Key(), r, ok, err)
			}
		}
		// Where an overlay does as well it is the same.
		merged, ok, err := overlay(&s, base, []segment.Request{{Raw: delta}})
		if err != nil || ok && !samePage(t, merged, raw) {
			t.Fatalf("%x over %x is %x by overlay, %v", delta, base, merged, err)
		}
	})
}

// samePage reports whether two raw pages hold the same, whatever their prefixes.
func samePage(t *testing.T, a, b []byte) bool {
	t.Helper()
	var x, y page.Iterator
	if x.Reset(a) != nil || y.Reset(b) != nil {
		return false
	}
	for x.Next() {
		if !y.Next() || !bytes.Equal(x.Key(), y.Key()) || !bytes.Equal(x.Record().Value, y.Record().Value) || x.Record().Expiry != y.Record().Expiry {
			return false
		}
	}
	return !y.Next() && x.Err() == nil && y.Err() == nil
}

// TestFoldSeveral: of several deltas the newest change of each key counts, also where a key lacks the prefix of the leaf.
func TestFoldSeveral(t *testing.T) {
	page := func(text string) []byte {
		var changes []layout.Change
		for _, word := range strings.Fields(text) {
			c := layout.Change{Key: []byte(word[:len(word)-1])}
			if !strings.HasSuffix(word, "-") {
				c.Record = record.Record{Kind: record.Inline, Value: []byte(word)}
			}
			changes = append(changes, c)
		}
		return rawPage(t, changes...)
	}
	for _, base := range []string{"b0 d0 y0", "ba0 bb0"} {
		var deltas []segment.Request
		for _, text := range []string{"a1 b1 c1 x1", "b2 d2", "", "a4 b- d4 z4", "c5 x5 y-"} {
			deltas = append(deltas, segment.Request{Raw: page(text)})
		}
		raw, err := foldDeltas(&layout.Scratch{}, page(base), deltas)
		if err != nil {
			t.Fatal(err)
		}
		want := "a4 c5 d4 x5 z4"
		if base != "b0 d0 y0" {
			want = "a4 ba0 bb0 c5 d4 x5 z4"
		}
		if !samePage(t, raw, page(want)) {
			t.Errorf("over %s: %q, want %s", base, raw, want)
		}
	}
}
