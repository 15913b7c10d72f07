package document_test

import (
	"fmt"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestManyValuesAreLookedUp: a list of values is looked up in the index however long it is, while it is a small part of what there is.
func TestManyValuesAreLookedUp(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "c", nil)
	for _, keys := range []string{`{"group": 1}`, `{"half": 1, "group": 1}`} {
		_, err := c.CreateIndex(ctx, document.Index{Keys: document.JSON(keys)})
		must(t, err)
	}
	var docs []any
	const n = 8000
	for i := range n {
		docs = append(docs, bson.D{{Key: "_id", Value: i}, {Key: "group", Value: i / 2}, {Key: "half", Value: i % 2}, {Key: "more", Value: i}})
	}
	_, err := c.InsertMany(ctx, docs, nil)
	must(t, err)
	for _, values := range []int{20, 33, 100, 400} {
		var ids, all bson.A
		for i := range values {
			ids = append(ids, i*7)
		}
		for i := range n {
			all = append(all, i)
		}
		for _, test := range []struct {
			filter         bson.D
			found, looksAt int64
		}{
			{bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: ids}}}}, int64(values), int64(values)},
			{bson.D{{Key: "group", Value: bson.D{{Key: "$in", Value: ids}}}}, 2 * int64(values), 2 * int64(values)},
			{bson.D{{Key: "half", Value: 1}, {Key: "group", Value: bson.D{{Key: "$in", Value: ids}}}}, int64(values), 2 * int64(values)},
			{bson.D{{Key: "half", Value: bson.D{{Key: "$in", Value: bson.A{0, 1, 2}}}}, {Key: "group", Value: bson.D{{Key: "$in", Value: ids}}}}, 2 * int64(values), 2 * int64(values)},
			{bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: all}}}}, n, n},
		} {
			name := fmt.Sprintf("%d values, %s", values, test.filter[0].Key)
			reply, err := c.Explain(ctx, test.filter, &document.FindOptions{Verbosity: "executionStats"})
			must(t, err)
			stats := reply.Lookup("executionStats").Document()
			if found := stats.Lookup("nReturned").AsInt64(); found != test.found {
				t.Errorf("%s: found %d, want %d", name, found, test.found)
			}
			if docs := stats.Lookup("totalDocsExamined").AsInt64(); docs > test.looksAt {
				t.Errorf("%s: looked at %d documents, which are %d too many", name, docs, docs-test.looksAt)
			}
		}
	}
}
