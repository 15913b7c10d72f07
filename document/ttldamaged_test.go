package document

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs/memfs"
)

// A collection in which nothing can be deleted does not keep the documents of others.
func TestOthersExpireBesideACollectionThatFails(t *testing.T) {
	fs := memfs.New()
	s := opened(t, &Options{Storage: pando.Options{FS: fs, MemoryBytes: 8 << 20}, TTLInterval: -1})
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	ctx, seconds := context.Background(), int32(60)
	names := []string{"a", "b", "c", "d", "e", "f", "g", "damaged"}
	for _, name := range names {
		c := s.Database("d").Lookup(name)
		_, err := c.CreateIndex(ctx, Index{Keys: bson.D{{Key: "at", Value: 1}}, ExpireAfterSeconds: &seconds})
		if err == nil {
			_, err = c.Insert(ctx, bson.D{{Key: "_id", Value: name}, {Key: "at", Value: time.Now().Add(-time.Hour)}})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	x, err := s.Database("d").Lookup("damaged").use()
	if err != nil {
		t.Fatal(err)
	}
	for key := range x.records.Range(nil, nil) {
		err = errors.Join(err, x.records.Put(key, []byte("no document")))
	}
	if err != nil {
		t.Fatal(err)
	}
	for range 4 { // they come in no order
		if _, err := s.DeleteExpired(ctx); err == nil {
			t.Error("what fails is not told")
		}
		for _, name := range names[:len(names)-1] {
			c := s.Database("d").Lookup(name)
			if n, err := c.Count(ctx, nil, nil); n != 0 || err != nil {
				t.Errorf("%d documents of %s are left, %v", n, name, err)
			}
			if _, err := c.Insert(ctx, bson.D{{Key: "at", Value: time.Now().Add(-time.Hour)}}); err != nil {
				t.Fatal(err)
			}
		}
	}
}
