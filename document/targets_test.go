package document

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/update"
)

func parsedValue(t *testing.T, text string) bsoncore.Value {
	t.Helper()
	var v struct{ V bson.RawValue }
	if err := bson.UnmarshalExtJSON([]byte(`{"v": `+text+`}`), false, &v); err != nil {
		t.Fatal(err)
	}
	return bsoncore.Value{Type: bsoncore.Type(v.V.Type), Data: v.V.Value}
}

// Change streams tell of operators what these named, of pipelines what is small, as MongoDB does; and what the oplog has of either
// makes the document.
func TestUpdatesAreToldAsTheyWereAskedFor(t *testing.T) {
	const doc = `{"_id": 1, "l": [1, 2, 3, 4], "e": [], "o": {"l": [1, 2, 3], "y": 1, "z": "zzzzzzzzzzzzzzzzzzzzzzzz"}, "a": 1,
		"d": [{"x": 1, "y": "yyyyyyyyyyyyyyyyyyyyyy"}, {"x": 2, "y": "yyyyyyyyyyyyyyyyyyyyyy"}],
		"m": [{"l": [1]}, {"l": [1]}], "null": [null], "nan": {"$numberDouble": "NaN"}}`
	for _, test := range []struct{ update, filters, updated, removed, truncated string }{
		{`{"$pop": {"l": 1}}`, ``, `{"l": [1, 2, 3]}`, ``, ``},
		{`{"$pop": {"o.l": 1}}`, ``, `{"o.l": [1, 2]}`, ``, ``},
		{`{"$push": {"l": 9}}`, ``, `{"l.4": 9}`, ``, ``},
		{`{"$push": {"e": 9}}`, ``, `{"e": [9]}`, ``, ``},
		{`{"$push": {"l": {"$each": [9], "$position": 4}}}`, ``, `{"l": [1, 2, 3, 4, 9]}`, ``, ``},
		{`{"$push": {"l": {"$each": [9], "$sort": 1}}}`, ``, `{"l": [1, 2, 3, 4, 9]}`, ``, ``},
		{`{"$push": {"l": {"$each": [9], "$slice": 7}}}`, ``, `{"l.4": 9}`, ``, ``},
		{`{"$push": {"l": {"$each": [9], "$slice": -4}}}`, ``, `{"l": [2, 3, 4, 9]}`, ``, ``},
		{`{"$push": {"l": {"$each": [], "$slice": 2}}}`, ``, `{"l": [1, 2]}`, ``, ``},
		{`{"$push": {"l": {"$each": [9], "$slice": 4}}}`, ``, `{"l": [1, 2, 3, 4]}`, ``, ``},
		{`{"$push": {"o.l": {"$each": [], "$sort": 1}}, "$set": {"a": 1}}`, ``, `{"o.l": [1, 2, 3]}`, ``, ``},
		{`{"$push": {"m.1.l": {"$each": [9], "$slice": 1}}}`, ``, `{"m.1.l": [1]}`, ``, ``},
		{`{"$push": {"m.$[].l": {"$each": [9], "$slice": 1}}}`, ``, `{"m": [{"l": [1]}, {"l": [1]}]}`, ``, ``},
		{`{"$push": {"m.$[i].l": {"$each": [9], "$slice": 1}, "m.$[j].w": {"$each": []}}}`, `[{"i.l": 1}, {"j.x": 7}]`, `{"m": [{"l": [1]}, {"l": [1]}]}`, ``, ``},
		{`{"$unset": {"null.0": ""}}`, ``, `{"null.0": null}`, ``, ``},
		{`{"$inc": {"nan": 1}}`, ``, `{"nan": {"$numberDouble": "NaN"}}`, ``, ``},
		{`{"$addToSet": {"l": 9}}`, ``, `{"l": [1, 2, 3, 4, 9]}`, ``, ``},
		{`{"$pullAll": {"l": [4]}}`, ``, `{"l": [1, 2, 3]}`, ``, ``},
		{`{"$set": {"l": [1, 2]}}`, ``, `{"l": [1, 2]}`, ``, ``},
		{`{"$set": {"l.1": 9}}`, ``, `{"l.1": 9}`, ``, ``},
		{`{"$set": {"l.01": 9}}`, ``, `{"l.1": 9}`, ``, ``},
		{`{"$set": {"l.6": 9}}`, ``, `{"l.6": 9}`, ``, ``},
		{`{"$set": {"e.0": 9}}`, ``, `{"e.0": 9}`, ``, ``},
		{`{"$set": {"l.$[]": 9}}`, ``, `{"l": [9, 9, 9, 9]}`, ``, ``},
		{`{"$set": {"l.$[i]": 9}}`, `[{"i": 2}]`, `{"l.1": 9}`, ``, ``},
		{`{"$set": {"d.$[i].x": 9}}`, `[{"i.x": 2}]`, `{"d.1.x": 9}`, ``, ``},
		{`{"$set": {"d.$[i].x": 9, "d.$[j].w": 8}}`, `[{"i.x": 2}, {"j.x": {"$gt": 1}}]`, `{"d.1.x": 9, "d.1.w": 8}`, ``, ``},
		{`{"$set": {"d.1": {"x": 5}}}`, ``, `{"d.1": {"x": 5}}`, ``, ``},
		{`{"$set": {"o": {"l": [1], "y": 2}}}`, ``, `{"o": {"l": [1], "y": 2}}`, ``, ``},
		{`{"$set": {"o.y": 2, "a": 1}}`, ``, `{"o.y": 2}`, ``, ``},
		{`{"$rename": {"o.y": "o.w"}}`, ``, `{"o.w": 1}`, `["o.y"]`, ``},
		{`[{"$set": {"o.y": 2}}]`, ``, `{"o.y": 2}`, ``, ``},
		{`[{"$set": {"l": {"$reverseArray": "$l"}}}]`, ``, `{"l": [4, 3, 2, 1]}`, ``, ``},
		{`[{"$set": {"d": {"$slice": ["$d", 1]}}}]`, ``, `{}`, ``, `[{"field": "d", "newSize": 1}]`},
	} {
		parse := func(text string) bsoncore.Value { return parsedValue(t, text) }
		o := &update.Options{}
		if test.filters != "" {
			o.ArrayFilters, _ = arrayStages(parse(test.filters).Array())
		}
		u, err := update.Parse(parse(test.update), o)
		if err != nil {
			t.Fatal(err)
		}
		old := parse(doc).Document()
		now, _, err := u.Apply(nil, old, false, -1)
		if err != nil {
			t.Fatal(err)
		}
		diff := document(appendDiff(nil, old, now, u.Targets(-1)))
		got, err := describeDiff(diff, false)
		if err != nil {
			t.Fatal(err)
		}
		for field, want := range map[string]string{"updatedFields": test.updated, "removedFields": test.removed, "truncatedArrays": test.truncated} {
			if want == "" {
				want = `[]`
			}
			if v := got.Lookup(field); string(v.Data) != string(parse(want).Data) {
				t.Errorf("%s: %s is %s, want %s", test.update, field, v, want)
			}
		}
		again, err := update.ParseDiff(diff)
		if err != nil {
			t.Fatal(err)
		}
		if made, _, err := again.Apply(nil, old, false, -1); err != nil || string(made) != string(now) {
			t.Errorf("%s: %s makes %s, not %s: %v", test.update, diff, document(made), document(now), err)
		}
	}
}
