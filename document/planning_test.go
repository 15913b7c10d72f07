package document_test

import (
	"testing"

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
