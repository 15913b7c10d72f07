package document_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

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

// TestCappedCountsAttemptsOnce: an insert that is carried out again, because an update of what it forgets came first, does not make
// the collection larger than it may be.
func TestCappedCountsAttemptsOnce(t *testing.T) {
	s := open(t, memfs.New())
	const most = 16 << 10
	c := collection(t, s, "c", &document.CollectionOptions{Capped: true, SizeBytes: most})
	ended, updated := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-ended:
				updated <- nil
				return
			default:
			}
			if _, err := c.Update(ctx, document.JSON(`{}`), document.JSON(`{"$inc": {"n": 1}}`), nil); err != nil {
				updated <- err
				return
			}
		}
	}()
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 500 {
		_, err := c.Insert(ctx, bson.D{{Key: "n", Value: 0}, {Key: "text", Value: strings.Repeat("x", random.IntN(6000))}})
		must(t, err)
		size := 0
		for doc, err := range c.Find(ctx, nil, nil) {
			must(t, err)
			size += len(doc)
		}
		if size > most {
			t.Errorf("after %d inserts there are %d bytes", i+1, size)
			break
		}
	}
	close(ended)
	must(t, <-updated)
}
