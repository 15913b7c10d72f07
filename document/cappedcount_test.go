package document

import (
	"context"
	"fmt"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs/memfs"
)

// What a capped collection holds is counted by its first insert, and anew when something else has changed it. Where an insert counted while a
// delete was on its way, what that took was counted all the same from then on, and documents were forgotten for which there was room; or there
// came to be too many, where an update made one longer.
func TestCappedCountsWhatChangesWhileAnInsertCounts(t *testing.T) {
	for _, test := range []struct {
		name   string
		most   int64
		change func(w *writer, x *collection, key []byte, old document) error
		want   string
	}{
		{"delete", 3, func(w *writer, x *collection, key []byte, old document) error { return w.remove(x, key, old) }, "[2 3 4]"},
		{"update", 100, func(w *writer, x *collection, key []byte, old document) error {
			longer, err := toDocument(bson.D{{Key: "_id", Value: 1}, {Key: "s", Value: string(make([]byte, 400))}})
			if err != nil {
				return err
			}
			return w.replace(x, key, old, longer, opReplace)
		}, "[2 3 4]"},
	} {
		s := opened(t, &Options{Storage: pando.Options{FS: memfs.New(), MemoryBytes: 8 << 20}, TTLInterval: -1})
		ctx := t.Context()
		c, err := s.Collection(ctx, "c", &CollectionOptions{Capped: true, SizeBytes: 512, MaxDocuments: test.most})
		if err != nil {
			t.Fatal(err)
		}
		insert := func(id int) {
			t.Helper()
			if _, err := c.Insert(ctx, bson.D{{Key: "_id", Value: id}, {Key: "s", Value: string(make([]byte, 50))}}); err != nil {
				t.Fatal(err)
			}
		}
		insert(1)
		insert(2)
		x, err := c.use()
		if err != nil {
			t.Fatal(err)
		}
		meanwhile := false
		key, _, err := x.records.Nth(nil, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		err = s.write(ctx, func(w *writer) error {
			value, err := w.tx.In(x.records).Get(key)
			if err != nil {
				return err
			}
			old, err := x.codec.Decode(nil, value)
			if err != nil {
				return err
			}
			if err := test.change(w, x, key, old); err != nil || meanwhile {
				return err
			}
			meanwhile = true
			insert(3)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		insert(4)
		if got := idsOf(ctx, t, c); got != test.want {
			t.Errorf("%s: there are %s, want %s", test.name, got, test.want)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// idsOf returns the _ids of a collection, in its order.
func idsOf(ctx context.Context, t *testing.T, c *Collection) string {
	t.Helper()
	ids := []int32{}
	for doc, err := range c.Find(ctx, nil, nil) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, doc.Lookup("_id").Int32())
	}
	return fmt.Sprint(ids)
}
