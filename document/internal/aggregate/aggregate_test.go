package aggregate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pandodb/pando/document/internal/expression"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/scratch"
	"github.com/pandodb/pando/vfs/memfs"
)

func numbers(n int) *memory {
	m := &memory{collections: map[string][]document{}}
	for i := range n {
		m.collections["c"] = append(m.collections["c"], fields("_id", int32Value(int32(i)), "k", text(fmt.Sprintf("key %d", i*7919%n)), "m", int32Value(int32(i%10))))
	}
	return m
}

func options() *Options { return &Options{Database: "test", Collection: "c", Now: goldenNow} }

func shown(docs []document) string {
	var list []string
	for _, doc := range docs {
		list = append(list, show(documentValue(doc), false, true))
	}
	return strings.Join(list, "\n")
}

func expect(t *testing.T, m *memory, pipeline, want string) {
	t.Helper()
	docs, err := m.run(parseJSON(t, pipeline), options())
	if err != nil {
		t.Fatalf("%s: %v", pipeline, err)
	}
	if got := shown(docs); got != want {
		t.Errorf("%s:\n%s\nwant\n%s", pipeline, got, want)
	}
}

// blocking are pipelines whose stages must keep a lot.
var blocking = [...]string{
	`[{"$limit": 100000}, {"$sort": {"k": 1}}]`,
	`[{"$group": {"_id": "$k", "n": {"$sum": 1}}}]`,
	`[{"$group": {"_id": "$m", "all": {"$push": "$k"}}}, {"$sort": {"_id": 1}}]`,
	`[{"$group": {"_id": "$m", "all": {"$addToSet": "$k"}, "last": {"$last": "$k"}, "top": {"$topN": {"n": 3, "sortBy": {"k": -1}, "output": "$_id"}}}}, {"$sort": {"_id": 1}}]`,
	`[{"$bucketAuto": {"groupBy": "$k", "buckets": 7, "output": {"n": {"$sum": 1}}}}]`,
	`[{"$facet": {"a": [{"$count": "n"}], "b": [{"$match": {"m": 3}}, {"$limit": 2}]}}]`,
	`[{"$setWindowFields": {"partitionBy": "$m", "sortBy": {"k": 1}, "output": {"r": {"$documentNumber": {}}, "s": {"$sum": "$_id", "window": {"documents": [-2, 2]}}}}}]`,
	`[{"$densify": {"field": "_id", "range": {"step": 1, "bounds": "full"}}}]`,
}

func TestBlockingStagesSpillOrFail(t *testing.T) {
	m := numbers(3000)
	for _, p := range blocking {
		want, err := m.run(parseJSON(t, p), options())
		if err != nil {
			t.Fatalf("%s: %v", p, err)
		}
		o := options()
		o.MemoryBytes = 1000
		if _, err = m.run(parseJSON(t, p), o); !errors.Is(err, mongoerror.QueryExceededMemoryLimitNoDiskUseAllowed) {
			t.Errorf("%s: without scratch space: %v", p, err)
		}
		fsys := memfs.New()
		if o.Scratch, err = scratch.Open(fsys, "scratch", 0); err != nil {
			t.Fatal(err)
		}
		got, err := m.run(parseJSON(t, p), o)
		if err != nil {
			t.Fatalf("%s: with scratch space: %v", p, err)
		}
		a, b := strings.Split(shown(got), "\n"), strings.Split(shown(want), "\n")
		slices.Sort(a)
		slices.Sort(b)
		if !slices.Equal(a, b) {
			t.Errorf("%s: spilled, the result differs", p)
		}
		if names, err := fsys.List("scratch"); err != nil || len(names) != 0 {
			t.Errorf("%s: left behind %v %v", p, names, err)
		}
	}
}

func TestCancelled(t *testing.T) {
	m := numbers(3000)
	for _, text := range blocking {
		p, err := Parse(parseJSON(t, text), options())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		c, err := p.Run(ctx, m)
		if err != nil {
			if text != blocking[0] {
				t.Fatal(err)
			}
			cancel()
			continue
		}
		cancel()
		for err == nil {
			_, err = c.Next(ctx)
		}
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", text, err)
		}
		if err := errors.Join(c.Close(), c.Close()); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestNamesEndAtAZeroByte: a stage that names a field by a text refuses one that BSON cannot hold. The codes are those of mongod 6.0.5.
func TestNamesEndAtAZeroByte(t *testing.T) {
	for text, code := range map[string]mongoerror.Code{
		`{"$lookup": {"from": "o", "localField": "m", "foreignField": "m", "as": "\u0000l"}}`:                                                    16411,
		`{"$lookup": {"from": "o", "localField": "m\u0000", "foreignField": "m", "as": "l"}}`:                                                    16411,
		`{"$lookup": {"from": "o", "localField": "m", "foreignField": "m.\u0000", "as": "l"}}`:                                                   16411,
		`{"$graphLookup": {"from": "o", "startWith": 1, "connectFromField": "m", "connectToField": "_id", "as": "l\u0000"}}`:                     16411,
		`{"$graphLookup": {"from": "o", "startWith": 1, "connectFromField": "m", "connectToField": "_id", "as": "l", "depthField": "d\u0000d"}}`: 16411,
		`{"$graphLookup": {"from": "o", "startWith": 1, "connectFromField": "m", "connectToField": "_id", "as": "l", "depthField": ""}}`:         40352,
		`{"$unwind": {"path": "$a", "includeArrayIndex": "i\u0000"}}`:                                                                            16411,
		`{"$densify": {"field": "d\u0000", "range": {"step": 1, "bounds": [1, 3]}}}`:                                                             16411,
		`{"$densify": {"field": "d", "partitionByFields": ["p\u0000"], "range": {"step": 1, "bounds": "full"}}}`:                                 16411,
		`{"$merge": {"into": "x", "on": "x\u0000"}}`:                                                                                             16411,
		`{"$count": "n\u0000"}`:   40159,
		`{"$unwind": "$a\u0000"}`: 16419,
	} {
		if _, err := Parse(parseJSON(t, "["+text+"]"), options()); mongoerror.CodeOf(err) != code {
			t.Errorf("%s: %v, not the code %d", text, err, code)
		}
	}
}

func TestCountsComeFromTheEnvironment(t *testing.T) {
	m := numbers(25)
	expect(t, m, `[{"$count": "n"}]`, `{n: 25}`)
	expect(t, m, `[{"$group": {"_id": null, "n": {"$sum": 1}, "twice": {"$sum": 2.5}}}]`, `{_id: null, n: 25, twice: 62.5d}`)
	expect(t, m, `[{"$group": {"_id": "all", "n": {"$count": {}}}}]`, `{_id: "all", n: 25}`)
	if m.finds != 0 || m.counts != 3 {
		t.Errorf("%d finds, %d counts", m.finds, m.counts)
	}
	expect(t, m, `[{"$match": {"m": 4}}, {"$count": "n"}]`, `{n: 3}`)
	expect(t, m, `[{"$limit": 7}, {"$count": "n"}]`, `{n: 7}`)
	expect(t, &memory{}, `[{"$count": "n"}]`, ``)
}

func TestLookupAsksOncePerBatchAndCachesWhatDoesNotDepend(t *testing.T) {
	m := numbers(12)
	m.collections["o"] = []document{fields("_id", int32Value(1), "m", int32Value(3)), fields("_id", int32Value(2), "m", int32Value(5))}
	finds := func(pipeline string) int {
		m.finds = 0
		if _, err := m.run(parseJSON(t, pipeline), options()); err != nil {
			t.Fatalf("%s: %v", pipeline, err)
		}
		return m.finds - 1
	}
	for pipeline, want := range map[string]int{
		`[{"$lookup": {"from": "o", "localField": "m", "foreignField": "m", "as": "l"}}]`:                                                                1,
		`[{"$lookup": {"from": "o", "pipeline": [{"$match": {"m": 3}}], "as": "l"}}]`:                                                                    1,
		`[{"$lookup": {"from": "o", "let": {"v": "$m"}, "pipeline": [{"$sort": {"m": 1}}, {"$match": {"$expr": {"$eq": ["$m", "$$v"]}}}], "as": "l"}}]`:  1,
		`[{"$lookup": {"from": "o", "let": {"v": "$m"}, "pipeline": [{"$match": {"m": 3}}, {"$match": {"$expr": {"$eq": ["$m", "$$v"]}}}], "as": "l"}}]`: 12,
	} {
		if got := finds(pipeline); got != want {
			t.Errorf("%s: %d finds in the other collection, want %d", pipeline, got, want)
		}
	}
}

func TestLookupTakesSmallerBatchesWhereMemoryIsShort(t *testing.T) {
	m := numbers(300)
	m.collections["o"] = m.collections["c"]
	pipeline := parseJSON(t, `[{"$lookup": {"from": "o", "localField": "_id", "foreignField": "_id", "as": "l"}}, {"$unwind": "$l"}]`)
	want, err := m.run(pipeline, options())
	if err != nil || len(want) != 300 {
		t.Fatal(len(want), err)
	}
	o := options()
	o.MemoryBytes = 200
	got, err := m.run(pipeline, o)
	if err != nil || shown(got) != shown(want) {
		t.Errorf("%d documents, %v", len(got), err)
	}
}

func TestLet(t *testing.T) {
	m := numbers(5)
	m.collections["o"] = []document{fields("_id", int32Value(3), "v", text("three"))}
	o := options()
	o.Let = []expression.Variable{{Name: "wanted", Value: int32Value(3)}}
	docs, err := m.run(parseJSON(t, `[{"$match": {"$expr": {"$eq": ["$_id", "$$wanted"]}}},
		{"$lookup": {"from": "o", "let": {"id": "$_id"}, "pipeline": [{"$match": {"$expr": {"$and": [{"$eq": ["$_id", "$$id"]}, {"$eq": ["$$wanted", 3]}]}}},
			{"$lookup": {"from": "o", "pipeline": [{"$project": {"_id": 0, "outer": "$$id"}}], "as": "inner"}}], "as": "l"}},
		{"$project": {"l": 1, "w": "$$wanted"}}]`), o)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := shown(docs), `{_id: 3, l: [{_id: 3, v: "three", inner: [{outer: 3}]}], w: 3}`; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

func TestWriting(t *testing.T) {
	m := numbers(3)
	expect(t, m, `[{"$project": {"m": 1}}, {"$out": "copy"}]`, ``)
	if got, want := shown(m.collections["copy"]), "{_id: 0, m: 0}\n{_id: 1, m: 1}\n{_id: 2, m: 2}"; got != want {
		t.Errorf("$out wrote\n%s", got)
	}
	expect(t, m, `[{"$match": {"_id": 1}}, {"$project": {"m": 1}}, {"$merge": {"into": "x", "whenMatched": [], "let": {"twice": {"$multiply": ["$m", 2]}}}}]`, ``)
	expect(t, m, `[{"$match": {"_id": 2}}, {"$project": {"m": 1}}, {"$merge": {"into": "x", "whenMatched": []}}]`, ``)
	if got, want := shown(m.merged), "{doc: {_id: 1, m: 1}, twice: 2, new: {_id: 1, m: 1}}\n{doc: {_id: 2, m: 2}, new: {_id: 2, m: 2}}"; got != want {
		t.Errorf("$merge was asked for\n%s\nwant\n%s", got, want)
	}
	for pipeline, want := range map[string]string{
		`[{"$out": {"db": "d", "coll": "x"}}]`:             "d.x true",
		`[{"$match": {}}, {"$merge": {"into": "y"}}]`:      "test.y true",
		`[{"$merge": {"into": {"db": "e", "coll": "z"}}}]`: "e.z true",
		`[{"$match": {}}]`:                                 ". false",
	} {
		p, err := Parse(parseJSON(t, pipeline), options())
		if err != nil {
			t.Fatal(err)
		}
		if database, collection, ok := p.Writes(); fmt.Sprintf("%s.%s %v", database, collection, ok) != want {
			t.Errorf("%s writes to %s.%s %v, want %s", pipeline, database, collection, ok, want)
		}
	}
}

func TestSpecialStagesComeFromTheEnvironment(t *testing.T) {
	expect(t, numbers(1), `[{"$indexStats": {}}, {"$addFields": {"x": 1}}]`, `{stage: "$indexStats", x: 1}`)
	o := options()
	o.Collection = ""
	docs, err := numbers(1).run(parseJSON(t, `[{"$currentOp": {}}, {"$match": {"stage": "$currentOp"}}]`), o)
	if err != nil || len(docs) != 1 {
		t.Error(docs, err)
	}
	for _, p := range []string{`[]`, `[{"$match": {}}]`} {
		if _, err := numbers(1).run(parseJSON(t, p), o); mongoerror.CodeOf(err) != mongoerror.InvalidNamespace {
			t.Errorf("%s without a collection: %v", p, err)
		}
	}
}

// TestPercentiles follows the documentation of MongoDB 7.0: the golden files come from a server that has no percentiles.
func TestPercentiles(t *testing.T) {
	m := numbers(10)
	expect(t, m, `[{"$group": {"_id": null, "p": {"$percentile": {"input": "$_id", "p": [0, 0.25, 0.5, 0.95, 1], "method": "approximate"}}, "m": {"$median": {"input": "$_id", "method": "approximate"}}}}]`,
		`{_id: null, p: [0d, 2d, 4d, 9d, 9d], m: 4d}`)
	expect(t, m, `[{"$group": {"_id": null, "p": {"$percentile": {"input": "$k", "p": [0.5], "method": "approximate"}}, "m": {"$median": {"input": "$k", "method": "approximate"}}}}]`,
		`{_id: null, p: [null], m: null}`)
	a := &percentileAccumulator{p: []float64{0, 0.01, 0.5, 0.999, 1}}
	const n = 1_000_000
	for i := range n {
		if _, err := a.add(nil, doubleValue(float64(int64(i)*7919%n))); err != nil {
			t.Fatal(err)
		}
	}
	v, err := a.result()
	if err != nil {
		t.Fatal(err)
	}
	values, err := v.Array().Values()
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{0, 0.01 * n, 0.5 * n, 0.999 * n, n - 1} {
		if got := values[i].Double(); got < want-n/1000 || got > want+n/1000 {
			t.Errorf("percentile %v is %v, want about %v", a.p[i], got, want)
		}
	}
}

func TestSample(t *testing.T) {
	m := numbers(100)
	a, err := m.run(parseJSON(t, `[{"$sample": {"size": 20}}]`), options())
	if err != nil || len(a) != 20 {
		t.Fatal(len(a), err)
	}
	slices.SortFunc(a, func(x, y document) int { return bytes.Compare(x, y) })
	if len(slices.CompactFunc(a, func(x, y document) bool { return bytes.Equal(x, y) })) != 20 {
		t.Error("a document was taken twice")
	}
}

// TestCovariances has what MongoDB gives of decimals, of one pair, and of numbers that are not finite.
func TestCovariances(t *testing.T) {
	const stage = `[{"$setWindowFields": {"sortBy": {"_id": 1}, "output": {
		"p": {"$covariancePop": ["$_id", "$n"], "window": {"documents": ["unbounded", "current"]}},
		"s": {"$covarianceSamp": ["$_id", "$n"], "window": {"documents": ["unbounded", "current"]}}}}}, {"$project": {"p": 1, "s": 1}}]`
	for _, test := range []struct{ docs, want string }{
		{`[{"_id": 1, "n": {"$numberDecimal": "1.5"}}, {"_id": 2, "n": -1.5}, {"_id": 3, "n": 7}]`,
			`{"_id":1,"p":0.0,"s":null}
{"_id":2,"p":{"$numberDecimal":"-0.75000000000000"},"s":{"$numberDecimal":"-1.50000000000000"}}
{"_id":3,"p":{"$numberDecimal":"1.833333333333333333333333333333333"},"s":{"$numberDecimal":"2.7500000000000000000"}}`},
		{`[{"_id": 0, "n": {"$numberDouble": "Infinity"}}, {"_id": 2, "n": -1.5}, {"_id": 3, "n": 7}]`,
			`{"_id":0,"p":null,"s":null}
{"_id":2,"p":0.0,"s":null}
{"_id":3,"p":{"$numberDouble":"Infinity"},"s":{"$numberDouble":"Infinity"}}`},
	} {
		m := &memory{collections: map[string][]document{"c": parseJSON(t, test.docs)}}
		got, err := m.run(parseJSON(t, stage), options())
		if err != nil {
			t.Fatal(err)
		}
		if text := relaxedLines(t, got); text != test.want {
			t.Errorf("%s:\n%s\nwant\n%s", test.docs, text, test.want)
		}
	}
}

// TestDeviationsWithoutANumber: of a window that loses documents there is no deviation while it has a number that is not finite, and there
// is one again when that has left it.
func TestDeviationsWithoutANumber(t *testing.T) {
	const stage = `[{"$setWindowFields": {"sortBy": {"_id": 1}, "output": {
		"one": {"$stdDevPop": "$n", "window": {"documents": [0, 0]}},
		"two": {"$stdDevSamp": "$n", "window": {"documents": [-1, 0]}}}}}, {"$project": {"one": 1, "two": 1}}]`
	for _, beyond := range []string{"NaN", "Infinity"} {
		docs := `[{"_id": 1, "n": {"$numberDouble": "` + beyond + `"}}, {"_id": 2, "n": 1}, {"_id": 3, "n": 2}]`
		m := &memory{collections: map[string][]document{"c": parseJSON(t, docs)}}
		got, err := m.run(parseJSON(t, stage), options())
		if err != nil {
			t.Fatal(err)
		}
		if text := relaxedLines(t, got); text != `{"_id":1,"one":null,"two":null}
{"_id":2,"one":0,"two":null}
{"_id":3,"one":0,"two":0.7071067811865476}` {
			t.Errorf("%s:\n%s", beyond, text)
		}
	}
}

// TestDeviationsAfterAnOutlier: when a large number leaves the window, its rounding error may be all that is left, even a negative sum of
// squares. That is forgotten, as MongoDB forgets it, and does not cover up what comes.
//
// A range of documents that has nothing of the one before in it is still come to by way of those in between, rounding errors and all.
func TestDeviationsAfterAnOutlier(t *testing.T) {
	const stage = `[{"$setWindowFields": {"sortBy": {"r": 1}, "output": {"p": {"$stdDevPop": "$n", "window": %s}}}},
		{"$group": {"_id": null, "p": {"$push": "$p"}}}, {"$unset": "_id"}]`
	m := &memory{collections: map[string][]document{"c": parseJSON(t, `[{"r": 0, "n": 1}, {"r": 0, "n": 1000000.0}, {"r": 5, "n": 3.3},
		{"r": 5, "n": 4}, {"r": 9, "n": 4}, {"r": 9, "n": 6}, {"r": 20, "n": 9}]`)}}
	for window, want := range map[string]string{
		`{"documents": [-1, 0]}`: `{"p":[0,499999.5,499998.35,0.3499965122594081,0,1.0,1.5]}`,
		`{"range": [-1, 0]}`:     `{"p":[499999.5,499999.5,0.3499965122594081,0.3499965122594081,0.9999911498604646,0.9999911498604646,0]}`,
		`{"range": [1, 5]}`:      `{"p":[0.3500000000000001,0.3500000000000001,0.9999999999999997,0.9999999999999997,null,null,null]}`,
	} {
		got, err := m.run(parseJSON(t, fmt.Sprintf(stage, window)), options())
		if err != nil {
			t.Fatal(err)
		}
		if text := relaxedLines(t, got); text != want {
			t.Errorf("%s: %s, not %s", window, text, want)
		}
	}
}

// TestUnwindingNoMatch: what is on the way to the field of a $lookup becomes a document also where an $unwind leaves nothing of its array.
func TestUnwindingNoMatch(t *testing.T) {
	const lookup = `[{"$lookup": {"from": "none", "localField": "z", "foreignField": "y", "as": "%s"}},
		{"$unwind": {"path": "$%[1]s", "preserveNullAndEmptyArrays": true}}, {"$unset": "_id"}]`
	for _, test := range []struct{ doc, as, want string }{
		{`{"b": 5}`, "b", `{}`},
		{`{"b": 5}`, "b.x", `{"b":{}}`},
		{`{}`, "b.x", `{"b":{}}`},
		{`{"b": {"x": 5, "z": 6}}`, "b.x", `{"b":{"z":6}}`},
		{`{"b": [{"x": 5}]}`, "b.x", `{"b":{}}`},
		{`{"b": {"x": 5}}`, "b.x.y", `{"b":{"x":{}}}`},
		{`{"b": {"x": {"y": 5, "z": 6}}}`, "b.x.y", `{"b":{"x":{"z":6}}}`},
	} {
		m := &memory{collections: map[string][]document{"c": parseJSON(t, "["+test.doc+"]")}}
		got, err := m.run(parseJSON(t, fmt.Sprintf(lookup, test.as)), options())
		if err != nil {
			t.Fatal(err)
		}
		if text := relaxedLines(t, got); text != test.want {
			t.Errorf("%s as %s: %s, not %s", test.doc, test.as, text, test.want)
		}
	}
}

// TestGroupsByWhatLooksLikeAProjection: {_id: {k: 1}} does not take k over, and is refused before anything else about the stage.
func TestGroupsByWhatLooksLikeAProjection(t *testing.T) {
	const refused = mongoerror.Code(17390)
	for id, want := range map[string]mongoerror.Code{
		`{"k": 1}`: refused, `{"k": 0}`: refused, `{"k": true}`: refused, `{"k": false}`: refused, `{"k": {"$numberDecimal": "1"}}`: refused,
		`{"k": "$k", "j": 1}`: refused, `{"a.b": 1}`: refused, `{"a": {"$none": 1}, "k": 1}`: refused, `{"k": 1, "$add": 2}`: refused,
		`1`: 0, `{}`: 0, `{"k": "$k"}`: 0, `{"k": null}`: 0, `{"k": {"j": 1}}`: 0, `{"k": [1]}`: 0, `{"k": {"$literal": 1}}`: 0, `{"$add": 1}`: 0,
	} {
		_, err := numbers(3).run(parseJSON(t, `[{"$group": {"_id": `+id+`}}]`), options())
		if got := mongoerror.CodeOf(err); got != want {
			t.Errorf("%s: %v, not code %d", id, err, want)
		}
	}
}

func relaxedLines(t *testing.T, docs []document) string {
	lines := make([]string, len(docs))
	for i, doc := range docs {
		lines[i] = relaxed(t, doc)
	}
	return strings.Join(lines, "\n")
}
