package document_test

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/vfs/memfs"
)

// What a call has returned stays what it is when its caller makes other use of what was passed to it.
func TestInsertedIDsAreTheCallersOwn(t *testing.T) {
	s := open(t, memfs.New())
	from, to := collection(t, s, "from", nil), collection(t, s, "to", nil)
	for _, id := range []int32{1, 2, 3} {
		_, err := from.Insert(ctx, bson.D{{Key: "_id", Value: id}, {Key: "n", Value: 10 * id}})
		must(t, err)
	}
	var ids []bson.RawValue
	for doc, err := range from.Find(ctx, nil, nil) { // each is valid for its step
		must(t, err)
		id, err := to.Insert(ctx, doc)
		must(t, err)
		ids = append(ids, id)
	}
	for i, id := range ids {
		if got, want := id.Int32(), int32(i+1); got != want {
			t.Errorf("_id %d is %d, want %d", i, got, want)
		}
	}
}
