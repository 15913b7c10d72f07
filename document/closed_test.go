package document_test

import (
	"context"
	"errors"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// Whatever a store that was closed is asked for, it says that it was closed.
func TestClosedStoresSaySo(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "c", nil)
	must(t, s.Close())
	database := s.Database("d")
	for name, call := range map[string]func(ctx context.Context) error{
		"Collection": func(ctx context.Context) error { _, err := s.Collection(ctx, "other", nil); return err },
		"Insert":     func(ctx context.Context) error { _, err := c.Insert(ctx, bson.D{}); return err },
		"Find":       func(ctx context.Context) error { _, err := c.FindOne(ctx, bson.D{}, nil); return err },
		"Count":      func(ctx context.Context) error { _, err := c.Count(ctx, bson.D{}, nil); return err },
		"Update": func(ctx context.Context) error {
			_, err := c.Update(ctx, bson.D{}, document.JSON(`{"$set": {"a": 1}}`), nil)
			return err
		},
		"Delete":        func(ctx context.Context) error { _, err := c.Delete(ctx, bson.D{}, nil); return err },
		"OpenWatch":     func(ctx context.Context) error { _, err := c.OpenWatch(ctx, bson.A{}, nil); return err },
		"Drop":          func(ctx context.Context) error { return database.Drop(ctx) },
		"DeleteExpired": func(ctx context.Context) error { _, err := s.DeleteExpired(ctx); return err },
	} {
		if err := call(ctx); !errors.Is(err, document.ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
