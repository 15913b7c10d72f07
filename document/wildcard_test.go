package document_test

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestWildcardsAndElementsThatAreThere: an element may be a document, whose entries lie under the paths of its fields.
func TestWildcardsAndElementsThatAreThere(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "c", nil)
	for _, doc := range []document.JSON{
		`{"_id": 1}`, `{"_id": 2, "a": [null]}`, `{"_id": 3, "a": [1, 2]}`, `{"_id": 4, "a": [{"b": 1}]}`, `{"_id": 5, "a": [[]]}`, `{"_id": 6, "a": []}`,
		`{"_id": 7, "a": [{"b": [{"c": 1}]}, {}]}`, `{"_id": 8, "a": {"b": 1}}`,
	} {
		_, err := c.Insert(ctx, doc)
		must(t, err)
	}
	for _, indexed := range []bool{false, true} {
		if indexed {
			_, err := c.CreateIndex(ctx, document.Index{Keys: bson.D{{Key: "$**", Value: 1}}})
			must(t, err)
		}
		for filter, want := range map[document.JSON]int64{
			`{"a": {"$elemMatch": {"$exists": true}}}`:                                5,
			`{"a": {"$elemMatch": {"$exists": true, "$type": "object"}}}`:             2,
			`{"a": {"$elemMatch": {"$exists": true, "$gte": 1}}}`:                     1,
			`{"a.b": {"$elemMatch": {"$exists": true}}}`:                              1,
			`{"a": {"$elemMatch": {"b": {"$exists": true}}}}`:                         2,
			`{"$or": [{"a": {"$elemMatch": {"$exists": true}}}, {"a": {"$gt": {}}}]}`: 6,
		} {
			if n, err := c.Count(ctx, filter, nil); n != want || err != nil {
				t.Errorf("indexed %v: %d documents match %s, %v", indexed, n, filter, err)
			}
		}
	}
}

// TestHintsOfWildcardsWithBranches: the index finds each branch of a disjunction, and is refused where it does not find one.
func TestHintsOfWildcardsWithBranches(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "c", nil)
	for _, doc := range []document.JSON{`{"_id": 1, "a": 1}`, `{"_id": 2, "b": {"c": 2}}`, `{"_id": 3, "a": 1, "b": {"c": 2}}`, `{"_id": 4}`} {
		_, err := c.Insert(ctx, doc)
		must(t, err)
	}
	_, err := c.CreateIndex(ctx, document.Index{Keys: bson.D{{Key: "$**", Value: 1}}})
	must(t, err)
	for filter, want := range map[document.JSON]int64{
		`{"$or": [{"a": 1}, {"b.c": 2}]}`:                                         3,
		`{"$or": [{"a": 1, "b.c": 2}, {"b.c": 3}]}`:                               1,
		`{"$and": [{"$or": [{"a": 1}, {"b.c": 2}]}, {"_id": {"$gt": 1}}]}`:        2,
		`{"$or": [{"$or": [{"a": 1}, {"a": 5}]}, {"$and": [{"b": {"$gt": 1}}]}]}`: 2,
		`{"$or": [{"a": 1}, {"_id": 4}]}`:                                         -1,
		`{"$or": [{"a": 1}, {"b.c": null}]}`:                                      -1,
	} {
		n, err := c.Count(ctx, filter, &document.FindOptions{Hint: "$**_1"})
		switch {
		case want < 0 && document.CodeOf(err) != 291:
			t.Errorf("%s: %d, %v; want none, as the index cannot find them", filter, n, err)
		case want >= 0 && (n != want || err != nil):
			t.Errorf("%s: %d, %v; want %d", filter, n, err, want)
		}
	}
}
