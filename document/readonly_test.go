package document_test

import (
	"errors"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document"
)

// Whatever a store that only reads would have to make is refused as every other write is.
func TestAStoreThatOnlyReadsMakesNothing(t *testing.T) {
	dir := t.TempDir()
	s, err := document.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Database("test").Lookup("c").Insert(t.Context(), bson.D{{Key: "_id", Value: 1}})
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	if s, err = document.Open(dir, &document.Options{Storage: pando.Options{ReadOnly: true}, TTLInterval: -1}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	db, index := s.Database("test"), bson.D{{Key: "key", Value: bson.D{{Key: "a", Value: 1}}}, {Key: "name", Value: "a"}}
	spec, err := bson.Marshal(index)
	if err != nil {
		t.Fatal(err)
	}
	for what, try := range map[string]func() error{
		"a document":   func() error { _, err := db.Lookup("c").Insert(t.Context(), bson.D{}); return err },
		"a collection": func() error { return db.Create(t.Context(), "new", nil) },
		"a capped one": func() error {
			return db.Create(t.Context(), "new", bson.D{{Key: "capped", Value: true}, {Key: "size", Value: 4096}})
		},
		"a collection used": func() error { _, err := db.Lookup("new").Insert(t.Context(), bson.D{}); return err },
		"an index":          func() error { _, err := db.Lookup("c").CreateIndexes(t.Context(), []bson.Raw{spec}, nil); return err },
		"an output": func() error {
			_, err := db.Lookup("c").OpenAggregate(t.Context(), []bson.D{{{Key: "$out", Value: "new"}}}, nil)
			return err
		},
	} {
		if err := try(); !errors.Is(err, pando.ErrReadOnly) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
