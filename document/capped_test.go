package document_test

import (
	"testing"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestCappedByID: the records of a capped collection are in the order of their insertion, and what is asked for by _id is found all the
// same, by the index of it.
func TestCappedByID(t *testing.T) {
	fs := memfs.New()
	s := open(t, fs)
	c := collection(t, s, "c", &document.CollectionOptions{Capped: true, SizeBytes: 100_000})
	for _, doc := range []document.JSON{`{"_id": 5, "n": 1}`, `{"_id": 3, "n": 2}`, `{"_id": 9, "n": 3}`} {
		_, err := c.Insert(ctx, doc)
		must(t, err)
	}
	for range 2 { // and after it was opened again
		expect(t, "all", find(t, c, `{}`, nil), `{"_id":5,"n":1}`+"\n"+`{"_id":3,"n":2}`+"\n"+`{"_id":9,"n":3}`+"\n")
		expect(t, "one", find(t, c, `{"_id": 3}`, nil), `{"_id":3,"n":2}`+"\n")
		expect(t, "one of many conditions", find(t, c, `{"_id": 3, "n": 2}`, nil), `{"_id":3,"n":2}`+"\n")
		expect(t, "some", find(t, c, `{"_id": {"$in": [9, 5, 4]}}`, nil), `{"_id":5,"n":1}`+"\n"+`{"_id":9,"n":3}`+"\n")
		expect(t, "a range", find(t, c, `{"_id": {"$gt": 3}}`, nil), `{"_id":5,"n":1}`+"\n"+`{"_id":9,"n":3}`+"\n")
		expect(t, "in its order", find(t, c, `{}`, &document.FindOptions{Sort: document.JSON(`{"_id": -1}`), Limit: 2}),
			`{"_id":9,"n":3}`+"\n"+`{"_id":5,"n":1}`+"\n")
		if n, err := c.Count(ctx, document.JSON(`{"_id": {"$lte": 5}}`), nil); n != 2 || err != nil {
			t.Errorf("%d are counted, %v", n, err)
		}
		must(t, s.Close())
		s = open(t, fs)
		c = s.Database("test").Lookup("c")
	}
	r, err := c.Update(ctx, document.JSON(`{"_id": 3}`), document.JSON(`{"$set": {"n": 7}}`), nil)
	must(t, err)
	if r.Modified != 1 {
		t.Errorf("an update by _id changes %d", r.Modified)
	}
	expect(t, "it", find(t, c, `{"_id": 3}`, nil), `{"_id":3,"n":7}`+"\n")
}
