package document_test

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestUpdatesThatMakeTooMuch: a document stays as it is when an update would make it too large, however it does.
func TestUpdatesThatMakeTooMuch(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "c", nil)
	_, err := c.Insert(ctx, document.JSON(`{"_id": 1, "a": 2}`))
	must(t, err)
	long := bson.D{{Key: "s", Value: strings.Repeat("x", document.MaxDocumentBytes-8)}}
	set := bson.D{{Key: "$set", Value: long}}
	const grown, upserted = document.Code(17419), document.Code(17420)
	for _, id := range []int{1, 2} {
		want := grown
		if id == 2 {
			want = upserted
		}
		filter, o := bson.D{{Key: "_id", Value: id}}, &document.UpdateOptions{Upsert: true}
		for name, update := range map[string]any{"operators": set, "a pipeline": bson.A{set}} {
			if _, err := c.Update(ctx, filter, update, o); document.CodeOf(err) != want {
				t.Errorf("%s for %d: %v", name, id, err)
			}
		}
		if _, err := c.Replace(ctx, filter, long, o); document.CodeOf(err) != want {
			t.Errorf("a replacement for %d: %v", id, err)
		}
	}
	if n, err := c.Count(ctx, document.JSON(`{"_id": 1, "a": 2, "s": {"$exists": false}}`), nil); n != 1 || err != nil {
		t.Errorf("%d documents are as before: %v", n, err)
	}
}
