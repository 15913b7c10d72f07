package document_test

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// Streams of a database, or of all, tell nothing of the collections of the system: each answer to a stream's client made another entry in
// system.profile, of which the stream told next.
func TestStreamsTellNothingOfTheSystem(t *testing.T) {
	s := open(t, memfs.New())
	d := s.Database("test")
	c := collection(t, s, "c", nil)
	profile := collection(t, s, "system.profile", &document.CollectionOptions{Capped: true, SizeBytes: 1 << 20})
	scripts := collection(t, s, "system.js", nil)
	ofDatabase, err := d.OpenWatch(ctx, nil, nil)
	must(t, err)
	defer ofDatabase.Close()
	ofAll, err := s.OpenWatch(ctx, nil, nil)
	must(t, err)
	defer ofAll.Close()
	for _, x := range []*document.Collection{profile, scripts, c} {
		_, err := x.Insert(ctx, bson.D{{Key: "_id", Value: 1}})
		must(t, err)
	}
	for name, w := range map[string]*document.Cursor{"the database": ofDatabase, "everything": ofAll} {
		if e, _ := next(t, w); !strings.Contains(e, `"coll":"c"`) {
			t.Errorf("the stream of %s: %s", name, e)
		}
	}
}
