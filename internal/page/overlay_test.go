package page

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/pageformat"
	"github.com/pandodb/pando/internal/record"
)

type pair struct {
	key    string
	record record.Record
}

func rawOf(t testing.TB, pairs ...pair) []byte {
	t.Helper()
	var b Builder
	for _, p := range pairs {
		if err := b.Add([]byte(p.key), p.record); err != nil {
			t.Fatal(err)
		}
	}
	return b.Append(nil)
}

func inlined(value string) record.Record {
	return record.Record{Kind: record.Inline, Value: []byte(value)}
}

// put puts raw pages over base, the oldest first.
func put(dst, base []byte, changes ...[]byte) (out []byte, ok bool, err error) {
	var o Overlay
	if err := o.Reset(base); err != nil {
		return dst, false, err
	}
	for _, c := range changes {
		if ok, err := o.Put(c); !ok || err != nil {
			return dst, false, err
		}
	}
	out, err = o.Append(dst)
	if err == nil {
		err = checkLoad(&o, out[len(dst):])
	}
	if err == nil && whole(base) == nil && whole(out[len(dst):]) == nil {
		err = checkParts(base, out[len(dst):], changes)
	}
	return out, err == nil, err
}

// cut cuts a raw page into pages of so many of its entries.
func cut(base []byte, entries int) (runs [][]byte) {
	h, _ := decodeHead(base)
	for at := h.size; at < len(base); {
		begin, n := at, 0
		for ; n < entries && at < len(base); n++ {
			_, _, at, _ = spanAny(base, at, len(h.prefix))
		}
		runs = append(runs, append(pageformat.AppendHead(nil, n, h.prefix), base[begin:at]...))
	}
	return runs
}

// checkParts puts changes over base a few entries at a time, from each of the keys of all on and from between them, and compares with all.
func checkParts(base, all []byte, changes [][]byte) error {
	mem := make([]byte, 1<<16)
	size, _ := OrderedSize(all)
	if want, _ := decodeHead(all); size > len(mem)/2 || want.count > 20 {
		return nil
	}
	mem = mem[:size]
	if err := LoadOrdered(mem, all); err != nil {
		return err
	}
	page := At(mem)
	var keys [][]byte
	for i := range page.Len() {
		key := page.AppendKey(nil, i)
		keys = append(keys, key, append(key[:len(key):len(key)], 0), key[:max(len(key)-1, 0)])
	}
	for entries := 1; entries <= 3; entries++ {
		runs := cut(base, entries)
		if len(runs) == 0 {
			continue
		}
		for _, from := range append(keys, nil) {
			at, _ := page.Search(from)
			if err := walkParts(runs, changes, from, page, at); err != nil {
				return fmt.Errorf("%d entries at a time, from %q: %w", entries, from, err)
			}
		}
	}
	return nil
}

// walkParts puts changes over one run after the other, from a key on, and compares with page from entry at on.
func walkParts(runs, changes [][]byte, from []byte, page Page, at int) error {
	var o Overlay
	if err := o.Reset(runs[0]); err != nil {
		return err
	}
	for _, c := range changes {
		if ok, err := o.Put(c); !ok || err != nil {
			return fmt.Errorf("put: %v, %v", ok, err)
		}
	}
	if from != nil && !o.From(from) {
		return nil
	}
	for i, run := range runs {
		if i > 0 {
			if err := o.Continue(run); err != nil {
				return err
			}
		}
		mem := bytes.Repeat([]byte{0xA5}, o.OrderedSize())
		if err := o.LoadPart(mem, i == len(runs)-1); err != nil {
			return err
		}
		for p, j := At(mem), 0; j < p.Len(); j, at = j+1, at+1 {
			if at == page.Len() {
				return errors.New("too many entries")
			}
			key, want := p.AppendKey(nil, j), page.AppendKey(nil, at)
			if !bytes.Equal(key, want) || !bytes.Equal(p.Record(j).Value, page.Record(at).Value) || p.Record(j).Kind != page.Record(at).Kind {
				return fmt.Errorf("entry %d is %q instead of %q", at, key, want)
			}
		}
	}
	if at != page.Len() {
		return fmt.Errorf("ends before entry %d of %d", at, page.Len())
	}
	return nil
}

// checkLoad compares the resident page that an overlay makes with the one of the raw form that it makes.
func checkLoad(o *Overlay, raw []byte) error {
	mem := bytes.Repeat([]byte{0xA5}, o.OrderedSize())
	err := o.LoadOrdered(mem)
	size, want := ResidentSize(raw)
	other := make([]byte, size)
	if want == nil {
		want = Load(other, raw, 7)
	}
	switch {
	case want != nil && err == nil:
		return fmt.Errorf("Load alone finds: %v", want)
	case want == nil && errors.Is(err, corrupt.Err) && whole(o.base) == nil:
		return fmt.Errorf("Overlay.LoadOrdered alone finds: %v", err)
	case err != nil:
		return nil // Append does not look at what changes cover
	}
	got, page := At(mem), At(other)
	if got.Len() != page.Len() || !bytes.Equal(got.Prefix(), page.Prefix()) {
		return fmt.Errorf("%d entries after %q instead of %d after %q", got.Len(), got.Prefix(), page.Len(), page.Prefix())
	}
	for i := range got.Len() {
		suffix, r := got.Entry(i)
		key, w := page.AppendKey(nil, i), page.Record(i)
		if !bytes.HasSuffix(key, suffix) || r.Kind != w.Kind || r.Expiry != w.Expiry || !bytes.Equal(r.Value, w.Value) {
			return fmt.Errorf("entry %d is %q %v instead of %q %v", i, suffix, r, key, w)
		}
		if at, ok := got.Search(key); at != i || !ok {
			return fmt.Errorf("entry %d is searched at %d", i, at)
		}
		if v, ok := got.Get(record.Hash(7, key), key); !ok || !bytes.Equal(v.Value, w.Value) {
			return fmt.Errorf("entry %d is not found", i)
		}
	}
	if err := whole(got.Raw()); err != nil {
		return fmt.Errorf("the raw form: %v", err)
	}
	return nil
}

// whole tells what is wrong with a raw page.
func whole(raw []byte) error {
	var it Iterator
	if err := it.Reset(raw); err != nil {
		return err
	}
	for it.Next() {
	}
	return it.Err()
}

func TestOverlay(t *testing.T) {
	base := rawOf(t, pair{"kb", inlined("1")}, pair{"kd", inlined("2")}, pair{"kf", record.Record{Kind: record.Inline, Expiry: 7}})
	tests := []struct {
		name    string
		changes [][]pair // the oldest first
		want    []pair   // nil: a Builder has to do it
	}{
		{"nothing", [][]pair{nil}, []pair{{"kb", inlined("1")}, {"kd", inlined("2")}, {"kf", record.Record{Kind: record.Inline, Expiry: 7}}}},
		{"before, between and behind", [][]pair{{{"ka", inlined("a")}, {"kc", inlined("c")}, {"kg", inlined("g")}}},
			[]pair{{"ka", inlined("a")}, {"kb", inlined("1")}, {"kc", inlined("c")}, {"kd", inlined("2")}, {"kf", record.Record{Kind: record.Inline, Expiry: 7}}, {"kg", inlined("g")}}},
		{"in place", [][]pair{{{"kb", inlined("longer than before")}, {"kf", record.Record{Kind: record.Apart, Expiry: 9, Value: []byte("r")}}}},
			[]pair{{"kb", inlined("longer than before")}, {"kd", inlined("2")}, {"kf", record.Record{Kind: record.Apart, Expiry: 9, Value: []byte("r")}}}},
		{"tombstones", [][]pair{{{"ka", record.Record{}}, {"kd", record.Record{}}, {"kz", record.Record{}}}},
			[]pair{{"kb", inlined("1")}, {"kf", record.Record{Kind: record.Inline, Expiry: 7}}}},
		{"several, the newest of which counts", [][]pair{
			{{"ka", inlined("a1")}, {"kb", inlined("b1")}, {"kx", inlined("x1")}},
			{{"kb", record.Record{}}, {"kd", inlined("d2")}},
			{{"ka", inlined("a3")}, {"kd", inlined("d3")}, {"kf", record.Record{}}, {"kx", inlined("x3")}, {"kz", inlined("z3")}},
			{{"kd", record.Record{}}},
		}, []pair{{"ka", inlined("a3")}, {"kx", inlined("x3")}, {"kz", inlined("z3")}}},
		{"a longer prefix", [][]pair{{{"kd1", inlined("a")}, {"kd2", inlined("b")}}, {{"kd", record.Record{}}, {"kd2", record.Record{Kind: record.Inline, Expiry: 300, Value: []byte("c")}}}},
			[]pair{{"kb", inlined("1")}, {"kd1", inlined("a")}, {"kd2", record.Record{Kind: record.Inline, Expiry: 300, Value: []byte("c")}}, {"kf", record.Record{Kind: record.Inline, Expiry: 7}}}},
		{"another prefix", [][]pair{{{"ja", inlined("x")}}}, nil},
		{"a shorter prefix", [][]pair{{{"ja", inlined("x")}, {"kc", inlined("y")}}}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var changes [][]byte
			for _, c := range test.changes {
				changes = append(changes, rawOf(t, c...))
			}
			out, ok, err := put([]byte("dst"), base, changes...)
			if err != nil || ok != (test.want != nil) || string(out[:3]) != "dst" {
				t.Fatalf("%q, %v, %v", out, ok, err)
			}
			if !ok {
				return
			}
			var it Iterator
			if err := it.Reset(out[3:]); err != nil {
				t.Fatal(err)
			}
			for _, w := range test.want {
				if !it.Next() {
					t.Fatalf("ends before %q: %v", w.key, it.Err())
				}
				r := it.Record()
				if string(it.Key()) != w.key || r.Kind != w.record.Kind || r.Expiry != w.record.Expiry || !bytes.Equal(r.Value, w.record.Value) {
					t.Errorf("%q %+v, want %q %+v", it.Key(), r, w.key, w.record)
				}
			}
			if it.Next() || it.Err() != nil {
				t.Errorf("more than wanted, or %v", it.Err())
			}
		})
	}
}

// A base without entries has no prefix that changes might lack, and one whose prefix is longer takes changes that have it too.
func TestOverlayOfPrefixes(t *testing.T) {
	base := rawOf(t, pair{"kab", inlined("1")}) // all of the key is prefix
	out, ok, err := put(nil, base, rawOf(t, pair{"kab", inlined("2")}, pair{"kabc", inlined("3")}))
	if want := rawOf(t, pair{"kab", inlined("2")}, pair{"kabc", inlined("3")}); err != nil || !ok || !bytes.Equal(out, want) {
		t.Errorf("%q, %v, %v, want %q", out, ok, err, want)
	}
	out, ok, err = put(nil, rawOf(t), rawOf(t, pair{"kab", inlined("2")}))
	if r, found, _ := Find(out, []byte("kab")); err != nil || !ok || !found || string(r.Value) != "2" {
		t.Errorf("%q, %v, %v", out, ok, err)
	}
}

// The count takes a byte less than the sum of both counts.
func TestOverlayShrinksCount(t *testing.T) {
	var pairs []pair
	for i := range 127 {
		pairs = append(pairs, pair{string([]byte{'k', byte(i)}), inlined("v")})
	}
	base, change := rawOf(t, pairs...), rawOf(t, pairs[3:10]...)
	out, ok, err := put(nil, base, change)
	if err != nil || !ok || !bytes.Equal(out, base) {
		t.Fatalf("%v, %v: %d bytes instead of %d", ok, err, len(out), len(base))
	}
}

// FuzzOverlay puts two raw pages over another, all of any bytes, and compares with their entries.
func FuzzOverlay(f *testing.F) {
	base := rawOf(f, pair{"ka", inlined("1")}, pair{"kb", inlined("2")})
	f.Add(base, rawOf(f), rawOf(f, pair{"kb", record.Record{}}, pair{"kc", inlined("3")}))
	f.Add(base, rawOf(f, pair{"ka", inlined("5")}, pair{"kb", inlined("6")}), rawOf(f, pair{"kb", record.Record{}}, pair{"kbc", inlined("3")}))
	f.Add(base, rawOf(f), rawOf(f))
	f.Fuzz(func(t *testing.T, base, older, newer []byte) {
		out, ok, err := put(nil, base, older, newer)
		if err != nil {
			if !errors.Is(err, corrupt.Err) && !errors.Is(err, ErrFull) {
				t.Fatal(err)
			}
			return
		}
		var it Iterator
		if !ok || it.Reset(base) != nil {
			return
		}
		for it.Next() {
		}
		if it.Err() != nil {
			return // what was wrong with base is still wrong, or was covered
		}
		var sum Iterator
		if err := sum.Reset(out); err != nil {
			t.Fatal(err)
		}
		for sum.Next() {
			want, found, err := Find(newer, sum.Key())
			if !found {
				want, found, err = Find(older, sum.Key())
			}
			if !found {
				want, found, err = Find(base, sum.Key())
			}
			if err != nil || !found || !bytes.Equal(want.Value, sum.Record().Value) || want.Kind != sum.Record().Kind {
				t.Fatalf("%q: %+v instead of %+v, %v", sum.Key(), sum.Record(), want, err)
			}
		}
		if sum.Err() != nil {
			t.Fatal(sum.Err())
		}
	})
}
