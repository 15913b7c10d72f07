package document_test

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// A pipeline on a snapshot reads the collections and views that there were, as a find does, whatever has become of them since: it read what
// the names meant by then, which was nothing for those that were dropped or renamed.
func TestPipelinesReadTheCollectionsOfTheirSnapshot(t *testing.T) {
	s := open(t, memfs.New())
	for _, name := range []string{"dropped", "renamed", "replaced"} {
		_, err := collection(t, s, name, nil).InsertMany(ctx, []document.JSON{`{"_id": 1}`, `{"_id": 2}`, `{"_id": 3}`}, nil)
		must(t, err)
	}
	collection(t, s, "view", &document.CollectionOptions{ViewOn: "renamed", Pipeline: document.JSON(`[{"$match": {"_id": {"$gt": 1}}}]`)})
	snap, err := s.Snapshot(ctx)
	must(t, err)
	defer snap.Close()
	d := s.Database(document.DefaultDatabase)
	must(t, d.Lookup("dropped").Drop(ctx))
	must(t, d.Lookup("renamed").Rename(ctx, document.DefaultDatabase, "other", false))
	must(t, d.Lookup("replaced").Drop(ctx))
	must(t, d.Lookup("view").Drop(ctx))
	_, err = d.Lookup("replaced").Insert(ctx, bson.D{{Key: "_id", Value: 9}})
	must(t, err)
	for name, want := range map[string]int{"dropped": 3, "renamed": 3, "replaced": 3, "view": 2, "other": 0} {
		at := snap.In(d.Lookup(name))
		for _, pipeline := range []string{`[]`, `[{"$sort": {"a": 1}}]`, `[{"$lookup": {"from": "dropped", "localField": "_id", "foreignField": "_id", "as": "l"}}, {"$unwind": "$l"}]`} {
			n := 0
			for _, err := range at.Aggregate(ctx, document.JSON(pipeline), nil) {
				must(t, err)
				n++
			}
			if n != want {
				t.Errorf("%s: %d documents of %s instead of %d", pipeline, n, name, want)
			}
		}
		counted := 0
		for doc, err := range at.Aggregate(ctx, document.JSON(`[{"$count": "n"}]`), nil) {
			must(t, err)
			counted = int(doc.Lookup("n").AsInt64())
		}
		if counted != want {
			t.Errorf("%d documents of %s are counted instead of %d", counted, name, want)
		}
		if got := len(find(t, at, `{}`, nil)); (got == 0) != (want == 0) {
			t.Errorf("a find on %s gives %d bytes", name, got)
		}
	}
}
