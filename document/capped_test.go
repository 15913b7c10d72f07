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

// TestCappedBoundsChange: collMod changes how much a capped collection holds, and the next insert forgets what is too much.
func TestCappedBoundsChange(t *testing.T) {
	fs := memfs.New()
	s := open(t, fs)
	c := collection(t, s, "c", &document.CollectionOptions{Capped: true, SizeBytes: 100_000, MaxDocuments: 5})
	other := collection(t, s, "other", nil)
	next := 0
	insert := func() {
		_, err := c.Insert(ctx, bson.D{{Key: "_id", Value: next}, {Key: "x", Value: strings.Repeat("x", 100)}})
		must(t, err)
		next++
	}
	holds := func(want int64) {
		t.Helper()
		if n, err := c.Count(ctx, document.JSON(`{}`), nil); n != want || err != nil {
			t.Errorf("%d documents are left, want %d: %v", n, want, err)
		}
	}
	for range 6 {
		insert()
	}
	holds(5)
	for _, step := range []struct {
		change document.JSON
		before int64 // what is there at once, and after an insert
		after  int64
		shown  string
	}{
		{`{"cappedMax": 3}`, 5, 3, `{"capped":true,"size":100096,"max":3}`},
		{`{"cappedSize": {"$numberDecimal": "300.7"}}`, 3, 3, `{"capped":true,"size":512,"max":3}`},
		{`{"cappedSize": 256, "validationAction": "error"}`, 3, 2, `{"capped":true,"size":256,"max":3,"validationAction":"error"}`},
		{`{"cappedMax": 0, "cappedSize": {"$numberLong": "4096"}}`, 2, 3, `{"capped":true,"size":4096,"max":2147483647,"validationAction":"error"}`},
	} {
		must(t, c.Modify(ctx, step.change))
		must(t, s.Close())
		s = open(t, fs)
		c, other = s.Database("test").Lookup("c"), s.Database("test").Lookup("other")
		list, err := s.Database("test").Collections(ctx)
		must(t, err)
		expect(t, string(step.change), text(t, list[0].Options), step.shown)
		holds(step.before)
		insert()
		holds(step.after)
	}
	for change, code := range map[document.JSON]document.Code{
		`{"cappedMax": "x"}`: document.TypeMismatch, `{"cappedSize": true}`: document.TypeMismatch,
		`{"cappedMax": {"$numberLong": "2147483648"}}`: document.Code(51024), `{"cappedSize": 0}`: document.Code(51024),
		`{"cappedSize": {"$numberLong": "1125899906842625"}}`: document.Code(51024),
	} {
		if err := c.Modify(ctx, change); document.CodeOf(err) != code {
			t.Errorf("%s: %v, want the code %d", change, err, code)
		}
	}
	if err := other.Modify(ctx, document.JSON(`{"cappedMax": 5}`)); document.CodeOf(err) != document.Code(72) {
		t.Errorf("of a collection that is not capped: %v", err)
	}
}

// TestCappedSizesOfAllTypes: a bound may be a number of any type. Decimals once ended the process.
func TestCappedSizesOfAllTypes(t *testing.T) {
	db := open(t, memfs.New()).Database("test")
	for options, want := range map[document.JSON]string{
		`{"capped": true, "size": {"$numberDecimal": "5000.7"}, "max": 2.9}`:     `{"capped":true,"size":5120,"max":2}`,
		`{"capped": true, "size": 1e4, "max": {"$numberDecimal": "NaN"}}`:        `{"capped":true,"size":10240,"max":2147483647}`,
		`{"capped": true, "size": 4096, "max": {"$numberDecimal": "-Infinity"}}`: `{"capped":true,"size":4096,"max":2147483647}`,
	} {
		must(t, db.Create(ctx, "c", options))
		list, err := db.Collections(ctx)
		must(t, err)
		expect(t, string(options), text(t, list[0].Options), want)
		must(t, db.Drop(ctx))
	}
	for _, options := range []document.JSON{
		`{"capped": true, "size": {"$numberDecimal": "NaN"}}`, `{"capped": true, "size": {"$numberDecimal": "1E40"}}`, `{"capped": true, "size": {"$numberDouble": "Infinity"}}`,
		`{"capped": true, "size": 4096, "max": {"$numberDecimal": "1E400"}}`,
	} {
		if err := db.Create(ctx, "c", options); document.CodeOf(err) != document.Code(51024) {
			t.Errorf("%s: %v", options, err)
		}
	}
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

// TestCappedOutsideOfTransactions: what a transaction deletes or makes larger was counted before it had committed, so that others made too
// much room, or too little. The codes are those of a mongod.
func TestCappedOutsideOfTransactions(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "c", &document.CollectionOptions{Capped: true, SizeBytes: 100_000})
	_, err := c.Insert(ctx, document.JSON(`{"_id": 1}`))
	must(t, err)
	for _, x := range []struct {
		code document.Code
		try  func(c *document.Collection) error
	}{
		{263, func(c *document.Collection) error {
			_, err := c.Insert(ctx, document.JSON(`{"_id": 2}`))
			return err
		}},
		{263, func(c *document.Collection) error {
			_, err := c.Update(ctx, document.JSON(`{}`), document.JSON(`{"$set": {"x": 1}}`), nil)
			return err
		}},
		{20, func(c *document.Collection) error {
			n, err := c.Delete(ctx, document.JSON(`{}`), nil)
			if n > 0 {
				t.Errorf("%d documents are said to be deleted", n)
			}
			return err
		}},
	} {
		err := s.Transaction(ctx, func(tx *document.Tx) error { return x.try(tx.In(c)) })
		if document.CodeOf(err) != x.code {
			t.Errorf("%v, want an error with code %d", err, x.code)
		}
	}
	expect(t, "all", find(t, c, `{}`, nil), `{"_id":1}`+"\n")
}
