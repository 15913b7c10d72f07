package document_test

import (
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestPlansThatAreNotCarriedOutAreNotMadeReady: a conjunction of disjunctions can be carried out by each branch of each of them, with all the
// others left to be looked at. What is made for that is in proportion to the conditions, and not to their square.
func TestPlansThatAreNotCarriedOutAreNotMadeReady(t *testing.T) {
	c := collection(t, open(t, memfs.New()), "c", nil)
	_, err := c.CreateIndex(ctx, document.Index{Keys: bson.D{{Key: "a", Value: 1}}})
	must(t, err)
	_, err = c.Insert(ctx, document.JSON(`{"_id": 1, "a": 1}`))
	must(t, err)
	const n = 15
	all := bson.A{}
	for i := range n {
		any := bson.A{}
		for k := range n {
			any = append(any, bson.D{{Key: "a", Value: bson.D{{Key: "$gt", Value: k}}}, {Key: "b", Value: bson.D{{Key: "$ne", Value: i*n + k}}}})
		}
		all = append(all, bson.D{{Key: "$or", Value: any}})
	}
	made := testing.AllocsPerRun(1, func() {
		_, err := c.Count(ctx, bson.D{{Key: "$and", Value: all}}, nil)
		must(t, err)
	})
	if made > 300*n*n {
		t.Errorf("%.0f things were made for %d conditions", made, 2*n*n)
	}
}

// TestTheTimeOfACallBoundsAnIndex: $$NOW, and what is computed of it, is a constant of the call, so that an index is followed for it as for
// a date that the caller gives.
func TestTheTimeOfACallBoundsAnIndex(t *testing.T) {
	c := collection(t, open(t, memfs.New()), "c", nil)
	_, err := c.CreateIndex(ctx, document.Index{Keys: bson.D{{Key: "t", Value: 1}}})
	must(t, err)
	for i := range 50 {
		_, err := c.Insert(ctx, bson.D{{Key: "_id", Value: i}, {Key: "t", Value: time.UnixMilli(int64(i))}})
		must(t, err)
	}
	_, err = c.Insert(ctx, bson.D{{Key: "_id", Value: 50}, {Key: "t", Value: time.Now().Add(1000 * time.Hour)}})
	must(t, err)
	for _, after := range []any{"$$NOW", bson.D{{Key: "$subtract", Value: bson.A{"$$NOW", 1000}}}, "$$then"} {
		filter := bson.D{{Key: "$expr", Value: bson.D{{Key: "$gt", Value: bson.A{"$t", after}}}}}
		o := &document.FindOptions{Verbosity: "executionStats", Let: bson.D{{Key: "then", Value: "$$NOW"}}}
		explained, err := c.Explain(ctx, filter, o)
		must(t, err)
		stats := explained.Lookup("executionStats").Document()
		if found, looked := stats.Lookup("nReturned").AsInt64(), stats.Lookup("totalDocsExamined").AsInt64(); found != 1 || looked != 1 {
			t.Errorf("later than %v: %d documents out of %d", after, found, looked)
		}
	}
}

// TestIndexesThatHoldFewDocumentsAreShort: what all of a sparse or a partial index takes is as much as it holds, and not as much as there are
// documents.
func TestIndexesThatHoldFewDocumentsAreShort(t *testing.T) {
	const few, many = 5, 3000
	c := collection(t, open(t, memfs.New()), "c", nil)
	docs := make([]any, many)
	for i := range docs {
		d := bson.D{{Key: "_id", Value: i}, {Key: "n", Value: i}, {Key: "state", Value: "done"}}
		if i%(many/few) == 0 {
			d = bson.D{{Key: "_id", Value: i}, {Key: "n", Value: i}, {Key: "state", Value: "open"}, {Key: "rare", Value: i}}
		}
		docs[i] = d
	}
	_, err := c.InsertMany(ctx, docs, nil)
	must(t, err)
	_, err = c.CreateIndex(ctx, document.Index{Keys: bson.D{{Key: "rare", Value: 1}}, Sparse: true})
	must(t, err)
	_, err = c.CreateIndex(ctx, document.Index{Keys: bson.D{{Key: "n", Value: 1}}, Partial: bson.D{{Key: "state", Value: "open"}}})
	must(t, err)
	for _, test := range []struct{ filter, sort any }{
		{document.JSON(`{"rare": {"$exists": true}}`), nil},
		{document.JSON(`{"state": "open"}`), document.JSON(`{"n": 1}`)},
		{document.JSON(`{"state": "open", "n": {"$exists": true}}`), nil},
		{document.JSON(`{"state": "open", "n": {"$exists": true}}`), document.JSON(`{"state": 1}`)},
	} {
		explained, err := c.Explain(ctx, test.filter, &document.FindOptions{Sort: test.sort, Verbosity: "executionStats"})
		must(t, err)
		stats := explained.Lookup("executionStats").Document()
		if found, looked := stats.Lookup("nReturned").AsInt64(), stats.Lookup("totalDocsExamined").AsInt64(); found != few || looked != few {
			t.Errorf("%v in the order of %v: %d documents out of %d", test.filter, test.sort, found, looked)
		}
	}
}
