package document_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/document/internal/codec"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// wholeReads are ways to read large documents out of an iterator.
var wholeReads = map[string]func(ctx context.Context, c *document.Collection) error{
	"find": func(ctx context.Context, c *document.Collection) error { return failedFind(ctx, c, `{}`, nil) },
	"find by filter": func(ctx context.Context, c *document.Collection) error {
		return failedFind(ctx, c, `{"n": {"$gt": 3}}`, nil)
	},
	"find backward": func(ctx context.Context, c *document.Collection) error {
		return failedFind(ctx, c, `{}`, &document.FindOptions{Sort: document.JSON(`{"$natural": -1}`)})
	},
	"find by a range of _id": func(ctx context.Context, c *document.Collection) error {
		return failedFind(ctx, c, `{"_id": {"$gte": 3, "$lt": 7}}`, nil)
	},
	"find by a range of _id and filter": func(ctx context.Context, c *document.Collection) error {
		return failedFind(ctx, c, `{"_id": {"$gte": 3, "$lt": 7}, "n": {"$gt": 3}}`, nil)
	},
	"find a few by a range of _id": func(ctx context.Context, c *document.Collection) error {
		cursor, err := c.OpenFind(ctx, document.JSON(`{"_id": {"$gte": 3, "$lt": 7}}`), &document.FindOptions{Limit: 9})
		if err != nil {
			return err
		}
		for ok := true; ok; {
			_, ok = cursor.NextTo(ctx, nil)
		}
		return errors.Join(cursor.Err(), cursor.Close())
	},
	"tail": func(ctx context.Context, c *document.Collection) error {
		cursor, err := c.Database().Lookup("capped").Tail(ctx, document.JSON(`{}`), nil)
		if err != nil {
			return err
		}
		for cursor.TryNext(ctx) {
		}
		return errors.Join(cursor.Err(), cursor.Close())
	},
	"insert into what is capped": func(ctx context.Context, c *document.Collection) error {
		_, err := c.Database().Lookup("capped").Insert(ctx, bson.D{{Key: "n", Value: 1}})
		return err
	},
	"validate": func(ctx context.Context, c *document.Collection) error {
		_, err := c.Validate(ctx)
		return err
	},
	"make an index": func(ctx context.Context, c *document.Collection) error {
		_, err := c.CreateIndex(ctx, document.Index{Keys: bson.D{{Key: "n", Value: 1}}})
		return err
	},
	"update many": func(ctx context.Context, c *document.Collection) error {
		_, err := c.Update(ctx, document.JSON(`{"n": {"$gt": 3}}`), document.JSON(`{"$inc": {"n": 1}}`), &document.UpdateOptions{Many: true})
		return err
	},
	"sizes": func(ctx context.Context, c *document.Collection) error {
		_, err := c.Sizes(ctx)
		return err
	},
	"sample": func(ctx context.Context, c *document.Collection) error {
		for _, err := range c.Aggregate(ctx, document.JSON(`[{"$sample": {"size": 3}}]`), nil) {
			if err != nil {
				return err
			}
		}
		return nil
	},
}

func failedFind(ctx context.Context, c *document.Collection, filter string, o *document.FindOptions) error {
	for _, err := range c.Find(ctx, document.JSON(filter), o) {
		if err != nil {
			return err
		}
	}
	return nil
}

// A device that does not give a document back for a while is told as what it is, and not as a damaged document.
func TestReadsThatFailAreNoDamage(t *testing.T) {
	fs := faultfs.New(memfs.New())
	s := open(t, fs)
	rng := rand.New(rand.NewPCG(1, 2))
	for _, name := range []string{"c", "capped"} {
		var o *document.CollectionOptions
		if name == "capped" {
			o = &document.CollectionOptions{Capped: true, SizeBytes: 1 << 20}
		}
		c := collection(t, s, name, o)
		for i := range 10 {
			noise := make([]byte, 6000*min(i, 1)) // the first one lies beside its key
			for j := range noise {
				noise[j] = byte(rng.Uint32())
			}
			_, err := c.Insert(t.Context(), bson.D{{Key: "_id", Value: i}, {Key: "n", Value: i}, {Key: "noise", Value: noise}})
			must(t, err)
		}
	}
	for name, read := range wholeReads {
		t.Run(name, func(t *testing.T) {
			must(t, s.Close())
			s = open(t, fs)
			for _, name := range []string{"c", "capped"} {
				_, err := s.Database("test").Lookup(name).Get(t.Context(), 0) // which reads the catalogue too
				must(t, err)
			}
			readKeys(t, s.DB()) // the leaves are in memory now, and the files of values have not been opened
			fs.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpOpen, faultfs.OpReadAt, faultfs.OpMap), Name: "*.seg", Times: -1})
			err := read(t.Context(), s.Database("test").Lookup("c"))
			fs.Set()
			if !errors.Is(err, faultfs.ErrInjected) || errors.Is(err, pando.ErrCorrupt) || errors.Is(err, codec.ErrCorrupt) {
				t.Errorf("%v", err)
			}
			if err := read(t.Context(), s.Database("test").Lookup("c")); err != nil {
				t.Errorf("the device is well again: %v", err)
			}
		})
	}
	must(t, s.Close())
}

// readKeys walks over the keys of all keyspaces, which reads no value that lies apart.
func readKeys(t *testing.T, db *pando.DB) {
	t.Helper()
	list, err := db.Keyspaces()
	must(t, err)
	for _, info := range list {
		ks, err := db.Keyspace(info.Name, nil)
		must(t, err)
		it := ks.Iter(&pando.IterOptions{KeysOnly: true})
		for it.Next() {
		}
		must(t, it.Close())
	}
}
