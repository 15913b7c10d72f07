package codec

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// BenchmarkEncodeUnseen is what an insert of many documents does with each: the proof that it is valid is made while it is encoded.
func BenchmarkEncodeUnseen(b *testing.B) {
	benchmark(b, func(b *testing.B, docs []bsoncore.Document) {
		c, _ := encoded(b, docs)
		for _, d := range docs { // the templates of whole documents
			if _, err := c.Encode(nil, d); err != nil {
				b.Fatal(err)
			}
		}
		var dst []byte
		i, proven := 0, 0
		for b.Loop() {
			var ok bool
			var err error
			if dst, ok, err = c.EncodeUnseen(dst[:0], docs[i%len(docs)]); err != nil {
				b.Fatal(err)
			}
			if ok {
				proven++
			}
			i++
		}
		b.ReportMetric(float64(proven)/float64(i), "proven/doc")
		b.ReportAllocs()
	})
}
