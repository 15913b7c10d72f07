package document_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// series makes a time series.
func series(t testing.TB, s *document.Store, name, options string) *document.Collection {
	t.Helper()
	must(t, s.Database("test").Create(ctx, name, document.JSON(options)))
	return s.Database("test").Lookup(name)
}

const weather = `{"timeseries": {"timeField": "at", "metaField": "sensor"}}`

func TestOptionsOfATimeSeries(t *testing.T) {
	s := open(t, memfs.New())
	for _, c := range []struct {
		options, want string
		code          document.Code
	}{
		{weather, `{"timeseries":{"timeField":"at","metaField":"sensor","granularity":"seconds","bucketMaxSpanSeconds":3600}}`, 0},
		{`{"timeseries": {"timeField": "at", "granularity": "hours", "bucketMaxSpanSeconds": 2592000}}`,
			`{"timeseries":{"timeField":"at","granularity":"hours","bucketMaxSpanSeconds":2592000}}`, 0},
		{`{"timeseries": {"timeField": "at", "bucketMaxSpanSeconds": 100, "bucketRoundingSeconds": 100}, "expireAfterSeconds": 7}`,
			`{"expireAfterSeconds":7,"timeseries":{"timeField":"at","bucketRoundingSeconds":100,"bucketMaxSpanSeconds":100}}`, 0},
		{`{"timeseries": {"timeField": "_id"}}`, `{"timeseries":{"timeField":"_id","granularity":"seconds","bucketMaxSpanSeconds":3600}}`, 0},
		{`{"timeseries": {}}`, "", 40414},
		{`{"timeseries": 1}`, "", document.TypeMismatch},
		{`{"timeseries": {"timeField": 1}}`, "", document.TypeMismatch},
		{`{"timeseries": {"timeField": "a", "colour": 1}}`, "", 40415},
		{`{"timeseries": {"timeField": "a", "granularity": "years"}}`, "", document.BadValue},
		{`{"timeseries": {"timeField": "a.b"}}`, "", 72},
		{`{"timeseries": {"timeField": "a", "metaField": "a"}}`, "", 72},
		{`{"timeseries": {"timeField": "a\u0000"}}`, "", 72},
		{`{"timeseries": {"timeField": "a", "metaField": "\u0000"}}`, "", 72},
		{`{"timeseries": {"timeField": "a", "metaField": "_id"}}`, "", 72},
		{`{"timeseries": {"timeField": "a", "bucketMaxSpanSeconds": 7}}`, "", 72},
		{`{"timeseries": {"timeField": "a", "bucketMaxSpanSeconds": 7, "bucketRoundingSeconds": 8}}`, "", 72},
		{`{"timeseries": {"timeField": "a", "bucketMaxSpanSeconds": 0, "bucketRoundingSeconds": 0}}`, "", 51024},
		{`{"timeseries": {"timeField": "a"}, "capped": true, "size": 4096}`, "", 72},
		{`{"timeseries": {"timeField": "a"}, "validator": {"b": 1}}`, "", 72},
		{`{"timeseries": {"timeField": "a"}, "expireAfterSeconds": -1}`, "", 72},
		{`{"timeseries": {"timeField": "a"}, "expireAfterSeconds": "off"}`, "", document.TypeMismatch},
		{`{"timeseries": {"timeField": "a"}, "expireAfterSeconds": {"$numberDouble": "NaN"}}`, "", 72},
		{`{"timeseries": {"timeField": "a"}, "expireAfterSeconds": {"$numberDecimal": "NaN"}}`, "", 72},
		{`{"timeseries": {"timeField": "a"}, "expireAfterSeconds": {"$numberDecimal": "-1.5"}}`, "", 72},
		{`{"timeseries": {"timeField": "at", "bucketMaxSpanSeconds": {"$numberDecimal": "100"}, "bucketRoundingSeconds": 100.5}, "expireAfterSeconds": {"$numberDecimal": "7.9"}}`,
			`{"expireAfterSeconds":7,"timeseries":{"timeField":"at","bucketRoundingSeconds":100,"bucketMaxSpanSeconds":100}}`, 0},
		{`{"expireAfterSeconds": 5}`, "", 72},
	} {
		err := s.Database("options").Create(ctx, "c", document.JSON(c.options))
		if document.CodeOf(err) != c.code {
			t.Errorf("%s: %v, want the code %d", c.options, err, c.code)
		}
		if err != nil {
			continue
		}
		list, err := s.Database("options").Collections(ctx)
		must(t, err)
		if got := text(t, list[0].Options); !list[0].Series || got != c.want {
			t.Errorf("%s: kept as %s (a time series: %t), want %s", c.options, got, list[0].Series, c.want)
		}
		if err := s.Database("options").Create(ctx, "c", document.JSON(c.options)); !errors.Is(err, document.NamespaceExists) {
			t.Errorf("%s a second time: %v", c.options, err)
		}
		must(t, s.Database("options").Drop(ctx))
	}
}

// TestTimesToExpireThatAreTooLong are refused as that, and not as ones below zero.
func TestTimesToExpireThatAreTooLong(t *testing.T) {
	for _, seconds := range []any{1e19, math.Inf(1)} {
		err := open(t, memfs.New()).Database("d").Create(ctx, "c", bson.D{{Key: "timeseries", Value: bson.D{{Key: "timeField", Value: "a"}}}, {Key: "expireAfterSeconds", Value: seconds}})
		if document.CodeOf(err) != 72 || !strings.Contains(err.Error(), "acceptable range") {
			t.Errorf("%v: %v", seconds, err)
		}
	}
}

func TestMeasurementsAreStoredAsMongoDBGivesThem(t *testing.T) {
	c := series(t, open(t, memfs.New()), "weather", weather)
	_, err := c.InsertMany(ctx, []any{
		document.JSON(`{"_id": 1, "v": 5, "sensor": {"b": 1, "a": [{"d": 1, "c": 2}]}, "at": {"$date": "2024-01-01T00:00:02Z"}}`),
		document.JSON(`{"_id": 1, "at": {"$date": "2024-01-01T00:00:01Z"}, "w": {"b": 1, "a": 2}}`),
	}, nil)
	must(t, err)
	_, err = c.Insert(ctx, document.JSON(`{"_id": 1, "at": {"$date": "2024-01-01T00:00:01Z"}, "sensor": null}`))
	must(t, err)
	expect(t, "measurements, of which _id is not unique", find(t, c, `{}`, &document.FindOptions{Sort: document.JSON(`{"at": 1, "w": 1}`)}), ""+
		`{"at":{"$date":"2024-01-01T00:00:01Z"},"sensor":null,"_id":1}`+"\n"+
		`{"at":{"$date":"2024-01-01T00:00:01Z"},"_id":1,"w":{"b":1,"a":2}}`+"\n"+
		`{"at":{"$date":"2024-01-01T00:00:02Z"},"sensor":{"a":[{"c":2,"d":1}],"b":1},"_id":1,"v":5}`+"\n")
	for _, bad := range []string{`{"v": 1}`, `{"at": 1}`, `{"at": [{"$date": "2024-01-01T00:00:01Z"}]}`} {
		if _, err := c.Insert(ctx, document.JSON(bad)); !errors.Is(err, document.BadValue) {
			t.Errorf("%s: %v", bad, err)
		}
		if _, err := c.InsertMany(ctx, []document.JSON{document.JSON(bad)}, nil); !errors.Is(err, document.BadValue) {
			t.Errorf("%s of many: %v", bad, err)
		}
	}
	doc, err := c.Get(ctx, 1)
	must(t, err)
	if doc.Lookup("_id").Int32() != 1 {
		t.Errorf("by _id: %s", doc)
	}
}

func TestWhatATimeSeriesRefuses(t *testing.T) {
	s := open(t, memfs.New())
	c := series(t, s, "weather", weather)
	_, err := c.Insert(ctx, document.JSON(`{"at": {"$date": "2024-01-01T00:00:02Z"}, "sensor": "a", "v": 1}`))
	must(t, err)
	many := &document.UpdateOptions{Many: true}
	update := func(filter, u string, o *document.UpdateOptions) error {
		_, err := c.Update(ctx, document.JSON(filter), document.JSON(u), o)
		return err
	}
	index := func(i document.Index) error {
		_, err := c.CreateIndex(ctx, i)
		return err
	}
	tx, err := s.Begin(ctx)
	must(t, err)
	defer tx.Abort()
	_, insertErr := tx.In(c).Insert(ctx, document.JSON(`{"at": {"$date": "2024-01-01T00:00:02Z"}}`))
	_, deleteErr := tx.In(c).Delete(ctx, document.JSON(`{}`), nil)
	_, _, modifyErr := c.FindAndModify(ctx, nil, nil, &document.ModifyOptions{Remove: true})
	_, watchErr := c.OpenWatch(ctx, nil, nil)
	_, replaceErr := c.Replace(ctx, document.JSON(`{"sensor": "a"}`), document.JSON(`{"v": 1}`), many)
	seconds := int32(5)
	for what, got := range map[string]struct {
		err  error
		code document.Code
	}{
		"one":              {update(`{"sensor": "a"}`, `{"$set": {"sensor": "b"}}`, nil), 72},
		"an upsert":        {update(`{"sensor": "a"}`, `{"$set": {"sensor": "b"}}`, &document.UpdateOptions{Many: true, Upsert: true}), 72},
		"another field":    {update(`{"sensor": "a"}`, `{"$set": {"v": "b"}}`, many), 72},
		"by another field": {update(`{"$or": [{"sensor": "a"}, {"v": 1}]}`, `{"$set": {"sensor": "b"}}`, many), 72},
		"by $expr":         {update(`{"$expr": true}`, `{"$set": {"sensor": "b"}}`, many), 72},
		"a rename":         {update(`{"sensor": "a"}`, `{"$rename": {"sensor": "v"}}`, many), 72},
		"a replacement":    {replaceErr, 72},
		"a unique index":   {index(document.Index{Keys: document.JSON(`{"v": 1}`), Unique: true}), 72},
		"a TTL index":      {index(document.Index{Keys: document.JSON(`{"at": 1}`), ExpireAfterSeconds: &seconds}), 72},
		"its order":        {c.DropIndex(ctx, "sensor_1_at_1"), 72},
		"a transaction":    {insertErr, 263},
		"a delete in one":  {deleteErr, 263},
		"findAndModify":    {modifyErr, 166},
		"a change stream":  {watchErr, 166},
		"another name":     {c.Rename(ctx, "test", "climate", false), 166},
		"a validator":      {c.Modify(ctx, document.JSON(`{"validator": {"v": 1}}`)), 72},
	} {
		if document.CodeOf(got.err) != got.code {
			t.Errorf("%s: %v, want the code %d", what, got.err, got.code)
		}
	}
	must(t, c.Modify(ctx, document.JSON(`{"timeseries": {"granularity": "minutes"}, "expireAfterSeconds": 9}`)))
	if err := c.Modify(ctx, document.JSON(`{"timeseries": {"granularity": "seconds"}}`)); document.CodeOf(err) != 72 {
		t.Errorf("a finer granularity: %v", err)
	}
	must(t, c.Modify(ctx, document.JSON(`{"expireAfterSeconds": "off"}`)))
	list, err := s.Database("test").Collections(ctx)
	must(t, err)
	expect(t, "options", text(t, list[0].Options),
		`{"timeseries":{"timeField":"at","metaField":"sensor","granularity":"minutes","bucketMaxSpanSeconds":86400}}`)
}

func TestMeasurementsExpire(t *testing.T) {
	fs := memfs.New()
	s := open(t, fs)
	c := series(t, s, "weather", `{"timeseries": {"timeField": "at", "metaField": "sensor"}, "expireAfterSeconds": 3600}`)
	now := time.Now()
	var docs []bson.D
	for i := range 300 {
		docs = append(docs, bson.D{{Key: "at", Value: now.Add(-time.Duration(i) * time.Minute)}, {Key: "sensor", Value: i % 7}})
	}
	_, err := c.InsertMany(ctx, docs, nil)
	must(t, err)
	must(t, s.Close())
	s = open(t, fs)
	deleted, err := s.DeleteExpired(ctx)
	must(t, err)
	if n, err := s.Database("test").Lookup("weather").Count(ctx, nil, nil); err != nil || n != 60 || deleted != 240 {
		t.Errorf("%d are left, %d were deleted, %v", n, deleted, err)
	}
}

// TestTimeSeriesAnswersAsAPlainCollection compares a time series with a plain collection of the same documents, after inserts, changes
// of metas and deletes: with metas that an index is in the order of, and then with arrays and long texts, too.
func TestTimeSeriesAnswersAsAPlainCollection(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and starts no goroutines: little for the race detector")
	}
	seed := rand.Uint64()
	t.Log("seed", seed)
	for _, metas := range [][]any{
		{"a", "b", 1, 1.5, nil, bson.D{{Key: "x", Value: 1}, {Key: "y", Value: "z"}}},
		{"a", "b", bson.A{"a", 7}, bson.A{}, strings.Repeat("long", 2000), strings.Repeat("long", 2000) + "er"},
	} {
		rnd := rand.New(rand.NewPCG(seed, 1))
		fs := memfs.New()
		s := open(t, fs)
		c := series(t, s, "weather", weather)
		plain := collection(t, s, "plain", nil)
		meta := func() any { return metas[rnd.IntN(len(metas))] }
		date := func() bson.DateTime { return bson.DateTime(rnd.IntN(50) - 20) }
		id := 0
		for round := range 6 {
			var docs []bson.D
			for range 1 + rnd.IntN(300) {
				id++
				d := bson.D{{Key: "at", Value: date()}, {Key: "sensor", Value: meta()}, {Key: "_id", Value: id}, {Key: "v", Value: rnd.IntN(100)}}
				if rnd.IntN(9) == 0 {
					d = slices.Delete(d, 1, 2)
				}
				docs = append(docs, d)
			}
			for _, x := range []*document.Collection{c, plain} {
				_, err := x.InsertMany(ctx, docs, nil)
				must(t, err)
			}
			from, to, bound := meta(), meta(), date()
			filter := bson.D{{Key: "sensor", Value: from}}
			for _, x := range []*document.Collection{c, plain} {
				_, err := x.Update(ctx, filter, bson.D{{Key: "$set", Value: bson.D{{Key: "sensor", Value: to}}}}, &document.UpdateOptions{Many: true})
				must(t, err)
				_, err = x.Delete(ctx, bson.D{{Key: "at", Value: bson.D{{Key: "$lt", Value: bound}}}, {Key: "v", Value: bson.D{{Key: "$lt", Value: 50}}}},
					&document.DeleteOptions{Many: true})
				must(t, err)
			}
			if round == 2 {
				_, err := c.CreateIndex(ctx, document.Index{Keys: bson.D{{Key: "v", Value: 1}}})
				must(t, err)
			}
			if round == 4 {
				must(t, s.Close())
				s = open(t, fs)
				c, plain = s.Database("test").Lookup("weather"), s.Database("test").Lookup("plain")
			}
			for range 20 {
				compareQuery(t, rnd, c, plain, meta, date)
			}
		}
		if t.Failed() {
			t.FailNow()
		}
	}
}

// compareQuery runs a random query on both collections.
func compareQuery(t *testing.T, rnd *rand.Rand, c, plain *document.Collection, meta func() any, date func() bson.DateTime) {
	t.Helper()
	filter := bson.D{}
	switch rnd.IntN(4) {
	case 0:
		filter = append(filter, bson.E{Key: "sensor", Value: meta()})
	case 1:
		filter = append(filter, bson.E{Key: "sensor", Value: bson.D{{Key: "$in", Value: bson.A{meta(), meta(), 7}}}})
	case 2:
		filter = append(filter, bson.E{Key: "sensor", Value: bson.D{{Key: "$gte", Value: meta()}}})
	}
	switch rnd.IntN(3) {
	case 0:
		filter = append(filter, bson.E{Key: "at", Value: bson.D{{Key: "$gte", Value: date()}, {Key: "$lt", Value: date()}}})
	case 1:
		filter = append(filter, bson.E{Key: "at", Value: date()})
	}
	if rnd.IntN(4) == 0 {
		filter = append(filter, bson.E{Key: "v", Value: bson.D{{Key: "$gt", Value: rnd.IntN(100)}}})
	}
	o := &document.FindOptions{Projection: bson.D{{Key: "_id", Value: 1}, {Key: "sensor", Value: 1}, {Key: "at", Value: 1}, {Key: "v", Value: 1}}}
	ordered := rnd.IntN(3) == 0
	if ordered {
		o.Sort = bson.D{{Key: "sensor", Value: 1}, {Key: "at", Value: rnd.IntN(2)*2 - 1}, {Key: "_id", Value: 1}}
		o.Limit = int64(rnd.IntN(50))
	} else if rnd.IntN(2) == 0 {
		o.Sort = bson.D{{Key: "sensor", Value: 1}, {Key: "at", Value: 1}}
	}
	lines := func(x *document.Collection) []string {
		var list []string
		for doc, err := range x.Find(ctx, filter, o) {
			must(t, err)
			var m bson.M
			must(t, bson.Unmarshal(doc, &m))
			list = append(list, fmt.Sprint(m["_id"], m["sensor"], m["at"], m["v"]))
		}
		if !ordered {
			slices.Sort(list)
		}
		return list
	}
	got, want := lines(c), lines(plain)
	n, err := c.Count(ctx, filter, nil)
	must(t, err)
	if !slices.Equal(got, want) || o.Limit == 0 && n != int64(len(want)) {
		t.Errorf("%v, %v: %d documents (count: %d), want %d", filter, o.Sort, len(got), n, len(want))
	}
	values, err := c.Distinct(ctx, "sensor", filter, nil)
	must(t, err)
	others, err := plain.Distinct(ctx, "sensor", filter, nil)
	must(t, err)
	if fmt.Sprint(values) != fmt.Sprint(others) {
		t.Errorf("%v: the sensors %v, want %v", filter, values, others)
	}
}

// A range of a source's times is a range of records, and one of all sources is found by leaps from one to the next.
func TestPlansOfATimeSeries(t *testing.T) {
	s, err := document.NewWith(openDB(t), &document.Options{TTLInterval: -1})
	must(t, err)
	defer s.Close()
	c := series(t, s, "weather", weather)
	var docs []bson.D
	for i := range 20_000 {
		docs = append(docs, bson.D{{Key: "at", Value: bson.DateTime(i / 4 * 1000)}, {Key: "sensor", Value: fmt.Sprint("s", i%4)}, {Key: "v", Value: i}})
	}
	_, err = c.InsertMany(ctx, docs, nil)
	must(t, err)
	few := bson.D{{Key: "$gte", Value: bson.DateTime(4_000_000)}, {Key: "$lt", Value: bson.DateTime(4_010_000)}}
	for _, q := range []struct {
		filter, sort bson.D
		limit        int64
		most         int64 // entries that are looked at
	}{
		{bson.D{{Key: "sensor", Value: "s1"}, {Key: "at", Value: few}}, nil, 0, 12},
		{bson.D{{Key: "at", Value: few}}, nil, 0, 60},
		{bson.D{{Key: "sensor", Value: "s1"}}, bson.D{{Key: "at", Value: -1}}, 1, 3},
	} {
		o := &document.FindOptions{Limit: q.limit, Verbosity: "executionStats"}
		if q.sort != nil {
			o.Sort = q.sort
		}
		raw, err := c.Explain(ctx, q.filter, o)
		must(t, err)
		if n := raw.Lookup("executionStats", "totalKeysExamined").AsInt64(); n == 0 || n > q.most {
			t.Errorf("%v: %d entries are looked at, want at most %d: %s", q.filter, n, q.most, raw)
		}
	}
}

func openDB(t *testing.T) *pando.DB {
	t.Helper()
	db, err := pando.Open("db", &pando.Options{FS: memfs.New(), MemoryBytes: 8 << 20})
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	return db
}
