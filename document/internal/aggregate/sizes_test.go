package aggregate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/scratch"
	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// large is a collection of n documents of a mebibyte.
func large(n int) *memory {
	m := &memory{collections: map[string][]document{}}
	for i := range n {
		m.collections["c"] = append(m.collections["c"], fields("_id", int32Value(int32(i)), "k", int32Value(7), "s", text(strings.Repeat("x", 1<<20))))
	}
	return m
}

// TestOnlyWhatLeavesAPipelineIsShort: documents may be longer than 16 MiB between stages, as in MongoDB, but not behind the last one.
func TestOnlyWhatLeavesAPipelineIsShort(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine and much memory, which take minutes beside a race detector that has nothing to find")
	}
	m, o := large(17), options() // 16 are just too few
	var err error
	if o.Scratch, err = scratch.Open(memfs.New(), "scratch", 0); err != nil {
		t.Fatal(err)
	}
	const join = `{"$limit": 1}, {"$lookup": {"from": "c", "localField": "k", "foreignField": "k", "as": "all"}}`
	for _, stages := range []string{
		`{"$group": {"_id": null, "all": {"$push": "$$ROOT"}}}`,
		`{"$group": {"_id": null, "list": {"$push": "$$ROOT"}}}, {"$addFields": {"all": "$list"}}`,
		`{"$group": {"_id": null, "list": {"$push": "$$ROOT"}}}, {"$replaceWith": {"$mergeObjects": [{"all": "$list"}, {"x": 1}]}}`,
		`{"$sort": {"_id": 1}}, {"$group": {"_id": null, "all": {"$firstN": {"n": 17, "input": "$$ROOT"}}}}`,
		`{"$bucketAuto": {"groupBy": "$k", "buckets": 1, "output": {"all": {"$push": "$$ROOT"}}}}`,
		join,
		`{"$limit": 1}, {"$lookup": {"from": "c", "pipeline": [{"$sort": {"_id": 1}}], "as": "all"}}`,
		`{"$limit": 1}, {"$lookup": {"from": "c", "pipeline": [{"$group": {"_id": null, "all": {"$push": "$$ROOT"}}}, {"$unwind": "$all"}], "as": "all"}}`,
		`{"$limit": 1}, {"$graphLookup": {"from": "c", "startWith": 7, "connectFromField": "k", "connectToField": "k", "as": "all"}}`,
		`{"$setWindowFields": {"output": {"all": {"$push": "$s"}}}}, {"$limit": 1}`,
		`{"$limit": 1}, {"$unionWith": {"coll": "c", "pipeline": [{"$group": {"_id": null, "all": {"$push": "$$ROOT"}}}]}}, {"$match": {"all": {"$exists": true}}}`,
		`{"$limit": 1}, {"$project": {` + `"a0": "$s", "a1": "$s", "a2": "$s", "a3": "$s", "a4": "$s", "a5": "$s", "a6": "$s", "a7": "$s", "a8": "$s", "a9": "$s",
			"b0": "$s", "b1": "$s", "b2": "$s", "b3": "$s", "b4": "$s", "b5": "$s", "b6": "$s"}}`,
	} {
		docs, err := m.run(parseJSON(t, `[`+stages+`, {"$project": {"n": {"$size": {"$ifNull": ["$all", {"$range": [0, 17]}]}}, "_id": 0}}]`), o)
		if got := shown(docs); err != nil || got != `{n: 17}` {
			t.Errorf("%s: %s, %v", stages, got, err)
		}
		if _, err := m.run(parseJSON(t, `[`+stages+`]`), o); !errors.Is(err, mongoerror.BSONObjectTooLarge) {
			t.Errorf("%s returned: %v", stages, err)
		}
		if _, err := m.run(parseJSON(t, `[`+stages+`, {"$out": "o"}]`), o); !errors.Is(err, mongoerror.BSONObjectTooLarge) {
			t.Errorf("%s written: %v", stages, err)
		}
	}
}

// TestStagesGiveUpTheirDocuments: a long chain of stages does not keep a large document in each.
func TestStagesGiveUpTheirDocuments(t *testing.T) {
	m := large(2)
	var stages []string
	for i := range 200 {
		stages = append(stages, fmt.Sprintf(`{"$addFields": {"x%d": 1}}`, i))
	}
	p, err := Parse(parseJSON(t, `[`+strings.Join(stages, ", ")+`]`), options())
	if err != nil {
		t.Fatal(err)
	}
	c, err := p.Run(context.Background(), m)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		doc, err := c.Next(context.Background())
		if err != nil || len(doc) < 1<<20 {
			t.Fatal(len(doc), err)
		}
		held := 0
		for in, ok := c.(*mapCursor); ok; in, ok = in.in.(*mapCursor) {
			held += cap(in.buf)
		}
		if held > 2*maxHeld {
			t.Errorf("the stages hold %d bytes", held)
		}
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// TestGroupsThatGrowAreMoved: whatever an accumulator keeps, a $group has no more in memory than it may, also when its groups were small in
// the beginning.
func TestGroupsThatGrowAreMoved(t *testing.T) {
	m := &memory{collections: map[string][]document{}}
	const groups, length = 50, 2000
	for round := range 6 {
		for k := range groups {
			s := ""
			if round > 0 {
				s = fmt.Sprintf("%03d", (k*31+round*17)%100) + strings.Repeat("x", length)
			}
			v := text(s)
			if round == 1 {
				v = value{} // missing
			}
			o := object(fmt.Sprintf("f%d", round%4), v, "k", int32Value(int32(k)))
			m.collections["c"] = append(m.collections["c"], fields("_id", int32Value(int32(round*groups+k)), "k", int32Value(int32(k)), "s", v, "o", o))
		}
	}
	for _, accumulator := range []string{
		`{"$first": "$s"}`, `{"$last": "$s"}`, `{"$min": "$s"}`, `{"$max": "$s"}`, `{"$mergeObjects": "$o"}`, `{"$push": "$s"}`, `{"$addToSet": "$s"}`,
		`{"$firstN": {"n": 2, "input": "$s"}}`, `{"$firstN": {"n": 9, "input": "$s"}}`, `{"$lastN": {"n": 2, "input": "$s"}}`, `{"$lastN": {"n": 9, "input": "$s"}}`,
		`{"$minN": {"n": 2, "input": "$s"}}`, `{"$maxN": {"n": 2, "input": "$s"}}`, `{"$maxN": {"n": 9, "input": "$s"}}`,
		`{"$top": {"sortBy": {"s": 1}, "output": "$s"}}`, `{"$bottom": {"sortBy": {"s": 1}, "output": "$o"}}`,
		`{"$topN": {"n": 3, "sortBy": {"s": -1}, "output": "$s"}}`, `{"$bottomN": {"n": 3, "sortBy": {"s": -1, "_id": 1}, "output": "$o"}}`,
		`{"$topN": {"n": 3, "sortBy": {"k": 1}, "output": "$s"}}`, `{"$bottomN": {"n": 3, "sortBy": {"k": 1}, "output": "$s"}}`,
		`{"$sum": 1}`, `{"$median": {"input": "$_id", "method": "approximate"}}`,
	} {
		pipeline := parseJSON(t, `[{"$group": {"_id": "$k", "v": `+accumulator+`, "n": {"$sum": 1}, "last": {"$last": "$_id"}}}]`)
		want, err := m.run(pipeline, options())
		if err != nil {
			t.Fatal(accumulator, err)
		}
		o := options()
		o.MemoryBytes = 30_000
		if o.Scratch, err = scratch.Open(memfs.New(), "scratch", 0); err != nil {
			t.Fatal(err)
		}
		got, err := m.run(pipeline, o)
		if err != nil {
			t.Fatal(accumulator, err)
		}
		a, b := strings.Split(shown(got), "\n"), strings.Split(shown(want), "\n")
		slices.Sort(a)
		slices.Sort(b)
		if !slices.Equal(a, b) {
			t.Errorf("%s: moved, the result differs", accumulator)
		}
		p, err := Parse(pipeline, o)
		if err != nil {
			t.Fatal(err)
		}
		table, most := newGroupTable(p.steps[0].stage.(*groupStage), o), 0
		for _, doc := range m.collections["c"] {
			if err := table.add(doc); err != nil {
				t.Fatal(err)
			}
			most = max(most, gathered(t, table))
		}
		if most > 2*int(o.MemoryBytes) {
			t.Errorf("%s: %d bytes in memory", accumulator, most)
		}
		if err := table.close(); err != nil {
			t.Error(err)
		}
	}
}

// gathered is about how many bytes the groups of a table have in memory.
func gathered(t *testing.T, table *groupTable) (total int) {
	t.Helper()
	for i := range table.groups {
		v, err := table.groups[i].accumulators[0].result()
		if err != nil {
			t.Fatal(err)
		}
		total += len(v.Data)
	}
	return total
}

// TestLongInputsOfManyAccumulators: what the accumulators of a group get of one document may be long together.
func TestLongInputsOfManyAccumulators(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and starts no goroutines: little for the race detector")
	}
	m := large(6)
	for i, doc := range m.collections["c"] {
		if i%3 == 1 { // of this group the inputs are short
			doc = appendSet(nil, doc, []string{"s"}, text("x"))
		}
		m.collections["c"][i] = appendSet(nil, doc, []string{"k"}, int32Value(int32(i%3)))
	}
	var list []string
	for i := range longestRow>>20 + 1 {
		list = append(list, fmt.Sprintf(`"a%d": {%q: "$s"}`, i, []string{"$first", "$last", "$max", "$push"}[i%4]))
	}
	o := options()
	o.MemoryBytes = 1000
	var err error
	if o.Scratch, err = scratch.Open(memfs.New(), "scratch", 0); err != nil {
		t.Fatal(err)
	}
	docs, err := m.run(parseJSON(t, `[{"$group": {"_id": "$k", `+strings.Join(list, ", ")+`}}, {"$project": {"n": {"$size": "$a3"}, "first": {"$strLenCP": "$a0"}}}, {"$sort": {"_id": 1}}]`), o)
	if want := "{_id: 0, n: 2, first: 1048576}\n{_id: 1, n: 2, first: 1}\n{_id: 2, n: 2, first: 1048576}"; err != nil || shown(docs) != want {
		t.Errorf("%.300s, %v", shown(docs), err)
	}
}

// TestPartitionsOfDensifyAreBounded: they stay in memory until the end.
func TestPartitionsOfDensifyAreBounded(t *testing.T) {
	m := numbers(3000)
	p, err := Parse(parseJSON(t, `[{"$densify": {"field": "_id", "partitionByFields": ["k"], "range": {"step": 1, "bounds": "partition"}}}]`), options())
	if err != nil {
		t.Fatal(err)
	}
	for memory, code := range map[int64]mongoerror.Code{100_000: 6007200, 1_000_000: 0} {
		in, err := m.Find(context.Background(), "", "c", p.leading)
		if err != nil {
			t.Fatal(err)
		}
		c, err := p.steps[0].stage.open(context.Background(), &run{env: m, o: p.o}, in)
		if err != nil {
			t.Fatal(err)
		}
		c.(*densifyCursor).share = scratch.Allowance{Memory: memory}.Share()
		if err := drain(context.Background(), c, func(document) error { return nil }); mongoerror.CodeOf(err) != code {
			t.Errorf("%d bytes: %v", memory, err)
		}
	}
}

// TestManyWindowOutputsOpenFewFiles: thousands of outputs would need thousands of files. Where they do not fit into memory that is an error.
func TestManyWindowOutputsOpenFewFiles(t *testing.T) {
	m := numbers(300)
	outputs := many(3000, func(b []byte, name string, _ int) []byte {
		return appendField(b, name, object("$sum", text("$_id"), "window", object("documents", array(int32Value(-1), int32Value(1)))))
	})
	pipeline := []document{fields("$setWindowFields", object("sortBy", object("_id", int32Value(1)), "output", outputs))}
	o, fsys := options(), &counting{FS: memfs.New()}
	o.MemoryBytes = 10_000_000
	var err error
	if o.Scratch, err = scratch.Open(fsys, "scratch", 0); err != nil {
		t.Fatal(err)
	}
	if _, err := m.run(pipeline, o); !errors.Is(err, mongoerror.QueryExceededMemoryLimitNoDiskUseAllowed) {
		t.Error(err)
	}
	if fsys.created > mostTapes+10 {
		t.Errorf("%d files", fsys.created)
	}
	o.MemoryBytes = 200_000_000
	if docs, err := m.run(pipeline, o); len(docs) != 300 || err != nil {
		t.Errorf("%d documents, %v", len(docs), err)
	}
}

// counting counts the files that are made.
type counting struct {
	vfs.FS
	created int
}

func (c *counting) Create(name string) (vfs.File, error) {
	c.created++
	return c.FS.Create(name)
}
