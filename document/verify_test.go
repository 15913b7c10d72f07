package document

import (
	"context"
	"errors"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestValidateComparesIndexesWithDocuments: what an index of each kind has is what the documents say, until an entry is taken away, or put
// there, or says something else.
func TestValidateComparesIndexesWithDocuments(t *testing.T) {
	ctx := t.Context()
	s := opened(t, &Options{Storage: pando.Options{FS: memfs.New()}})
	defer s.Close()
	c, err := s.Collection(ctx, "c", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range []bson.D{
		{{Key: "key", Value: bson.D{{Key: "list", Value: 1}}}, {Key: "name", Value: "list"}},
		{{Key: "key", Value: bson.D{{Key: "none", Value: 1}}}, {Key: "name", Value: "none"}, {Key: "sparse", Value: true}},
		{{Key: "key", Value: bson.D{{Key: "n", Value: -1}}}, {Key: "name", Value: "n"}, {Key: "unique", Value: true}},
		{{Key: "key", Value: bson.D{{Key: "n", Value: "hashed"}}}, {Key: "name", Value: "hashed"}},
		{{Key: "key", Value: bson.D{{Key: "$**", Value: 1}}}, {Key: "name", Value: "all"}},
		{{Key: "key", Value: bson.D{{Key: "s", Value: 1}}}, {Key: "name", Value: "some"}, {Key: "partialFilterExpression", Value: bson.D{{Key: "n", Value: bson.D{{Key: "$gt", Value: 1}}}}}},
	} {
		raw, err := bson.Marshal(spec)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.CreateIndexes(ctx, []bson.Raw{raw}, nil); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 4 {
		if _, err := c.Insert(ctx, bson.D{{Key: "_id", Value: i}, {Key: "n", Value: int64(1) << (40 * (i % 2)) * int64(i+1)}, {Key: "list", Value: bson.A{1, 2, i}}, {Key: "s", Value: "x"}}); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]IndexValidation{
		"list": {Entries: 10}, "none": {}, "n": {Entries: 4}, "hashed": {Entries: 4}, "all": {Entries: 4 + 10 + 4}, "some": {Entries: 3},
	}
	check := func() {
		t.Helper()
		v, err := c.Validate(ctx)
		if err != nil || v.Documents != 4 || len(v.Indexes) != len(want) {
			t.Fatalf("%+v, %v", v, err)
		}
		for _, got := range v.Indexes {
			expected := want[got.Name]
			if expected.Name = got.Name; got != expected {
				t.Errorf("%+v, want %+v", got, expected)
			}
		}
	}
	check()
	for _, x := range *s.current.Load().byName["test.c"].indexes.Load() {
		key, value, err := x.ks.Nth(nil, nil, 0)
		expected := want[x.def.Name]
		switch x.def.Name {
		case "list", "some":
			expected.Entries, expected.Missing = expected.Entries-1, 1
			err = errors.Join(err, x.ks.Delete(key))
		case "none":
			expected.Entries, expected.Extra = 1, 1
			err = x.ks.Put([]byte("a"), nil)
		case "n": // of another record
			expected.Missing, expected.Extra = 1, 1
			err = errors.Join(err, x.ks.Put(key, append(value, 'x')))
		}
		if err != nil {
			t.Fatal(err)
		}
		want[x.def.Name] = expected
	}
	check()
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := c.Validate(gone); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that has gone: %v", err)
	}
	if v, err := s.Database("test").Lookup("nothing").Validate(ctx); err != nil || v.Documents != 0 || len(v.Indexes) != 0 {
		t.Errorf("no collection: %+v, %v", v, err)
	}
}
