package parts_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"testing"

	"github.com/pandodb/pando/internal/page"
	"github.com/pandodb/pando/internal/parts"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/test/golden"
)

// shaped is n entries of one length: keys of some bytes behind a beginning, and values in which stretches are the same for all.
func shaped(rng *rand.Rand, n, suffix int, stretches ...int) (entries []entry) {
	var model []byte
	for _, length := range stretches {
		for range length {
			model = append(model, byte(rng.Uint32()))
		}
	}
	for i := range n {
		key := binary.BigEndian.AppendUint32([]byte("key/"), uint32(i))
		for len(key) < 8+suffix {
			key = append(key, byte(rng.Uint32()))
		}
		value, at := bytes.Clone(model), 0
		for j, length := range stretches {
			for k := range length {
				if j%2 == 1 {
					value[at+k] = byte(rng.Uint32())
				}
			}
			at += length
		}
		entries = append(entries, entry{string(key), record.Record{Kind: record.Inline, Value: value}})
	}
	return entries
}

// checkStencil stores a page that must be taken and reads all of it, and every key in its excerpt. It damages bytes of it from one on, so far
// apart from each other.
func checkStencil(t *testing.T, entries []entry, first, apart int) {
	t.Helper()
	raw := build(t, entries)
	stored, ok := parts.AppendStencil([]byte("in front"), raw)
	if !ok {
		t.Fatalf("a page of %d bytes was not taken", len(raw))
	}
	stored = stored[len("in front"):]
	if len(stored) >= len(raw) {
		t.Errorf("%d bytes are stored in %d", len(raw), len(stored))
	}
	back := make([]byte, len(raw))
	if err := parts.Expand(back, stored); err != nil || !bytes.Equal(back, raw) {
		t.Fatalf("came back changed: %v", err)
	}
	for _, wrong := range []int{len(raw) - 1, len(raw) + 1} {
		if parts.Expand(make([]byte, wrong), stored) == nil {
			t.Errorf("a page of %d bytes fits into %d", len(raw), wrong)
		}
	}
	n, err := parts.Covered(stored, len(stored))
	if err != nil {
		t.Fatal(err)
	}
	var table parts.Table
	if err := table.ParseStencil(stored[:n], len(stored)); err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		r, found, err := page.Find(cut(&table, stored, table.Find([]byte(e.key))), []byte(e.key))
		if err != nil || !found || !bytes.Equal(r.Value, e.record.Value) {
			t.Fatalf("key %q in its excerpt: %v, %v", e.key, found, err)
		}
	}
	for _, absent := range []string{"", "zzz", entries[1].key + "\x00", entries[1].key[:5]} {
		if _, found, err := page.Find(cut(&table, stored, table.Find([]byte(absent))), []byte(absent)); err != nil || found {
			t.Fatalf("key %q, which is not there: %v, %v", absent, found, err)
		}
	}
	from, length := table.Place(table.All())
	for i := from + first; i < from+length; i += apart {
		stored[i] ^= 0x10
		if table.Verify(table.All(), stored[from:]) == nil {
			t.Errorf("byte %d may be anything", i)
		}
		stored[i] ^= 0x10
	}
}

// cut makes a page of the parts of r.
func cut(table *parts.Table, stored []byte, r parts.Range) []byte {
	from, length := table.Place(r)
	out := table.AppendBeginning(nil, r)
	begin := len(out)
	out = append(out, make([]byte, table.Size(r))...)
	table.Put(out[begin:], stored[from:from+length])
	return out
}

func TestStencil(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and starts no goroutines: little for the race detector")
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for name, entries := range map[string][]entry{
		"usual":                 shaped(rng, 70, 8, 8, 92),
		"nothing at the end":    shaped(rng, 300, 0, 20, 3),
		"much at the end":       shaped(rng, 200, 3, 0, 2, 30),
		"all values are equal":  shaped(rng, 200, 6, 40),
		"many short stretches":  shaped(rng, 90, 2, 6, 1, 6, 1, 6, 1, 6, 1, 6, 1, 6, 1),
		"long stretches":        shaped(rng, 20, 30, 300, 20, 300, 20),
		"more than all entries": shaped(rng, 2, 0, 480, 500),
	} {
		t.Run(name, func(t *testing.T) { checkStencil(t, entries, 0, 1) })
	}
	const apart = 23
	for i := range 300 {
		var stretches []int
		for range 1 + rng.IntN(6) {
			stretches = append(stretches, rng.IntN(24))
		}
		suffix := rng.IntN(20)
		entries := shaped(rng, 150+rng.IntN(100), suffix, stretches...)
		if _, ok := parts.AppendStencil(nil, build(t, entries)); ok {
			checkStencil(t, entries, i%apart, apart)
		}
	}
}

// TestWhatHasNoStencil: pages whose entries are not of one shape, or hardly have anything in common.
func TestWhatHasNoStencil(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	odd := shaped(rng, 70, 8, 8, 92)
	odd[40].record.Value = odd[40].record.Value[1:]
	// What is missing in one value is in the next one's key: all entries together have the length that they should have.
	shifted := shaped(rng, 70, 8, 8, 92)
	shifted[40].record.Value = shifted[40].record.Value[1:]
	shifted[40].key += "x"
	for name, entries := range map[string][]entry{
		"another length":  odd,
		"another key":     shifted,
		"little":          shaped(rng, 70, 200, 0, 300),
		"short":           shaped(rng, 5, 8, 8, 92),
		"long entries":    shaped(rng, 10, 8, 1000, 92),
		"one":             shaped(rng, 1, 8, 900, 100),
		"many small ones": pages()["many small ones"],
	} {
		if out, ok := parts.AppendStencil([]byte("in front"), build(t, entries)); ok || string(out) != "in front" {
			t.Errorf("%s was taken", name)
		}
	}
	for name, raw := range map[string][]byte{"nothing": nil, "no page": bytes.Repeat([]byte{0xff}, 10_000), "cut": build(t, shaped(rng, 70, 8, 8, 92))[:5000]} {
		if out, ok := parts.AppendStencil([]byte("in front"), raw); ok || string(out) != "in front" {
			t.Errorf("%s was taken", name)
		}
	}
}

func TestGoldenStencil(t *testing.T) {
	var entries []entry
	for i := range 40 {
		value := append(bytes.Repeat([]byte{0xaa}, 40), byte(i), byte(i*i), byte(i*i*i))
		entries = append(entries, entry{string([]byte{'k', '/', byte(i), 1, 2}), record.Record{Kind: record.Inline, Value: value}})
	}
	stored, ok := parts.AppendStencil(nil, build(t, entries))
	if !ok {
		t.Fatal("not taken")
	}
	golden.Compare(t, "stencil.txt", hex.Dump(stored))
}

// FuzzStencil reads what may be anything.
func FuzzStencil(f *testing.F) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, entries := range [][]entry{shaped(rng, 70, 8, 8, 92), shaped(rng, 300, 0, 20, 3), shaped(rng, 90, 2, 6, 1, 6, 1, 6, 1)} {
		raw := build(f, entries)
		if stored, ok := parts.AppendStencil(nil, raw); ok {
			f.Add(stored, []byte(entries[3].key), len(raw))
		}
	}
	f.Fuzz(func(t *testing.T, stored, key []byte, length int) {
		if length >= 0 && length <= 1<<20 {
			_ = parts.Expand(make([]byte, length), stored)
		}
		n, err := parts.Covered(stored, len(stored))
		if err != nil {
			return
		}
		var table parts.Table
		if table.ParseStencil(stored[:n], len(stored)) != nil {
			return
		}
		for _, r := range []parts.Range{table.Find(key), table.All()} {
			from, length := table.Place(r)
			_ = table.Verify(r, stored[from:from+length])
			_, _, _ = page.Find(cut(&table, stored, r), key)
		}
	})
}

// FuzzAppendStencil stores what may be no page.
func FuzzAppendStencil(f *testing.F) {
	rng := rand.New(rand.NewPCG(7, 8))
	f.Add(build(f, shaped(rng, 70, 8, 8, 92)))
	f.Add(build(f, shaped(rng, 100, 2, 6, 1, 6, 1, 6, 1)))
	f.Add(binary.AppendUvarint(nil, 1<<40))
	f.Fuzz(func(t *testing.T, raw []byte) {
		stored, ok := parts.AppendStencil(nil, raw)
		if !ok {
			return
		}
		back := make([]byte, len(raw))
		if err := parts.Expand(back, stored); err != nil || !bytes.Equal(back, raw) {
			t.Fatalf("came back changed: %v", err)
		}
	})
}

func BenchmarkStencil(b *testing.B) {
	raw := build(b, shaped(rand.New(rand.NewPCG(9, 10)), 78, 8, 8, 92))
	stored, _ := parts.AppendStencil(nil, raw)
	b.Run("append", func(b *testing.B) {
		b.SetBytes(int64(len(raw)))
		for b.Loop() {
			stored, _ = parts.AppendStencil(stored[:0], raw)
		}
	})
	b.Run("expand", func(b *testing.B) {
		b.SetBytes(int64(len(raw)))
		back := make([]byte, len(raw))
		for b.Loop() {
			if err := parts.Expand(back, stored); err != nil {
				b.Fatal(err)
			}
		}
	})
}
