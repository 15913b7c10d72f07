package document_test

import (
	"strings"
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

// TestWildcardProjectionsAsTheyMayBeWritten: an index is asked for what it holds only, however that is said.
func TestWildcardProjectionsAsTheyMayBeWritten(t *testing.T) {
	half, err := bson.ParseDecimal128("0.5")
	must(t, err)
	for _, projection := range []bson.D{
		{{Key: "a.b", Value: 1}},
		{{Key: "a", Value: bson.D{{Key: "b", Value: true}}}},
		{{Key: "a.b", Value: 0.5}},
		{{Key: "a.b", Value: half}},
		{{Key: "a.c", Value: 0}, {Key: "d", Value: false}},
		{{Key: "a", Value: bson.D{{Key: "c", Value: 0}}}, {Key: "d", Value: 0}, {Key: "_id", Value: 1}},
	} {
		s := open(t, memfs.New())
		c := collection(t, s, "c", nil)
		_, err := c.CreateIndex(ctx, document.Index{Keys: bson.D{{Key: "$**", Value: 1}}, WildcardProjection: projection})
		must(t, err)
		_, err = c.InsertMany(ctx, []any{document.JSON(`{"_id": 1, "a": {"b": 5, "c": 5}, "d": 5, "e": 5}`), document.JSON(`{"_id": 2, "a": 5}`)}, nil)
		must(t, err)
		for _, filter := range []document.JSON{`{"a.b": 5}`, `{"a.c": 5}`, `{"d": 5}`, `{"a": 5}`, `{"a.b": {"$exists": true}}`, `{"_id": 1, "e": {"$gt": 4}}`} {
			if n, err := c.Count(ctx, filter, nil); n != 1 || err != nil {
				t.Errorf("with %v: %s finds %d, %v", projection, filter, n, err)
			}
		}
	}
}

// TestFieldsBehindAWildcard: an index of a wildcard and other fields gives their values, and the order of them.
func TestFieldsBehindAWildcard(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "c", nil)
	_, err := c.CreateIndex(ctx, document.Index{Keys: bson.D{{Key: "a.$**", Value: 1}, {Key: "b", Value: 1}}})
	must(t, err)
	for i := range 12 {
		_, err := c.Insert(ctx, bson.D{{Key: "_id", Value: i}, {Key: "a", Value: bson.D{{Key: "x", Value: i % 2}}}, {Key: "b", Value: i / 3}})
		must(t, err)
	}
	values, err := c.Distinct(ctx, "b", document.JSON(`{"a.x": 1}`), nil)
	if must(t, err); len(values) != 4 {
		t.Errorf("the values are %v", values)
	}
	last := int32(4)
	o := &document.FindOptions{Sort: document.JSON(`{"b": -1}`)}
	for doc, err := range c.Find(ctx, document.JSON(`{"a.x": {"$in": [0, 1]}}`), o) {
		must(t, err)
		b := doc.Lookup("b").AsInt64()
		if int32(b) > last {
			t.Errorf("%d comes after %d", b, last)
		}
		last = int32(b)
	}
}

// TestWildcardsAndNamesWithDots: a field whose name looks like a path is not what a filter with that path asks for.
func TestWildcardsAndNamesWithDots(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "c", nil)
	_, err := c.CreateIndex(ctx, document.Index{Keys: bson.D{{Key: "$**", Value: 1}}})
	must(t, err)
	for _, doc := range []document.JSON{`{"_id": 1, "a.b": 5}`, `{"_id": 2, "a": {"b": 5}, "a.b": 6}`, `{"_id": 3, "a": {"b.c": 5}}`, `{"_id": 4, "a": {"b": {"c": 5}}}`} {
		_, err := c.Insert(ctx, doc)
		must(t, err)
	}
	for filter, want := range map[document.JSON]string{
		`{"a.b": 5}`: "2", `{"a.b": 6}`: "", `{"a.b": {"$gt": 1}}`: "2", `{"a.b.c": 5}`: "4", `{"a.b": {"$exists": true}}`: "2 4",
		`{"$or": [{"a.b": 5}, {"a.b.c": 5}]}`: "2 4",
	} {
		got := ""
		for doc, err := range c.Find(ctx, filter, &document.FindOptions{Sort: document.JSON(`{"_id": 1}`)}) {
			must(t, err)
			got += " " + doc.Lookup("_id").String()
		}
		if n, err := c.Count(ctx, filter, nil); got != idsText(want) || int(n) != len(strings.Fields(want)) || err != nil {
			t.Errorf("%s finds%s and counts %d, %v", filter, got, n, err)
		}
	}
}

// idsText is numbers as extended JSON has them, each behind a space.
func idsText(numbers string) (text string) {
	for _, n := range strings.Fields(numbers) {
		text += ` {"$numberInt":"` + n + `"}`
	}
	return text
}
