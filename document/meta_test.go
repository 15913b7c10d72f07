package document_test

import (
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
