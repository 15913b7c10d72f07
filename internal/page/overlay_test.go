package page

import (
	"bytes"
	"errors"
	"testing"

	"github.com/pandodb/pando/internal/corrupt"
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

func TestOverlay(t *testing.T) {
	base := rawOf(t, pair{"kb", inlined("1")}, pair{"kd", inlined("2")}, pair{"kf", record.Record{Kind: record.Inline, Expiry: 7}})
	tests := []struct {
		name   string
		change []pair
		want   []pair // nil: a Builder has to do it
	}{
		{"nothing", nil, []pair{{"kb", inlined("1")}, {"kd", inlined("2")}, {"kf", record.Record{Kind: record.Inline, Expiry: 7}}}},
		{"before, between and behind", []pair{{"ka", inlined("a")}, {"kc", inlined("c")}, {"kg", inlined("g")}},
			[]pair{{"ka", inlined("a")}, {"kb", inlined("1")}, {"kc", inlined("c")}, {"kd", inlined("2")}, {"kf", record.Record{Kind: record.Inline, Expiry: 7}}, {"kg", inlined("g")}}},
		{"in place", []pair{{"kb", inlined("longer than before")}, {"kf", record.Record{Kind: record.Apart, Expiry: 9, Value: []byte("r")}}},
			[]pair{{"kb", inlined("longer than before")}, {"kd", inlined("2")}, {"kf", record.Record{Kind: record.Apart, Expiry: 9, Value: []byte("r")}}}},
		{"tombstones", []pair{{"ka", record.Record{}}, {"kd", record.Record{}}, {"kz", record.Record{}}},
			[]pair{{"kb", inlined("1")}, {"kf", record.Record{Kind: record.Inline, Expiry: 7}}}},
		{"another prefix", []pair{{"ja", inlined("x")}}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var it Iterator
			if err := it.Reset(rawOf(t, test.change...)); err != nil {
				t.Fatal(err)
			}
			out, ok, err := Overlay([]byte("dst"), base, &it)
			if err != nil || ok != (test.want != nil) || string(out[:3]) != "dst" {
				t.Fatalf("%q, %v, %v", out, ok, err)
			}
			if !ok {
				return
			}
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

// The count takes a byte less than the sum of both counts.
func TestOverlayShrinksCount(t *testing.T) {
	var pairs []pair
	for i := range 127 {
		pairs = append(pairs, pair{string([]byte{'k', byte(i)}), inlined("v")})
	}
	base, change := rawOf(t, pairs...), rawOf(t, pairs[3:10]...)
	var it Iterator
	if err := it.Reset(change); err != nil {
		t.Fatal(err)
	}
	out, ok, err := Overlay(nil, base, &it)
	if err != nil || !ok || !bytes.Equal(out, base) {
		t.Fatalf("%v, %v: %d bytes instead of %d", ok, err, len(out), len(base))
	}
}

// FuzzOverlay puts one raw page over another, both of any bytes, and compares with a merge of their entries.
func FuzzOverlay(f *testing.F) {
	base := rawOf(f, pair{"ka", inlined("1")}, pair{"kb", inlined("2")})
	f.Add(base, rawOf(f, pair{"kb", record.Record{}}, pair{"kc", inlined("3")}))
	f.Add(base, rawOf(f))
	f.Fuzz(func(t *testing.T, base, change []byte) {
		var it Iterator
		if it.Reset(change) != nil {
			return
		}
		out, ok, err := Overlay(nil, base, &it)
		if err != nil {
			if !errors.Is(err, corrupt.Err) && !errors.Is(err, ErrFull) {
				t.Fatal(err)
			}
			return
		}
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
			want, found, err := Find(change, sum.Key())
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
