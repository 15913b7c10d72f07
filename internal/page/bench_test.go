package page_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/pandodb/pando/internal/page"
	"github.com/pandodb/pando/internal/record"
)

// leaf is a page as the benchmarks of the project fill it: random 16-byte keys, 100-byte values, 8 KiB.
func leaf(b *testing.B) (raw []byte, keys [][]byte) {
	var build page.Builder
	for i := 0; build.Size() < 8<<10; i++ {
		key := fmt.Appendf(nil, "%016x", uint64(i+1)*0x0123456789abcd)
		if err := build.Add(key, record.Record{Kind: record.Inline, Value: make([]byte, 100)}); err != nil {
			b.Fatal(err)
		}
		keys = append(keys, key)
	}
	return build.Append(nil), keys
}

func BenchmarkGet(b *testing.B) {
	raw, keys := leaf(b)
	p := load(b, raw)
	hashes := make([]uint64, len(keys))
	for i, k := range keys {
		hashes[i] = record.Hash(keyspace, k)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		n := i % len(keys)
		if _, ok := p.Get(hashes[n], keys[n]); !ok {
			b.Fatal("not found")
		}
	}
}

func BenchmarkGetAbsent(b *testing.B) {
	raw, keys := leaf(b)
	p := load(b, raw)
	for i := 0; b.Loop(); i++ {
		if _, ok := p.Get(uint64(i)*0x9e3779b97f4a7c15, keys[0][:15]); ok {
			b.Fatal("found")
		}
	}
}

func BenchmarkScan(b *testing.B) {
	raw, keys := leaf(b)
	p := load(b, raw)
	sum := 0
	b.ReportAllocs()
	for b.Loop() {
		for i, n := 0, p.Len(); i < n; i++ {
			suffix, r := p.Entry(i)
			sum += len(suffix) + len(r.Value)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(keys)), "ns/entry")
}

func BenchmarkScanInline(b *testing.B) {
	raw, keys := leaf(b)
	p := load(b, raw)
	sum := 0
	for b.Loop() {
		for i, n := 0, p.Len(); i < n; i++ {
			suffix, value, _ := p.Inline(i)
			sum += len(suffix) + len(value)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(keys)), "ns/entry")
}

func BenchmarkSearch(b *testing.B) {
	raw, keys := leaf(b)
	p := load(b, raw)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, ok := p.Search(keys[i*7%len(keys)]); !ok {
			b.Fatal("not found")
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	raw, keys := leaf(b)
	n, _ := page.ResidentSize(raw)
	mem := make([]byte, n)
	b.ReportAllocs()
	for b.Loop() {
		if err := page.Load(mem, raw, keyspace); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(keys)), "ns/entry")
}

func BenchmarkBuild(b *testing.B) {
	_, keys := leaf(b)
	var build page.Builder
	var raw, mem []byte
	value := make([]byte, 100)
	for _, form := range []string{"raw", "resident"} {
		b.Run(form, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				build.Reset()
				for i, k := range keys {
					binary.LittleEndian.PutUint64(value, uint64(i))
					if err := build.Add(k, record.Record{Kind: record.Inline, Value: value}); err != nil {
						b.Fatal(err)
					}
				}
				if form == "raw" {
					raw = build.Append(raw[:0])
					continue
				}
				if mem == nil {
					mem = make([]byte, build.ResidentSize())
				}
				if err := build.Load(mem, keyspace); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(keys)), "ns/entry")
		})
	}
}

func BenchmarkIterator(b *testing.B) {
	raw, keys := leaf(b)
	var it page.Iterator
	b.ReportAllocs()
	for b.Loop() {
		if err := it.Reset(raw); err != nil {
			b.Fatal(err)
		}
		for it.Next() {
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(keys)), "ns/entry")
}
