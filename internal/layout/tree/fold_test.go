package tree

import (
	"bytes"
	"errors"
	"testing"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/page"
	"github.com/pandodb/pando/internal/record"
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
	delta := rawPage(f, layout.Change{Key: []byte("kb")}, layout.Change{Key: []byte("z"), Record: inline})
	f.Add(base, delta, false)
	f.Add(delta, delta, true)
	f.Add(base, rawPage(f), false)
	f.Fuzz(func(t *testing.T, base, delta []byte, keep bool) {
		var s layout.Scratch
		if err := fold(&s, base, delta, keep); err != nil {
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
			dropped := in.Record().Kind == record.Tombstone && !keep
			if err != nil || ok == dropped || (ok && !bytes.Equal(r.Value, in.Record().Value)) {
				t.Fatalf("key %x: %v %v %v", in.Key(), r, ok, err)
			}
		}
	})
}
