package plan_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/collation"
	"github.com/pandodb/pando/document/internal/index"
	"github.com/pandodb/pando/document/internal/plan"
	"github.com/pandodb/pando/document/internal/projection"
	"github.com/pandodb/pando/document/internal/query"
)

// TestPlans plays the transcripts: collections with made-up cardinalities, queries, and the plans chosen for them.
//
//	collection records=<n>
//	<index specification> [multikey=<bits>] [rows=<entries in any bounds>]...
//
//	plan|all|explain
//	{find: <filter>, sort:, skip:, limit:, projection:, hint:, min:, max:, collation:, count: true, distinct: <path>}
func TestPlans(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var c *plan.Collection
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "collection":
				c = collectionOf(t, d)
				return ""
			case "plan", "all", "explain":
				var out strings.Builder
				for _, line := range strings.Split(d.Input, "\n") {
					fmt.Fprintf(&out, "%s", answer(t, c, d.Cmd, line))
				}
				return out.String()
			}
			t.Fatalf("unknown command %s", d.Cmd)
			return ""
		})
	})
}

// document parses relaxed Extended JSON in which names need no quotes.
func document(t *testing.T, text string) bsoncore.Document {
	t.Helper()
	var d bson.Raw
	if err := bson.UnmarshalExtJSON([]byte(text), false, &d); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return bsoncore.Document(d)
}

func collectionOf(t *testing.T, d *datadriven.TestData) *plan.Collection {
	records := 10_000
	d.MaybeScanArgs(t, "records", &records)
	c := &plan.Collection{Namespace: "test.c", Records: func() (int64, error) { return int64(records), nil }}
	rows := []int64{1}
	for _, line := range strings.Split(d.Input, "\n") {
		if line == "" {
			continue
		}
		spec, options, _ := strings.Cut(line, "} ")
		if options != "" {
			spec += "}"
		}
		def, err := index.Parse(document(t, spec), nil)
		if err != nil {
			t.Fatalf("%s: %v", spec, err)
		}
		i := plan.Index{Definition: def}
		n := int64(records / 10)
		for _, o := range strings.Fields(options) {
			name, value, _ := strings.Cut(o, "=")
			number, err := strconv.ParseInt(value, 0, 64)
			if err != nil {
				t.Fatal(err)
			}
			switch name {
			case "multikey":
				i.Multikey = uint64(number)
			case "rows":
				n = number
			}
		}
		c.Indexes, rows = append(c.Indexes, i), append(rows, n)
	}
	c.Count = func(i int, lo, hi []byte) (int64, error) {
		if lo == nil && hi == nil {
			return int64(records), nil
		}
		return rows[i+1], nil
	}
	return c
}

// queryOf reads a query.
func queryOf(t *testing.T, text string) (*plan.Query, error) {
	spec := document(t, text)
	q := &plan.Query{}
	var filter bsoncore.Document = bsoncore.NewDocumentBuilder().Build()
	elements, err := spec.Elements()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range elements {
		switch v := e.Value(); e.Key() {
		case "find":
			filter = v.Document()
		case "sort":
			q.Sort = v.Document()
		case "skip":
			q.Skip = v.AsInt64()
		case "limit":
			q.Limit = v.AsInt64()
		case "projection":
			q.Project = v.Document()
		case "hint":
			q.Hint = v
		case "min":
			q.Min = v.Document()
		case "max":
			q.Max = v.Document()
		case "collation":
			if q.Collation, err = collation.Parse(v.Document()); err != nil {
				return nil, err
			}
		case "count":
			q.Goal = plan.Counting
		case "distinct":
			q.Goal, q.Field = plan.Distinct, v.StringValue()
		default:
			t.Fatalf("unknown option %s", e.Key())
		}
	}
	if q.Filter, err = query.Parse(filter, &query.Options{Collation: q.Collation}); err != nil {
		return nil, err
	}
	if q.Project != nil {
		q.Projection, err = projection.Parse(q.Project, &projection.Options{Filter: q.Filter})
	}
	return q, err
}

func answer(t *testing.T, c *plan.Collection, command, text string) string {
	q, err := queryOf(t, text)
	if err != nil {
		return fmt.Sprintf("%s\n  error: %v\n", text, err)
	}
	if command == "all" {
		plans, err := plan.All(q, c)
		if err != nil {
			return fmt.Sprintf("%s\n  error: %v\n", text, err)
		}
		out := text + "\n"
		for _, p := range plans {
			out += "-\n" + p.String()
		}
		return out
	}
	p, err := plan.Choose(q, c)
	if err != nil {
		return fmt.Sprintf("%s\n  error: %v\n", text, err)
	}
	if command == "explain" {
		out, err := bson.MarshalExtJSONIndent(bson.Raw(plan.Explain(p, plan.QueryPlanner, nil)), false, false, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		return string(out) + "\n"
	}
	return text + "\n  " + strings.TrimSuffix(strings.ReplaceAll(p.String(), "\n", "\n  "), "  ")
}
