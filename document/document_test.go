package document_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.uber.org/goleak"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/memfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ctx = context.Background()

// open opens a store in memory, which is closed at the end of the test.
func open(t testing.TB, fs vfs.FS) *document.Store {
	t.Helper()
	s, err := document.Open("db", &document.Options{Storage: pando.Options{FS: fs, MemoryBytes: 8 << 20}, TTLInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func collection(t testing.TB, s *document.Store, name string, o *document.CollectionOptions) *document.Collection {
	t.Helper()
	c, err := s.Collection(ctx, name, o)
	must(t, err)
	return c
}

// find returns the documents of a query, as JSON, one a line.
func find(t testing.TB, c *document.Collection, filter string, o *document.FindOptions) string {
	t.Helper()
	var b strings.Builder
	for doc, err := range c.Find(ctx, document.JSON(filter), o) {
		must(t, err)
		b.WriteString(text(t, doc) + "\n")
	}
	return b.String()
}

func text(t testing.TB, doc bson.Raw) string {
	t.Helper()
	j, err := bson.MarshalExtJSON(doc, false, false)
	must(t, err)
	return string(j)
}

func expect(t testing.TB, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n%swant:\n%s", what, got, want)
	}
}

func TestDocumentsComeBackAsTheyWentIn(t *testing.T) {
	for _, format := range []document.Format{document.Template, document.BSON, document.AsJSON} {
		fs := memfs.New()
		s := open(t, fs)
		c := collection(t, s, "things", &document.CollectionOptions{Format: format})
		doc := bson.D{{Key: "_id", Value: int32(1)}, {Key: "name", Value: "x"}, {Key: "list", Value: bson.A{1.5, nil, bson.D{{Key: "a", Value: int64(7)}}}}}
		raw, err := bson.Marshal(doc)
		must(t, err)
		id, err := c.Insert(ctx, doc)
		must(t, err)
		if id.Int32() != 1 {
			t.Errorf("_id is %v", id)
		}
		got, err := c.Get(ctx, 1)
		must(t, err)
		if !slices.Equal(got, raw) {
			t.Errorf("%d: %s came back as %s", format, bson.Raw(raw), got)
		}
		if got, err = c.Get(ctx, 1.0); err != nil || !slices.Equal(got, raw) {
			t.Errorf("numbers that are equal are one _id: %s, %v", got, err)
		}
		if _, err := c.Get(ctx, 2); !errors.Is(err, document.ErrNotFound) {
			t.Errorf("a document that is not there: %v", err)
		}
		if _, err := c.Insert(ctx, doc); !errors.Is(err, document.DuplicateKey) {
			t.Errorf("the same _id again: %v", err)
		}
		made, err := c.Insert(ctx, document.JSON(`{"a": 1}`))
		must(t, err)
		if made.Type != bson.TypeObjectID {
			t.Errorf("an _id that was made is %v", made)
		}
	}
}

func TestFindUpdateDelete(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "flights", nil)
	var docs []any
	for i := range 20 {
		docs = append(docs, bson.D{{Key: "_id", Value: i}, {Key: "carrier", Value: []string{"UA", "AA"}[i%2]}, {Key: "delay", Value: i * 3}})
	}
	n, err := c.InsertMany(ctx, docs, nil)
	must(t, err)
	if n != 20 {
		t.Errorf("%d inserted", n)
	}
	expect(t, "a range", find(t, c, `{"delay": {"$gt": 50}}`, nil), `{"_id":17,"carrier":"AA","delay":51}
{"_id":18,"carrier":"UA","delay":54}
{"_id":19,"carrier":"AA","delay":57}
`)
	o := &document.FindOptions{Sort: document.JSON(`{"delay": -1}`), Skip: 1, Limit: 2, Projection: document.JSON(`{"delay": 1, "_id": 0}`)}
	expect(t, "sorted", find(t, c, `{"carrier": "UA"}`, o), "{\"delay\":48}\n{\"delay\":42}\n")
	_, err = c.Insert(ctx, document.JSON(`{"_id": "list", "l": [1, 2, 3, 4, 5]}`))
	must(t, err)
	sliced := &document.FindOptions{Projection: document.JSON(`{"l": {"$slice": [1, 3]}}`)}
	expect(t, "a slice, once", find(t, c, `{"_id": "list"}`, sliced), "{\"_id\":\"list\",\"l\":[2,3,4]}\n")
	_, err = c.Delete(ctx, document.JSON(`{"_id": "list"}`), nil)
	must(t, err)
	count, err := c.Count(ctx, document.JSON(`{"carrier": "UA"}`), nil)
	must(t, err)
	if count != 10 {
		t.Errorf("%d counted", count)
	}
	r, err := c.Update(ctx, document.JSON(`{"carrier": "UA"}`), document.JSON(`{"$inc": {"delay": 100}}`), &document.UpdateOptions{Many: true})
	must(t, err)
	if r.Matched != 10 || r.Modified != 10 {
		t.Errorf("update: %+v", r)
	}
	r, err = c.Update(ctx, document.JSON(`{"_id": 99}`), document.JSON(`{"$set": {"a": 1}}`), &document.UpdateOptions{Upsert: true})
	must(t, err)
	if r.UpsertedID.AsInt64() != 99 {
		t.Errorf("upsert: %+v", r)
	}
	expect(t, "upserted", find(t, c, `{"_id": 99}`, nil), "{\"_id\":99,\"a\":1}\n")
	old, _, err := c.FindAndModify(ctx, document.JSON(`{"_id": 99}`), document.JSON(`{"$set": {"a": 2}}`), nil)
	must(t, err)
	expect(t, "before", text(t, old), `{"_id":99,"a":1}`)
	old, _, err = c.FindAndModify(ctx, document.JSON(`{"_id": 99}`), document.JSON(`{"$set": {"b": 3}}`), &document.ModifyOptions{New: true, Projection: document.JSON(`{"b": 1, "_id": 0}`)})
	must(t, err)
	expect(t, "what was asked for of it", text(t, old), `{"b":3}`)
	deleted, err := c.Delete(ctx, document.JSON(`{"delay": {"$gte": 100}}`), &document.DeleteOptions{Many: true})
	must(t, err)
	if deleted != 10 {
		t.Errorf("%d deleted", deleted)
	}
	values, err := c.Distinct(ctx, "carrier", nil, nil)
	must(t, err)
	if len(values) != 1 || values[0].StringValue() != "AA" {
		t.Errorf("distinct: %v", values)
	}
}

func TestInsertManyIsAllOrNothingUnlessAsked(t *testing.T) {
	docs := []any{document.JSON(`{"_id": 1}`), document.JSON(`{"_id": 2}`), document.JSON(`{"_id": 1}`), document.JSON(`{"_id": 3}`)}
	for _, test := range []struct {
		name   string
		o      *document.InsertOptions
		stored int
		bad    int
	}{
		{"atomic", nil, 0, 2},
		{"ordered", &document.InsertOptions{Ordered: true}, 2, 2},
		{"unordered", &document.InsertOptions{Unordered: true}, 3, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := collection(t, open(t, memfs.New()), "c", nil)
			n, err := c.InsertMany(ctx, docs, test.o)
			var list document.WriteErrors
			if n != test.stored || !errors.As(err, &list) || len(list) != 1 || list[0].Index != test.bad || !errors.Is(err, document.DuplicateKey) {
				t.Errorf("%d stored, %v", n, err)
			}
			count, err := c.Count(ctx, nil, nil)
			must(t, err)
			if count != int64(test.stored) {
				t.Errorf("%d are there", count)
			}
		})
	}
}

func TestUniqueIndexes(t *testing.T) {
	fs := memfs.New()
	s := open(t, fs)
	c := collection(t, s, "users", nil)
	_, err := c.CreateIndex(ctx, document.Index{Keys: document.JSON(`{"email": 1}`), Unique: true})
	must(t, err)
	_, err = c.Insert(ctx, document.JSON(`{"_id": 1, "email": "a@x"}`))
	must(t, err)
	_, err = c.Insert(ctx, document.JSON(`{"_id": 2, "email": "a@x"}`))
	var e *document.Error
	if !errors.As(err, &e) || e.Code != document.DuplicateKey || e.KeyPattern.String() != `{"email": {"$numberInt":"1"}}` || e.KeyValue.Lookup("email").StringValue() != "a@x" {
		t.Fatalf("a second one: %v", err)
	}
	want := `E11000 duplicate key error collection: test.users index: email_1 dup key: { email: "a@x" }`
	expect(t, "message", e.Message, want)
	_, err = c.Insert(ctx, document.JSON(`{"_id": 2, "email": "b@x"}`))
	must(t, err)
	_, err = c.Update(ctx, document.JSON(`{"_id": 2}`), document.JSON(`{"$set": {"email": "a@x"}}`), nil)
	if !errors.Is(err, document.DuplicateKey) {
		t.Errorf("an update to a taken value: %v", err)
	}
	_, err = c.Delete(ctx, document.JSON(`{"_id": 1}`), nil)
	must(t, err)
	_, err = c.Update(ctx, document.JSON(`{"_id": 2}`), document.JSON(`{"$set": {"email": "a@x"}}`), nil)
	must(t, err)
	plan, err := c.Explain(ctx, document.JSON(`{"email": "a@x"}`), &document.FindOptions{Verbosity: "executionStats"})
	must(t, err)
	if !strings.Contains(plan.String(), "IXSCAN") || !strings.Contains(plan.String(), "email_1") {
		t.Errorf("explain: %s", plan)
	}
	must(t, s.Close())
	s = open(t, fs)
	c = collection(t, s, "users", nil)
	expect(t, "after opening again", find(t, c, `{"email": "a@x"}`, nil), "{\"_id\":2,\"email\":\"a@x\"}\n")
}

func TestIndexesAreBuiltWhileWritersGoOn(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "c", nil)
	for i := range 3000 {
		_, err := c.Insert(ctx, bson.D{{Key: "_id", Value: i}, {Key: "v", Value: i % 50}})
		must(t, err)
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for g := range 2 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				id := (i*7 + g) % 4000
				_, err := c.Update(ctx, bson.D{{Key: "_id", Value: id}}, bson.D{{Key: "$set", Value: bson.D{{Key: "v", Value: i % 60}}}}, &document.UpdateOptions{Upsert: true})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	var told int64
	_, err := c.CreateIndex(ctx, document.Index{Keys: bson.D{{Key: "v", Value: 1}}, Progress: func(done, _ int64) { told = done }})
	close(stop)
	wg.Wait()
	must(t, err)
	if told < 3000 {
		t.Errorf("progress ended at %d", told)
	}
	for v := range 60 {
		filter := fmt.Sprintf(`{"v": %d}`, v)
		with := find(t, c, filter, &document.FindOptions{Sort: document.JSON(`{"_id": 1}`), Hint: "v_1"})
		without := find(t, c, filter, &document.FindOptions{Sort: document.JSON(`{"_id": 1}`), Hint: document.JSON(`{"$natural": 1}`)})
		expect(t, filter, with, without)
	}
}

func TestDuplicatesStopAUniqueBuild(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "c", nil)
	for i := range 100 {
		_, err := c.Insert(ctx, bson.D{{Key: "_id", Value: i}, {Key: "v", Value: i % 99}})
		must(t, err)
	}
	_, err := c.CreateIndex(ctx, document.Index{Keys: bson.D{{Key: "v", Value: 1}}, Unique: true})
	if !errors.Is(err, document.DuplicateKey) || !strings.Contains(err.Error(), "{ v: 0 }") {
		t.Errorf("build: %v", err)
	}
	list, err := c.Indexes(ctx)
	must(t, err)
	if len(list) != 1 {
		t.Errorf("indexes left: %v", list)
	}
}

func TestTransactionsAreWholeOrAbsent(t *testing.T) {
	s := open(t, memfs.New())
	a, b := collection(t, s, "a", nil), collection(t, s, "b", nil)
	gone := errors.New("changed my mind")
	err := s.Transaction(ctx, func(tx *document.Tx) error {
		if _, err := tx.In(a).Insert(ctx, document.JSON(`{"_id": 1}`)); err != nil {
			return err
		}
		if _, err := tx.In(b).Insert(ctx, document.JSON(`{"_id": 1}`)); err != nil {
			return err
		}
		expect(t, "inside", find(t, tx.In(a), `{}`, nil), "{\"_id\":1}\n")
		expect(t, "outside", find(t, a, `{}`, nil), "")
		return gone
	})
	if !errors.Is(err, gone) {
		t.Fatal(err)
	}
	expect(t, "after an abort", find(t, a, `{}`, nil)+find(t, b, `{}`, nil), "")

	_, err = a.Insert(ctx, document.JSON(`{"_id": "n", "v": 0}`))
	must(t, err)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 25 {
				err := s.Transaction(ctx, func(tx *document.Tx) error {
					doc, err := tx.In(a).Get(ctx, "n")
					if err != nil {
						return err
					}
					v := doc.Lookup("v").AsInt64()
					_, err = tx.In(a).Update(ctx, document.JSON(`{"_id": "n"}`), bson.D{{Key: "$set", Value: bson.D{{Key: "v", Value: v + 1}}}}, nil)
					return err
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	expect(t, "counted", find(t, a, `{}`, nil), "{\"_id\":\"n\",\"v\":100}\n")
}

func TestCappedCollectionsForgetTheOldest(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "log", &document.CollectionOptions{Capped: true, SizeBytes: 1 << 20, MaxDocuments: 3})
	for i := range 5 {
		_, err := c.Insert(ctx, bson.D{{Key: "_id", Value: 10 - i}})
		must(t, err)
	}
	expect(t, "the newest, in the order of insertion", find(t, c, `{}`, nil), "{\"_id\":8}\n{\"_id\":7}\n{\"_id\":6}\n")
	if _, err := c.Insert(ctx, bson.D{{Key: "_id", Value: 7}}); !errors.Is(err, document.DuplicateKey) {
		t.Errorf("the same _id: %v", err)
	}
	got, err := c.Get(ctx, 7)
	must(t, err)
	expect(t, "by _id", text(t, got), `{"_id":7}`)

	tail, err := c.Tail(ctx, nil, nil)
	must(t, err)
	defer tail.Close()
	for range 3 {
		if !tail.Next(ctx) {
			t.Fatal(tail.Err())
		}
	}
	go func() { _, _ = c.Insert(ctx, bson.D{{Key: "_id", Value: 1}}) }()
	if !tail.Next(ctx) || tail.Current().Lookup("_id").AsInt64() != 1 {
		t.Errorf("tail: %s, %v", tail.Current(), tail.Err())
	}
}

func TestValidatorsRefuse(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "c", &document.CollectionOptions{Validator: document.JSON(`{"$jsonSchema": {"required": ["name"]}}`)})
	if _, err := c.Insert(ctx, document.JSON(`{"a": 1}`)); !errors.Is(err, document.DocumentValidationFailure) {
		t.Errorf("insert: %v", err)
	}
	_, err := c.Insert(ctx, document.JSON(`{"_id": 1, "name": "x"}`))
	must(t, err)
	if _, err := c.Update(ctx, document.JSON(`{}`), document.JSON(`{"$unset": {"name": 1}}`), nil); !errors.Is(err, document.DocumentValidationFailure) {
		t.Errorf("update: %v", err)
	}
	_, err = c.Update(ctx, document.JSON(`{"_id": 2}`), document.JSON(`{"$set": {"a": 1}}`), &document.UpdateOptions{Upsert: true, SkipValidation: true})
	must(t, err)
	capped := collection(t, s, "capped", &document.CollectionOptions{Capped: true, SizeBytes: 1000, Validator: document.JSON(`{"name": {"$exists": true}}`)})
	_, err = capped.InsertMany(ctx, []any{document.JSON(`{"_id": 1}`)}, &document.InsertOptions{SkipValidation: true})
	must(t, err)
	if _, err := capped.Insert(ctx, document.JSON(`{"_id": 2}`)); !errors.Is(err, document.DocumentValidationFailure) {
		t.Errorf("into a capped collection: %v", err)
	}
	must(t, c.Modify(ctx, document.JSON(`{"validationLevel": "off"}`)))
	_, err = c.Insert(ctx, document.JSON(`{"a": 1}`))
	must(t, err)
}

func TestViewsAreReadThroughTheirPipeline(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "c", nil)
	_, err := c.InsertMany(ctx, []any{document.JSON(`{"_id": 1, "v": 1}`), document.JSON(`{"_id": 2, "v": 5}`), document.JSON(`{"_id": 3, "v": 9}`)}, nil)
	must(t, err)
	v := collection(t, s, "large", &document.CollectionOptions{ViewOn: "c", Pipeline: document.JSON(`[{"$match": {"v": {"$gt": 3}}}, {"$set": {"w": {"$multiply": ["$v", 2]}}}]`)})
	expect(t, "view", find(t, v, `{"w": {"$gt": 10}}`, nil), "{\"_id\":3,\"v\":9,\"w\":18}\n")
	if _, err := v.Insert(ctx, document.JSON(`{}`)); document.CodeOf(err) != 166 {
		t.Errorf("a write: %v", err)
	}
	backwards := &document.FindOptions{Sort: document.JSON(`{"$natural": -1}`)}
	expect(t, "backwards", find(t, v, `{}`, backwards), "{\"_id\":3,\"v\":9,\"w\":18}\n{\"_id\":2,\"v\":5,\"w\":10}\n")
	for code, o := range map[document.Code]*document.FindOptions{
		2: {Hint: "none"}, 168: {ShowRecordID: true},
	} {
		if _, err := v.OpenFind(ctx, document.JSON(`{}`), o); document.CodeOf(err) != code {
			t.Errorf("%+v: %v, want %d", o, err, code)
		}
	}
}

func TestAggregate(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "flights", nil)
	airlines := collection(t, s, "airlines", nil)
	for i := range 9 {
		_, err := c.Insert(ctx, bson.D{{Key: "_id", Value: i}, {Key: "carrier", Value: []string{"UA", "AA", "DL"}[i%3]}, {Key: "delay", Value: i}})
		must(t, err)
	}
	_, err := airlines.Insert(ctx, document.JSON(`{"_id": "UA", "name": "United"}`))
	must(t, err)
	var got strings.Builder
	pipeline := document.JSON(`[{"$group": {"_id": "$carrier", "n": {"$sum": 1}, "delay": {"$avg": "$delay"}}}, {"$sort": {"_id": -1}}, {"$limit": 1},
		{"$lookup": {"from": "airlines", "localField": "_id", "foreignField": "_id", "as": "airline"}}]`)
	for doc, err := range c.Aggregate(ctx, pipeline, nil) {
		must(t, err)
		got.WriteString(text(t, doc))
	}
	expect(t, "groups", got.String(), `{"_id":"UA","n":3,"delay":3.0,"airline":[{"_id":"UA","name":"United"}]}`)
	for range c.Aggregate(ctx, document.JSON(`[{"$match": {"carrier": "AA"}}, {"$out": "copy"}]`), nil) {
	}
	expect(t, "$out", find(t, s.Database("test").Lookup("copy"), `{}`, nil), `{"_id":1,"carrier":"AA","delay":1}
{"_id":4,"carrier":"AA","delay":4}
{"_id":7,"carrier":"AA","delay":7}
`)
}

func TestStatementsAreCarriedOutOnce(t *testing.T) {
	fs := memfs.New()
	s := open(t, fs)
	c := collection(t, s, "c", nil)
	_, err := c.Insert(ctx, document.JSON(`{"_id": 1, "v": 0}`))
	must(t, err)
	once := document.WithStatements(ctx, "session", 5, 0)
	_, err = c.Update(once, document.JSON(`{"_id": 1}`), document.JSON(`{"$inc": {"v": 1}}`), nil)
	must(t, err)
	_, err = c.InsertMany(document.WithStatements(ctx, "other", 1, 0, 1, 2), []any{document.JSON(`{"_id": 2}`), document.JSON(`{"_id": 3}`), document.JSON(`{"_id": 4}`)}, nil)
	must(t, err)
	must(t, s.Close())
	s = open(t, fs)
	o, err := s.Outcome("session", 5, 0)
	must(t, err)
	if o == nil || o.N != 1 || o.Modified != 1 {
		t.Errorf("outcome of the update: %+v", o)
	}
	if o, err := s.Outcome("session", 5, 1); o != nil || err != nil {
		t.Errorf("a statement that was not carried out: %+v, %v", o, err)
	}
	if o, err := s.Outcome("other", 1, 2); o == nil || err != nil {
		t.Errorf("outcome of an insert: %+v, %v", o, err)
	}
	if _, err := s.Outcome("session", 4, 0); document.CodeOf(err) != 225 {
		t.Errorf("an older number: %v", err)
	}
}

func TestSnapshotsDoNotUseIndexesThatAreYounger(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "c", nil)
	_, err := c.InsertMany(ctx, []any{document.JSON(`{"_id": 1, "v": 1}`), document.JSON(`{"_id": 2, "v": 2}`)}, nil)
	must(t, err)
	snap, err := s.Snapshot(ctx)
	must(t, err)
	defer snap.Close()
	tx, err := s.Begin(ctx)
	must(t, err)
	defer tx.Abort()
	_, err = c.CreateIndex(ctx, document.Index{Keys: document.JSON(`{"v": 1}`)})
	must(t, err)
	_, err = c.Insert(ctx, document.JSON(`{"_id": 3, "v": 2}`))
	must(t, err)
	expect(t, "snapshot", find(t, snap.In(c), `{"v": 2}`, nil), "{\"_id\":2,\"v\":2}\n")
	expect(t, "transaction", find(t, tx.In(c), `{"v": 2}`, nil), "{\"_id\":2,\"v\":2}\n")
	expect(t, "now", find(t, c, `{"v": 2}`, nil), "{\"_id\":2,\"v\":2}\n{\"_id\":3,\"v\":2}\n")
	if _, err := snap.In(c).Insert(ctx, document.JSON(`{}`)); err == nil {
		t.Error("a snapshot was written to")
	}
}

func TestKeysThatAreTooLong(t *testing.T) {
	c := collection(t, open(t, memfs.New()), "c", nil)
	_, err := c.CreateIndex(ctx, document.Index{Keys: document.JSON(`{"v": 1}`)})
	must(t, err)
	long := strings.Repeat("x", pando.MaxKeyBytes)
	for _, doc := range []bson.D{{{Key: "_id", Value: long}}, {{Key: "_id", Value: 1}, {Key: "v", Value: long}}} {
		if _, err := c.Insert(ctx, doc); document.CodeOf(err) != 17280 || !errors.Is(err, pando.ErrKeyTooLarge) {
			t.Errorf("%v", err)
		}
		if _, err := c.InsertMany(ctx, []any{doc}, nil); !errors.Is(err, pando.ErrKeyTooLarge) {
			t.Errorf("of several: %v", err)
		}
	}
	expect(t, "nothing was written", find(t, c, `{}`, nil), "")
	_, err = c.Insert(ctx, bson.D{{Key: "_id", Value: 1}, {Key: "w", Value: long}})
	must(t, err)
	if _, err := c.CreateIndex(ctx, document.Index{Keys: document.JSON(`{"w": 1}`)}); document.CodeOf(err) != 17280 || !errors.Is(err, pando.ErrKeyTooLarge) {
		t.Errorf("an index of what is there: %v", err)
	}
}
