package document_test

import (
	"context"
	"errors"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestChangesOfTheDocumentWithAnID: a change that asks for an _id and nothing else reads the record itself, and does what it would do if
// its filter were asked.
func TestChangesOfTheDocumentWithAnID(t *testing.T) {
	ctx := context.Background()
	s := open(t, memfs.New())
	db := s.Database("d")
	insensitive := bson.D{{Key: "locale", Value: "en"}, {Key: "strength", Value: 2}}
	folded, err := db.Collection(ctx, "folded", &document.CollectionOptions{Collation: insensitive})
	if err != nil {
		t.Fatal(err)
	}
	plain, err := db.Collection(ctx, "plain", nil)
	if err != nil {
		t.Fatal(err)
	}
	set := bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: 2}}}}
	for _, test := range []struct {
		c        *document.Collection
		id, asks any
		matches  int64
	}{
		{plain, int32(1), int32(1), 1}, {plain, int32(2), 2.0, 1}, {plain, int64(3), int32(3), 1}, {plain, 1.5, 1.5, 1},
		{plain, int32(4), "4", 0}, {plain, "a", "A", 0}, {plain, "b", "b", 1}, {plain, true, true, 1}, {plain, int32(9), 9.5, 0},
		{folded, "a", "A", 1}, {folded, "b", "b", 1}, {folded, "c", "d", 0},
	} {
		if _, err := test.c.Insert(ctx, bson.D{{Key: "_id", Value: test.id}, {Key: "n", Value: 1}, {Key: "a", Value: bson.A{1}}}); err != nil {
			t.Fatal(err)
		}
		filter := bson.D{{Key: "_id", Value: test.asks}}
		r, err := test.c.Update(ctx, filter, set, nil)
		if err != nil || r.Matched != test.matches || r.Modified != test.matches {
			t.Errorf("update of %v by %v: %+v, %v", test.id, test.asks, r, err)
		}
		positional := bson.D{{Key: "$set", Value: bson.D{{Key: "a.$", Value: 2}}}}
		if r, err := test.c.Update(ctx, filter, positional, nil); (err == nil) != (test.matches == 0) || err != nil && !errors.Is(err, document.BadValue) {
			t.Errorf("positional update of %v by %v, without a position: %+v, %v", test.id, test.asks, r, err)
		}
		tx, err := s.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		r, err = tx.In(test.c).Update(ctx, filter, bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}, nil)
		if err != nil || r.Matched != test.matches {
			t.Errorf("update of %v by %v in a transaction: %+v, %v", test.id, test.asks, r, err)
		}
		if err := tx.Commit(ctx); err != nil {
			t.Fatal(err)
		}
		doc, _, err := test.c.FindAndModify(ctx, filter, set, &document.ModifyOptions{Projection: bson.D{{Key: "n", Value: 1}}})
		if n, _ := doc.Lookup("n").AsInt64OK(); test.matches == 1 && (err != nil || n != 3) || test.matches == 0 && !errors.Is(err, document.ErrNotFound) {
			t.Errorf("%v, found and modified by %v: %v, %v", test.id, test.asks, doc, err)
		}
		if n, err := test.c.Delete(ctx, filter, nil); err != nil || n != test.matches {
			t.Errorf("%v is deleted by %v %d times, %v", test.id, test.asks, n, err)
		}
	}
}

// TestOrdersThatAreNone are refused with an index as without, though nobody would sort.
func TestOrdersThatAreNone(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "things", nil)
	_, err := c.Insert(ctx, document.JSON(`{"_id": 1, "a": 2}`))
	must(t, err)
	_, err = c.CreateIndex(ctx, document.Index{Keys: bson.D{{Key: "a", Value: 1}, {Key: "b", Value: 1}}})
	must(t, err)
	for order, want := range map[document.JSON]document.Code{
		`{"a": 2}`: 15975, `{"a": 0}`: 15975, `{"a": 1, "b": -2}`: 15975, `{"a": "x"}`: 15974, `{"a": -1}`: 0, `{"a": 1.5}`: 0, `{"$natural": -1}`: 0, `{}`: 0,
		`{"a": 1, "$natural": 1}`: 2, `{"$natural": 1, "a": 1}`: 2,
	} {
		if cursor, err := c.OpenFind(ctx, document.JSON(`{"a": {"$gt": 0}}`), &document.FindOptions{Sort: order}); document.CodeOf(err) != want {
			t.Errorf("%s: %v", order, err)
		} else if err == nil {
			must(t, cursor.Close())
		}
	}
}
