package document

import (
	"errors"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document/internal/index"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestBuildsGoOnBehindNewRecords: where a step of a build finds nothing but what has been inserted since it began, it is not at the end.
func TestBuildsGoOnBehindNewRecords(t *testing.T) {
	s := opened(t, &Options{Storage: pando.Options{FS: memfs.New()}, TTLInterval: -1})
	defer s.Close()
	c := s.Database(DefaultDatabase).Lookup("c")
	insert := func(id string) {
		t.Helper()
		if _, err := c.Insert(t.Context(), bson.D{{Key: "_id", Value: id}, {Key: "a", Value: 1}}); err != nil {
			t.Fatal(err)
		}
	}
	insert("a")
	insert("z")
	x, err := c.use()
	if err != nil {
		t.Fatal(err)
	}
	list := registered(t, x, false)
	tx, err := s.db.Begin(true)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	insert("m")
	b := &builder{c: x, w: &writer{store: s, tx: tx}, list: list, entries: make([][]batchEntry, 1)}
	first := bsoncore.Value{Type: bsoncore.TypeString, Data: bsoncore.AppendString(nil, "a")}
	n, next, err := b.collect(append(x.key(nil, first), 0), 1)
	if n != 0 || next == nil || err != nil {
		t.Fatalf("%d records, and then from %q, %v; want none, and to go on", n, next, err)
	}
	if n, _, err := b.collect(next, 1); n != 1 || err != nil {
		t.Errorf("%d records behind that, %v; want 1", n, err)
	}
}

// TestBuildsDoNotBringBackADroppedCollection: between the commit that takes a collection out of the catalogue and the end of its keyspaces a
// build may still read records, and meet arrays, of which the catalogue must not be told any more.
func TestBuildsDoNotBringBackADroppedCollection(t *testing.T) {
	s := opened(t, &Options{Storage: pando.Options{FS: memfs.New()}, TTLInterval: -1})
	defer s.Close()
	c := s.Database(DefaultDatabase).Lookup("c")
	if _, err := c.Insert(t.Context(), bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: bson.A{1, 2}}}); err != nil {
		t.Fatal(err)
	}
	x, err := c.use()
	if err != nil {
		t.Fatal(err)
	}
	list := registered(t, x, false)
	entry := nameKey(DefaultDatabase, "c")
	x.dropped.Store(true)
	if err := s.meta.Delete(entry); err != nil {
		t.Fatal(err)
	}
	if _, _, err := x.buildSome(list, nil, buildChunk); !errors.Is(err, errDropped) {
		t.Errorf("the build goes on: %v", err)
	}
	if there, err := s.meta.Has(entry); there || err != nil {
		t.Errorf("the collection is in the catalogue again: %v, %v", there, err)
	}
}

// registered puts an index of a into the list of those of a collection, which nobody builds.
func registered(t *testing.T, x *collection, unique bool) []*secondary {
	t.Helper()
	spec := bsoncore.NewDocumentBuilder().AppendDocument("key", bsoncore.NewDocumentBuilder().AppendInt32("a", 1).Build())
	def, err := index.Parse(spec.AppendBoolean("unique", unique).Build(), nil)
	if err != nil {
		t.Fatal(err)
	}
	list, _, err := x.register(t.Context(), []*index.Definition{def})
	if err != nil {
		t.Fatal(err)
	}
	return list
}
