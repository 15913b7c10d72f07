package execute_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document/internal/codec"
	"github.com/pandodb/pando/document/internal/execute"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/path"
	"github.com/pandodb/pando/document/internal/plan"
	"github.com/pandodb/pando/document/internal/query"
	"github.com/pandodb/pando/document/internal/scratch"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestExaminesNoMoreThanItNeeds: what plans look at, as explain tells it.
func TestExaminesNoMoreThanItNeeds(t *testing.T) {
	f := flights(t, 1200)
	r := f.reader()
	for _, one := range []struct {
		name       string
		filter     bson.D
		edit       func(q *plan.Query)
		keys, docs int64
		returned   int
	}{
		{name: "by _id", filter: bson.D{{Key: "_id", Value: 7}}, keys: 1, docs: 1, returned: 1},
		{name: "by a unique index", filter: bson.D{{Key: "serial", Value: 7}}, keys: 1, docs: 1, returned: 1},
		{name: "by nothing there is", filter: bson.D{{Key: "serial", Value: -7}}, keys: 1, docs: 0, returned: 0},
		{name: "several by _id", filter: bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: bson.A{1, 3, 5, 9999}}}}}, keys: 4, docs: 3, returned: 3},
		{name: "a range of _id", filter: bson.D{{Key: "_id", Value: bson.D{{Key: "$gte", Value: 1190}}}}, keys: 10, docs: 10, returned: 10},
		{name: "without an index", filter: bson.D{{Key: "day", Value: 3}}, docs: 1200, returned: 43},
		{name: "the first without an index", filter: bson.D{{Key: "day", Value: 3}}, edit: func(q *plan.Query) { q.Limit = 1 }, docs: 3, returned: 1},
		{name: "the end of an order", edit: func(q *plan.Query) { q.Sort, q.Limit = encode(t, bson.D{{Key: "_id", Value: -1}}), 3 }, keys: 3, docs: 3, returned: 3},
		{name: "skipped without reading", filter: bson.D{{Key: "origin", Value: "JFK"}}, edit: func(q *plan.Query) { q.Skip, q.Limit = 5, 2 }, keys: 7, docs: 2, returned: 2},
		{
			name: "leaping over gaps", filter: bson.D{{Key: "origin", Value: bson.D{{Key: "$gte", Value: "A"}}}, {Key: "dep_delay", Value: 86}},
			keys: 15, docs: 12, returned: 12,
		},
		{
			name: "out of the index alone", filter: bson.D{{Key: "origin", Value: "JFK"}, {Key: "dep_delay", Value: bson.D{{Key: "$gt", Value: 84}}}},
			edit: func(q *plan.Query) {
				f.project(q, bson.D{{Key: "origin", Value: 1}, {Key: "dep_delay", Value: 1}, {Key: "_id", Value: 0}})
			},
			keys: 8, docs: 0, returned: 8,
		},
	} {
		t.Run(one.name, func(t *testing.T) {
			q := f.query(one.filter)
			if one.edit != nil {
				one.edit(q)
			}
			p := f.choose(r, q)
			docs, st, err := f.run(r, p, nil)
			if err != nil {
				t.Fatal(err)
			}
			keys, examined := st.Examined()
			if len(docs) != one.returned || keys != one.keys || examined != one.docs {
				t.Errorf("%d documents of %d entries and %d records, expected %d of %d and %d\n%s",
					len(docs), keys, examined, one.returned, one.keys, one.docs, p)
			}
		})
	}
}

// TestExplainTellsWhatHappened: the shape of executionStats.
func TestExplainTellsWhatHappened(t *testing.T) {
	f := flights(t, 1200)
	r := f.reader()
	q := f.query(bson.D{{Key: "tailnum", Value: "N00007"}, {Key: "year", Value: 2013}})
	p := f.choose(r, q)
	docs, st, err := f.run(r, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	out := plan.Explain(p, plan.ExecutionStats, &plan.Run{Returned: int64(len(docs)), Root: st})
	stages := out.Lookup("executionStats", "executionStages")
	for _, want := range []string{`"stage": "FETCH"`, `"filter": {"year"`, `"isEOF"`, `"docsExamined": {"$numberInt":"1"}`, `"stage": "IXSCAN"`, `"keysExamined": {"$numberInt":"1"}`} {
		if !strings.Contains(stages.String(), want) {
			t.Errorf("no %s in %s", want, stages)
		}
	}
	if n := out.Lookup("executionStats", "totalKeysExamined").AsInt64(); n != 1 {
		t.Errorf("%d keys examined", n)
	}
}

// TestExplainOfCounts: a count may be run as a cursor that gives nothing, for what it has counted on the way.
func TestExplainOfCounts(t *testing.T) {
	f := flights(t, 600)
	r := f.reader()
	for _, one := range []struct {
		filter  bson.D
		counted int64
		stage   string
	}{
		{bson.D{}, 600, "RECORD_STORE_FAST_COUNT"},
		{bson.D{{Key: "origin", Value: "JFK"}}, 200, "COUNT_SCAN"},
		{bson.D{{Key: "day", Value: 1}, {Key: "origin", Value: "JFK"}}, 7, "FETCH"},
	} {
		q := f.query(one.filter)
		q.Goal = plan.Counting
		p := f.choose(r, q)
		docs, st, err := f.run(r, p, nil)
		if err != nil || len(docs) > 0 {
			t.Fatalf("%v: %d documents, %v", one.filter, len(docs), err)
		}
		stages := plan.Explain(p, plan.ExecutionStats, &plan.Run{Root: st}).Lookup("executionStats", "executionStages").Document()
		if n := stages.Lookup("nCounted").AsInt64(); n != one.counted || !strings.Contains(stages.String(), one.stage) {
			t.Errorf("%v: counted %d, expected %d: %s", one.filter, n, one.counted, stages)
		}
	}
	p := plan.Nothing(f.query(bson.D{}), "test.none")
	if got := plan.Explain(p, plan.QueryPlanner, nil).Lookup("queryPlanner", "winningPlan", "stage").StringValue(); got != "EOF" {
		t.Errorf("a collection that is not there: %s", got)
	}
}

// TestCancelled: a walk over everything ends soon after its context.
func TestCancelled(t *testing.T) {
	f := flights(t, 2000)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	q := f.query(bson.D{{Key: "year", Value: bson.D{{Key: "$gt", Value: 1}}}})
	r := f.reader()
	cur, err := execute.Open(ctx, r, f.c, f.choose(r, q), nil)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for cur.Next() {
		if n++; n == 10 {
			cancel()
		}
	}
	if !errors.Is(cur.Err(), context.Canceled) || n > 600 {
		t.Errorf("%d rows, then %v", n, cur.Err())
	}
	if err := cur.Close(); err != nil {
		t.Error(err)
	}
}

// TestSortIsBounded: a sort that may not spill fails with MongoDB's code, and one that may gives all.
func TestSortIsBounded(t *testing.T) {
	f := flights(t, 3000)
	r := f.reader()
	q := f.query(bson.D{})
	q.Sort = encode(t, bson.D{{Key: "arr_delay", Value: 1}, {Key: "dest", Value: -1}})
	p := f.choose(r, q)
	_, _, err := f.run(r, p, &execute.Options{Memory: 64 << 10})
	if !errors.Is(err, mongoerror.QueryExceededMemoryLimitNoDiskUseAllowed) {
		t.Errorf("without a place to spill: %v", err)
	}
	space, err := scratch.Open(memfs.New(), "scratch", 0)
	if err != nil {
		t.Fatal(err)
	}
	docs, st, err := f.run(r, p, &execute.Options{Memory: 64 << 10, Space: space})
	if err != nil || len(docs) != 3000 || st.Spilled == 0 {
		t.Errorf("%d documents, %d bytes spilled, %v", len(docs), st.Spilled, err)
	}
	q.Limit = 5
	docs, st, err = f.run(r, f.choose(r, q), &execute.Options{Memory: 64 << 10})
	if err != nil || len(docs) != 5 || st.Spilled != 0 {
		t.Errorf("with a limit: %d documents, %d bytes spilled, %v", len(docs), st.Spilled, err)
	}
}

// TestArraysBeyondMemory: a record comes once though several of its entries are in the bounds, and though there is no room to remember
// the records that have been given.
func TestArraysBeyondMemory(t *testing.T) {
	f := newFixture(t, codec.Template)
	f.index(bson.D{{Key: "key", Value: bson.D{{Key: "m", Value: 1}}}})
	f.index(bson.D{{Key: "key", Value: bson.D{{Key: "w.$**", Value: 1}}}})
	const records = 300
	for i := range records {
		f.insert(encode(t, bson.D{
			{Key: "_id", Value: i}, {Key: "m", Value: bson.A{i % 7, i % 11, -i}}, {Key: "w", Value: bson.D{{Key: "a", Value: i}, {Key: "b", Value: bson.A{i, i + 1}}}},
		}))
	}
	r := f.reader()
	for _, filter := range []bson.D{
		{{Key: "m", Value: bson.D{{Key: "$gte", Value: 0}}}},
		{{Key: "m", Value: bson.D{{Key: "$in", Value: bson.A{0, 1, 2, 3, 4, 5, 6, -7, -8}}}}},
		{{Key: "w", Value: bson.D{{Key: "$exists", Value: true}}}},
	} {
		for _, backward := range []bool{false, true} {
			q := f.query(filter)
			p := f.choose(r, q)
			scan := *p.Root.(*plan.Fetch).Input.(*plan.IndexScan)
			scan.Backward = backward
			p.Root.(*plan.Fetch).Input = &scan
			docs, st, err := f.run(r, p, &execute.Options{Memory: 2000})
			if err != nil {
				t.Fatal(err)
			}
			seen := map[string]bool{}
			for _, doc := range docs {
				seen[string(doc)] = true
			}
			if len(docs) != records || len(seen) != records || st.Inputs[0].Dropped == 0 {
				t.Errorf("%v: %d documents, %d of them different, %d entries dropped\n%s", filter, len(docs), len(seen), st.Inputs[0].Dropped, p)
			}
		}
	}
}

// TestJoinsBeyondMemory: disjunctions, merges and intersections give each record once, though there is no room to remember the records
// that have been given.
func TestJoinsBeyondMemory(t *testing.T) {
	f := newFixture(t, codec.Template)
	for _, keys := range []bson.D{{{Key: "a", Value: 1}}, {{Key: "b", Value: 1}}, {{Key: "a", Value: 1}, {Key: "c", Value: 1}}, {{Key: "m", Value: 1}, {Key: "c", Value: 1}}} {
		f.index(bson.D{{Key: "key", Value: keys}})
	}
	const records = 400
	for i := range records {
		f.insert(encode(t, bson.D{
			{Key: "_id", Value: i}, {Key: "a", Value: i % 2}, {Key: "b", Value: i % 3}, {Key: "c", Value: i % 50}, {Key: "m", Value: bson.A{i % 5, i % 7}},
		}))
	}
	space, err := scratch.Open(memfs.New(), "scratch", 0)
	if err != nil {
		t.Fatal(err)
	}
	r := f.reader()
	met := map[string]bool{}
	for _, one := range []struct{ filter, sort bson.D }{
		{filter: bson.D{{Key: "$or", Value: bson.A{bson.D{{Key: "a", Value: 1}}, bson.D{{Key: "b", Value: 1}}, bson.D{{Key: "_id", Value: 3}}}}}},
		{filter: bson.D{{Key: "$or", Value: bson.A{bson.D{{Key: "m", Value: 1}}, bson.D{{Key: "a", Value: 1}, {Key: "c", Value: bson.D{{Key: "$gt", Value: 20}}}}}}}, sort: bson.D{{Key: "c", Value: 1}}},
		{filter: bson.D{{Key: "m", Value: bson.D{{Key: "$in", Value: bson.A{1, 2, 3}}}}}, sort: bson.D{{Key: "c", Value: -1}}},
		{filter: bson.D{{Key: "a", Value: bson.D{{Key: "$gte", Value: 1}}}, {Key: "b", Value: bson.D{{Key: "$gte", Value: 1}}}}},
	} {
		q := f.query(one.filter)
		if one.sort != nil {
			q.Sort = encode(t, one.sort)
		}
		want := map[string]bool{}
		plans, err := plan.All(q, execute.Planning(r, f.c))
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range plans {
			text := p.String()
			for _, stage := range []string{"SORT_MERGE", "AND_HASH", "OR"} {
				met[stage] = met[stage] || strings.Contains(text, stage)
			}
			shared := scratch.NewMemory(4000, 100)
			docs, _, err := f.run(r, p, &execute.Options{Memory: 2000, Space: space, Shared: shared})
			if err != nil {
				t.Fatalf("%v: %v\n%s", one.filter, err, p)
			}
			if held := shared.Held(); held != 0 {
				t.Errorf("%d bytes of memory are left\n%s", held, p)
			}
			seen := map[string]bool{}
			for _, doc := range docs {
				seen[string(doc)] = true
			}
			if i == 0 {
				want = seen
			}
			if len(docs) != len(seen) || !maps.Equal(seen, want) {
				t.Errorf("%v: %d documents, %d of them different, expected %d\n%s", one.filter, len(docs), len(seen), len(want), p)
			}
		}
	}
	if len(met) < 3 || !met["SORT_MERGE"] || !met["AND_HASH"] || !met["OR"] {
		t.Errorf("not all stages came: %v", met)
	}
}

// TestTransactionsDependOnWhatTheyRead: a transaction that looked for some records does not conflict with one that writes others, neither
// for what the planner counted nor for what lies between the ranges of a scan.
func TestTransactionsDependOnWhatTheyRead(t *testing.T) {
	f := flights(t, 900)
	tx, err := f.db.Begin(true)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	r := execute.FromTx(tx)
	q := f.query(bson.D{{Key: "tailnum", Value: bson.D{{Key: "$in", Value: bson.A{"N00003", "N00850"}}}}, {Key: "origin", Value: bson.D{{Key: "$gt", Value: "A"}}}})
	docs, _, err := f.run(r, f.choose(r, q), nil)
	if err != nil || len(docs) != 2 {
		t.Fatalf("%d documents, %v", len(docs), err)
	}
	if !f.insert(encode(t, bson.D{{Key: "_id", Value: 5000}, {Key: "tailnum", Value: "N00500"}, {Key: "origin", Value: "EWR"}, {Key: "serial", Value: 5000}})) {
		t.Fatal("not taken")
	}
	if err := tx.In(f.c.Records).Put([]byte("somewhere else"), nil); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Errorf("commit: %v", err)
	}
}

// TestCapped: record keys are insertion numbers, and _id has an index of its own.
func TestCapped(t *testing.T) {
	f := newFixture(t, codec.BSON)
	f.index(bson.D{{Key: "key", Value: bson.D{{Key: "_id", Value: 1}}}})
	id := f.c.Indexes[0]
	f.c.Indexes, f.c.IDIndex, f.c.Capped = nil, &id, true
	for i := range 20 {
		doc := encode(t, bson.D{{Key: "_id", Value: 100 - i}, {Key: "n", Value: i}})
		key := fmt.Appendf(nil, "%08d", i)
		record, err := f.c.Codec.Encode(nil, doc)
		if err != nil {
			t.Fatal(err)
		}
		if err := id.Definition.Append(&f.entries, path.Document(doc)); err != nil {
			t.Fatal(err)
		}
		b := f.db.NewBatch()
		b.In(f.c.Records).Put(key, record)
		b.In(id.Keyspace).Put(f.entries.Keys[0], append([]byte{0}, key...))
		if err := f.db.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	r := f.reader()
	for _, one := range []struct {
		filter bson.D
		sort   bson.D
		stage  string
		first  int32
		count  int
	}{
		{bson.D{{Key: "_id", Value: 95}}, nil, "IDHACK", 5, 1},
		{bson.D{{Key: "_id", Value: bson.D{{Key: "$lt", Value: 85}}}}, nil, "IXSCAN _id_", 19, 4},
		{bson.D{}, nil, "COLLSCAN", 0, 20},
		{bson.D{}, bson.D{{Key: "$natural", Value: -1}}, "COLLSCAN backward", 19, 20},
		{bson.D{}, bson.D{{Key: "_id", Value: 1}}, "IXSCAN _id_", 19, 20},
	} {
		q := f.query(one.filter)
		if one.sort != nil {
			q.Sort = encode(t, one.sort)
		}
		p := f.choose(r, q)
		docs, _, err := f.run(r, p, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(p.String(), one.stage) || len(docs) != one.count || docs[0].Lookup("n").AsInt32() != one.first {
			t.Errorf("%v: %v\n%s", one.filter, docs, p)
		}
	}
}

// TestNear: records come in the order of their distance, from however far.
func TestNear(t *testing.T) {
	f := newForced(t, 1)
	f.fixture = newFixture(t, codec.Template)
	f.index(bson.D{{Key: "key", Value: bson.D{{Key: "g", Value: "2dsphere"}}}})
	f.docs = nil
	for id := range 300 {
		doc := encode(t, bson.D{{Key: "_id", Value: id}, {Key: "c", Value: id % 3}, {Key: "g", Value: f.geometry()}})
		if !f.insert(doc) {
			t.Fatal("not taken")
		}
		f.docs = append(f.docs, doc)
	}
	r := f.reader()
	for _, limits := range []bson.D{{}, {{Key: "$maxDistance", Value: 900_000}}, {{Key: "$minDistance", Value: 400_000}, {Key: "$maxDistance", Value: 1_500_000}}} {
		point := bson.D{{Key: "type", Value: "Point"}, {Key: "coordinates", Value: f.position()}}
		filter := bson.D{{Key: "c", Value: 1}, {Key: "g", Value: bson.D{{Key: "$near", Value: append(bson.D{{Key: "$geometry", Value: point}}, limits...)}}}}
		q := f.query(filter)
		p := f.choose(r, q)
		docs, _, err := f.run(r, p, nil)
		if err != nil {
			t.Fatal(err)
		}
		if want := len(f.matching(q)); len(docs) != want || want == 0 {
			t.Errorf("%v: %d documents, expected %d\n%s", limits, len(docs), want, p)
		}
		before := -1.0
		for _, doc := range docs {
			d, ok := nearOf(q.Filter).Distance(path.Document(doc))
			if !ok || d < before {
				t.Errorf("%v: a distance of %g after %g", limits, d, before)
			}
			before = d
		}
	}
	q := f.query(bson.D{{Key: "h", Value: bson.D{{Key: "$near", Value: bson.D{{Key: "$geometry", Value: bson.D{{Key: "type", Value: "Point"}, {Key: "coordinates", Value: bson.A{1, 2}}}}}}}}})
	if _, err := plan.Choose(q, execute.Planning(r, f.c)); !errors.Is(err, mongoerror.NoQueryExecutionPlans) {
		t.Errorf("without an index: %v", err)
	}
}

// nearOf returns the condition on the distance.
func nearOf(f *query.Filter) *query.Near {
	switch n := f.Root.(type) {
	case *query.Near:
		return n
	case *query.And:
		for _, child := range n.Children {
			if near, ok := child.(*query.Near); ok {
				return near
			}
		}
	}
	return nil
}
