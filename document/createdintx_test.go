package document

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs/memfs"
)

// What a transaction has created is known by its number before its commit, for change streams. Of one whose commit failed it stayed, as long as
// the store was open.
func TestWhatATransactionCreatedGoesWithIt(t *testing.T) {
	s := opened(t, &Options{Storage: pando.Options{FS: memfs.New(), MemoryBytes: 8 << 20}, TTLInterval: -1})
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	ctx, d := t.Context(), s.Database("d")
	counter := d.Lookup("counter")
	if _, err := counter.Insert(ctx, bson.D{{Key: "_id", Value: 1}}); err != nil {
		t.Fatal(err)
	}
	inc := bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}
	for name, overtake := range map[string]func() error{
		"of a document": func() error {
			_, err := counter.Update(ctx, nil, inc, nil)
			return err
		},
		"of the collection": func() error { return d.Create(ctx, "of the collection", bson.D{}) },
	} {
		before := len(s.current.Load().byName)
		tx, err := s.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.In(counter).Update(ctx, nil, inc, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := tx.In(d.Lookup(name)).Insert(ctx, bson.D{{Key: "_id", Value: 1}}); err != nil {
			t.Fatal(err)
		}
		if err := overtake(); err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(ctx); CodeOf(err) != WriteConflict {
			t.Errorf("%s: %v", name, err)
		}
		if cat := s.current.Load(); len(cat.byNumber) != len(cat.byName) || len(cat.byName) > before+1 {
			t.Errorf("%s: there are %d collections, and %d by their numbers", name, len(cat.byName), len(cat.byNumber))
		}
	}
}
