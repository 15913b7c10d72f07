package document_test

import (
	"strings"
	"testing"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestMeta: a query with $near knows how far its documents are, and of what geometry; what a query does not find out cannot be asked for.
func TestMeta(t *testing.T) {
	c := collection(t, open(t, memfs.New()), "c", nil)
	for _, doc := range []document.JSON{
		`{"_id": 1, "at": {"type": "Point", "coordinates": [0, 1]}, "n": 5}`,
		`{"_id": 2, "at": {"type": "Point", "coordinates": [0, 0]}, "n": 6}`,
	} {
		_, err := c.Insert(ctx, doc)
		must(t, err)
	}
	_, err := c.CreateIndex(ctx, document.Index{Keys: document.JSON(`{"at": "2dsphere"}`)})
	must(t, err)
	near := `{"at": {"$near": {"$geometry": {"type": "Point", "coordinates": [0, 0]}}}, "n": {"$gt": 0}}`
	expect(t, "nearest first", find(t, c, near, &document.FindOptions{
		Projection: document.JSON(`{"n": 1, "far": {"$meta": "geoNearDistance"}, "place": {"$meta": "geoNearPoint"}}`),
	}), `{"_id":2,"n":6,"far":0.0,"place":{"type":"Point","coordinates":[0,0]}}`+"\n"+
		`{"_id":1,"n":5,"far":111318.84502145034,"place":{"type":"Point","coordinates":[0,1]}}`+"\n")
	for _, test := range []struct {
		filter, projection, sort string
		code                     document.Code
	}{
		{`{}`, `{"far": {"$meta": "geoNearDistance"}}`, `{}`, 40218},
		{`{}`, `{"place": {"$meta": "geoNearPoint"}}`, `{"n": 1}`, 40218},
		{near, `{"score": {"$meta": "textScore"}}`, `{}`, 40218},
		{`{}`, `{"key": {"$meta": "sortKey"}}`, `{}`, document.BadValue},
		{`{}`, `{}`, `{"far": {"$meta": "geoNearDistance"}}`, 40218},
		{`{}`, `{}`, `{"score": {"$meta": "textScore"}}`, 40218},
		{near, `{}`, `{"place": {"$meta": "geoNearPoint"}}`, 31138},
		{`{}`, `{}`, `{"score": {"$meta": "searchScore"}}`, 31218},
	} {
		_, err := c.OpenFind(ctx, document.JSON(test.filter), &document.FindOptions{Projection: document.JSON(test.projection), Sort: document.JSON(test.sort)})
		if document.CodeOf(err) != test.code {
			t.Errorf("find %s, project %s, sort %s: %v, want code %d", test.filter, test.projection, test.sort, err, test.code)
		}
	}
	log := collection(t, open(t, memfs.New()), "log", &document.CollectionOptions{Capped: true, SizeBytes: 10_000})
	_, err = log.Insert(ctx, document.JSON(`{"_id": 7}`))
	must(t, err)
	expect(t, "the number of a record", find(t, log, `{}`, &document.FindOptions{Projection: document.JSON(`{"id": {"$meta": "recordId"}}`)}),
		`{"_id":7,"id":1}`+"\n")
}

// TestSortKey: what documents were sorted by is told by the projection of a find, once it was left out without a word, and refused where it
// is not known.
func TestSortKey(t *testing.T) {
	c := collection(t, open(t, memfs.New()), "c", nil)
	for _, doc := range []document.JSON{`{"_id": 1, "a": [5, 2], "b": {"c": "x"}}`, `{"_id": 2, "a": 3}`, `{"_id": 3, "a": [], "b": [{"c": 1}, {"c": 2}]}`} {
		_, err := c.Insert(ctx, doc)
		must(t, err)
	}
	for _, test := range []struct{ sort, projection, want string }{
		{`{"a": 1}`, `{"_id": 1, "k": {"$meta": "sortKey"}}`, `{"_id":3,"k":[{"$undefined":true}]}{"_id":1,"k":[2]}{"_id":2,"k":[3]}`},
		{`{"a": -1}`, `{"_id": 1, "k": {"$meta": "sortKey"}}`, `{"_id":1,"k":[5]}{"_id":2,"k":[3]}{"_id":3,"k":[{"$undefined":true}]}`},
		{`{"b.c": 1, "_id": -1}`, `{"_id": 0, "k": {"$meta": "sortKey"}, "a": 1}`, `{"a":3,"k":[null,2]}{"a":[],"k":[1,3]}{"a":[5,2],"k":["x",1]}`},
		{`{"_id": 1}`, `{"a": 0, "b": 0, "k": {"$meta": "sortKey"}}`, `{"_id":1,"k":[1]}{"_id":2,"k":[2]}{"_id":3,"k":[3]}`},
		{`{"_id": -1}`, `{"k": {"$concatArrays": [{"$meta": "sortKey"}, ["x"]]}}`, `{"_id":3,"k":[3,"x"]}{"_id":2,"k":[2,"x"]}{"_id":1,"k":[1,"x"]}`},
		{`{"$natural": 1}`, `{"_id": 1, "k": {"$meta": "sortKey"}}`, `{"_id":1,"k":[]}{"_id":2,"k":[]}{"_id":3,"k":[]}`},
	} {
		got := find(t, c, `{}`, &document.FindOptions{Sort: document.JSON(test.sort), Projection: document.JSON(test.projection)})
		expect(t, test.sort, strings.ReplaceAll(got, "\n", ""), test.want)
	}
	for _, stage := range []string{`{"$project": {"k": {"$meta": "sortKey"}}}`, `{"$set": {"k": {"$meta": "sortKey"}}}`, `{"$group": {"_id": {"$meta": "sortKey"}}}`} {
		_, err := c.OpenAggregate(ctx, document.JSON(`[{"$sort": {"a": 1}}, `+stage+`]`), nil)
		if document.CodeOf(err) != 115 {
			t.Errorf("%s: %v", stage, err)
		}
	}
	_, _, err := c.FindAndModify(ctx, document.JSON(`{}`), document.JSON(`{"$set": {"z": 1}}`), &document.ModifyOptions{
		Sort: document.JSON(`{"a": 1}`), Projection: document.JSON(`{"k": {"$meta": "sortKey"}}`),
	})
	if document.CodeOf(err) != document.BadValue {
		t.Errorf("findAndModify: %v", err)
	}
}
