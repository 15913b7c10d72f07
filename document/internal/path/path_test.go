package path

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// TestWalk plays transcripts: a document, and what each path visits in it.
func TestWalk(t *testing.T) {
	var doc bson.Raw
	datadriven.RunTest(t, "testdata/walk", func(t *testing.T, d *datadriven.TestData) string {
		switch d.Cmd {
		case "document":
			doc = parse(t, d.Input)
			return ""
		case "walk", "walk-array":
			leaf := Each
			if d.Cmd == "walk-array" {
				leaf = Array
			}
			var b strings.Builder
			Parse(d.CmdArgs[0].String()).Walk(Document(doc), leaf, func(v bsoncore.Value, position int) bool {
				shown := "missing"
				if v.Type != 0 {
					shown = v.String()
				}
				fmt.Fprintf(&b, "%s at %d\n", shown, position)
				return false
			})
			return b.String()
		}
		d.Fatalf(t, "unknown command %s", d.Cmd)
		return ""
	})
}

func parse(t testing.TB, s string) bson.Raw {
	var doc bson.Raw
	if err := bson.UnmarshalExtJSON([]byte(s), true, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestWalkEndsWhenAVisitSaysSo(t *testing.T) {
	doc, visits := parse(t, `{"a": [1, 2, 3]}`), 0
	ended := Parse("a").Walk(Document(doc), Each, func(v bsoncore.Value, _ int) bool {
		visits++
		return v.Int32() == 2
	})
	if !ended || visits != 2 {
		t.Errorf("ended %v after %d visits", ended, visits)
	}
}

func TestWalkDoesNotAllocate(t *testing.T) {
	doc, p, n := Document(parse(t, `{"a": [{"b": [1, 2]}, {"b": 3}]}`)), Parse("a.b"), 0
	if got := testing.AllocsPerRun(100, func() {
		v, _ := doc.Lookup("a")
		Walk(v, p.Components()[1:], Each, func(bsoncore.Value, int) bool { n++; return false })
	}); got != 0 {
		t.Errorf("%v allocations", got)
	}
}

// FuzzWalk walks over bytes that are no document: nothing may panic.
func FuzzWalk(f *testing.F) {
	f.Add([]byte(parse(f, `{"a": [{"b": [1, 2]}, {"b": {"$regularExpression": {"pattern": "x", "options": "i"}}}]}`)), "a.b.0")
	f.Fuzz(func(t *testing.T, doc []byte, p string) {
		Parse(p).Walk(Document(doc), Each, func(bsoncore.Value, int) bool { return false })
	})
}
