package document_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// What a query finds that needs no plan is what a plan finds: the same documents, in an order that was asked for, with the same fields, or
// the same error.
func TestWishesWithoutPlan(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "people", nil)
	for _, x := range []document.Index{
		{Keys: bson.D{{Key: "email", Value: 1}}, Unique: true}, {Keys: bson.D{{Key: "city", Value: 1}}},
		{Keys: bson.D{{Key: "street", Value: 1}, {Key: "name", Value: 1}}}, {Keys: bson.D{{Key: "tags", Value: 1}, {Key: "_id", Value: 1}}},
	} {
		_, err := c.CreateIndex(ctx, x)
		must(t, err)
	}
	var docs []any
	for i := range 60 {
		docs = append(docs, bson.D{
			{Key: "_id", Value: (i * 37) % 60}, {Key: "name", Value: fmt.Sprint("n", i%7)}, {Key: "email", Value: fmt.Sprint(i)},
			{Key: "city", Value: fmt.Sprint(i % 3)}, {Key: "street", Value: fmt.Sprint(i % 5)}, {Key: "tags", Value: bson.A{i % 2, "x"}},
			{Key: "address", Value: bson.D{{Key: "zip", Value: i}, {Key: "box", Value: bson.A{bson.D{{Key: "n", Value: 1}, {Key: "m", Value: 2}}}}}},
		})
	}
	for i, id := range []any{"a", "b", math.NaN(), 7.25, math.Inf(1), true, false, nil, bson.D{}, bson.MinKey{}, bson.MaxKey{}} {
		docs = append(docs, bson.D{{Key: "_id", Value: id}, {Key: "email", Value: fmt.Sprint("odd", i)}})
	}
	_, err := c.InsertMany(ctx, docs, nil)
	must(t, err)
	field := func(name string, v any) bson.D { return bson.D{{Key: name, Value: v}} }
	filters := []bson.D{
		field("_id", 7), field("_id", 7.0), field("_id", 700), field("email", "7"), field("email", "none"), field("city", "1"), field("street", "2"),
		append(field("street", "2"), field("name", "n3")...), field("tags", 1), listQuery(9, 3, 3, 100, 5, 1), listQuery(100, 200),
		field("_id", field("$gte", 7)), field("_id", field("$gt", 7.0)), field("_id", field("$gt", 6.5)), field("_id", field("$lt", 20)),
		field("_id", append(field("$gt", 7), append(field("$lte", int64(11)), field("$lt", 11.5)...)...)), field("_id", append(field("$gt", 11), field("$lt", 7)...)),
		field("_id", field("$gte", "a")), field("_id", append(field("$gte", 1), field("$lt", "a")...)), field("_id", field("$gte", math.NaN())),
		field("_id", field("$lte", math.Inf(1))), field("_id", field("$gte", nil)), field("_id", append(field("$gte", 1), field("$ne", 9)...)),
		field("_id", append(field("$gte", 50), field("$gte", 55)...)), field("_id", field("$gte", bson.A{1})), field("_id", field("$lt", true)),
	}
	for _, filter := range filters {
		planned := append(field("$comment", "planned"), filter...)
		for _, projection := range []any{
			nil, bson.D{}, field("name", 1), field("name", true), field("nothing", 1), field("name", 0), field("_id", 0), field("_id", 1),
			bson.D{{Key: "city", Value: 1}, {Key: "_id", Value: 0}, {Key: "name", Value: 1.5}}, field("address.zip", 1), field("address.box.n", 0),
			bson.D{{Key: "email", Value: 1}, {Key: "_id", Value: 0}}, bson.D{{Key: "name", Value: 1}, {Key: "street", Value: 1}, {Key: "_id", Value: 0}},
			bson.D{{Key: "tags", Value: 1}, {Key: "_id", Value: 1}}, field("address", bson.D{{Key: "zip", Value: 1}}), field("tags", bson.D{{Key: "$slice", Value: 1}}),
			field("name", "$city"), field("tags.$", 1), field("$name", 1), field("", 1), field("a..b", 1), field("name", nil),
			bson.D{{Key: "name", Value: 1}, {Key: "city", Value: 0}}, bson.D{{Key: "address", Value: 1}, {Key: "address.zip", Value: 1}},
		} {
			for _, o := range []document.FindOptions{
				{}, {Limit: 1}, {Limit: 3}, {Limit: 100}, {Limit: -1}, {Sort: bson.D{}}, {Sort: field("_id", 1)}, {Sort: field("_id", 1.0), Limit: 4}, {Sort: field("_id", -1)},
				{Sort: field("_id", 2)}, {Sort: field("name", 1)}, {Sort: bson.D{{Key: "_id", Value: 1}, {Key: "name", Value: 1}}}, {Skip: 1},
			} {
				o.Projection = projection
				ordered := o.Sort != nil && len(o.Sort.(bson.D)) > 0
				if allOf(c, filter, o, ordered, raw) != allOf(c, planned, o, ordered, raw) {
					what := fmt.Sprintf("%v, projection %v, sort %v, limit %d", filter, projection, o.Sort, o.Limit)
					t.Errorf("%s:\n%swant:\n%s", what, allOf(c, filter, o, ordered, bson.Raw.String), allOf(c, planned, o, ordered, bson.Raw.String))
				}
			}
		}
	}
}

// allOf returns the documents that a filter finds, or the error. Which ones a limit leaves is open where no order was asked for: then it is
// how many there are. Texts of thousands of documents take long: show makes them of those that are to be read.
func allOf(c *document.Collection, filter bson.D, o document.FindOptions, ordered bool, show func(bson.Raw) string) string {
	var b strings.Builder
	n := 0
	for doc, err := range c.Find(ctx, filter, &o) {
		if err != nil {
			return err.Error()
		}
		n++
		b.WriteString(show(doc) + "\n")
	}
	if !ordered && (o.Limit != 0 || o.Skip != 0) {
		return fmt.Sprint(n)
	}
	return b.String()
}

// raw is a document as it is.
func raw(doc bson.Raw) string { return string(doc) }
