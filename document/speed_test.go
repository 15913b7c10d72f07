package document_test

import (
	"fmt"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"

	"github.com/pandodb/pando"
)

// speedBatch is the batch of the benchmarks.
const speedBatch = 16_000

func speedUsers(from, n int) []bson.Raw {
	list := make([]bson.Raw, n)
	for i := range list {
		k := from + i
		doc := bsoncore.NewDocumentBuilder().AppendInt64("_id", int64(k)).AppendString("name", fmt.Sprintf("name %d", k%317)).
			AppendString("email", fmt.Sprintf("user%d@example.com", k*7919%10_000_019)).AppendInt32("age", int32(k%60)).
			AppendString("city", fmt.Sprintf("city %d", k*31%1000)).AppendDateTime("created", 1_700_000_000_000+int64(k)*60_000).
			AppendDouble("score", float64(k%10_000)/100).AppendBoolean("active", k%3 > 0).Build()
		list[i] = bson.Raw(doc)
	}
	return list
}

func speedStore(b testing.TB, n int) *document.Collection {
	s, err := document.Open("db", &document.Options{
		Storage: pando.Options{FS: memfs.New(), MemoryBytes: 256 << 20, Profile: pando.Relaxed}, TTLInterval: -1, History: -1,
	})
	must(b, err)
	b.Cleanup(func() { must(b, s.Close()) })
	c := collection(b, s, "users", nil)
	for _, x := range []document.Index{{Keys: bson.D{{Key: "email", Value: 1}}, Unique: true}, {Keys: bson.D{{Key: "city", Value: 1}}}} {
		_, err := c.CreateIndex(ctx, x)
		must(b, err)
	}
	for at := 0; at < n; at += speedBatch {
		_, err := c.InsertMany(ctx, speedUsers(at, min(speedBatch, n-at)), nil)
		must(b, err)
	}
	return c
}

func BenchmarkInsertMany(b *testing.B) {
	c := speedStore(b, 0)
	at := 0
	for b.Loop() {
		b.StopTimer()
		docs := speedUsers(at, speedBatch)
		at += speedBatch
		b.StartTimer()
		_, err := c.InsertMany(ctx, docs, nil)
		must(b, err)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(at), "ns/doc")
}

func BenchmarkGetValueTo(b *testing.B) {
	c := speedStore(b, 50_000)
	key := make([]byte, 8)
	var dst bson.Raw
	i := 0
	for b.Loop() {
		i = (i + 7919) % 50_000
		var err error
		dst, err = c.GetValueTo(ctx, dst[:0], bson.RawValue{Type: bson.TypeInt64, Value: bsoncore.AppendInt64(key[:0], int64(i))})
		must(b, err)
	}
}

func BenchmarkFindUnique(b *testing.B) {
	c := speedStore(b, 50_000)
	i := 0
	for b.Loop() {
		i = (i + 7919) % 50_000
		_, err := c.FindOne(ctx, bson.D{{Key: "email", Value: fmt.Sprintf("user%d@example.com", i*7919%10_000_019)}}, nil)
		must(b, err)
	}
}

func BenchmarkFindTen(b *testing.B) {
	c := speedStore(b, 50_000)
	i := 0
	for b.Loop() {
		i = (i + 7919) % 50_000
		n := 0
		for _, err := range c.Find(ctx, bson.D{{Key: "city", Value: fmt.Sprintf("city %d", i%1000)}}, &document.FindOptions{Limit: 10}) {
			must(b, err)
			n++
		}
		if n != 10 {
			b.Fatal(n)
		}
	}
}

// BenchmarkGroup is groups of documents with eight fields: by records, by a covering index, and by one entry for each group.
func BenchmarkGroup(b *testing.B) {
	const n = 50_000
	c := speedStore(b, n)
	_, err := c.CreateIndex(ctx, document.Index{Keys: bson.D{{Key: "active", Value: 1}, {Key: "age", Value: 1}}})
	must(b, err)
	average := bson.D{{Key: "$avg", Value: "$age"}}
	for _, one := range []struct {
		name     string
		pipeline []bson.D
	}{
		{"records", []bson.D{{{Key: "$group", Value: bson.D{{Key: "_id", Value: "$age"}, {Key: "x", Value: bson.D{{Key: "$avg", Value: "$score"}}}}}}}},
		{"covered", []bson.D{{{Key: "$match", Value: bson.D{{Key: "active", Value: bson.D{{Key: "$gte", Value: false}}}}}}, {{Key: "$group", Value: bson.D{{Key: "_id", Value: "$active"}, {Key: "x", Value: average}}}}}},
		{"distinct", []bson.D{{{Key: "$group", Value: bson.D{{Key: "_id", Value: "$city"}}}}}},
		{"count", []bson.D{{{Key: "$match", Value: bson.D{{Key: "active", Value: true}}}}, {{Key: "$count", Value: "n"}}}},
	} {
		b.Run(one.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for _, err := range c.Aggregate(ctx, one.pipeline, nil) {
					must(b, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/doc")
		})
	}
}

// A read by primary key allocates nothing when the document fits.
func TestGetValueToAllocatesNothing(t *testing.T) {
	c := speedStore(t, 1000)
	id := bson.RawValue{Type: bson.TypeInt64, Value: bsoncore.AppendInt64(nil, 77)}
	dst := make(bson.Raw, 0, 1024)
	allocs := testing.AllocsPerRun(500, func() {
		if _, err := c.GetValueTo(ctx, dst[:0], id); err != nil {
			t.Error(err)
		}
	})
	if allocs >= 1 {
		t.Errorf("%v allocations", allocs)
	}
}

func BenchmarkOpenManyCollections(b *testing.B) {
	fs := memfs.New()
	o := &document.Options{Storage: pando.Options{FS: fs, MemoryBytes: 256 << 20, Profile: pando.Relaxed}, TTLInterval: -1, History: -1}
	s, err := document.Open("db", o)
	must(b, err)
	for i := range 300 {
		c := collection(b, s, fmt.Sprint("users", i), nil)
		_, err := c.CreateIndex(ctx, document.Index{Keys: bson.D{{Key: "email", Value: 1}}, Unique: true})
		must(b, err)
		_, err = c.InsertMany(ctx, speedUsers(0, 100), nil)
		must(b, err)
	}
	must(b, s.Close())
	for b.Loop() {
		s, err := document.Open("db", o)
		must(b, err)
		b.StopTimer()
		must(b, s.Close())
		b.StartTimer()
	}
}
