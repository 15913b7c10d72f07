package execute

import (
	"bytes"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/index"
	"github.com/pandodb/pando/document/internal/keyenc"
	"github.com/pandodb/pando/document/internal/plan"
	"github.com/pandodb/pando/document/internal/query"
)

// FuzzEntry: whatever bytes an index holds, looking at them ends, without a panic; and what is skipped lies outside of the bounds.
func FuzzEntry(f *testing.F) {
	text := bsoncore.Value{Type: bsoncore.TypeString, Data: bsoncore.AppendString(nil, "ab")}
	entry := keyenc.Append(keyenc.Append(nil, text, false, nil), text, true, nil)
	f.Add(entry, false)
	f.Add(entry[:len(entry)/2], true)
	f.Add([]byte{}, false)
	f.Add([]byte("\xdaa\x00%\x9e\x9e\xff"), true) // it ends where a bound does
	def := parseIndex(f, bson.D{{Key: "key", Value: bson.D{{Key: "a.b", Value: 1}, {Key: "a.c", Value: -1}}}})
	scan := scanOf(f, def, bson.D{{Key: "a.b", Value: bson.D{{Key: "$in", Value: bson.A{"a", "ab", 3}}}}, {Key: "a.c", Value: bson.D{{Key: "$gt", Value: "aa"}}}})
	f.Fuzz(func(t *testing.T, entry []byte, backward bool) {
		one := *scan
		one.Backward = backward
		c := newChecker(&one)
		verdict, err := c.look(entry)
		if doc, broken := newCoverer(def).document(entry); broken == nil {
			if err := bsoncore.Document(doc).Validate(); err != nil {
				t.Fatalf("an entry became a document that is none: %v", err)
			}
		}
		// What is at or behind the target comes next, or backwards what is before it: that must not be the entry again.
		if ahead := bytes.Compare(c.target, entry); err == nil && verdict == before && (backward && ahead > 0 || !backward && ahead <= 0) {
			t.Fatalf("from %x on to %x", entry, c.target)
		}
		var r row
		unpack(&r, entry)
	})
}

func parseIndex(t testing.TB, spec bson.D) *index.Definition {
	raw, err := bson.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	def, err := index.Parse(raw, nil)
	if err != nil {
		t.Fatal(err)
	}
	return def
}

// scanOf returns the scan of an index for a filter.
func scanOf(t testing.TB, def *index.Definition, filter bson.D) *plan.IndexScan {
	raw, err := bson.Marshal(filter)
	if err != nil {
		t.Fatal(err)
	}
	q := &plan.Query{}
	if q.Filter, err = query.Parse(raw, nil); err != nil {
		t.Fatal(err)
	}
	p, err := plan.Choose(q, &plan.Collection{
		Indexes: []plan.Index{{Definition: def}},
		Records: func() (int64, error) { return 100, nil },
		Count:   func(int, []byte, []byte) (int64, error) { return 1, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return p.Root.(*plan.Fetch).Input.(*plan.IndexScan)
}
