package aggregate

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/scratch"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestGranularityOfTheSmallestNumbers: below the least number that a double can be there is none of a series. Looking for it took for ever.
func TestGranularityOfTheSmallestNumbers(t *testing.T) {
	for _, name := range []string{"R5", "R10", "R20", "R40", "R80", "1-2-5", "E6", "E12", "E24", "E48", "E96", "E192", "POWERSOF2"} {
		for _, f := range []float64{math.SmallestNonzeroFloat64, 3 * math.SmallestNonzeroFloat64, 1e-321, 1e-320, 1e-310, math.MaxFloat64} {
			m := &memory{collections: map[string][]document{"c": {fields("_id", doubleValue(f)), fields("_id", doubleValue(1))}}}
			for buckets := range 2 {
				docs, err := m.run(parseJSON(t, fmt.Sprintf(`[{"$bucketAuto": {"groupBy": "$_id", "buckets": %d, "granularity": %q}}]`, buckets+1, name)), options())
				if err != nil || len(docs) == 0 {
					t.Errorf("%s of %g: %v", name, f, err)
					continue
				}
				least, _ := float(get(docs[0], []string{"_id", "min"}))
				most, _ := float(get(docs[len(docs)-1], []string{"_id", "max"}))
				if least > min(f, 1) || most < max(f, 1) {
					t.Errorf("%s of %g: from %g to %g", name, f, least, most)
				}
			}
		}
	}
}

// many makes a document of many fields.
func many(n int, field func(b []byte, name string, i int) []byte) value {
	b, start := begin(nil)
	for i := range n {
		b = field(b, fmt.Sprintf("f%06d", i), i)
	}
	return documentValue(end(b, start))
}

// TestStagesOfManyFields: stages are parsed, and a $group is carried out, in time by how many fields they have. By its square it would be minutes.
func TestStagesOfManyFields(t *testing.T) {
	const n = 100_000
	doc := many(n, func(b []byte, name string, i int) []byte { return appendField(b, name, int32Value(int32(i))) }).Document()
	m := &memory{collections: map[string][]document{"c": {doc}}}
	sums := many(n, func(b []byte, name string, _ int) []byte { return appendField(b, name, object("$sum", text("$"+name))) })
	b, start := begin(nil)
	b = appendField(b, "_id", null())
	group := documentValue(end(append(b, sums.Data[4:len(sums.Data)-1]...), start))
	conditions := many(n, func(b []byte, name string, i int) []byte { return appendField(b, name, int32Value(int32(i))) })
	docs, err := m.run([]document{fields("$group", group)}, options())
	if err != nil || len(docs) != 1 || get(docs[0], []string{"f000007"}).AsInt64() != 7 {
		t.Errorf("$group: %d documents, %v", len(docs), err)
	}
	if _, err := Parse([]document{fields("$addFields", conditions), fields("$match", conditions)}, options()); err != nil {
		t.Error(err)
	}
	windows := many(n, func(b []byte, name string, _ int) []byte {
		return appendField(b, name+".x", object("$sum", int32Value(1)))
	})
	if _, err := Parse([]document{fields("$setWindowFields", object("output", windows))}, options()); err != nil {
		t.Error(err)
	}
	let := many(n, func(b []byte, name string, _ int) []byte { return appendField(b, name, text("$a")) })
	long := array(object("$match", object("s", text(strings.Repeat("x", 4<<20)))))
	if _, err := Parse([]document{fields("$lookup", object("from", text("o"), "let", let, "pipeline", long, "as", text("l")))}, options()); err != nil {
		t.Error(err)
	}
}

// TestMentions: a stage that may use a variable of $lookup does not count as the same for all documents.
func TestMentions(t *testing.T) {
	names := map[string]bool{"a": true, "b_1": true, "\u00e9": true}
	for s, want := range map[string]bool{
		"": false, "$a": false, "$$a": true, "$$a.b": true, "$$ab": false, "$$b_1.x": true, "$$b_": false, "$$ROOT.a $$a": true, "$$$$a": true, "x$$\u00e9": true, "$$": false,
	} {
		if got := mentions(fields("$match", object("x", text(s), "y", text(s))), names); got != want {
			t.Errorf("%q: %t", s, got)
		}
	}
}

// TestWindowOutputsConflict: a path may be set once, and nothing above or below it.
func TestWindowOutputsConflict(t *testing.T) {
	for output, conflict := range map[string]bool{
		"a a": true, "a.b a": true, "a a.b": true, "a.b a.c": false, "a.b a.b.c": true, "a.b.c a.b": true, "a.b.c a.c a.d.e": false, "ab a": false, "a ab a-b": false,
		"a.b.c a.b.d a": true, "x a.b.c.d a.b": true,
	} {
		b, start := begin(nil)
		for _, name := range strings.Fields(output) {
			b = appendField(b, name, object("$sum", int32Value(1)))
		}
		_, err := Parse([]document{fields("$setWindowFields", object("output", documentValue(end(b, start))))}, options())
		if mongoerror.CodeOf(err) == 6307900 != conflict || err != nil != conflict {
			t.Errorf("%s: %v", output, err)
		}
	}
}

// TestBucketsByALongExpression: the expression of $bucket is not written out for each of thousands of boundaries.
func TestBucketsByALongExpression(t *testing.T) {
	long := []value{text("$_id")}
	for range 20_000 {
		long = append(long, int32Value(0))
	}
	var boundaries []value
	for i := range 2000 {
		boundaries = append(boundaries, int32Value(int32(10*i)))
	}
	p, err := Parse([]document{fields("$bucket", object("groupBy", object("$add", array(long...)), "boundaries", array(boundaries...), "default", text("other")))}, options())
	if err != nil {
		t.Fatal(err)
	}
	if n := len(p.steps[0].spec.Data); n > 10<<20 {
		t.Errorf("a stage of %d bytes", n)
	}
	m := &memory{collections: map[string][]document{}}
	for _, i := range []int32{-1, 0, 9, 10, 19989, 19990} {
		m.collections["c"] = append(m.collections["c"], fields("_id", int32Value(i)))
	}
	docs, err := m.runPipeline(p)
	if want := "{_id: 0, count: 2}\n{_id: 10, count: 1}\n{_id: 19980, count: 1}\n{_id: \"other\", count: 2}"; err != nil || shown(docs) != want {
		t.Errorf("%s, %v", shown(docs), err)
	}
}

// TestRankedLists: a list of ranked values keeps their order, whatever its length, and those of one key in the order of arrival.
func TestRankedLists(t *testing.T) {
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 1))
		var list rankedList
		var want []ranked
		for i := range 2000 {
			switch r.IntN(8) {
			case 0:
				if len(want) > 0 {
					list.dropFirst()
					want = want[1:]
				}
			case 1:
				if len(want) > 0 {
					list.dropLast()
					want = want[:len(want)-1]
				}
			default:
				add := ranked{key: fmt.Append(nil, r.IntN(1+int(seed)*50)), v: int32Value(int32(i))}
				at := sort.Search(len(want), func(i int) bool { return bytes.Compare(want[i].key, add.key) > 0 })
				want = slices.Insert(slices.Clone(want), at, add)
				list.insert(add)
			}
		}
		i := 0
		err := list.all(func(got *ranked) error {
			if i >= len(want) || !bytes.Equal(got.key, want[i].key) || !got.v.Equal(want[i].v) {
				t.Fatalf("seed %d: value %d of %d is another", seed, i, len(want))
			}
			i++
			return nil
		})
		if err != nil || i != len(want) || list.n != i || i > 0 && (!list.first().v.Equal(want[0].v) || !list.last().v.Equal(want[i-1].v)) {
			t.Fatalf("seed %d: %d values of %d, %d counted, %v", seed, i, len(want), list.n, err)
		}
	}
}

// TestManyRankedValues: each that is added takes about as long as the one before, however many there are.
func TestManyRankedValues(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and starts no goroutines: little for the race detector")
	}
	const n = 200_000
	for _, last := range []bool{false, true} {
		a := &rankedAccumulator{op: "$topN", n: n, last: last}
		for i := range n {
			if _, err := a.add(fmt.Appendf(nil, "%06d", i*7919%n), int32Value(int32(i))); err != nil {
				t.Fatal(err)
			}
		}
		if a.list.n != n || string(a.list.first().key) != "000000" || string(a.list.last().key) != fmt.Sprintf("%06d", n-1) {
			t.Errorf("%d values from %s to %s", a.list.n, a.list.first().key, a.list.last().key)
		}
	}
}

// pairs is a collection of many documents each of which has all of many values.
func pairs(t *testing.T, documents, values int) *memory {
	t.Helper()
	list := make([]value, values)
	for i := range list {
		list[i] = int32Value(int32(i))
	}
	m := &memory{collections: map[string][]document{}}
	for i := range documents {
		doc := fields("_id", int32Value(int32(i)), "v", array(list...))
		m.collections["c"] = append(m.collections["c"], doc)
		m.collections["other"] = append(m.collections["other"], doc)
	}
	return m
}

// TestLookupHoldsNoMoreThanItsMemory: documents that are joined by many values each make many more pairs than there are documents. They are
// joined fewer at a time, down to one, and the pairs are listed when their turn comes: all at once they were gigabytes.
func TestLookupHoldsNoMoreThanItsMemory(t *testing.T) {
	const documents, values, numbers = 40, 50, 1000
	m := pairs(t, documents, values)
	o := options()
	o.MemoryBytes = numbers * numberBytes
	var err error
	if o.Scratch, err = scratch.Open(memfs.New(), "scratch", 0); err != nil {
		t.Fatal(err)
	}
	for _, more := range []string{"", `, {"$unwind": "$r"}, {"$group": {"_id": "$_id", "r": {"$push": "$r"}}}`} {
		pipeline := parseJSON(t, `[{"$lookup": {"from": "other", "localField": "v", "foreignField": "v", "as": "r"}}`+more+`]`)
		p, err := Parse(pipeline, o)
		if err != nil {
			t.Fatal(err)
		}
		c, err := p.Run(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		err = drain(t.Context(), c, func(doc document) error {
			found++
			if n := len(elementsOf(t, get(doc, []string{"r"}))); n != documents {
				t.Errorf("%d are joined with the document %s", n, get(doc, []string{"_id"}))
			}
			if j, ok := c.(*joinCursor); ok && !j.alone && j.noted > numbers+values {
				t.Errorf("there are %d numbers of documents", j.noted)
			}
			return nil
		})
		if err != nil || found != documents {
			t.Errorf("%d documents, %v", found, err)
		}
	}
}

// elementsOf returns the values of an array.
func elementsOf(t *testing.T, v value) []value {
	t.Helper()
	values, err := v.Array().Values()
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// TestGraphLookupOfTooMuch: what a search looks for counts against its memory as what it finds does.
func TestGraphLookupOfTooMuch(t *testing.T) {
	const n, around = 1000, 20 // bytes of an element beside its text, and some
	long := strings.Repeat("x", defaultMemory/n-around)
	var values []value
	for i := range n {
		values = append(values, text(fmt.Sprintf("%s%04d", long, i)))
	}
	m := &memory{collections: map[string][]document{"c": {fields("_id", int32Value(1), "v", array(values...))}}}
	pipeline := parseJSON(t, `[{"$graphLookup": {"from": "other", "startWith": "$v", "connectFromField": "v", "connectToField": "_id", "as": "r"}}]`)
	if _, err := m.run(pipeline, options()); mongoerror.CodeOf(err) != 40099 {
		t.Error(err)
	}
}

// TestGrowingIntegrals: each window that only grows takes the time of what is new in it. By its square it would be minutes.
func TestGrowingIntegrals(t *testing.T) {
	const n = 100_000
	docs, err := numbers(n).run(parseJSON(t, `[{"$setWindowFields": {"sortBy": {"_id": 1}, "output": {"i": {"$integral": {"input": "$_id"}, "window": {"documents": ["unbounded", "current"]}}}}},
		{"$match": {"_id": {"$in": [0, 1, 2, 99999]}}}, {"$project": {"i": 1}}]`), options())
	const want = "{_id: 0, i: 0}\n{_id: 1, i: 0.5d}\n{_id: 2, i: 2d}\n{_id: 99999, i: 4999900000.5d}"
	if got := shown(docs); err != nil || got != want {
		t.Errorf("%s, %v, want\n%s", got, err, want)
	}
}
