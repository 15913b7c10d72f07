package codec

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
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
			if records[i], err = c.EncodeWithoutID(nil, d); err != nil {
				tb.Fatal(err)
			}
		}
	}
	return c, records
}

func benchmark(b *testing.B, run func(b *testing.B, docs []bsoncore.Document)) {
	b.Run("flights", func(b *testing.B) { run(b, flights(20000)) })
	b.Run("packages", func(b *testing.B) { run(b, packages(20000)) })
}

func BenchmarkEncode(b *testing.B) {
	benchmark(b, func(b *testing.B, docs []bsoncore.Document) {
		c, _ := encoded(b, docs)
		var dst []byte
		i, bytes := 0, 0
		for b.Loop() {
			var err error
			if dst, err = c.EncodeWithoutID(dst[:0], docs[i%len(docs)]); err != nil {
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
			id := bsoncore.Document(docs[i%len(docs)]).Index(0).Value()
			if dst, err = c.DecodeWithID(dst[:0], records[i%len(docs)], id); err != nil {
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
