package document_test

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestUpdatesMeetADocumentOnce: a change that puts documents where the index is looked at next does not meet them there again, however many
// there are, in a transaction as without one.
func TestUpdatesMeetADocumentOnce(t *testing.T) {
	const many = 600
	s := open(t, memfs.New())
	c := collection(t, s, "c", nil)
	_, err := c.CreateIndex(ctx, document.Index{Keys: bson.D{{Key: "a", Value: 1}}})
	must(t, err)
	var docs []any
	for i := range many {
		docs = append(docs, bson.D{{Key: "_id", Value: i}, {Key: "a", Value: 1}})
	}
	_, err = c.InsertMany(ctx, docs, nil)
	must(t, err)
	for _, one := range []struct {
		name  string
		apply func(change func(c *document.Collection) error) error
	}{
		{"alone", func(change func(c *document.Collection) error) error { return change(c) }},
		{"in a transaction", func(change func(c *document.Collection) error) error {
			return s.Transaction(ctx, func(tx *document.Tx) error { return change(tx.In(c)) })
		}},
	} {
		must(t, one.apply(func(c *document.Collection) error {
			o := &document.UpdateOptions{Many: true, Hint: "a_1"}
			r, err := c.Update(ctx, document.JSON(`{"a": {"$in": [1, 3, 5]}}`), document.JSON(`{"$inc": {"a": 2}}`), o)
			if err == nil && (r.Matched != many || r.Modified != many) {
				t.Errorf("%s: %d documents matched, %d modified; want %d", one.name, r.Matched, r.Modified, many)
			}
			return err
		}))
		if n, err := c.Count(ctx, document.JSON(`{"a": 3}`), nil); n != many || err != nil {
			t.Errorf("%s: %d documents were changed once, %v", one.name, n, err)
		}
		_, err = c.Update(ctx, document.JSON(`{}`), document.JSON(`{"$set": {"a": 1}}`), &document.UpdateOptions{Many: true})
		must(t, err)
	}
}
