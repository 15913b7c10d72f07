package document_test

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// A stream from a moment that the log does not reach back to has lost events, and says so: it once began with what was left.
func TestStreamsFromAMomentThatIsForgotten(t *testing.T) {
	fs := memfs.New()
	reopen := func() *document.Store {
		s, err := document.Open("db", &document.Options{Storage: pando.Options{FS: fs, MemoryBytes: 16 << 20}, FS: fs, History: 1 << 20, TTLInterval: -1})
		must(t, err)
		return s
	}
	s := reopen()
	c := collection(t, s, "c", nil)
	begin := s.Tick()
	watch := func(c *document.Collection, at bson.Timestamp) error {
		w, err := c.OpenWatch(ctx, nil, &document.WatchOptions{StartAtOperationTime: &at})
		if err == nil {
			must(t, w.Close())
		}
		return err
	}
	must(t, watch(c, begin))
	pad := strings.Repeat("x", 500)
	for i := range 30 {
		var docs []bson.D
		for j := range 1000 {
			docs = append(docs, bson.D{{Key: "_id", Value: i*1000 + j}, {Key: "pad", Value: pad}})
		}
		_, err := c.InsertMany(ctx, docs, nil)
		must(t, err)
		must(t, s.DB().Checkpoint(ctx))
	}
	for _, when := range []string{"at once", "after a restart"} {
		if err := watch(c, begin); document.CodeOf(err) != 286 {
			t.Errorf("%s, from a moment long ago: %v", when, err)
		}
		must(t, watch(c, s.LastTime()))
		must(t, watch(c, s.Tick()))
		must(t, s.Close())
		s = reopen()
		c = collection(t, s, "c", nil)
	}
	must(t, s.Close())
}
