package document_test

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestReadsOfATransactionWhileItWrites: what a transaction deletes or changes while it reads by an index is passed over, or is as it is now
// where it matches still; it is no damage.
func TestReadsOfATransactionWhileItWrites(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "c", nil)
	_, err := c.CreateIndex(ctx, document.Index{Keys: bson.D{{Key: "a", Value: 1}}})
	must(t, err)
	for i := range 6 {
		_, err := c.Insert(ctx, bson.D{{Key: "_id", Value: i}, {Key: "a", Value: 1}, {Key: "b", Value: 0}})
		must(t, err)
	}
	for _, filter := range []document.JSON{`{"a": 1}`, `{"a": {"$in": [1, 5]}}`, `{"a": {"$gte": 1}, "b": {"$lt": 5}}`, `{"$or": [{"a": 1}, {"a": {"$gt": 7}}]}`} {
		got := ""
		tx, err := s.Begin(ctx)
		must(t, err)
		for doc, err := range tx.In(c).Find(ctx, filter, &document.FindOptions{Hint: "a_1"}) {
			must(t, err)
			if got += text(t, doc); doc.Lookup("_id").AsInt64() > 0 {
				continue
			}
			_, err := tx.In(c).Delete(ctx, document.JSON(`{"_id": 2}`), nil)
			must(t, err)
			_, err = tx.In(c).Update(ctx, document.JSON(`{"_id": 3}`), document.JSON(`{"$set": {"b": 1}}`), nil)
			must(t, err)
			_, err = tx.In(c).Update(ctx, document.JSON(`{"_id": 4}`), document.JSON(`{"$set": {"a": 0}}`), nil)
			must(t, err)
		}
		tx.Abort()
		expect(t, string(filter), got, `{"_id":0,"a":1,"b":0}{"_id":1,"a":1,"b":0}{"_id":3,"a":1,"b":1}{"_id":5,"a":1,"b":0}`)
	}
}
