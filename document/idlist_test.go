package document_test

import (
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// listQuery is the query for a list of _ids.
func listQuery(ids ...any) bson.D {
	return bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: bson.A(ids)}}}}
}

// idsOf returns the _ids of what a cursor has left.
func idsOf(t *testing.T, c *document.Cursor) string {
	t.Helper()
	var b strings.Builder
	for c.Next(ctx) {
		fmt.Fprintf(&b, "%v ", c.Current().Lookup("_id"))
	}
	must(t, c.Err())
	return b.String()
}

// What a list of _ids finds is in the order of the _ids, each document once, whatever the order of the list and whatever is missing.
func TestListOfIDs(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "things", nil)
	var docs []any
	for i := range 400 {
		docs = append(docs, bson.D{{Key: "_id", Value: 2 * i}, {Key: "n", Value: i}})
	}
	for _, id := range []any{"x", true, 7.5, nil, bson.D{{Key: "a", Value: 2}}} {
		docs = append(docs, bson.D{{Key: "_id", Value: id}})
	}
	_, err := c.InsertMany(ctx, docs, nil)
	must(t, err)
	count := func(from, to, step int) (list []any) {
		for i := from; i != to; i += step {
			list = append(list, i)
		}
		return list
	}
	mixed := append(count(130, 0, -1), "x", "y", 7.5, true, false, 4.0, int64(6), 6)
	for name, list := range map[string][]any{
		"none": {}, "one": {8}, "ascending": count(0, 100, 2), "descending": count(198, 0, -2), "twice": {4, 2, 4, 2.0, int64(4)},
		"half missing": count(0, 100, 1), "all missing": count(1, 101, 2), "the last one missing": {2, 4, 5}, "more than are fetched at a time, missing": append(count(1, 61, 2), 8),
		"types": {"x", 7.5, true, 3, 4}, "many": count(0, 800, 1), "just as many": count(0, 128, 1), "one more": count(0, 129, 1), "mixed": mixed,
		"null": {2, nil}, "array": {2, bson.A{1, 2}}, "document": {2, bson.D{{Key: "a", Value: 2}}}, "expression": {2, bson.Regex{Pattern: "^x"}},
	} {
		filter := listQuery(list...)
		// A comparison that is always true keeps a query from being a list and nothing else.
		planned := append(bson.D{{Key: "$comment", Value: "planned"}}, filter...)
		want, err := c.OpenFind(ctx, planned, nil)
		must(t, err)
		got, err := c.OpenFind(ctx, filter, nil)
		must(t, err)
		expect(t, name, idsOf(t, got), idsOf(t, want))
		for _, o := range []*document.FindOptions{{Limit: 3}, {Skip: 2}, {Sort: bson.D{{Key: "_id", Value: -1}}}, {Projection: bson.D{{Key: "n", Value: 1}}}} {
			want, err := c.OpenFind(ctx, planned, o)
			must(t, err)
			got, err := c.OpenFind(ctx, filter, o)
			must(t, err)
			expect(t, name, idsOf(t, got), idsOf(t, want))
		}
	}
}

// What is left of a long list, or of a range, is of the moment at which the cursor was opened, however long nobody asks for it.
func TestRestOfIDsIsOfOneMoment(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "things", nil)
	var docs, ids []any
	for i := range 300 {
		docs = append(docs, bson.D{{Key: "_id", Value: i}})
		ids = append(ids, 299-i, -i-1)
	}
	_, err := c.InsertMany(ctx, docs, nil)
	must(t, err)
	from := bson.D{{Key: "_id", Value: bson.D{{Key: "$gte", Value: 5}}}}
	for _, x := range []struct {
		filter bson.D
		limit  int64
	}{{listQuery(ids...), 0}, {listQuery(ids...), 290}, {listQuery(ids...), 20}, {from, 1}, {from, 40}, {from, 128}} {
		o := &document.FindOptions{Limit: x.limit}
		want, err := c.OpenFind(ctx, append(bson.D{{Key: "$comment", Value: "planned"}}, x.filter...), o)
		must(t, err)
		list := idsOf(t, want)
		for every := range 3 {
			cursor, err := c.OpenFind(ctx, x.filter, o)
			must(t, err)
			_, err = c.Delete(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$gte", Value: 10}}}}, &document.DeleteOptions{Many: true})
			must(t, err)
			must(t, s.DB().Checkpoint(ctx))
			if every == 2 {
				cursor.Rest()
			}
			var b strings.Builder
			for n := 1; cursor.Next(ctx); n++ {
				fmt.Fprintf(&b, "%v ", cursor.Current().Lookup("_id"))
				if every > 0 && n%every == 0 {
					cursor.Rest()
				}
			}
			must(t, cursor.Err())
			expect(t, fmt.Sprintf("limit %d, a rest after each %d", x.limit, every), b.String(), list)
			_, err = c.InsertMany(ctx, docs[10:], nil)
			must(t, err)
		}
	}
}

// A cursor of a list reads the documents as they were when it was opened, also those that it has given back in the meantime, and those
// behind one that is missing.
func TestListOfIDsIsOfOneMoment(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "things", nil)
	var docs []any
	var ids []any
	for i := range 60 {
		docs = append(docs, bson.D{{Key: "_id", Value: i}, {Key: "text", Value: strings.Repeat("long ", 2000)}})
		ids = append(ids, 59-i, float64(i)+0.5)
	}
	_, err := c.InsertMany(ctx, docs, nil)
	must(t, err)
	cursor, err := c.OpenFind(ctx, listQuery(ids...), nil)
	must(t, err)
	if !cursor.Next(ctx) {
		t.Fatal(cursor.Err())
	}
	cursor.Rest()
	_, err = c.Delete(ctx, bson.D{}, &document.DeleteOptions{Many: true})
	must(t, err)
	n := 1
	for cursor.Next(ctx) {
		if n++; n%7 == 0 {
			cursor.Rest()
		}
	}
	must(t, cursor.Err())
	if n != 60 {
		t.Errorf("%d documents", n)
	}
	again, err := c.OpenFind(ctx, listQuery(ids...), nil)
	must(t, err)
	expect(t, "afterwards", idsOf(t, again), "")
	must(t, c.Drop(ctx))
	gone, err := c.OpenFind(ctx, listQuery(ids...), nil)
	must(t, err)
	expect(t, "dropped", idsOf(t, gone), "")
}
