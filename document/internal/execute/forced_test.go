package execute_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/codec"
	"github.com/pandodb/pando/document/internal/collation"
	"github.com/pandodb/pando/document/internal/execute"
	"github.com/pandodb/pando/document/internal/index"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/path"
	"github.com/pandodb/pando/document/internal/plan"
	"github.com/pandodb/pando/document/internal/query"
	"github.com/pandodb/pando/document/internal/scratch"
	"github.com/pandodb/pando/document/internal/sortkey"
	"github.com/pandodb/pando/vfs/memfs"
)

var programs = flag.Int("programs", 60, "generated collections to hold plans against")

// TestEveryPlanGivesTheSame: generated documents, indexes of all kinds and queries; every plan that the planner knows of has to give
// what a look at each document gives.
func TestEveryPlanGivesTheSame(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and starts no goroutines: little for the race detector")
	}
	met := map[string]int{}
	for seed := range uint64(*programs) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			f := newForced(t, seed)
			f.met = met
			f.queries(usualQueries)
		})
	}
	for _, name := range []string{ // with fewer programs some may not come
		"COLLSCAN", "IDHACK", "EOF", "IXSCAN", "FETCH", "OR", "AND_SORTED", "AND_HASH", "SORT", "SORT_MERGE", "SKIP", "LIMIT",
		"PROJECTION_COVERED", "PROJECTION_SIMPLE", "COUNT", "COUNT_SCAN", "DISTINCT_SCAN",
	} {
		if met[name] == 0 && *programs >= 60 {
			t.Errorf("no plan had a stage %s", name)
		}
	}
	t.Log(met)
}

// note counts the stages of a plan.
func (f *forced) note(s plan.Stage) {
	f.met[s.Name()]++
	for _, in := range s.Inputs() {
		f.note(in)
	}
}

// forced is one generated collection.
type forced struct {
	*fixture
	rnd       *rand.Rand
	docs      []bsoncore.Document
	collation *collation.Collation
	met       map[string]int // how often each stage came
	flat      bool           // no arrays and documents
	extremes  bool           // values at the ends of their types
}

func newForced(t testing.TB, seed uint64) *forced {
	f := &forced{fixture: newFixture(t, codec.Template), rnd: rand.New(rand.NewPCG(seed, 7))}
	f.collation, _ = collation.Parse(encode(t, bson.D{{Key: "locale", Value: "en"}, {Key: "strength", Value: 2}}))
	f.flat, f.extremes = f.rnd.IntN(3) == 0, f.rnd.IntN(3) == 0
	names := map[string]bool{}
	for range 1 + f.rnd.IntN(6) {
		spec := f.indexSpec()
		if name := fmt.Sprint(spec[0].Value); !names[name] {
			names[name] = true
			f.index(spec)
		}
	}
	for id := range 20 + f.rnd.IntN(60) + f.rnd.IntN(4)/3*120 { // a walk over more than some looks at records in another way
		doc := encode(t, f.document(id))
		if f.insert(doc) {
			f.docs = append(f.docs, doc)
		}
	}
	return f
}

func pick[T any](rnd *rand.Rand, from ...T) T { return from[rnd.IntN(len(from))] }

// scalar makes a value that is no document or array.
func (f *forced) scalar() any {
	if f.extremes && f.rnd.IntN(3) == 0 {
		return f.extreme()
	}
	switch f.rnd.IntN(14) {
	case 0, 1, 2, 3, 4:
		return int32(f.rnd.IntN(6))
	case 5:
		return float64(f.rnd.IntN(12)) / 2
	case 6, 7:
		return pick(f.rnd, "", "a", "A", "ab", "abc", "b", "ba")
	case 8, 9:
		return nil
	case 10:
		return f.rnd.IntN(2) == 0
	case 11:
		return pick[any](f.rnd, math.NaN(), math.Inf(1), math.Inf(-1), int64(1)<<60, math.Copysign(0, -1))
	case 12:
		return pick[any](f.rnd, bson.MinKey{}, bson.MaxKey{}, bson.Undefined{}, bson.Regex{Pattern: "^a"}, bson.DateTime(5), bson.Timestamp{T: 1})
	}
	return bson.ObjectID{byte(f.rnd.IntN(3))}
}

// value makes any value.
func (f *forced) value(depth int) any {
	if depth > 0 && !f.flat {
		switch f.rnd.IntN(6) {
		case 0, 1:
			a := bson.A{}
			for range f.rnd.IntN(4) {
				a = append(a, f.value(depth-1))
			}
			return a
		case 2:
			d := bson.D{}
			for _, name := range []string{"b", "c"} {
				if f.rnd.IntN(3) > 0 {
					d = append(d, bson.E{Key: name, Value: f.value(depth - 1)})
				}
			}
			return d
		}
	}
	return f.scalar()
}

func (f *forced) document(id int) bson.D {
	d := bson.D{{Key: "_id", Value: int32(id)}}
	if f.rnd.IntN(2) == 0 {
		d[0].Value = fmt.Sprintf("%03d", id)
	}
	for _, name := range []string{"a", "b", "c", "m"} {
		switch {
		case f.rnd.IntN(5) == 0:
		case name == "c":
			d = append(d, bson.E{Key: name, Value: f.scalar()})
		case name == "m":
			d = append(d, bson.E{Key: name, Value: f.value(2)})
		default:
			d = append(d, bson.E{Key: name, Value: f.value(1)})
		}
	}
	if f.rnd.IntN(4) > 0 {
		d = append(d, bson.E{Key: "g", Value: f.geometry()})
	}
	if f.rnd.IntN(12) == 0 { // no path leads to what has a dot in its name
		d = append(d, bson.E{Key: pick(f.rnd, "m.b", "a.b", "m.b.c"), Value: f.value(1)})
	}
	return append(d, bson.E{Key: "u", Value: int32(id * 7)})
}

func (f *forced) position() bson.A {
	return bson.A{f.rnd.Float64()*20 - 10, f.rnd.Float64()*20 - 10}
}

// geometry makes a point or a line.
func (f *forced) geometry() bson.D {
	if f.rnd.IntN(3) > 0 {
		return bson.D{{Key: "type", Value: "Point"}, {Key: "coordinates", Value: f.position()}}
	}
	return bson.D{{Key: "type", Value: "LineString"}, {Key: "coordinates", Value: bson.A{f.position(), f.position()}}}
}

// region makes a condition on a geometry.
func (f *forced) region() any {
	p := f.position()
	x, y := p[0].(float64), p[1].(float64)
	square := bson.D{{Key: "type", Value: "Polygon"}, {Key: "coordinates", Value: bson.A{bson.A{
		bson.A{x, y}, bson.A{x + 5, y}, bson.A{x + 5, y + 5}, bson.A{x, y + 5}, bson.A{x, y}}}}}
	switch f.rnd.IntN(4) {
	case 0:
		return bson.D{{Key: "$geoWithin", Value: bson.D{{Key: "$geometry", Value: square}}}}
	case 1:
		return bson.D{{Key: "$geoWithin", Value: bson.D{{Key: "$centerSphere", Value: bson.A{p, 0.05 + f.rnd.Float64()/10}}}}}
	case 2:
		return bson.D{{Key: "$geoWithin", Value: bson.D{{Key: "$box", Value: bson.A{p, bson.A{x + 4, y + 4}}}}}}
	}
	return bson.D{{Key: "$geoIntersects", Value: bson.D{{Key: "$geometry", Value: pick(f.rnd, square, f.geometry())}}}}
}

func (f *forced) path() string {
	if n := len(f.c.Indexes); n > 0 && f.rnd.IntN(2) == 0 {
		parts := f.c.Indexes[f.rnd.IntN(n)].Definition.Components
		if part := parts[f.rnd.IntN(len(parts))]; !part.Wildcard && part.Kind != index.Sphere {
			return part.Path
		}
	}
	// None goes by a position: whether null is at "m.0" an index tells of that element, as in MongoDB, and a filter of the fields of all.
	return pick(f.rnd, "a", "a", "b", "c", "c", "m", "m.b", "m.c", "a.b", "m.b.c", "_id")
}

// fieldPath is path, but for _id.
func (f *forced) fieldPath() string {
	for {
		if p := f.path(); p != "_id" {
			return p
		}
	}
}

// operator makes a condition on a value.
func (f *forced) operator(depth int) any {
	if depth > 0 && f.rnd.IntN(6) == 0 {
		return f.nested()
	}
	switch f.rnd.IntN(14) {
	case 0, 1, 2:
		return f.value(1)
	case 3, 4, 5:
		return bson.D{{Key: pick(f.rnd, "$gt", "$gte", "$lt", "$lte"), Value: f.notRegex()}}
	case 6:
		return bson.D{{Key: "$gt", Value: int32(f.rnd.IntN(3))}, {Key: "$lt", Value: int32(2 + f.rnd.IntN(4))}}
	case 7:
		list := bson.A{}
		for range f.rnd.IntN(4) {
			list = append(list, f.value(1))
		}
		return bson.D{{Key: pick(f.rnd, "$in", "$nin"), Value: list}}
	case 8:
		return bson.D{{Key: "$ne", Value: f.notRegex()}}
	case 9:
		return bson.D{{Key: "$exists", Value: f.rnd.IntN(2) == 0}}
	case 10:
		return bson.D{{Key: "$type", Value: pick[any](f.rnd, "number", "string", "array", "object", "null", "int", "bool", "double")}}
	case 11:
		return bson.Regex{Pattern: pick(f.rnd, "^a", "^ab", "b", "^", "^a.*c"), Options: pick(f.rnd, "", "", "i")}
	case 12:
		return bson.D{{Key: "$not", Value: bson.D{{Key: pick(f.rnd, "$gt", "$lt", "$gte", "$lte"), Value: f.notRegex()}}}}
	}
	if depth == 0 {
		return pick[any](f.rnd, bson.D{{Key: "$size", Value: f.rnd.IntN(3)}}, bson.D{{Key: "$mod", Value: bson.A{2, 1}}})
	}
	between := bson.D{{Key: "$gt", Value: int32(f.rnd.IntN(3))}, {Key: "$lt", Value: int32(2 + f.rnd.IntN(4))}}
	switch f.rnd.IntN(4) {
	case 0:
		return bson.D{{Key: "$elemMatch", Value: between}}
	case 1:
		return bson.D{{Key: "$elemMatch", Value: pick(f.rnd, bson.D{{Key: "$elemMatch", Value: between}},
			bson.D{{Key: "$elemMatch", Value: between}, {Key: "$size", Value: f.rnd.IntN(3)}},
			bson.D{{Key: "$all", Value: bson.A{bson.D{{Key: "$elemMatch", Value: between}}}}})}}
	case 2:
		return bson.D{{Key: "$all", Value: bson.A{f.scalarNotRegex(), f.scalarNotRegex()}}}
	}
	inner := bson.D{{Key: "b", Value: f.operator(0)}}
	if f.rnd.IntN(2) == 0 {
		inner = append(inner, bson.E{Key: "c", Value: f.operator(0)})
	}
	return bson.D{{Key: "$elemMatch", Value: inner}}
}

func (f *forced) notRegex() any {
	for {
		v := f.value(1)
		if _, ok := v.(bson.Regex); !ok {
			return v
		}
	}
}

func (f *forced) scalarNotRegex() any {
	for {
		v := f.scalar()
		if _, ok := v.(bson.Regex); !ok {
			return v
		}
	}
}

func (f *forced) filter(depth int) bson.D {
	d := bson.D{}
	conditions := 1 + f.rnd.IntN(3)
	if f.rnd.IntN(3) == 0 {
		conditions = f.rnd.IntN(2)
	}
	for range conditions {
		if depth > 0 && f.rnd.IntN(5) == 0 {
			list := bson.A{}
			for range 1 + f.rnd.IntN(3) {
				list = append(list, f.filter(depth-1))
			}
			d = append(d, bson.E{Key: pick(f.rnd, "$or", "$or", "$and", "$nor"), Value: list})
			continue
		}
		switch f.rnd.IntN(16) {
		case 0, 1:
			d = append(d, bson.E{Key: "g", Value: f.region()})
			continue
		case 2:
			d = append(d, bson.E{Key: "$expr", Value: f.compared(2)})
			continue
		}
		d = append(d, bson.E{Key: f.path(), Value: f.operator(1)})
	}
	return d
}

// queries makes queries and holds every plan of each against the truth.
func (f *forced) queries(n int) {
	r := f.reader()
	space, err := scratch.Open(memfs.New(), "scratch", 0)
	if err != nil {
		f.t.Fatal(err)
	}
	for range n {
		q, text, ok := f.generated()
		if !ok {
			continue
		}
		plans, err := plan.All(q, execute.Planning(r, f.c))
		if err != nil {
			f.t.Fatalf("%s: %v", text, err)
		}
		best := f.choose(r, q)
		for _, p := range append(plans, best) {
			f.note(p.Root)
			if q.Goal == plan.Counting {
				f.checkCount(r, p, q, text)
				continue
			}
			docs, _, err := f.run(r, p, pick(f.rnd, &execute.Options{Memory: 1 << 20}, &execute.Options{Memory: 500, Space: space}))
			if errors.Is(err, mongoerror.BadValue) && strings.Contains(err.Error(), "parallel arrays") {
				continue // this order cannot be told for some of the documents
			}
			if err != nil {
				f.t.Fatalf("%s: %v\n%s", text, err, p)
			}
			if q.First {
				if problem := f.wrongFirst(q, docs); problem != "" {
					f.t.Fatalf("%s: %s\n%s\n%s", text, problem, p, f.indexes())
				}
				continue
			}
			if q.Goal == plan.Distinct {
				if want, got := f.values(q, f.matching(q)), f.values(q, docs); !maps.Equal(want, got) {
					f.t.Fatalf("%s: %d values, expected %d\n%s\n%s", text, len(got), len(want), p, f.indexes())
				}
				continue
			}
			if problem := f.wrong(q, docs); problem != "" {
				f.t.Fatalf("%s: %s\n%s\n%s", text, problem, p, f.indexes())
			}
		}
	}
}

func (f *forced) indexes() string {
	out := ""
	for i, x := range f.c.Indexes {
		out += fmt.Sprintf("%s multikey=%b\n", x.Definition.Spec, f.multikey[i])
	}
	return out
}

// generated makes a query; ok is false when the filter made is not allowed.
func (f *forced) generated() (q *plan.Query, text string, ok bool) {
	spec := f.filter(2)
	q = &plan.Query{FilterSpec: encode(f.t, spec), Let: f.variables()}
	if f.rnd.IntN(3) == 0 {
		q.Collation = f.collation
	}
	var err error
	if q.Filter, err = query.Parse(q.FilterSpec, &query.Options{Collation: q.Collation, Let: q.Let}); err != nil {
		return nil, "", false
	}
	switch {
	case f.rnd.IntN(12) == 0:
		if !f.between(q) {
			return nil, "", false
		}
	case f.rnd.IntN(8) == 0:
		q.Goal = plan.Counting
	case f.rnd.IntN(8) == 0:
		q.Goal, q.Field = plan.Distinct, f.path()
		if f.rnd.IntN(2) == 0 {
			q.Fields = []string{q.Field}
		}
		if sort := f.indexOrder(); f.rnd.IntN(2) == 0 && q.Collation == nil {
			q.First, q.Fields = true, []string{q.Field, "c", "u"}
			if len(sort) > 0 {
				q.Field, q.Sort = sort[0].Key, encode(f.t, sort)
				for _, e := range sort {
					q.Fields = append(q.Fields, e.Key)
				}
			}
			text = fmt.Sprintf("first of %s %s sort %s", q.Field, q.FilterSpec, q.Sort)
			return q, text, true
		}
		text = fmt.Sprintf("distinct %s %s collation %t", q.Field, q.FilterSpec, q.Collation != nil)
		return q, text, true
	}
	if q.Goal == plan.Find && q.Sort == nil && f.rnd.IntN(2) == 0 {
		sort := f.indexOrder()
		for range 1 + f.rnd.IntN(2) {
			path := f.path()
			if !slices.ContainsFunc(sort, func(e bson.E) bool { return e.Key == path || e.Key == "m" || path == "m" || e.Key[0] == path[0] }) {
				sort = append(sort, bson.E{Key: path, Value: pick(f.rnd, 1, -1)})
			}
		}
		q.Sort = encode(f.t, sort)
	}
	if f.rnd.IntN(3) == 0 {
		q.Limit = int64(1 + f.rnd.IntN(8))
	}
	if f.rnd.IntN(4) == 0 {
		q.Skip = int64(f.rnd.IntN(5))
	}
	if q.Goal == plan.Find && f.rnd.IntN(3) == 0 {
		f.project(q, pick(f.rnd, bson.D{{Key: f.fieldPath(), Value: 1}, {Key: "_id", Value: 0}}, bson.D{{Key: "c", Value: 1}, {Key: "_id", Value: 0}}, bson.D{{Key: "c", Value: 1}, {Key: "u", Value: 1}}, bson.D{{Key: "a.b", Value: 1}, {Key: "c", Value: 1}, {Key: "_id", Value: 0}}))
	}
	text = fmt.Sprintf("find %s sort %s skip %d limit %d goal %d", asked(q), q.Sort, q.Skip, q.Limit, q.Goal)
	return q, text, true
}

// matching returns the documents that match.
func (f *forced) matching(q *plan.Query) []bsoncore.Document {
	var out []bsoncore.Document
	for _, doc := range f.docs {
		ok, err := q.Filter.Match(path.Document(doc))
		if err != nil {
			f.t.Fatal(err)
		}
		if ok && f.inside(q, doc) {
			out = append(out, doc)
		}
	}
	return out
}

// expected returns how many documents a query gives.
func expected(n int, q *plan.Query) int {
	n = max(0, n-int(q.Skip))
	if q.Limit > 0 {
		n = min(n, int(q.Limit))
	}
	return n
}

func (f *forced) checkCount(r execute.Reader, p *plan.Plan, q *plan.Query, text string) {
	got, err := execute.Count(f.t.Context(), r, f.c, p, nil)
	if err != nil {
		f.t.Fatalf("%s: %v\n%s", text, err, p)
	}
	if want := expected(len(f.matching(q)), q); int(got) != want {
		f.t.Fatalf("%s: counted %d, expected %d\n%s\n%s", text, got, want, p, f.indexes())
	}
}

// wrong says what is wrong with the answer to a query; nothing: "".
func (f *forced) wrong(q *plan.Query, docs []bsoncore.Document) string {
	truth := f.matching(q)
	if want := expected(len(truth), q); len(docs) != want {
		return fmt.Sprintf("%d documents, expected %d\ngot:  %v\nfrom: %v", len(docs), want, docs, truth)
	}
	if q.Projection != nil {
		return f.wrongProjection(q, docs, truth)
	}
	left := map[string]int{}
	for _, doc := range truth {
		left[string(doc)]++
	}
	for _, doc := range docs {
		if left[string(doc)]--; left[string(doc)] < 0 {
			return fmt.Sprintf("a document that does not match or came before: %s", doc)
		}
	}
	if len(q.Sort) == 0 {
		return ""
	}
	want, got := f.sortKeys(q, truth), f.sortKeys(q, docs)
	slices.SortFunc(want, bytes.Compare)
	for i := range got {
		if !bytes.Equal(got[i], want[int(q.Skip)+i]) {
			return fmt.Sprintf("the order is wrong at %d: %v", i, docs)
		}
	}
	return ""
}

// sortKeys returns the sort keys of documents.
func (f *forced) sortKeys(q *plan.Query, docs []bsoncore.Document) [][]byte {
	p, err := sortkey.Parse(q.Sort, q.Collation)
	if err != nil {
		f.t.Fatal(err)
	}
	out := make([][]byte, len(docs))
	for i, doc := range docs {
		if out[i], err = p.Append(nil, path.Document(doc)); err != nil {
			f.t.Fatal(err)
		}
	}
	return out
}

// wrongProjection compares projected documents, in whatever order their fields are.
func (f *forced) wrongProjection(q *plan.Query, docs, truth []bsoncore.Document) string {
	left := map[string]int{}
	for _, doc := range truth {
		out, err := q.Projection.Apply(nil, doc)
		if err != nil {
			f.t.Fatal(err)
		}
		left[unordered(out)]++
	}
	for _, doc := range docs {
		if k := unordered(doc); left[k] == 0 {
			return fmt.Sprintf("a document that is not among the answers: %s", doc)
		} else {
			left[k]--
		}
	}
	return ""
}

// indexOrder returns the order of the last components of an index, or none.
func (f *forced) indexOrder() bson.D {
	if f.rnd.IntN(2) == 0 {
		return nil
	}
	sort, sign := bson.D{}, pick(f.rnd, 1, -1)
	parts := f.c.Indexes[f.rnd.IntN(len(f.c.Indexes))].Definition.Components
	for _, part := range parts[f.rnd.IntN(len(parts)):] {
		switch {
		case part.Wildcard || part.Kind == index.Sphere || part.Kind == index.Hashed:
			return sort
		case part.Kind == index.Descending:
			sort = append(sort, bson.E{Key: part.Path, Value: -sign})
		default:
			sort = append(sort, bson.E{Key: part.Path, Value: sign})
		}
	}
	return sort
}

func unordered(doc bsoncore.Document) string {
	elements, _ := doc.Elements()
	names := make([]string, len(elements))
	for i, e := range elements {
		names[i] = e.String()
	}
	slices.Sort(names)
	return fmt.Sprint(names)
}
