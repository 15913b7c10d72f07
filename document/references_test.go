package document_test

import (
	"slices"
	"testing"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestStagesReadReferences: the fields of a DBRef are the only ones with a dollar that paths of stages and expressions may name.
func TestStagesReadReferences(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "c", nil)
	_, err := c.InsertMany(ctx, []document.JSON{`{"_id": 1, "by": {"$ref": "c", "$id": 2}}`, `{"_id": 2}`}, nil)
	must(t, err)
	for pipeline, want := range map[string]string{
		`[{"$lookup": {"from": "c", "localField": "by.$id", "foreignField": "_id", "as": "r"}}, {"$match": {"r": {"_id": 2}}}, {"$unset": "by"}]`: `{"_id":1,"r":[{"_id":2}]}`,
		`[{"$match": {"_id": 1}}, {"$project": {"x": "$by.$id"}}]`:                                                                                `{"_id":1,"x":2}`,
		`[{"$match": {"_id": 1}}, {"$project": {"by.$id": 1}}]`:                                                                                   `{"_id":1,"by":{"$id":2}}`,
		`[{"$match": {"_id": 1}}, {"$unwind": "$by.$id"}]`:                                                                                        `{"_id":1,"by":{"$ref":"c","$id":2}}`,
	} {
		if got := sorted(t, c, pipeline); !slices.Equal(got, []string{want}) {
			t.Errorf("%s: %q, want %q", pipeline, got, want)
		}
	}
}
