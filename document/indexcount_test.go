package document

import (
	"fmt"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs/memfs"
)

// An index that is made anew counted twice meanwhile, and that of _id of a capped collection always did: a collection said that it had more
// indexes than it listed, and could not have as many as others.
func TestIndexesAreCountedAsTheyAreListed(t *testing.T) {
	s := opened(t, &Options{Storage: pando.Options{FS: memfs.New()}, TTLInterval: -1})
	defer s.Close()
	for name, o := range map[string]*CollectionOptions{"plain": nil, "capped": {Capped: true, SizeBytes: 4096}} {
		c, err := s.Database("d").Collection(t.Context(), name, o)
		if err != nil {
			t.Fatal(err)
		}
		create := func(i int) error {
			_, err := c.CreateIndex(t.Context(), Index{Keys: bson.D{{Key: fmt.Sprint("f", i), Value: 1}}})
			return err
		}
		for i := range 62 {
			if err := create(i); err != nil {
				t.Fatalf("%s: index %d: %v", name, i, err)
			}
		}
		x, err := c.use()
		if err != nil {
			t.Fatal(err)
		}
		old := (*x.indexes.Load())[30]
		if _, err := x.registerAnew(t.Context(), old); err != nil {
			t.Fatal(err)
		}
		if stats, err := c.Stats(t.Context()); err != nil || stats.Indexes != 63 {
			t.Errorf("%s: %+v, %v", name, stats, err)
		}
		if err := create(62); err != nil {
			t.Errorf("%s: the last index: %v", name, err)
		}
		if err := create(63); CodeOf(err) != 67 {
			t.Errorf("%s: one more than there may be: %v", name, err)
		}
	}
}
