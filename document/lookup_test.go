package document_test

import (
	"errors"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// What is found without a plan is what a scan of the collection finds: with arrays, numbers of all types, many and few documents.
func TestEqualitiesAreFoundAsScansFindThem(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "things", nil)
	for _, x := range []document.Index{
		{Keys: bson.D{{Key: "few", Value: 1}}}, {Keys: bson.D{{Key: "many", Value: 1}}}, {Keys: bson.D{{Key: "one", Value: 1}}, Unique: true, Sparse: true},
		{Keys: bson.D{{Key: "few", Value: 1}, {Key: "down", Value: -1}, {Key: "many", Value: 1}}},
		{Keys: bson.D{{Key: "pair", Value: -1}, {Key: "two", Value: 1}}, Unique: true}, {Keys: bson.D{{Key: "arr", Value: 1}, {Key: "arr2", Value: 1}}},
		{Keys: bson.D{{Key: "down", Value: -1}}}, {Keys: bson.D{{Key: "hidden", Value: 1}}, Hidden: true},
	} {
		_, err := c.CreateIndex(ctx, x)
		must(t, err)
	}
	var docs []any
	for i := range 200 {
		d := bson.D{{Key: "_id", Value: i}, {Key: "few", Value: i / 7}, {Key: "many", Value: i % 2}, {Key: "down", Value: i % 5}, {Key: "hidden", Value: i % 3},
			{Key: "pair", Value: i / 3}, {Key: "two", Value: i % 3}, {Key: "arr", Value: bson.A{i % 4, i % 6}}, {Key: "arr2", Value: i % 2}}
		switch i % 4 {
		case 0:
			d = append(d, bson.E{Key: "one", Value: float64(i)})
		case 1:
			d = append(d, bson.E{Key: "one", Value: bson.A{i, "s" + string(rune('a'+i%26)) + bson.NewObjectID().Hex()}})
		}
		docs = append(docs, d)
	}
	_, err := c.InsertMany(ctx, docs, nil)
	must(t, err)
	natural := bson.D{{Key: "$natural", Value: 1}}
	for _, filter := range []string{
		`{"_id": 7}`, `{"_id": 7.0}`, `{"_id": 7.5}`, `{"_id": "7"}`, `{"few": 3}`, `{"few": 28.0}`, `{"few": 99}`, `{"many": 1}`, `{"one": 8}`,
		`{"one": 9}`, `{"one": 10}`, `{"one": {"$numberLong": "8"}}`, `{"down": 3}`, `{"hidden": 1}`, `{"few": 3, "down": 2}`, `{"down": 2, "few": 3}`,
		`{"few": 3, "down": 1, "many": 0}`, `{"few": 3, "many": 1}`, `{"pair": 7}`, `{"pair": 7, "two": 1}`, `{"two": 1, "pair": 7.0}`, `{"two": 1}`, `{"arr": 3}`,
		`{"arr": 3, "arr2": 1}`, `{"few": 3, "few": 4}`, `{"_id": 7, "few": 1}`, `{"pair": 7, "two": 1, "few": 3}`, `{"one": null}`, `{"one": [1]}`, `{"few.x": 3}`,
	} {
		want := find(t, c, filter, &document.FindOptions{Hint: natural})
		got := find(t, c, filter, &document.FindOptions{Sort: bson.D{{Key: "_id", Value: 1}}})
		expect(t, filter+", sorted", got, want)
		expect(t, filter, find(t, c, filter, nil), got)
		n, err := c.Count(ctx, document.JSON(filter), nil)
		must(t, err)
		for _, limit := range []int64{1, 5, 64, 65, 100, 1000} {
			seen := int64(0)
			for _, err := range c.Find(ctx, document.JSON(filter), &document.FindOptions{Limit: limit}) {
				must(t, err)
				seen++
			}
			if seen != min(n, limit) {
				t.Errorf("%s, limit %d: %d of %d", filter, limit, seen, n)
			}
		}
	}
}

// A cursor reads the documents as they were when it was opened.
func TestDirectReadsAreOfOneMoment(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "things", nil)
	_, err := c.CreateIndex(ctx, document.Index{Keys: bson.D{{Key: "a", Value: 1}}})
	must(t, err)
	_, err = c.InsertMany(ctx, []any{bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: 1}}, bson.D{{Key: "_id", Value: 2}, {Key: "a", Value: 1}}}, nil)
	must(t, err)
	cursor, err := c.OpenFind(ctx, bson.D{{Key: "a", Value: 1}}, nil)
	must(t, err)
	_, err = c.Delete(ctx, bson.D{}, &document.DeleteOptions{Many: true})
	must(t, err)
	n := 0
	for cursor.Next(ctx) {
		n++
	}
	must(t, cursor.Err())
	if n != 2 {
		t.Errorf("%d documents", n)
	}
	expect(t, "afterwards", find(t, c, `{"a": 1}`, nil), "")
}

// A plan goes by how many documents there are now, though there were few when the first query was made.
func TestPlansGrowWithTheCollection(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "things", nil)
	_, err := c.CreateIndex(ctx, document.Index{Keys: bson.D{{Key: "k", Value: 1}}})
	must(t, err)
	insert := func(from, to int) {
		docs := make([]any, 0, to-from)
		for i := from; i < to; i++ {
			docs = append(docs, bson.D{{Key: "_id", Value: i}, {Key: "k", Value: i}})
		}
		_, err := c.InsertMany(ctx, docs, nil)
		must(t, err)
	}
	stage := func() string {
		out, err := c.Explain(ctx, document.JSON(`{"k": {"$lt": 900}}`), nil)
		must(t, err)
		return out.Lookup("queryPlanner", "winningPlan", "stage").StringValue()
	}
	insert(0, 1100)
	if got := stage(); got != "COLLSCAN" {
		t.Errorf("900 of 1,100: %s", got)
	}
	insert(1100, 20_000)
	if got := stage(); got != "FETCH" {
		t.Errorf("900 of 20,000: %s", got)
	}
	_, err = c.Delete(ctx, document.JSON(`{"k": {"$gte": 1100}}`), &document.DeleteOptions{Many: true})
	must(t, err)
	if got := stage(); got != "COLLSCAN" {
		t.Errorf("900 of 1,100 again: %s", got)
	}
}

// A cursor of an equality shows the moment at which it was opened, however late its documents are read: changed, deleted and dropped
// ones too.
func TestEqualitiesShowOneMoment(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "things", nil)
	_, err := c.CreateIndex(ctx, document.Index{Keys: bson.D{{Key: "few", Value: 1}}})
	must(t, err)
	for round := range 3 {
		var docs []any
		for i := range 50 {
			docs = append(docs, bson.D{{Key: "_id", Value: i}, {Key: "few", Value: 1}, {Key: "round", Value: round}})
		}
		_, err = c.InsertMany(ctx, docs, nil)
		must(t, err)
		cursor, err := c.OpenFind(ctx, document.JSON(`{"few": 1}`), nil)
		must(t, err)
		if !cursor.Next(ctx) {
			t.Fatal(cursor.Err())
		}
		_, err = c.Update(ctx, bson.D{}, document.JSON(`{"$set": {"round": 9}}`), &document.UpdateOptions{Many: true})
		must(t, err)
		_, err = c.Delete(ctx, bson.D{}, &document.DeleteOptions{Many: true})
		must(t, err)
		if round == 2 {
			must(t, c.Drop(ctx))
		}
		n := 1
		for ; cursor.Next(ctx); n++ {
			if got := cursor.Current().Lookup("round").AsInt64(); got != int64(round) {
				t.Fatalf("round %d: document %d is of round %d", round, n, got)
			}
		}
		if n != 50 || cursor.Err() != nil {
			t.Errorf("round %d: %d documents, %v", round, n, cursor.Err())
		}
		must(t, cursor.Close())
	}
}

// Documents that are changed together are found together, whoever changes them meanwhile: as many as there are, and all of one kind.
func TestEqualitiesAreNotTorn(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "things", nil)
	for _, field := range []string{"few", "one"} {
		_, err := c.CreateIndex(ctx, document.Index{Keys: bson.D{{Key: field, Value: 1}}, Unique: field == "one"})
		must(t, err)
	}
	for i := range 30 {
		_, err := c.Insert(ctx, bson.D{{Key: "_id", Value: i}, {Key: "few", Value: "a"}, {Key: "one", Value: i}, {Key: "kind", Value: 0}})
		must(t, err)
	}
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() {
		for kind := 1; ; kind++ {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			to := string(rune('a' + kind%2))
			err := s.Transaction(ctx, func(tx *document.Tx) error {
				_, err := tx.In(c).Update(ctx, bson.D{}, bson.D{{Key: "$set", Value: bson.D{{Key: "few", Value: to}, {Key: "kind", Value: kind}}}},
					&document.UpdateOptions{Many: true})
				return err
			})
			if err != nil {
				done <- err
				return
			}
		}
	}()
	for i := range 500 {
		for _, few := range []string{"a", "b"} {
			n, first := 0, int64(-1)
			for doc, err := range c.Find(ctx, bson.D{{Key: "few", Value: few}}, nil) {
				must(t, err)
				kind := doc.Lookup("kind").AsInt64()
				if first < 0 {
					first = kind
				}
				if kind != first || doc.Lookup("few").StringValue() != few {
					t.Fatalf("%q has a document of %d among those of %d: %s", few, kind, first, doc)
				}
				n++
			}
			if n != 0 && n != 30 {
				t.Fatalf("%d documents of 30", n)
			}
		}
		doc, err := c.FindOne(ctx, bson.D{{Key: "one", Value: i % 30}}, nil)
		must(t, err)
		if doc.Lookup("_id").AsInt64() != int64(i%30) {
			t.Fatalf("%d: %s", i%30, doc)
		}
	}
	close(stop)
	must(t, <-done)
}

// TestDocumentsInPlaceOfACollection: where the pipeline of a join begins with $documents, nothing else is read, not even a collection that
// is named too; and what is joined by fields is looked for among them.
func TestDocumentsInPlaceOfACollection(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "things", nil)
	_, err := c.Insert(ctx, document.JSON(`{"_id": 1, "a": 2}`))
	must(t, err)
	const list = `[{"$documents": [{"a": 1}, {"a": 2}]}]`
	for stage, want := range map[string]string{
		`{"$lookup": {"from": "things", "pipeline": ` + list + `, "as": "r"}}`:                                         `{"_id":1,"a":2,"r":[{"a":1},{"a":2}]}`,
		`{"$lookup": {"from": "things", "localField": "a", "foreignField": "a", "pipeline": ` + list + `, "as": "r"}}`: `{"_id":1,"a":2,"r":[{"a":2}]}`,
		`{"$lookup": {"localField": "a", "foreignField": "a", "pipeline": ` + list + `, "as": "r"}}`:                   `{"_id":1,"a":2,"r":[{"a":2}]}`,
		`{"$unionWith": {"coll": "things", "pipeline": ` + list + `}}`:                                                 `{"_id":1,"a":2}{"a":1}{"a":2}`,
	} {
		cursor, err := c.OpenAggregate(ctx, pipeline(t, "["+stage+"]"), nil)
		must(t, err)
		got := ""
		for cursor.Next(ctx) {
			text, err := bson.MarshalExtJSON(cursor.Current(), false, false)
			must(t, err)
			got += string(text)
		}
		must(t, errors.Join(cursor.Err(), cursor.Close()))
		if got != want {
			t.Errorf("%s: %s, want %s", stage, got, want)
		}
	}
}
