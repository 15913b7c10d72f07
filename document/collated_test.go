package document_test

import (
	"errors"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestCollatedIDs: where a collection has a collation, _ids that are equal by it are one, as the unique index of _id has it in MongoDB.
func TestCollatedIDs(t *testing.T) {
	for _, capped := range []bool{false, true} {
		fs := memfs.New()
		s := open(t, fs)
		o := &document.CollectionOptions{Collation: document.JSON(`{"locale": "en", "strength": 2}`)}
		if capped {
			o.Capped, o.SizeBytes = true, 1<<20
		}
		c := collection(t, s, "c", o)
		for _, doc := range []document.JSON{`{"_id": "b"}`, `{"_id": "A"}`, `{"_id": 7}`, `{"_id": {"k": "C"}}`} {
			_, err := c.Insert(ctx, doc)
			must(t, err)
		}
		for range 2 { // and after it was opened again
			for _, doc := range []document.JSON{`{"_id": "B"}`, `{"_id": "a"}`, `{"_id": {"k": "c"}}`} {
				if _, err := c.Insert(ctx, doc); !errors.Is(err, document.DuplicateKey) {
					t.Errorf("%s, capped: %t: %v", doc, capped, err)
				}
				if _, err := c.InsertMany(ctx, []document.JSON{`{"_id": "new"}`, doc}, nil); !errors.Is(err, document.DuplicateKey) {
					t.Errorf("%s of many, capped: %t: %v", doc, capped, err)
				}
				if _, err := c.Delete(ctx, document.JSON(`{"_id": "NEW"}`), nil); err != nil {
					t.Error(err)
				}
			}
			expect(t, "by its collation", find(t, c, `{"_id": "a"}`, nil), `{"_id":"A"}`+"\n")
			expect(t, "byte by byte", find(t, c, `{"_id": "a"}`, &document.FindOptions{Collation: document.JSON(`{"locale": "simple"}`)}), "")
			expect(t, "some", find(t, c, `{"_id": {"$in": ["B", 7, {"k": "c"}]}}`, &document.FindOptions{Sort: document.JSON(`{"_id": 1}`)}),
				`{"_id":7}`+"\n"+`{"_id":"b"}`+"\n"+`{"_id":{"k":"C"}}`+"\n")
			expect(t, "in order", find(t, c, `{"_id": {"$type": "string"}}`, &document.FindOptions{Sort: document.JSON(`{"_id": 1}`)}),
				`{"_id":"A"}`+"\n"+`{"_id":"b"}`+"\n")
			expect(t, "in the order of bytes", find(t, c, `{"_id": {"$type": "string"}}`,
				&document.FindOptions{Sort: document.JSON(`{"_id": -1}`), Collation: document.JSON(`{"locale": "simple"}`)}), `{"_id":"b"}`+"\n"+`{"_id":"A"}`+"\n")
			if doc, err := c.Get(ctx, "B"); err != nil || doc.Lookup("_id").StringValue() != "b" {
				t.Errorf("%s, %v", doc, err)
			}
			must(t, s.Close())
			s = open(t, fs)
			c = s.Database("test").Lookup("c")
		}
		if r, err := c.Update(ctx, document.JSON(`{"_id": "B"}`), document.JSON(`{"$set": {"n": 1}}`), nil); err != nil || r.Modified != 1 {
			t.Errorf("%+v, %v", r, err)
		}
		if _, err := c.Replace(ctx, document.JSON(`{"_id": "B"}`), bson.D{{Key: "n", Value: 5}}, nil); err != nil {
			t.Error(err)
		}
		expect(t, "replaced", find(t, c, `{"_id": "B"}`, nil), `{"_id":"b","n":5}`+"\n")
	}
}
