package document

import (
	"errors"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestWritesLeaveTheEntriesOfOthersToAUniqueBuild: while a unique index is being built, what a write takes back of a document that has no
// entry yet may be the entry of another one.
func TestWritesLeaveTheEntriesOfOthersToAUniqueBuild(t *testing.T) {
	for _, write := range []struct {
		name string
		to2  func(c *Collection) error
		ends error // how the build goes on
	}{
		{"update", func(c *Collection) error {
			_, err := c.Update(t.Context(), JSON(`{"_id": 2}`), JSON(`{"$set": {"a": 5}}`), nil)
			return err
		}, nil},
		{"delete", func(c *Collection) error {
			_, err := c.Delete(t.Context(), JSON(`{"_id": 2}`), nil)
			return err
		}, nil},
		{"the same value in another type", func(c *Collection) error {
			_, err := c.Update(t.Context(), JSON(`{"_id": 2}`), bson.D{{Key: "$set", Value: bson.D{{Key: "a", Value: bson.NewDecimal128(0x3040000000000000, 1)}}}}, nil)
			return err
		}, DuplicateKey},
	} {
		t.Run(write.name, func(t *testing.T) {
			s := opened(t, &Options{Storage: pando.Options{FS: memfs.New()}, TTLInterval: -1})
			defer s.Close()
			c := s.Database(DefaultDatabase).Lookup("c")
			if _, err := c.InsertMany(t.Context(), []any{JSON(`{"_id": 1, "a": 1}`), JSON(`{"_id": 2, "a": 1}`)}, nil); err != nil {
				t.Fatal(err)
			}
			x, err := c.use()
			if err != nil {
				t.Fatal(err)
			}
			list := registered(t, x, true)
			_, next, err := x.buildSome(list, nil, 1)
			if err != nil {
				t.Fatal(err)
			}
			if err := write.to2(c); err != nil {
				t.Fatal(err)
			}
			if _, _, err := x.buildSome(list, next, 1); !errors.Is(err, write.ends) {
				t.Fatalf("the build goes on with %v, want %v", err, write.ends)
			} else if err != nil {
				return
			}
			if err := x.finishBuilds(t.Context(), list); err != nil {
				t.Fatal(err)
			}
			v, err := c.Validate(t.Context())
			if err != nil || v.Indexes[0].Missing+v.Indexes[0].Extra > 0 {
				t.Errorf("the index is not what the documents say: %+v, %v", v, err)
			}
		})
	}
}
