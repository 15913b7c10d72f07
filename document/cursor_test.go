package document_test

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// NextTo appends what Current would be, whatever the documents come from, and leaves dst alone at the end.
func TestNextToAppendsDocuments(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "c", nil)
	for i := range 3 {
		_, err := c.Insert(ctx, bson.D{{Key: "_id", Value: i}, {Key: "a", Value: i}})
		must(t, err)
	}
	queries := map[string]func() (*document.Cursor, error){
		"a plan":  func() (*document.Cursor, error) { return c.OpenFind(ctx, nil, nil) },
		"no plan": func() (*document.Cursor, error) { return c.OpenFind(ctx, bson.D{{Key: "_id", Value: 1}}, nil) },
		"record id": func() (*document.Cursor, error) {
			return c.OpenFind(ctx, nil, &document.FindOptions{ShowRecordID: true})
		},
		"pipeline": func() (*document.Cursor, error) {
			return c.OpenAggregate(ctx, []bson.D{{{Key: "$skip", Value: 1}}}, nil)
		},
	}
	for name, query := range queries {
		want, err := query()
		must(t, err)
		got, err := query()
		must(t, err)
		all, expected := []byte("front"), []byte("front")
		for want.Next(ctx) {
			expected = append(expected, want.Current()...)
			var ok bool
			if all, ok = got.NextTo(ctx, all); !ok {
				t.Fatalf("%s: ends early: %v", name, got.Err())
			}
		}
		after, ok := got.NextTo(ctx, all)
		if ok || got.Err() != nil || !got.Exhausted() || string(after) != string(expected) {
			t.Errorf("%s: %q, %v, %v, want %q", name, after, ok, got.Err(), expected)
		}
	}
}
