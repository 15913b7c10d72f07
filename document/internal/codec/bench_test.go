package codec

import (
	"encoding/binary"
	"fmt"
	"testing"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando"
)

// encoded returns a codec, and the records of documents after it has learnt templates and dictionaries from them.
func encoded(tb testing.TB, docs []bsoncore.Document) (*Codec, [][]byte) {
	tb.Helper()
	c, err := New(Template, newMemory())
	if err != nil {
		tb.Fatal(err)
	}
	records := make([][]byte, len(docs))
	for range 3 {
		for i, d := range docs {
			if records[i], err = c.Encode(nil, d); err != nil {
				tb.Fatal(err)
			}
		}
	}
	return c, records
}

func benchmark(b *testing.B, run func(b *testing.B, docs []bsoncore.Document)) {
	b.Run("flights", func(b *testing.B) { run(b, flights(20000)) })
	b.Run("users", func(b *testing.B) { run(b, users(20000)) })
	b.Run("packages", func(b *testing.B) { run(b, packages(20000)) })
}

func BenchmarkEncode(b *testing.B) {
	benchmark(b, func(b *testing.B, docs []bsoncore.Document) {
		c, _ := encoded(b, docs)
		var dst []byte
		i, bytes := 0, 0
		for b.Loop() {
			var err error
			if dst, err = c.Encode(dst[:0], docs[i%len(docs)]); err != nil {
				b.Fatal(err)
			}
			bytes += len(dst)
			i++
		}
		b.ReportMetric(float64(bytes)/float64(i), "bytes/record")
		b.ReportAllocs()
	})
}

func BenchmarkDecode(b *testing.B) {
	benchmark(b, func(b *testing.B, docs []bsoncore.Document) {
		c, records := encoded(b, docs)
		var dst []byte
		i := 0
		for b.Loop() {
			var err error
			if dst, err = c.Decode(dst[:0], records[i%len(docs)]); err != nil {
				b.Fatal(err)
			}
			i++
		}
		b.ReportAllocs()
	})
}

func BenchmarkView(b *testing.B) {
	for _, name := range []string{"year", "carrier", "dest", "distance", "time_hour"} {
		b.Run(name, func(b *testing.B) {
			c, records := encoded(b, flights(20000))
			v := c.NewView()
			i := 0
			for b.Loop() {
				if err := v.Reset(records[i%len(records)]); err != nil {
					b.Fatal(err)
				}
				if _, ok := v.Lookup(name); !ok {
					b.Fatal(name)
				}
				i++
			}
			b.ReportAllocs()
		})
	}
}

// BenchmarkScan is a filter on one field over a collection: an iteration is a document.
func BenchmarkScan(b *testing.B) {
	for _, leaf := range []int{8 << 10, 64 << 10} {
		b.Run(fmt.Sprintf("leaf=%dKiB", leaf>>10), func(b *testing.B) {
			docs := flights(100_000)
			c, records := encoded(b, docs)
			db, err := pando.Open(b.TempDir(), nil)
			if err != nil {
				b.Fatal(err)
			}
			defer db.Close()
			compression := pando.Zstd
			ks, err := db.Keyspace("records", &pando.KeyspaceOptions{Compression: &compression, LeafBytes: leaf})
			if err != nil {
				b.Fatal(err)
			}
			batch := db.NewBatch()
			for i, r := range records {
				if err := batch.In(ks).Put(key(docs[i], "_id", true), r); err != nil {
					b.Fatal(err)
				}
			}
			if err := db.Write(batch); err != nil {
				b.Fatal(err)
			}
			if err := db.Checkpoint(b.Context()); err != nil {
				b.Fatal(err)
			}
			v, found := c.NewView(), 0
			b.ResetTimer()
			for n := 0; n < b.N; {
				it := ks.Iter(nil)
				for ok := it.First(); ok && n < b.N; ok = it.Next() {
					if err := v.Reset(it.Value()); err != nil {
						b.Fatal(err)
					}
					if d, _ := v.Lookup("distance"); len(d.Data) == 4 && binary.LittleEndian.Uint32(d.Data) < 200 {
						found++
					}
					n++
				}
				if err := it.Close(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "Mdocs/s")
		})
	}
}
