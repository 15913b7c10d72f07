package aggregate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

func parseJSON(t testing.TB, s string) []document {
	t.Helper()
	var list struct {
		Pipeline []bson.Raw `bson:"p"`
	}
	if err := bson.UnmarshalExtJSON([]byte(`{"p": `+s+`}`), false, &list); err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	return documents(list.Pipeline)
}

// relaxed shows a document as short as possible.
func relaxed(t testing.TB, doc document) string {
	b, err := bson.MarshalExtJSON(bson.Raw(doc), false, false)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestPlans shows what of a pipeline the collection is asked for, and what is left to do.
func TestPlans(t *testing.T) {
	datadriven.Walk(t, "testdata/plans", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			p, err := Parse(parseJSON(t, d.Input), &Options{Database: "test", Collection: "c"})
			if err != nil {
				return err.Error() + "\n"
			}
			var b strings.Builder
			r := p.Leading()
			if r.Filter != nil {
				fmt.Fprintf(&b, "filter %s\n", relaxed(t, r.Filter))
			}
			if r.Sort != nil {
				fmt.Fprintf(&b, "sort %s\n", relaxed(t, r.Sort))
			}
			if r.Skip > 0 {
				fmt.Fprintf(&b, "skip %d\n", r.Skip)
			}
			if r.Limit > 0 {
				fmt.Fprintf(&b, "limit %d\n", r.Limit)
			}
			if r.Fields != nil {
				fmt.Fprintf(&b, "fields %q\n", r.Fields)
			}
			for _, flag := range []struct {
				set  bool
				text string
			}{{r.Grouped, "grouped"}, {r.Distinct != "", "one for each value of " + r.Distinct}, {r.First, "the first"}, {r.Counted, "counted"}} {
				if flag.set {
					fmt.Fprintln(&b, flag.text)
				}
			}
			elements, err := p.Explain(r.Distinct != "").Elements()
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range elements {
				fmt.Fprintf(&b, "%s\n", relaxed(t, bsoncore.NewDocumentBuilder().AppendValue(e.Key(), e.Value()).Build()))
			}
			return b.String()
		})
	})
}

// TestOptimiserChangesNothing runs the golden pipelines stage by stage as they were written.
func TestOptimiserChangesNothing(t *testing.T) {
	forEachGolden(t, func(where string, _ int, g *golden, m *memory) {
		o := g.options(t)
		steps, err := (&parser{o: o}).steps(documents(g.Pipeline))
		if err != nil || g.Error != 0 || len(steps) > 0 && steps[0].isSource() {
			return
		}
		p := &Pipeline{o: o, steps: steps, leading: new(Request)}
		got, err := m.runPipeline(p)
		if err != nil {
			return // it saw documents that the optimised one leaves out
		}
		if problem := g.compare(got, nil); problem != "" {
			t.Errorf("%s: %s\n%s", where, g.Pipeline, problem)
		}
	})
}
