package plan_test

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/collation"
	"github.com/pandodb/pando/document/internal/index"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/plan"
	"github.com/pandodb/pando/document/internal/query"
	"github.com/pandodb/pando/test/wellformed"
)

// FuzzHint plans with whatever a client can send as hint, min and max beside a filter and a sort, on indexes of every kind: nothing may
// panic, an error has a code, and a plan can be shown and explained.
func FuzzHint(f *testing.F) {
	for _, s := range []string{
		`{"h": "w", "f": {"a": {"$type": "string"}}}`,
		`{"h": {"$**": 1}, "f": {"a.0": {"$mod": [2, 1]}}, "s": {"a": 1}}`,
		`{"h": {"a": 1, "b": -1}, "m": {"a": 1, "b": 2}, "M": {"a": 3, "b": 1}, "f": {}}`,
		`{"h": {"$natural": -1}, "f": {"a": 1}}`,
		`{"h": "h", "f": {"a": {"$in": [1, 2]}}, "s": {"a": 1}}`,
		`{"h": "g", "f": {"g": {"$near": {"$geometry": {"type": "Point", "coordinates": [1, 2]}}}}}`,
		`{"h": "p", "m": {"c": "x"}, "f": {"c": {"$gt": "a"}}, "c": {"locale": "en"}}`,
		`{"h": {"c": 1.0}, "M": {"c": {"$minKey": 1}}, "f": {"$or": [{"c": 1}, {"a": 2}]}}`,
	} {
		f.Add([]byte(parsed(f, s)))
	}
	indexes := indexesOfEveryKind(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, whole := wellformed.Document(data)
		if !whole || len(data) > 1<<12 {
			return
		}
		q := &plan.Query{}
		q.Hint, _ = doc.LookupErr("h")
		q.Min, _ = doc.Lookup("m").DocumentOK()
		q.Max, _ = doc.Lookup("M").DocumentOK()
		q.Sort, _ = doc.Lookup("s").DocumentOK()
		if spec, ok := doc.Lookup("c").DocumentOK(); ok {
			q.Collation, _ = collation.Parse(spec)
		}
		filter, ok := doc.Lookup("f").DocumentOK()
		if !ok {
			return
		}
		var err error
		if q.Filter, err = query.Parse(filter, &query.Options{Collation: q.Collation}); err != nil {
			return
		}
		c := &plan.Collection{
			Namespace: "test.c", Indexes: indexes,
			Records: func() (int64, error) { return 1000, nil },
			Count:   func(int, []byte, []byte) (int64, error) { return 10, nil },
		}
		p, err := plan.Choose(q, c)
		if err != nil {
			if mongoerror.CodeOf(err) == 0 {
				t.Fatalf("an error without a code: %v", err)
			}
			return
		}
		if p.String() == "" || plan.Explain(p, plan.QueryPlanner, nil).Validate() != nil {
			t.Fatal("a plan that cannot be shown")
		}
	})
}

func indexesOfEveryKind(f *testing.F) (indexes []plan.Index) {
	for _, spec := range []string{
		`{"key": {"a": 1, "b": -1}, "name": "a"}`, `{"key": {"$**": 1}, "name": "w"}`, `{"key": {"a": "hashed"}, "name": "h"}`,
		`{"key": {"g": "2dsphere"}, "name": "g"}`, `{"key": {"c": 1}, "name": "p", "partialFilterExpression": {"c": {"$gt": 1}}}`,
		`{"key": {"c": 1}, "name": "k", "collation": {"locale": "en"}}`, `{"key": {"d.$**": 1}, "name": "d"}`, `{"key": {"s": 1}, "name": "s", "sparse": true}`,
	} {
		d, err := index.Parse(parsed(f, spec), nil)
		if err != nil {
			f.Fatal(err)
		}
		indexes = append(indexes, plan.Index{Definition: d, Multikey: 1})
	}
	return indexes
}

func parsed(f *testing.F, text string) bsoncore.Document {
	var raw bson.Raw
	if err := bson.UnmarshalExtJSON([]byte(text), false, &raw); err != nil {
		f.Fatal(err)
	}
	return bsoncore.Document(raw)
}
