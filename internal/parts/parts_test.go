package parts_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/pandodb/pando/internal/page"
	"github.com/pandodb/pando/internal/parts"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/test/golden"
)

// entry is what a test puts into a page.
type entry struct {
	key    string
	record record.Record
}

// build makes a page.
func build(t testing.TB, entries []entry) []byte {
	t.Helper()
	var b page.Builder
	for _, e := range entries {
		if err := b.Add([]byte(e.key), e.record); err != nil {
			t.Fatal(err)
		}
	}
	return b.Append(nil)
}

// pages are of the kinds that there are: keys of different and of the same beginnings, entries of all lengths.
func pages() map[string][]entry {
	rng := rand.New(rand.NewPCG(1, 2))
	value := func(n int) record.Record {
		v := make([]byte, n)
		for i := range v {
			v[i] = byte(rng.Uint32())
		}
		return record.Record{Kind: record.Inline, Value: v}
	}
	all := map[string][]entry{}
	add := func(name, key string, n int, r func(i int) record.Record) {
		for i := range n {
			all[name] = append(all[name], entry{fmt.Sprintf(key, i), r(i)})
		}
	}
	add("usual", "key/%08x", 70, func(int) record.Record { return value(100) })
	var alike []entry // the beginnings of their keys do not tell them apart
	for i := range 10 {
		for _, s := range []string{"", "\x00", "aaaa", "aaaaa1", "aaaaa2"} {
			alike = append(alike, entry{fmt.Sprint("p", i, s), value(90)})
		}
	}
	all["alike"] = alike
	add("many small ones", "%06d", 3000, func(int) record.Record { return record.Record{Kind: record.Inline} })
	add("a large one among small ones", "%06d", 40, func(i int) record.Record { return value(20 + i/39*60_000) })
	add("expiries", "key/%03d", 60, func(i int) record.Record {
		r := value(50)
		r.Expiry = uint64(i) << 20
		return r
	})
	return all
}

// excerpt is what a reader of key makes of a stored page.
func excerpt(t *testing.T, stored []byte, key string) []byte {
	t.Helper()
	n, err := parts.Covered(stored, len(stored))
	if err != nil {
		t.Fatal(err)
	}
	var table parts.Table
	if err := table.Parse(stored[:n], len(stored)); err != nil {
		t.Fatal(err)
	}
	r := table.Find([]byte(key))
	from, length := table.Place(r)
	if err := table.Verify(r, stored[from:from+length]); err != nil {
		t.Fatal(err)
	}
	return append(table.AppendBeginning(nil, r), stored[from:from+length]...)
}

func TestExcerptsHaveTheirKeys(t *testing.T) {
	for name, entries := range pages() {
		t.Run(name, func(t *testing.T) {
			raw := build(t, entries)
			stored, ok := parts.Append([]byte("in front"), raw)
			if !ok {
				t.Fatalf("a page of %d bytes was not taken", len(raw))
			}
			stored = stored[len("in front"):]
			back, err := parts.Page(stored)
			if err != nil || !bytes.Equal(back, raw) {
				t.Fatalf("came back changed: %v", err)
			}
			read := 0
			for _, e := range entries {
				part := excerpt(t, stored, e.key)
				read += len(part)
				r, found, err := page.Find(part, []byte(e.key))
				if err != nil || !found || !bytes.Equal(r.Value, e.record.Value) || r.Expiry != e.record.Expiry {
					t.Fatalf("key %q in its excerpt: %v, %v", e.key, found, err)
				}
				for _, absent := range []string{e.key + "\x00", e.key[:len(e.key)-1], "", "zzz"} {
					want, there, _ := page.Find(raw, []byte(absent))
					got, found, err := page.Find(excerpt(t, stored, absent), []byte(absent))
					if err != nil || found != there || found && !bytes.Equal(got.Value, want.Value) {
						t.Fatalf("key %q: %v, %v", absent, found, err)
					}
				}
			}
			if average := read / len(entries); name == "usual" && average > len(raw)/4 {
				t.Errorf("excerpts of a page of %d bytes have %d on the average", len(raw), average)
			}
		})
	}
}

func TestWhatIsNotTaken(t *testing.T) {
	long := make([]entry, 20)
	for i := range long {
		long[i] = entry{strings.Repeat("prefix", 100) + fmt.Sprintf("%02d", i), record.Record{Kind: record.Inline, Value: make([]byte, 200)}}
	}
	for name, raw := range map[string][]byte{
		"nothing":       nil,
		"empty":         build(t, nil),
		"short":         build(t, pages()["usual"][:5]),
		"a long prefix": build(t, long),
		"no page":       bytes.Repeat([]byte{0xff}, 10_000),
		"cut":           build(t, pages()["usual"])[:5000],
	} {
		if out, ok := parts.Append([]byte("in front"), raw); ok || string(out) != "in front" {
			t.Errorf("%s was taken", name)
		}
	}
}

// TestDamageIsFound: whatever byte of a stored page changes, the table's checksum would not hold, or that of the part does not.
func TestDamageIsFound(t *testing.T) {
	raw := build(t, pages()["usual"])
	stored, _ := parts.Append(nil, raw)
	n, err := parts.Covered(stored, len(stored))
	if err != nil {
		t.Fatal(err)
	}
	var table parts.Table
	if err := table.Parse(bytes.Clone(stored[:n]), len(stored)); err != nil {
		t.Fatal(err)
	}
	from, length := table.Place(table.All())
	if from != n || from+length != len(stored) {
		t.Fatalf("parts from %d, %d bytes, in %d of which %d are covered", from, length, len(stored), n)
	}
	for i := n; i < len(stored); i++ {
		stored[i] ^= 0x10
		if table.Verify(table.All(), stored[from:]) == nil {
			t.Errorf("byte %d may be anything", i)
		}
		stored[i] ^= 0x10
	}
}

func TestGoldenBytes(t *testing.T) {
	var entries []entry
	for i := range 3 {
		entries = append(entries, entry{fmt.Sprint("key/", i), record.Record{Kind: record.Inline, Value: bytes.Repeat([]byte{byte(i)}, 600)}})
	}
	stored, ok := parts.Append(nil, build(t, entries))
	if !ok {
		t.Fatal("not taken")
	}
	golden.Compare(t, "parts.txt", hex.Dump(stored[:96]))
}

// FuzzTable reads what may be anything.
func FuzzTable(f *testing.F) {
	for _, entries := range pages() {
		if stored, ok := parts.Append(nil, build(f, entries)); ok && len(stored) < 20_000 {
			f.Add(stored, []byte(entries[3].key))
		}
	}
	f.Fuzz(func(t *testing.T, stored, key []byte) {
		n, err := parts.Covered(stored, len(stored))
		if err != nil {
			return
		}
		var table parts.Table
		if err := table.Parse(stored[:n], len(stored)); err != nil {
			return
		}
		for _, r := range []parts.Range{table.Find(key), table.All()} {
			from, length := table.Place(r)
			_ = table.Verify(r, stored[from:from+length])
			part := append(table.AppendBeginning(nil, r), stored[from:from+length]...)
			_, _, _ = page.Find(part, key)
		}
		if raw, err := parts.Page(stored); err != nil || len(raw) > len(stored) {
			t.Fatalf("a table without a page: %v", err)
		}
	})
}

// FuzzAppend stores what may be no page.
func FuzzAppend(f *testing.F) {
	for _, entries := range pages() {
		f.Add(build(f, entries))
	}
	f.Add(binary.AppendUvarint(nil, 1<<40))
	f.Fuzz(func(t *testing.T, raw []byte) {
		stored, ok := parts.Append(nil, raw)
		if !ok {
			return
		}
		if back, err := parts.Page(stored); err != nil || !bytes.Equal(back, raw) {
			t.Fatalf("came back changed: %v", err)
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	raw := build(b, pages()["usual"])
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	var stored []byte
	for b.Loop() {
		stored, _ = parts.Append(stored[:0], raw)
	}
}

// BenchmarkFind is what a reader of one key does with the table.
func BenchmarkFind(b *testing.B) {
	entries := pages()["usual"]
	stored, _ := parts.Append(nil, build(b, entries))
	key := []byte(entries[len(entries)/2].key)
	b.ReportAllocs()
	var beginning []byte
	for b.Loop() {
		n, _ := parts.Covered(stored, len(stored))
		var table parts.Table
		if err := table.Parse(stored[:n], len(stored)); err != nil {
			b.Fatal(err)
		}
		beginning = table.AppendBeginning(beginning[:0], table.Find(key))
	}
}
