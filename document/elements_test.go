package document_test

import (
	"fmt"
	"testing"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestElementsThatAreArrays: of an element that is an array an index has an entry as a whole, so that what a condition says of its elements
// is found by a look at the document, in reads and in writes.
func TestElementsThatAreArrays(t *testing.T) {
	docs := []any{
		document.JSON(`{"_id": 1, "a": [[1, 2], [3, 4]]}`), document.JSON(`{"_id": 2, "a": [3]}`), document.JSON(`{"_id": 3, "a": [[[3]]]}`),
		document.JSON(`{"_id": 4, "a": [{"b": [[3]]}]}`), document.JSON(`{"_id": 5, "a": {"0": [3]}}`),
	}
	for _, index := range []string{`{"none": 1}`, `{"a": 1}`, `{"a": 1, "_id": 1}`, `{"a.b": 1}`, `{"a.0": 1}`, `{"a.0.0": 1}`, `{"$**": 1}`} {
		c := collection(t, open(t, memfs.New()), "c", nil)
		_, err := c.CreateIndexes(ctx, specs(t, `{"key": `+index+`, "name": "x"}`), nil)
		must(t, err)
		for filter, want := range map[string][]int64{
			`{"a": {"$elemMatch": {"$elemMatch": {"$gte": 3}}}}`:                                 {1},
			`{"a": {"$elemMatch": {"$all": [{"$elemMatch": {"$gte": 3}}]}}}`:                     {1},
			`{"a": {"$all": [{"$elemMatch": {"$elemMatch": {"$gte": 3}}}]}}`:                     {1},
			`{"a": {"$elemMatch": {"$size": 2, "$elemMatch": {"$gte": 3}}}}`:                     {1},
			`{"a": {"$elemMatch": {"$elemMatch": {"$elemMatch": {"$gte": 3}}}}}`:                 {3},
			`{"a": {"$elemMatch": {"$gte": 3, "$not": {"$elemMatch": {"$gte": 3}}}}}`:            {2},
			`{"a.b": {"$elemMatch": {"$elemMatch": {"$gte": 3}}}}`:                               {4},
			`{"a": {"$elemMatch": {"b": {"$elemMatch": {"$elemMatch": {"$gte": 3}}}}}}`:          {4},
			`{"a.0": {"$elemMatch": {"$gte": 2}}}`:                                               {1, 5},
			`{"a.0.0": {"$elemMatch": {"$gte": 2}}}`:                                             {3},
			`{"a": {"$elemMatch": {"0": {"$elemMatch": {"$gte": 2}}}}}`:                          {3},
			`{"a": {"$elemMatch": {"0": 3}}}`:                                                    {1, 3},
			`{"a": {"$elemMatch": {"0": {"$elemMatch": {"$gt": 2, "$lt": 4}}}}}`:                 {3},
			`{"$or": [{"a": {"$elemMatch": {"$elemMatch": {"$gte": 3}}}}, {"a": 3}], "c": null}`: {1, 2},
		} {
			_, err := c.InsertMany(ctx, docs, nil)
			must(t, err)
			var found []int64
			for doc, err := range c.Find(ctx, document.JSON(filter), &document.FindOptions{Sort: document.JSON(`{"_id": 1}`)}) {
				must(t, err)
				found = append(found, doc.Lookup("_id").AsInt64())
			}
			if fmt.Sprint(found) != fmt.Sprint(want) {
				t.Errorf("by %s, %s finds %v, not %v", index, filter, found, want)
			}
			r, err := c.Update(ctx, document.JSON(filter), document.JSON(`{"$set": {"c": null}}`), &document.UpdateOptions{Many: true})
			must(t, err)
			deleted, err := c.Delete(ctx, document.JSON(filter), &document.DeleteOptions{Many: true})
			must(t, err)
			if n := int64(len(want)); r.Matched != n || deleted != n {
				t.Errorf("by %s, %s updates %d and deletes %d, not %d", index, filter, r.Matched, deleted, n)
			}
			_, err = c.Delete(ctx, nil, &document.DeleteOptions{Many: true})
			must(t, err)
		}
	}
}

// TestOutOfAnIndexOfAPathAndOneBelowIt: of an index with both, a document has the field once.
func TestOutOfAnIndexOfAPathAndOneBelowIt(t *testing.T) {
	for _, test := range []struct{ index, filter, projection, want string }{
		{`{"a": 1, "a.x": 1, "_id": 1}`, `{"a": {"x": 1}}`, `{"a": 1}`, "{\"a\":{\"x\":1},\"_id\":1}\n"},
		{`{"a": 1, "a.x": 1, "_id": 1}`, `{"a": {"x": 1}}`, `{"a.x": 1}`, "{\"a\":{\"x\":1},\"_id\":1}\n"},
		{`{"a.x": -1, "a": 1, "_id": 1}`, `{"a.x": 1}`, `{"a": 1}`, "{\"a\":{\"x\":1},\"_id\":1}\n"},
		{`{"a.x": 1, "a.x.y": 1, "a": -1, "_id": 1}`, `{"a.x": {"$gte": {}}}`, `{"a.x": 1}`, "{\"a\":{\"x\":{\"y\":2}},\"_id\":2}\n"},
		{`{"a.x": 1, "a.x.y": 1, "a": -1, "_id": 1}`, `{"a.x": {"$gte": {}}}`, `{"a": 1, "_id": 0}`, "{\"a\":{\"x\":{\"y\":2},\"z\":3}}\n"},
		{`{"a.x.y": 1, "a.x": 1, "_id": 1}`, `{"a.x.y": 2}`, `{"a.x.y": 1}`, "{\"a\":{\"x\":{\"y\":2}},\"_id\":2}\n"},
	} {
		c := collection(t, open(t, memfs.New()), "c", nil)
		_, err := c.CreateIndexes(ctx, specs(t, `{"key": `+test.index+`, "name": "x"}`), nil)
		must(t, err)
		_, err = c.InsertMany(ctx, []any{document.JSON(`{"_id": 1, "a": {"x": 1}}`), document.JSON(`{"_id": 2, "a": {"x": {"y": 2}, "z": 3}}`)}, nil)
		must(t, err)
		got := find(t, c, test.filter, &document.FindOptions{Projection: document.JSON(test.projection), Hint: "x"})
		expect(t, fmt.Sprintf("%s of %s by %s", test.projection, test.filter, test.index), got, test.want)
	}
}
