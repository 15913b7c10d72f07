package document_test

import (
	"errors"
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

// A cursor that was closed before its end does not look as if it had come to it.
func TestClosedCursorIsNotAtItsEnd(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "c", nil)
	_, err := c.Insert(ctx, bson.D{})
	must(t, err)
	capped := collection(t, s, "capped", &document.CollectionOptions{Capped: true, SizeBytes: 1 << 20})
	asks := map[string]func(c *document.Cursor) error{
		"Next":    func(c *document.Cursor) error { _ = c.Next(ctx); return c.Err() },
		"TryNext": func(c *document.Cursor) error { _ = c.TryNext(ctx); return c.Err() },
		"NextTo":  func(c *document.Cursor) error { _, _ = c.NextTo(ctx, nil); return c.Err() },
		"Wait":    func(c *document.Cursor) error { return c.Wait(ctx) },
	}
	for what, ask := range asks {
		find, err := c.OpenFind(ctx, nil, nil)
		must(t, err)
		tail, err := capped.Tail(ctx, nil, nil)
		must(t, err)
		for _, early := range []*document.Cursor{find, tail} {
			must(t, early.Close())
			if err := ask(early); !errors.Is(err, document.ErrClosed) || early.Exhausted() {
				t.Errorf("%s of a closed cursor: %v, exhausted %v", what, err, early.Exhausted())
			}
			must(t, early.Close())
		}
		late, err := c.OpenFind(ctx, nil, nil)
		must(t, err)
		for late.Next(ctx) {
		}
		must(t, late.Close())
		if err := ask(late); err != nil || !late.Exhausted() {
			t.Errorf("%s of a cursor at its end: %v, exhausted %v", what, err, late.Exhausted())
		}
	}
}
