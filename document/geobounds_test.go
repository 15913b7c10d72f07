package document_test

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestRegionsOfDecimals: coordinates may be numbers of any type.
func TestRegionsOfDecimals(t *testing.T) {
	ten, err := bson.ParseDecimal128("10")
	must(t, err)
	c := collection(t, open(t, memfs.New()), "c", nil)
	_, err = c.CreateIndex(ctx, document.Index{Keys: bson.D{{Key: "p", Value: "2dsphere"}}})
	must(t, err)
	_, err = c.Insert(ctx, document.JSON(`{"_id": 1, "p": {"type": "Point", "coordinates": [9, 9]}}`))
	must(t, err)
	ring := bson.A{bson.A{0, 0}, bson.A{1, 0}, bson.A{ten, ten}, bson.A{0, 1}, bson.A{0, 0}}
	square := bson.D{{Key: "type", Value: "Polygon"}, {Key: "coordinates", Value: bson.A{ring}}}
	line := bson.D{{Key: "type", Value: "LineString"}, {Key: "coordinates", Value: bson.A{bson.A{9, 9}, bson.A{8, 8}, bson.A{ten, ten}}}}
	for _, condition := range []bson.D{
		{{Key: "$geoWithin", Value: bson.D{{Key: "$geometry", Value: square}}}},
		{{Key: "$geoIntersects", Value: bson.D{{Key: "$geometry", Value: square}}}},
		{{Key: "$geoIntersects", Value: bson.D{{Key: "$geometry", Value: line}}}},
		{{Key: "$geoWithin", Value: bson.D{{Key: "$centerSphere", Value: bson.A{bson.A{ten, ten}, 0.1}}}}},
	} {
		if n, err := c.Count(ctx, bson.D{{Key: "p", Value: condition}}, nil); n != 1 || err != nil {
			t.Errorf("%v finds %d, %v", condition, n, err)
		}
	}
}

// TestPlacesWithFieldsThatElementsLack: an index of a place and of a field in the elements of a list has nothing of an element that lacks the
// field, which may be what is asked for, and what the list is sorted by.
func TestPlacesWithFieldsThatElementsLack(t *testing.T) {
	c := collection(t, open(t, memfs.New()), "c", nil)
	_, err := c.CreateIndex(ctx, document.Index{Keys: bson.D{{Key: "a.b", Value: 1}, {Key: "p", Value: "2dsphere"}}})
	must(t, err)
	_, err = c.InsertMany(ctx, []any{
		document.JSON(`{"_id": 1, "a": [{"b": 5}, {}], "p": [1, 1]}`), document.JSON(`{"_id": 2, "a": [{"b": 1}], "p": [1, 1]}`),
	}, nil)
	must(t, err)
	for _, one := range []struct{ condition, want string }{
		{`null`, "{\"_id\":1}\n"}, {`{"$exists": true}`, "{\"_id\":1}\n{\"_id\":2}\n"}, {`{"$gt": 0}`, "{\"_id\":1}\n{\"_id\":2}\n"},
	} {
		filter := `{"a.b": ` + one.condition + `, "p": {"$geoWithin": {"$centerSphere": [[1, 1], 0.1]}}}`
		o := &document.FindOptions{Sort: document.JSON(`{"a.b": 1}`), Projection: document.JSON(`{"_id": 1}`)}
		expect(t, one.condition, find(t, c, filter, o), one.want)
	}
}
