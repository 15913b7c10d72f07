package document_test

import (
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
		{Keys: bson.D{{Key: "down", Value: -1}}}, {Keys: bson.D{{Key: "hidden", Value: 1}}, Hidden: true},
	} {
		_, err := c.CreateIndex(ctx, x)
		must(t, err)
	}
	var docs []any
	for i := range 200 {
		d := bson.D{{Key: "_id", Value: i}, {Key: "few", Value: i / 7}, {Key: "many", Value: i % 2}, {Key: "down", Value: i % 5}, {Key: "hidden", Value: i % 3}}
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
		`{"one": 9}`, `{"one": 10}`, `{"one": {"$numberLong": "8"}}`, `{"down": 3}`, `{"hidden": 1}`, `{"one": null}`, `{"one": [1]}`, `{"few.x": 3}`,
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
