package execute_test

import (
	"context"
	"fmt"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/codec"
	"github.com/pandodb/pando/document/internal/execute"
	"github.com/pandodb/pando/document/internal/plan"
)

// flights makes documents like those of the flights fixture: 19 fields, most of them numbers.
func flights(b testing.TB, n int) *fixture {
	f := newFixture(b, codec.Template)
	f.index(bson.D{{Key: "key", Value: bson.D{{Key: "serial", Value: 1}}}, {Key: "unique", Value: true}})
	f.index(bson.D{{Key: "key", Value: bson.D{{Key: "tailnum", Value: 1}}}})
	f.index(bson.D{{Key: "key", Value: bson.D{{Key: "origin", Value: 1}, {Key: "dep_delay", Value: 1}}}})
	carriers := []string{"UA", "AA", "B6", "DL", "EV", "MQ", "US", "WN"}
	origins := []string{"EWR", "LGA", "JFK"}
	for i := range n {
		hour := int32(i % 24)
		doc := encode(b, bson.D{
			{Key: "_id", Value: int32(i)}, {Key: "year", Value: int32(2013)}, {Key: "month", Value: int32(i%12 + 1)}, {Key: "day", Value: int32(i%28 + 1)},
			{Key: "dep_time", Value: hour*100 + int32(i%60)}, {Key: "sched_dep_time", Value: hour * 100}, {Key: "dep_delay", Value: int32(i%97) - 10},
			{Key: "arr_time", Value: hour*100 + 230}, {Key: "sched_arr_time", Value: hour*100 + 220}, {Key: "arr_delay", Value: int32(i%89) - 15},
			{Key: "carrier", Value: carriers[i%len(carriers)]}, {Key: "flight", Value: int32(i % 5000)}, {Key: "tailnum", Value: fmt.Sprintf("N%05d", i%4000)},
			{Key: "origin", Value: origins[i%3]}, {Key: "dest", Value: fmt.Sprintf("D%02d", i%100)}, {Key: "air_time", Value: int32(i % 400)},
			{Key: "distance", Value: int32(i % 3000)}, {Key: "hour", Value: hour}, {Key: "minute", Value: int32(i % 60)}, {Key: "serial", Value: int32(n - i)},
		})
		if !f.insert(doc) {
			b.Fatal("not taken")
		}
	}
	return f
}

// drain runs a plan and returns how many rows it gives.
func drain(b testing.TB, f *fixture, r execute.Reader, p *plan.Plan) (n int) {
	cur, err := execute.Open(context.Background(), r, f.c, p, nil)
	if err != nil {
		b.Fatal(err)
	}
	for cur.Next() {
		n++
	}
	if err := cur.Err(); err != nil {
		b.Fatal(err)
	}
	if err := cur.Close(); err != nil {
		b.Fatal(err)
	}
	return n
}

func BenchmarkCollectionScan(b *testing.B) {
	const records = 50_000
	f := flights(b, records)
	if err := f.db.Checkpoint(context.Background()); err != nil {
		b.Fatal(err)
	}
	r := f.reader()
	for _, one := range []struct {
		name   string
		filter bson.D
	}{
		{"number", bson.D{{Key: "distance", Value: bson.D{{Key: "$gt", Value: 2990}}}}},
		{"text", bson.D{{Key: "dest", Value: "D42"}}},
		{"both", bson.D{{Key: "carrier", Value: "UA"}, {Key: "arr_delay", Value: bson.D{{Key: "$gt", Value: 60}}}}},
		{"none", bson.D{}},
	} {
		b.Run(one.name, func(b *testing.B) {
			q := f.query(one.filter)
			if len(one.filter) > 0 {
				q.Hint = bsoncore.Value{Type: bsoncore.TypeEmbeddedDocument, Data: encode(b, bson.D{{Key: "$natural", Value: 1}})}
			}
			p := f.choose(r, q)
			for b.Loop() {
				drain(b, f, r, p)
			}
			b.ReportMetric(float64(records)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mdocs/s")
		})
	}
}

// BenchmarkQuery is the whole way of a query: parsed already, planned and run.
func BenchmarkQuery(b *testing.B) {
	f := flights(b, 20_000)
	r := f.reader()
	for _, one := range []struct {
		name   string
		filter bson.D
	}{
		{"id", bson.D{{Key: "_id", Value: 777}}},
		{"unique", bson.D{{Key: "serial", Value: 777}}},
		{"five of an index", bson.D{{Key: "tailnum", Value: "N00777"}}},
		{"two indexes", bson.D{{Key: "tailnum", Value: "N00777"}, {Key: "origin", Value: "JFK"}}},
	} {
		q := f.query(one.filter)
		b.Run(one.name+"/plan", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f.choose(r, q)
			}
		})
		b.Run(one.name+"/run", func(b *testing.B) {
			b.ReportAllocs()
			p := f.choose(r, q)
			for b.Loop() {
				if drain(b, f, r, p) == 0 {
					b.Fatal("nothing found")
				}
			}
		})
	}
}
