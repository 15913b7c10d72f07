package aggregate

import (
	"context"
	"fmt"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

const benchDocuments = 100_000

// benchCollection is documents like those of flights: strings, numbers, an array, and much that no stage looks at.
func benchCollection(b *testing.B) []document {
	var docs []document
	for i := range benchDocuments {
		doc, err := bson.Marshal(bson.D{
			{Key: "_id", Value: i}, {Key: "year", Value: 2013}, {Key: "month", Value: i%12 + 1}, {Key: "carrier", Value: fmt.Sprintf("C%02d", i%16)},
			{Key: "delay", Value: float64(i%97) - 20}, {Key: "distance", Value: i % 3000}, {Key: "origin", Value: "JFK"},
			{Key: "tags", Value: bson.A{"a", "b", "c"}}, {Key: "o", Value: bson.D{{Key: "k", Value: i % 7}}},
		})
		if err != nil {
			b.Fatal(err)
		}
		docs = append(docs, doc)
	}
	return docs
}

// benchEnvironment answers Find with documents that are there.
type benchEnvironment struct {
	memory
	docs []document
}

func (e *benchEnvironment) Find(context.Context, string, string, *Request) (Cursor, error) {
	return &listCursor{docs: e.docs}, nil
}

func benchPipeline(b *testing.B, stages ...string) {
	var pipeline []document
	for _, s := range stages {
		var doc bson.D
		if err := bson.UnmarshalExtJSON([]byte(s), false, &doc); err != nil {
			b.Fatal(err)
		}
		raw, err := bson.Marshal(doc)
		if err != nil {
			b.Fatal(err)
		}
		pipeline = append(pipeline, raw)
	}
	p, err := Parse(pipeline, &Options{Database: "test", Collection: "c", MemoryBytes: 1 << 30})
	if err != nil {
		b.Fatal(err)
	}
	env := &benchEnvironment{docs: benchCollection(b)}
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		c, err := p.Run(ctx, env)
		if err != nil {
			b.Fatal(err)
		}
		if err := drain(ctx, c, func(document) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchDocuments, "ns/doc")
}

func BenchmarkRead(b *testing.B) { benchPipeline(b, `{"$limit": 1000000}`) }

func BenchmarkGroupSumAvg(b *testing.B) {
	benchPipeline(b, `{"$group": {"_id": "$carrier", "n": {"$sum": 1}, "delay": {"$avg": "$delay"}, "far": {"$sum": "$distance"}}}`)
}

func BenchmarkGroupTwoKeys(b *testing.B) {
	benchPipeline(b, `{"$group": {"_id": {"c": "$carrier", "m": "$month"}, "delay": {"$avg": "$delay"}}}`)
}

func BenchmarkGroupManyKeys(b *testing.B) {
	benchPipeline(b, `{"$group": {"_id": "$_id", "n": {"$sum": 1}}}`)
}

func BenchmarkMatch(b *testing.B) {
	benchPipeline(b, `{"$limit": 1000000}`, `{"$match": {"carrier": "C03", "delay": {"$gt": 10}}}`)
}

func BenchmarkSort(b *testing.B) {
	benchPipeline(b, `{"$limit": 1000000}`, `{"$sort": {"delay": -1, "distance": 1}}`)
}

func BenchmarkTopK(b *testing.B) {
	benchPipeline(b, `{"$limit": 1000000}`, `{"$sort": {"delay": -1}}`, `{"$limit": 10}`)
}

func BenchmarkUnwind(b *testing.B) {
	benchPipeline(b, `{"$unwind": "$tags"}`)
}

func BenchmarkWindowSum(b *testing.B) {
	benchPipeline(b, `{"$setWindowFields": {"partitionBy": "$carrier", "sortBy": {"_id": 1}, "output": {"s": {"$sum": "$delay", "window": {"documents": ["unbounded", "current"]}}}}}`)
}

func BenchmarkWindowSliding(b *testing.B) {
	benchPipeline(b, `{"$setWindowFields": {"partitionBy": "$carrier", "sortBy": {"_id": 1}, "output": {"s": {"$avg": "$delay", "window": {"documents": [-1000, 0]}}}}}`)
}
