package document_test

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestTimestampsOfOneUpdate: each document that an update changes gets a timestamp of its own, which a unique index can have.
func TestTimestampsOfOneUpdate(t *testing.T) {
	c := collection(t, open(t, memfs.New()), "c", nil)
	_, err := c.CreateIndex(ctx, document.Index{Keys: bson.D{{Key: "at", Value: 1}}, Unique: true, Sparse: true})
	must(t, err)
	_, err = c.InsertMany(ctx, []document.JSON{`{"_id": 1}`, `{"_id": 2}`}, nil)
	must(t, err)
	result, err := c.Update(ctx, document.JSON(`{}`), document.JSON(`{"$currentDate": {"at": {"$type": "timestamp"}}}`), &document.UpdateOptions{Many: true})
	if err != nil || result.Modified != 2 {
		t.Errorf("%+v, %v", result, err)
	}
}

// TestUpdateIsCheckedFirst: of an update and a query that are both wrong, the error is that of the update, as in MongoDB.
func TestUpdateIsCheckedFirst(t *testing.T) {
	c := collection(t, open(t, memfs.New()), "c", nil)
	for _, test := range []struct {
		update  document.JSON
		options document.UpdateOptions
		want    document.Code
	}{
		{`{"$set": {"a": 1}}`, document.UpdateOptions{}, 2}, // only the query is wrong
		{`{"a": 1}`, document.UpdateOptions{Many: true}, 9},
		{`{"$set": {"a": 1}, "$inc": {"a": 1}}`, document.UpdateOptions{}, 40},
		{`{"$mul": {"a": "b"}}`, document.UpdateOptions{}, 14},
		{`[{"$set": {"a": {"$nothing": 1}}}]`, document.UpdateOptions{}, 168},
	} {
		_, err := c.Apply(ctx, document.JSON(`{"a": {"$in": 1}}`), test.update, &test.options)
		if got := document.CodeOf(err); got != test.want {
			t.Errorf("%s: %d (%v), want %d", test.update, got, err, test.want)
		}
		if test.want == 168 && !strings.Contains(err.Error(), "Invalid $set :: ") {
			t.Errorf("%s: %v does not name the stage", test.update, err)
		}
	}
}
