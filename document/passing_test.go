package document

import (
	"fmt"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestFirstGetKeepsNoCodec: the first document that is got of a collection is decoded without keeping templates and dictionaries, and
// from the second one on they stay.
func TestFirstGetKeepsNoCodec(t *testing.T) {
	o := &Options{Storage: pando.Options{FS: memfs.New()}, TTLInterval: -1}
	town := func(i int) string { return fmt.Sprint("a town that is met again ", i%7) }
	s := opened(t, o)
	c, err := s.Collection(t.Context(), "people", nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		if _, err := c.Insert(t.Context(), bson.D{{Key: "_id", Value: i}, {Key: "town", Value: town(i)}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	s = opened(t, o)
	c = s.Database(DefaultDatabase).Lookup("people")
	x := s.current.Load().byName[DefaultDatabase+".people"]
	if x == nil {
		t.Fatalf("collections are %v", s.current.Load().byName)
	}
	for gets := range 3 {
		doc, err := c.Get(t.Context(), 90+gets)
		if err != nil || doc.Lookup("town").StringValue() != town(90+gets) {
			t.Errorf("get %d: %s, %v", gets, doc, err)
		}
		if kept := x.codec != nil; kept != (gets > 0) {
			t.Errorf("after get %d the codec is kept: %v", gets, kept)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func opened(t *testing.T, o *Options) *Store {
	t.Helper()
	s, err := Open("db", o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
