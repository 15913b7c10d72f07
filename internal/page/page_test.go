package page_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"sort"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/page"
	"github.com/pandodb/pando/internal/record"
)

const keyspace = 7

type pair struct {
	Key    []byte
	Record record.Record
}

// build fills a builder and checks the size that it claims after each entry.
func build(t testing.TB, b *page.Builder, pairs []pair) []byte {
	t.Helper()
	b.Reset()
	for _, p := range pairs {
		if err := b.Add(p.Key, p.Record); err != nil {
			t.Fatal(err)
		}
		if got := b.Append(nil); len(pairs) < 64 && len(got) != b.Size() {
			t.Fatalf("Size %d, raw form %d", b.Size(), len(got))
		}
	}
	raw := b.Append(nil)
	if len(raw) != b.Size() {
		t.Fatalf("Size %d, raw form %d", b.Size(), len(raw))
	}
	return raw
}

// dirty returns memory full of what a recycled frame may hold.
func dirty(n int) []byte { return bytes.Repeat([]byte{0xA5}, n) }

func load(t testing.TB, raw []byte) page.Page {
	t.Helper()
	n, err := page.ResidentSize(raw)
	if err != nil {
		t.Fatal(err)
	}
	mem := dirty(n)
	if err := page.Load(mem, raw, keyspace); err != nil {
		t.Fatal(err)
	}
	return page.At(mem)
}

func sortedPairs(t *rapid.T) []pair {
	prefix := rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "prefix")
	keys := rapid.SliceOfNDistinct(rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 'a', 'b', 0xff}), 0, 9), 0, 200,
		func(k []byte) string { return string(k) }).Draw(t, "keys")
	var pairs []pair
	for i, k := range keys {
		r := record.Record{Kind: record.Kind(rapid.IntRange(0, 2).Draw(t, "kind"))}
		if r.Kind != record.Tombstone {
			n := rapid.SampledFrom([]int{0, 1, 15, 16, 28, 100, 2047, 2048}).Draw(t, "length")
			r.Value = bytes.Repeat([]byte{byte(i)}, n)
			if rapid.Bool().Draw(t, "expires") {
				r.Expiry = rapid.Uint64Min(1).Draw(t, "expiry")
			}
		}
		pairs = append(pairs, pair{append(append([]byte{}, prefix...), k...), r})
	}
	sort.Slice(pairs, func(i, j int) bool { return bytes.Compare(pairs[i].Key, pairs[j].Key) < 0 })
	return pairs
}

func sameRecord(a, b record.Record) bool {
	return a.Kind == b.Kind && a.Expiry == b.Expiry && bytes.Equal(a.Value, b.Value)
}

// checkPage compares everything that a page answers with the sorted pairs it was made of.
func checkPage(t testing.TB, p page.Page, pairs []pair, probes [][]byte) {
	t.Helper()
	if p.Len() != len(pairs) {
		t.Fatalf("Len %d, want %d", p.Len(), len(pairs))
	}
	for i, want := range pairs {
		suffix, r := p.Entry(i)
		if key := append(bytes.Clone(p.Prefix()), suffix...); !bytes.Equal(key, want.Key) || !sameRecord(r, want.Record) {
			t.Fatalf("entry %d: %x %v, want %x %v", i, key, r, want.Key, want.Record)
		}
		if !bytes.Equal(p.AppendKey(nil, i), want.Key) || !sameRecord(p.Record(i), want.Record) {
			t.Fatalf("entry %d: AppendKey or Record differ from Entry", i)
		}
		probes = append(probes, want.Key, append(bytes.Clone(want.Key), 0))
		if n := len(want.Key); n > 0 {
			probes = append(probes, want.Key[:n-1])
		}
	}
	for _, key := range probes {
		at := sort.Search(len(pairs), func(i int) bool { return bytes.Compare(pairs[i].Key, key) >= 0 })
		exact := at < len(pairs) && bytes.Equal(pairs[at].Key, key)
		if i, ok := p.Search(key); i != at || ok != exact {
			t.Fatalf("Search(%x) = %d %v, want %d %v", key, i, ok, at, exact)
		}
		hash := record.Hash(keyspace, key)
		r, ok := p.Get(hash, key)
		if ok != exact || exact && !sameRecord(r, pairs[at].Record) {
			t.Fatalf("Get(%x) = %v %v, want %v", key, r, ok, exact)
		}
		if i, ok := p.Lookup(hash, key); ok != exact || exact && i != at {
			t.Fatalf("Lookup(%x) = %d %v, want %d %v", key, i, ok, at, exact)
		}
		r, ok, err := page.Find(p.Raw(), key)
		if err != nil || ok != exact || exact && !sameRecord(r, pairs[at].Record) {
			t.Fatalf("Find(%x) = %v %v %v, want %v", key, r, ok, err, exact)
		}
	}
}

func TestModel(t *testing.T) {
	var b page.Builder
	var it page.Iterator
	rapid.Check(t, func(rt *rapid.T) {
		pairs := sortedPairs(rt)
		probes := rapid.SliceOf(rapid.SliceOfN(rapid.Byte(), 0, 6)).Draw(rt, "probes")
		raw := build(t, &b, pairs)
		checkPage(t, load(t, raw), pairs, probes)

		mem := dirty(b.ResidentSize())
		if err := b.Load(mem, keyspace); err != nil {
			rt.Fatal(err)
		}
		built := page.At(mem)
		checkPage(t, built, pairs, probes)
		if !bytes.Equal(built.Raw(), raw) {
			rt.Fatal("Builder.Load and Builder.Append make different raw bytes")
		}

		var got []pair
		if err := it.Reset(raw); err != nil {
			rt.Fatal(err)
		}
		for it.Next() {
			r := it.Record()
			r.Value = bytes.Clone(r.Value)
			got = append(got, pair{bytes.Clone(it.Key()), r})
		}
		if it.Err() != nil || len(got) != len(pairs) {
			rt.Fatalf("iterator: %d of %d entries, %v", len(got), len(pairs), it.Err())
		}
		for i := range got {
			if !bytes.Equal(got[i].Key, pairs[i].Key) || !sameRecord(got[i].Record, pairs[i].Record) {
				rt.Fatalf("iterator, entry %d: %s", i, cmp.Diff(pairs[i], got[i]))
			}
		}
	})
}

// A page of as many tiny entries as one may hold fills the offsets' 20 bits.
func TestLargest(t *testing.T) {
	var b page.Builder
	var pairs []pair
	rnd := rand.New(rand.NewPCG(1, 1))
	for i := 0; ; i++ {
		key := []byte{byte(i >> 16), byte(i >> 8), byte(i)}
		r := record.Record{Kind: record.Inline, Value: make([]byte, rnd.IntN(4))}
		if err := b.Add(key, r); errors.Is(err, page.ErrFull) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		pairs = append(pairs, pair{key, r})
	}
	raw := b.Append(nil)
	if len(raw) > page.MaxRaw || len(raw) < page.MaxRaw-16 || len(raw) != b.Size() {
		t.Fatalf("raw form of %d bytes, Size %d", len(raw), b.Size())
	}
	p := load(t, raw)
	for i, want := range pairs {
		if j, ok := p.Lookup(record.Hash(keyspace, want.Key), want.Key); !ok || j != i {
			t.Fatalf("Lookup of key %d: %d %v", i, j, ok)
		}
		if j, ok := p.Search(want.Key); !ok || j != i {
			t.Fatalf("Search of key %d: %d %v", i, j, ok)
		}
	}
	if _, err := page.ResidentSize(make([]byte, page.MaxRaw+1)); !errors.Is(err, corrupt.Err) {
		t.Fatalf("too long a page: %v", err)
	}
}

// The longest key with the longest value makes a legal page of one entry, and a longer one is refused.
func TestLimits(t *testing.T) {
	var b page.Builder
	long := bytes.Repeat([]byte{'k'}, record.MaxKey)
	value := bytes.Repeat([]byte{'v'}, record.MaxInline)
	pairs := []pair{
		{nil, record.Record{Kind: record.Inline}},
		{long[:100], record.Record{Kind: record.Apart, Value: value[:28], Expiry: 1 << 63}},
		{long[:300], record.Record{Kind: record.Tombstone}},
		{long, record.Record{Kind: record.Inline, Value: value, Expiry: 5}},
	}
	checkPage(t, load(t, build(t, &b, pairs)), pairs, nil)
	if b.LeastExpiry() != 5 || b.Count() != 4 || !bytes.Equal(b.AppendLastKey(nil), long) {
		t.Fatal("the builder's counts are wrong")
	}
	checkPage(t, load(t, build(t, &b, pairs[3:])), pairs[3:], nil)

	size := b.Size()
	for _, bad := range []struct {
		key  []byte
		r    record.Record
		want error
	}{
		{append(long, 'k'), record.Record{Kind: record.Inline}, page.ErrTooLarge},
		{[]byte("l"), record.Record{Kind: record.Inline, Value: append(value, 'v')}, page.ErrTooLarge},
		{long, record.Record{Kind: record.Inline}, page.ErrOrder},
		{[]byte("a"), record.Record{Kind: record.Inline}, page.ErrOrder},
		{[]byte("l"), record.Record{Kind: record.Tombstone, Value: value}, nil},
		{[]byte("l"), record.Record{Kind: 3}, nil},
	} {
		err := b.Add(bad.key, bad.r)
		if err == nil || bad.want != nil && !errors.Is(err, bad.want) {
			t.Errorf("Add of %d bytes: %v, want %v", len(bad.key), err, bad.want)
		}
	}
	if b.Size() != size || b.Count() != 1 {
		t.Fatal("a refused entry changed the builder")
	}
	if err := b.Load(make([]byte, b.ResidentSize()-1), keyspace); !errors.Is(err, page.ErrShort) {
		t.Fatalf("too little memory: %v", err)
	}
}

// Keys that have less and less in common with the first are written anew each time, whatever the lengths of their numbers become.
func TestPrefixGetsShorter(t *testing.T) {
	var b page.Builder
	var pairs []pair
	for i := range 300 {
		key := append(bytes.Repeat([]byte{'a'}, 299-i), 'b')
		r := record.Record{Kind: record.Inline, Value: bytes.Repeat([]byte{byte(i)}, i)}
		switch i % 4 {
		case 1:
			r = record.Record{Kind: record.Tombstone}
		case 2:
			r.Expiry = uint64(1) << (i % 64)
		case 3:
			r.Kind = record.Apart
		}
		pairs = append(pairs, pair{key, r})
		if i%50 == 0 || i == 299 {
			checkPage(t, load(t, build(t, &b, pairs)), pairs, nil)
			mem := dirty(b.ResidentSize())
			if err := b.Load(mem, keyspace); err != nil {
				t.Fatal(err)
			}
			checkPage(t, page.At(mem), pairs, nil)
			if last := b.AppendLastKey([]byte("x")); string(last) != "x"+string(key) {
				t.Fatalf("last key %q, want %q", last[1:], key)
			}
		}
	}
}

// An entry that would make the page too large only because its key shares nothing with the others leaves them as they are.
func TestPrefixTooDearToShorten(t *testing.T) {
	var b page.Builder
	var pairs []pair
	prefix := bytes.Repeat([]byte{'k'}, 1000)
	for i := range 2000 {
		key := append(bytes.Clone(prefix), byte(i>>8), byte(i))
		pairs = append(pairs, pair{key, record.Record{Kind: record.Inline, Value: []byte{byte(i)}}})
	}
	before := build(t, &b, pairs)
	if err := b.Add([]byte("l"), record.Record{Kind: record.Inline}); !errors.Is(err, page.ErrFull) {
		t.Fatalf("2,000 entries that grow by 1,000 bytes each: %v", err)
	}
	if after := b.Append(nil); !bytes.Equal(after, before) || b.Size() != len(before) {
		t.Fatal("a refused entry changed the builder")
	}
}

func TestEmpty(t *testing.T) {
	var b page.Builder
	checkPage(t, load(t, b.Append(nil)), nil, [][]byte{nil, {1}})
	if !(page.Page{}).IsZero() || load(t, b.Append(nil)).IsZero() {
		t.Fatal("IsZero")
	}
}
