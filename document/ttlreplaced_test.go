package document

import (
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs/memfs"
)

// Whoever deletes what has expired goes from collection to collection, and comes to one that another has taken the place of meanwhile: the
// other's documents do not expire by the rules of the one that is gone. They were deleted.
func TestWhatReplacesACollectionDoesNotExpireByItsRules(t *testing.T) {
	s := opened(t, &Options{Storage: pando.Options{FS: memfs.New(), MemoryBytes: 8 << 20}, TTLInterval: -1})
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	ctx, d := t.Context(), s.Database("d")
	old := bson.D{{Key: "_id", Value: 1}, {Key: "at", Value: time.Now().Add(-time.Hour)}}
	insert := func(name string) {
		t.Helper()
		if _, err := d.Lookup(name).Insert(ctx, old); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		name    string
		happens func() error
		expires int64 // of the documents of the one that was there before
	}{
		{"nothing", func() error { return nil }, 1},
		{"dropped", func() error { return d.Lookup("dropped").Drop(ctx) }, 0},
		{"replaced", func() error {
			insert("other")
			return d.Lookup("other").Rename(ctx, "d", "replaced", true)
		}, 0},
		{"renamed", func() error { return d.Lookup("renamed").Rename(ctx, "d", "elsewhere", false) }, 1},
	} {
		c, seconds := d.Lookup(test.name), int32(60)
		if _, err := c.CreateIndex(ctx, Index{Keys: bson.D{{Key: "at", Value: 1}}, ExpireAfterSeconds: &seconds}); err != nil {
			t.Fatal(err)
		}
		insert(test.name)
		x, err := c.use()
		if err != nil {
			t.Fatal(err)
		}
		if err := test.happens(); err != nil {
			t.Fatal(err)
		}
		if now, err := c.use(); now == nil && err == nil {
			insert(test.name)
		}
		if n, err := x.deleteExpired(ctx, time.Now()); n != test.expires || err != nil {
			t.Errorf("%s: %d have expired, want %d: %v", test.name, n, test.expires, err)
		}
		if n, err := c.Count(ctx, nil, nil); test.name != "nothing" && n != 1 || err != nil {
			t.Errorf("%s: %d are left under the name: %v", test.name, n, err)
		}
	}
}
