package document

import (
	"context"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs/memfs"
)

// $out takes over the indexes and the options that its target has when it begins. Those that come while it runs were gone without a word;
// now it fails.
func TestWhatATargetGetsWhileOutRunsIsNotLost(t *testing.T) {
	s := opened(t, &Options{Storage: pando.Options{FS: memfs.New(), MemoryBytes: 8 << 20}, TTLInterval: -1})
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	ctx := context.Background()
	d := s.Database("d")
	index := func(name string) error {
		_, err := d.Lookup(name).CreateIndex(ctx, Index{Keys: bson.D{{Key: "u", Value: 1}}, Unique: true})
		return err
	}
	insert := func(name string) error {
		_, err := d.Lookup(name).Insert(ctx, bson.D{{Key: "_id", Value: 7}})
		return err
	}
	for _, test := range []struct {
		name    string
		before  func(name string) error
		happens func(name string) error
		fails   bool
	}{
		{"nothing", insert, func(string) error { return nil }, false},
		{"a document", index, insert, false},
		{"the collection", func(string) error { return nil }, insert, false},
		{"an index", insert, index, true},
		{"the collection with an index", func(string) error { return nil }, index, true},
		{"a validator", insert, func(name string) error {
			return d.Lookup(name).Modify(ctx, bson.D{{Key: "validator", Value: bson.D{{Key: "a", Value: 1}}}})
		}, true},
		{"its end", index, func(name string) error { return d.Lookup(name).Drop(ctx) }, true},
	} {
		if err := test.before(test.name); err != nil {
			t.Fatal(err)
		}
		err := s.replaceCollection(ctx, namespace{"d", test.name}, &counted{count: 1, at: 1, happens: func() error { return test.happens(test.name) }}, false)
		if test.fails != (CodeOf(err) == 125) || !test.fails && err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	list, err := d.Collections(ctx)
	if err != nil || len(list) != 6 {
		t.Errorf("%d collections are left, %v", len(list), err)
	}
}
