package document

import (
	"math"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestReadsWithoutAPlanLeaveADroppedIndex: an index that is dropped between the choice of it and the moment that is read is not asked, as
// writes of that time have left it as it was.
func TestReadsWithoutAPlanLeaveADroppedIndex(t *testing.T) {
	s := opened(t, &Options{Storage: pando.Options{FS: memfs.New()}, TTLInterval: -1})
	defer s.Close()
	c := s.Database(DefaultDatabase).Lookup("c")
	if _, err := c.CreateIndex(t.Context(), Index{Keys: bson.D{{Key: "a", Value: 1}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Insert(t.Context(), bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: 5}}); err != nil {
		t.Fatal(err)
	}
	x, err := c.use()
	if err != nil {
		t.Fatal(err)
	}
	spec, err := toDocument(JSON(`{"a": 5}`))
	if err != nil {
		t.Fatal(err)
	}
	list := appendEqualities(nil, spec)
	chosen := x.direct(list)
	s.schema.Lock()
	err = x.changeIndexes(t.Context(), nil, nil, x.aboutSelf().Build()) // as DropIndex does before it drops what the index holds
	s.schema.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Update(t.Context(), JSON(`{"_id": 1}`), JSON(`{"$set": {"a": 6}}`), nil); err != nil {
		t.Fatal(err)
	}
	d := &direct{x: x, left: math.MaxInt}
	if ok, err := d.find(chosen, list, maxDirect); ok || err != nil {
		t.Errorf("the index that is gone leads to %d documents, %v", d.keys.Len(), err)
	}
	if err := d.close(); err != nil {
		t.Fatal(err)
	}
}
