package document_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// measured fills a time series with measurements of several sensors, over more time than a bucket spans, with late ones.
func measured(t testing.TB, c *document.Collection) {
	t.Helper()
	var docs []bson.D
	for i := range 3000 {
		d := bson.D{{Key: "at", Value: bson.DateTime(i * 7919 % 9_000_000)}, {Key: "sensor", Value: bson.D{{Key: "s", Value: i % 3}}}, {Key: "_id", Value: i}}
		if i%5 > 0 {
			d = append(d, bson.E{Key: "v", Value: float64(i) / 4})
		}
		if i%50 == 0 {
			d = append(d, bson.E{Key: "v2", Value: bson.A{i, "x"}})
		}
		docs = append(docs, d)
	}
	docs = append(docs, bson.D{{Key: "at", Value: bson.DateTime(5)}, {Key: "_id", Value: "without a sensor"}})
	_, err := c.InsertMany(ctx, docs, nil)
	must(t, err)
}

// lines returns all documents of a collection as text, sorted.
func lines(t testing.TB, c *document.Collection, filter string) []string {
	t.Helper()
	var list []string
	for doc, err := range c.Find(ctx, document.JSON(filter), nil) {
		must(t, err)
		list = append(list, doc.String())
	}
	slices.Sort(list)
	return list
}

// TestBucketsMoveATimeSeries reads the buckets of a time series, and inserts them into another one, as mongodump and mongorestore do.
func TestBucketsMoveATimeSeries(t *testing.T) {
	s := open(t, memfs.New())
	from, to := series(t, s, "from", weather), series(t, s, "to", weather)
	measured(t, from)
	db := s.Database("test")
	buckets := db.Lookup("system.buckets.from")
	var docs []bson.Raw
	var total int64
	for doc, err := range buckets.Find(ctx, nil, nil) {
		must(t, err)
		first, last := doc.Lookup("control", "min", "at").DateTime(), doc.Lookup("control", "max", "at").DateTime()
		if last-first >= 3_600_000 || first%60_000 != 0 || doc.Lookup("control", "version").Int32() != 1 {
			t.Errorf("a bucket from %d to %d: %s", first, last, doc.Lookup("control"))
		}
		times, err := doc.Lookup("data", "at").Document().Elements()
		must(t, err)
		total += int64(len(times))
		docs = append(docs, bson.Raw(slices.Clone(doc)))
	}
	if total != 3001 || len(docs) != 10 {
		t.Errorf("%d measurements in %d buckets", total, len(docs))
	}
	n, err := buckets.Count(ctx, nil, nil)
	must(t, err)
	if n != int64(len(docs)) {
		t.Errorf("%d buckets were counted of %d", n, len(docs))
	}
	n2, err := db.Lookup("system.buckets.to").InsertMany(ctx, docs, &document.InsertOptions{Ordered: true})
	if must(t, err); n2 != len(docs) {
		t.Errorf("%d buckets were stored of %d", n2, len(docs))
	}
	if got, want := lines(t, to, `{}`), lines(t, from, `{}`); !slices.Equal(got, want) {
		t.Errorf("%d measurements arrived, of %d", len(got), len(want))
	}
	if got, want := lines(t, db.Lookup("system.buckets.to"), `{"meta.s": 1}`), 3; len(got) != want {
		t.Errorf("%d buckets are of sensor 1, want %d", len(got), want)
	}
}

func TestBucketsAreReadAsACollection(t *testing.T) {
	s := open(t, memfs.New())
	c := series(t, s, "weather", weather)
	measured(t, c)
	buckets := s.Database("test").Lookup("system.buckets.weather")
	o := &document.FindOptions{Sort: document.JSON(`{"meta.s": -1, "_id": 1}`), Skip: 1, Limit: 2, Projection: document.JSON(`{"_id": 0, "meta": 1}`)}
	expect(t, "sorted", find(t, buckets, `{}`, o), "{\"meta\":{\"s\":2}}\n{\"meta\":{\"s\":2}}\n")
	var rows []string
	for doc, err := range buckets.Aggregate(ctx, []document.JSON{`{"$group": {"_id": "$meta.s", "n": {"$sum": 1}}}`, `{"$sort": {"_id": 1}}`}, nil) {
		must(t, err)
		rows = append(rows, text(t, doc))
	}
	expect(t, "grouped", fmt.Sprint(rows), `[{"_id":null,"n":1} {"_id":0,"n":3} {"_id":1,"n":3} {"_id":2,"n":3}]`)
	values, err := buckets.Distinct(ctx, "meta.s", nil, nil)
	if must(t, err); len(values) != 3 {
		t.Errorf("the metas are %v", values)
	}
	if list, err := buckets.Indexes(ctx); err != nil || len(list) > 0 {
		t.Errorf("buckets have the indexes %v, %v", list, err)
	}
	_, updateErr := buckets.Update(ctx, document.JSON(`{}`), document.JSON(`{"$set": {"meta": 1}}`), nil)
	_, deleteErr := buckets.Delete(ctx, document.JSON(`{}`), nil)
	createErr := s.Database("test").Create(ctx, "system.buckets.weather", document.JSON(`{}`))
	for what, got := range map[string]struct {
		err  error
		code document.Code
	}{"update": {updateErr, 115}, "delete": {deleteErr, 115}, "create": {createErr, 48}} {
		if document.CodeOf(got.err) != got.code {
			t.Errorf("%s of buckets: %v, want the code %d", what, got.err, got.code)
		}
	}
	must(t, buckets.Drop(ctx))
	if c.IsTimeSeries() {
		t.Error("the time series is there without its buckets")
	}
}

// A bucket that cannot be stored stops those behind it, or not; none is stored in part.
func TestBucketsThatCannotBeStored(t *testing.T) {
	s := open(t, memfs.New())
	c := series(t, s, "weather", weather)
	bucket := func(id int, data string) document.JSON {
		return document.JSON(fmt.Sprintf(`{"_id": {"$oid": "65920080c83b361afb6b850%d"}, "control": {"version": 1, "min": {"at": {"$date": "2024-01-01T00:00:00Z"}},
			"max": {"at": {"$date": "2024-01-01T00:00:00Z"}}}, "meta": %d, "data": {"at": {"0": {"$date": "2024-01-01T00:00:00Z"}, "1": {"$date": "2024-01-01T00:00:00Z"}}, %s}}`, id, id, data))
	}
	good := `"v": {"0": 1}`
	docs := []document.JSON{bucket(0, good), bucket(1, `"v": {"5": 1}`), bucket(2, good), bucket(3, `"at": {"0": 7, "1": 8}`), bucket(4, good)}
	for _, o := range []document.InsertOptions{{Ordered: true}, {Unordered: true}} {
		_, err := c.Delete(ctx, document.JSON(`{}`), &document.DeleteOptions{Many: true})
		must(t, err)
		n, err := s.Database("test").Lookup("system.buckets.weather").InsertMany(ctx, docs, &o)
		var failed document.WriteErrors
		if !errors.As(err, &failed) {
			t.Fatalf("%+v: %v", o, err)
		}
		wantN, wantFailed := 1, "[1]"
		if o.Unordered {
			wantN, wantFailed = 3, "[1 3]"
		}
		var which []int
		for _, f := range failed {
			which = append(which, f.Index)
		}
		if count, err := c.Count(ctx, nil, nil); n != wantN || fmt.Sprint(which) != wantFailed || count != int64(2*wantN) || err != nil {
			t.Errorf("%+v: %d buckets with %d measurements were stored, and %v failed: %v", o, n, count, which, err)
		}
	}
}

// A bucket that is sent again, as clients do that did not hear of the outcome, is stored once.
func TestBucketsAreStoredOnce(t *testing.T) {
	s := open(t, memfs.New())
	from, to := series(t, s, "from", weather), series(t, s, "to", weather)
	measured(t, from)
	var docs []bson.Raw
	for doc, err := range s.Database("test").Lookup("system.buckets.from").Find(ctx, nil, nil) {
		must(t, err)
		docs = append(docs, slices.Clone(doc))
	}
	ids := make([]int32, len(docs))
	for i := range ids {
		ids[i] = int32(i)
	}
	_, err := s.Database("test").Lookup("system.buckets.to").InsertMany(document.WithStatements(ctx, "session", 1, ids...), docs, nil)
	must(t, err)
	for _, id := range ids {
		if o, err := s.Outcome("session", 1, id); err != nil || o == nil || o.N != 1 {
			t.Errorf("of bucket %d is known: %+v, %v", id, o, err)
		}
	}
	if n, err := to.Count(ctx, nil, nil); n != 3001 || err != nil {
		t.Errorf("%d measurements, %v", n, err)
	}
}
