package document

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs/memfs"
)

// Nobody may ever ask for what a change stream, or a tail of the oplog, has read ahead: a few large events are enough. There were 64 of
// them, of up to 16 MiB each, in every stream.
func TestIdleStreamsHoldFewLargeEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := opened(t, &Options{Storage: pando.Options{FS: memfs.New(), MemoryBytes: 8 << 20}, TTLInterval: -1})
		defer func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}()
		ctx := context.Background()
		c, err := s.Collection(ctx, "c", nil)
		if err != nil {
			t.Fatal(err)
		}
		watch, err := c.OpenWatch(ctx, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer watch.Close()
		tail, err := s.Database(localDatabase).Lookup(oplogName).Tail(ctx, bson.D{{Key: "op", Value: "i"}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tail.Close()
		const documents, size = 30, 512 << 10
		pad := strings.Repeat("x", size)
		for i := range documents {
			if _, err := c.Insert(ctx, bson.D{{Key: "_id", Value: i}, {Key: "pad", Value: pad}}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		for _, x := range []struct {
			what   string
			cursor *Cursor
			feed   *feed
		}{{"the stream", watch, &watch.src.(*stream).feed}, {"the tail", tail, &tail.src.(oplogTail).feed}} {
			if n := len(x.feed.events); n > 4 {
				t.Errorf("%s holds %d events of half a mebibyte", x.what, n)
			}
			for i := range documents {
				if !x.cursor.Next(ctx) {
					t.Fatalf("%s ends at %d: %v", x.what, i, x.cursor.Err())
				}
			}
		}
	})
}
