package document_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// Pipelines, distinct values and counts that indexes answer: the same as without an index, and explain names the stages.
func TestGroupsAndDistinctValuesByIndex(t *testing.T) {
	s := open(t, memfs.New())
	plain, indexed := collection(t, s, "plain", nil), collection(t, s, "indexed", nil)
	for _, keys := range []bson.D{{{Key: "a", Value: 1}, {Key: "b", Value: 1}}, {{Key: "b", Value: 1}}, {{Key: "arr", Value: 1}}, {{Key: "d.e", Value: 1}}, {{Key: "p.0", Value: 1}}} {
		_, err := indexed.CreateIndex(ctx, document.Index{Keys: keys})
		must(t, err)
	}
	var docs []any
	for i := range 2500 {
		d := bson.D{{Key: "_id", Value: i}, {Key: "b", Value: i * 31 % 17}, {Key: "t", Value: i}, {Key: "arr", Value: bson.A{i % 3, i % 5}}}
		switch i % 9 {
		case 0:
		case 1:
			d = append(d, bson.E{Key: "a", Value: nil})
		case 2:
			d = append(d, bson.E{Key: "a", Value: float64(i % 4)})
		default:
			d = append(d, bson.E{Key: "a", Value: i % 4}, bson.E{Key: "d", Value: bson.D{{Key: "e", Value: fmt.Sprint(i % 6)}}})
		}
		d = append(d, bson.E{Key: "p", Value: bson.D{{Key: "0", Value: i % 2}}})
		docs = append(docs, d)
	}
	for _, c := range []*document.Collection{plain, indexed} {
		_, err := c.InsertMany(ctx, docs, nil)
		must(t, err)
	}
	for _, one := range []struct{ pipeline, stages string }{
		{`[{"$group": {"_id": "$a"}}]`, "PROJECTION_COVERED DISTINCT_SCAN $groupByDistinctScan"},
		{`[{"$group": {"_id": "$d.e"}}]`, "PROJECTION_COVERED DISTINCT_SCAN $groupByDistinctScan"},
		{`[{"$match": {"a": {"$gt": 1}}}, {"$group": {"_id": "$a"}}]`, "PROJECTION_COVERED DISTINCT_SCAN $groupByDistinctScan"},
		{`[{"$sort": {"a": 1, "b": 1}}, {"$group": {"_id": "$a", "b": {"$first": "$b"}}}]`, "PROJECTION_COVERED DISTINCT_SCAN $groupByDistinctScan"},
		{`[{"$sort": {"a": -1, "b": -1}}, {"$group": {"_id": "$a", "b": {"$first": "$b"}}}]`, "PROJECTION_COVERED DISTINCT_SCAN $groupByDistinctScan"},
		{`[{"$group": {"_id": "$b", "t": {"$first": "$t"}}}]`, "FETCH DISTINCT_SCAN $groupByDistinctScan"},
		{`[{"$group": {"_id": "$arr"}}]`, "COLLSCAN $group"},
		{`[{"$group": {"_id": "$p.0"}}]`, "COLLSCAN $group"},
		{`[{"$group": {"_id": "$a", "n": {"$sum": 1}}}]`, "COLLSCAN $group"},
		{`[{"$match": {"a": 3}}, {"$group": {"_id": "$a", "n": {"$sum": "$b"}}}]`, "PROJECTION_COVERED IXSCAN $group"},
		{`[{"$match": {"a": 3}}, {"$group": {"_id": "$a", "n": {"$sum": "$t"}}}]`, "FETCH IXSCAN $group"},
		{`[{"$match": {"a": {"$gte": 1}}}, {"$count": "n"}]`, "COUNT COUNT_SCAN $group $project"},
		{`[{"$match": {"a": 2, "t": {"$gt": 100}}}, {"$count": "n"}]`, "COUNT FETCH IXSCAN $group $project"},
		{`[{"$count": "n"}]`, "RECORD_STORE_FAST_COUNT $group $project"},
	} {
		if got, want := sorted(t, indexed, one.pipeline), sorted(t, plain, one.pipeline); !slices.Equal(got, want) {
			t.Errorf("%s:\n%s\nwithout an index:\n%s", one.pipeline, got, want)
		}
		out, err := indexed.ExplainAggregate(ctx, pipeline(t, one.pipeline), nil, "executionStats")
		must(t, err)
		if got := stagesOf(out); got != one.stages {
			t.Errorf("%s: %s, expected %s", one.pipeline, got, one.stages)
		}
	}
	for _, one := range []struct{ field, filter, stages string }{
		{"a", `{}`, "PROJECTION_COVERED DISTINCT_SCAN"}, {"d.e", `{}`, "PROJECTION_COVERED DISTINCT_SCAN"},
		{"a", `{"a": {"$lt": 2}}`, "PROJECTION_COVERED DISTINCT_SCAN"}, {"b", `{"a": 1}`, "PROJECTION_COVERED DISTINCT_SCAN"},
		{"b", `{"a": {"$gt": 2}}`, "PROJECTION_COVERED IXSCAN"}, {"arr", `{}`, "COLLSCAN"}, {"t", `{"a": 1}`, "FETCH IXSCAN"}, {"none", `{}`, "COLLSCAN"},
		{"p.0", `{}`, "PROJECTION_COVERED DISTINCT_SCAN"},
	} {
		got, err := indexed.Distinct(ctx, one.field, document.JSON(one.filter), nil)
		must(t, err)
		want, err := plain.Distinct(ctx, one.field, document.JSON(one.filter), nil)
		must(t, err)
		if relaxed(t, bson.D{{Key: "values", Value: got}}) != relaxed(t, bson.D{{Key: "values", Value: want}}) {
			t.Errorf("%s %s: %v, without an index %v", one.field, one.filter, got, want)
		}
		out, err := indexed.ExplainDistinct(ctx, one.field, document.JSON(one.filter), nil)
		must(t, err)
		if stages := stagesOf(out); stages != one.stages {
			t.Errorf("distinct %s %s: %s, expected %s", one.field, one.filter, stages, one.stages)
		}
	}
}

// An _id of one field is null where there is nothing, as MongoDB has it; of several fields those without a value are missing.
func TestGroupsOfWhatIsMissing(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "things", nil)
	_, err := c.InsertMany(ctx, []any{bson.D{{Key: "_id", Value: 1}}, bson.D{{Key: "_id", Value: 2}, {Key: "a", Value: nil}}}, nil)
	must(t, err)
	for _, one := range []struct {
		id   string
		want []string
	}{
		{`{"k": "$a"}`, []string{`{"_id":{"k":null}}`}},
		{`{"k": "$a", "l": "$b"}`, []string{`{"_id":{"k":null}}`, `{"_id":{}}`}},
		{`{"k": {"m": "$a"}}`, []string{`{"_id":{"k":{"m":null}}}`, `{"_id":{"k":{}}}`}},
		{`{"$mergeObjects": [{"k": "$a"}]}`, []string{`{"_id":{"k":null}}`, `{"_id":{}}`}},
		{`"$a"`, []string{`{"_id":null}`}},
	} {
		if got := sorted(t, c, `[{"$group": {"_id": `+one.id+`}}]`); !slices.Equal(got, one.want) {
			t.Errorf("%s: %s", one.id, got)
		}
	}
}

// allPlansExecution tells of every plan what it did in a trial, and of a query that has one plan nothing.
func TestExplainOfAllPlans(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "things", nil)
	for _, keys := range []bson.D{{{Key: "a", Value: 1}, {Key: "b", Value: 1}}, {{Key: "b", Value: 1}}} {
		_, err := c.CreateIndex(ctx, document.Index{Keys: keys})
		must(t, err)
	}
	var docs []any
	for i := range 200 {
		docs = append(docs, bson.D{{Key: "_id", Value: i}, {Key: "a", Value: i % 5}, {Key: "b", Value: i % 7}})
	}
	_, err := c.InsertMany(ctx, docs, nil)
	must(t, err)
	out, err := c.Explain(ctx, document.JSON(`{"a": 3, "b": {"$gt": 2}}`), &document.FindOptions{Verbosity: "allPlansExecution"})
	must(t, err)
	var shape struct {
		QueryPlanner   struct{ RejectedPlans []bson.Raw }
		ExecutionStats struct {
			AllPlansExecution []struct {
				NReturned, TotalKeysExamined, TotalDocsExamined int
				Score                                           float64
				ExecutionStages                                 bson.Raw
			}
		}
	}
	must(t, bson.Unmarshal(out, &shape))
	trials := shape.ExecutionStats.AllPlansExecution
	if len(trials) != len(shape.QueryPlanner.RejectedPlans)+1 || len(trials) < 2 {
		t.Fatalf("%d trials, %d rejected plans", len(trials), len(shape.QueryPlanner.RejectedPlans))
	}
	if trials[0].NReturned != 23 || trials[0].TotalKeysExamined != 23 || trials[0].TotalDocsExamined != 23 || trials[0].Score < 2.9 {
		t.Errorf("the plan that was chosen: %+v", trials[0])
	}
	for _, one := range trials[1:] {
		if one.TotalKeysExamined > 2*trials[0].TotalKeysExamined+2 || one.ExecutionStages.Lookup("works").AsInt64() == 0 {
			t.Errorf("one that was not: %+v", one)
		}
	}
	out, err = c.Explain(ctx, document.JSON(`{"c": 3}`), &document.FindOptions{Verbosity: "allPlansExecution"})
	must(t, err)
	if list := out.Lookup("executionStats", "allPlansExecution").Array(); len(list) > 5 {
		t.Errorf("without a choice: %s", list)
	}
}

func pipeline(t *testing.T, text string) []bson.Raw {
	var list struct {
		P []bson.Raw `bson:"p"`
	}
	must(t, bson.UnmarshalExtJSON([]byte(`{"p": `+text+`}`), false, &list))
	return list.P
}

// sorted returns what a pipeline gives, as text. 1.0 is 1: which of the equal values stands for all depends on the order.
func sorted(t *testing.T, c *document.Collection, text string) (out []string) {
	for doc, err := range c.Aggregate(ctx, pipeline(t, text), nil) {
		must(t, err)
		out = append(out, relaxed(t, doc))
	}
	slices.Sort(out)
	return out
}

func relaxed(t *testing.T, v any) string {
	line, err := bson.MarshalExtJSON(v, false, false)
	must(t, err)
	return strings.ReplaceAll(string(line), ".0", "")
}

// stagesOf returns the names of the stages of the winning plan and of those behind it.
func stagesOf(out bson.Raw) string {
	var names []string
	rest := bson.RawArray(nil)
	if list, err := out.LookupErr("stages"); err == nil {
		rest = list.Array()
		out = list.Array().Index(0).Document().Lookup("$cursor").Document()
	}
	for at := out.Lookup("queryPlanner", "winningPlan").Document(); at != nil; {
		names = append(names, at.Lookup("stage").StringValue())
		next, err := at.LookupErr("inputStage")
		if err != nil {
			break
		}
		at = next.Document()
	}
	values, _ := rest.Values()
	for _, v := range values[min(1, len(values)):] {
		names = append(names, v.Document().Index(0).Key())
	}
	return strings.Join(names, " ")
}
