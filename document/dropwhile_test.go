package document_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestDroppedWhileInUse drops a collection and makes it again under those who read and write it: whatever they are told has a code of
// MongoDB's.
func TestDroppedWhileInUse(t *testing.T) {
	s, err := document.Open("db", &document.Options{Storage: pando.Options{FS: memfs.New(), MemoryBytes: 4 << 20}, TTLInterval: -1})
	must(t, err)
	coded := func(what string, err error) {
		if err != nil && document.CodeOf(err) == 0 && !errors.Is(err, document.ErrNotFound) {
			t.Errorf("%s: %v", what, err)
		}
	}
	var wg sync.WaitGroup
	var done atomic.Bool
	for range 3 {
		wg.Go(func() {
			for !done.Load() {
				c := s.Database("test").Lookup("c")
				if c == nil {
					continue
				}
				_, err := c.Count(ctx, document.JSON(`{"u": {"$gte": 3}}`), nil)
				coded("count", err)
				_, err = c.FindOne(ctx, document.JSON(`{"u": 3}`), nil)
				coded("find one", err)
				for _, err := range c.Find(ctx, document.JSON(`{"u": {"$gte": 3}}`), &document.FindOptions{Sort: document.JSON(`{"u": -1}`)}) {
					coded("find", err)
				}
				_, err = c.StorageStats(ctx, 1)
				coded("sizes", err)
				_, err = c.Update(ctx, document.JSON(`{"u": 5}`), document.JSON(`{"$set": {"x": 1}}`), nil)
				coded("update", err)
			}
		})
	}
	for range 40 {
		c, err := s.Database("test").Collection(ctx, "c", nil)
		must(t, err)
		_, err = c.CreateIndex(ctx, document.Index{Keys: bson.D{{Key: "u", Value: 1}}})
		coded("index", err)
		for i := range 10 {
			_, err := c.Insert(ctx, bson.D{{Key: "_id", Value: i}, {Key: "u", Value: i}})
			coded("insert", err)
		}
		coded("drop", c.Drop(ctx))
		must(t, s.DB().Checkpoint(ctx))
	}
	done.Store(true)
	wg.Wait()
	must(t, s.Close())
}
