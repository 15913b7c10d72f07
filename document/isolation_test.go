package document_test

import (
	"context"
	"errors"
	"testing"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestIsolation: what another commit does meanwhile, and whether a transaction still commits: one that is serialisable, and one that has
// the snapshot isolation of MongoDB's.
func TestIsolation(t *testing.T) {
	insert := func(doc string) func(*testing.T, *document.Collection) {
		return func(t *testing.T, c *document.Collection) {
			_, err := c.Insert(ctx, document.JSON(doc))
			must(t, err)
		}
	}
	update := func(filter string) func(*testing.T, *document.Collection) {
		return func(t *testing.T, c *document.Collection) {
			_, err := c.Update(ctx, document.JSON(filter), document.JSON(`{"$inc": {"n": 1}}`), &document.UpdateOptions{Many: true})
			must(t, err)
		}
	}
	read := func(filter string) func(*testing.T, *document.Collection) {
		return func(t *testing.T, c *document.Collection) { find(t, c, filter, nil) }
	}
	for _, test := range []struct {
		name                   string
		before                 func(*testing.T, *document.Collection) // in the transaction, before the other commit
		other                  func(*testing.T, *document.Collection) // outside
		after                  func(*testing.T, *document.Collection) // in the transaction again
		snapshot, serialisable bool                                   // whether it commits
	}{
		{"a document that was read", read(`{"_id": 1}`), update(`{"_id": 1}`), update(`{"_id": 2}`), true, false},
		{"all was read", read(`{}`), insert(`{"_id": 9, "u": 9}`), update(`{"_id": 2}`), true, false},
		{"read by an index", read(`{"u": 1}`), update(`{"u": 1}`), insert(`{"_id": 9, "u": 9}`), true, false},
		{"nothing in common", read(`{"_id": 1}`), update(`{"_id": 3}`), update(`{"_id": 2}`), true, true},
		{"the document that it writes", read(`{"_id": 1}`), update(`{"_id": 2}`), update(`{"_id": 2}`), false, false},
		{"the same _id", read(`{"_id": 1}`), insert(`{"_id": 9, "u": 8}`), insert(`{"_id": 9, "u": 9}`), false, false},
		{"the same unique value", read(`{"_id": 1}`), insert(`{"_id": 8, "u": 9}`), insert(`{"_id": 9, "u": 9}`), false, false},
	} {
		for _, snapshot := range []bool{true, false} {
			s := open(t, memfs.New())
			c := collection(t, s, "c", nil)
			_, err := c.CreateIndex(ctx, document.Index{Keys: document.JSON(`{"u": 1}`), Unique: true})
			must(t, err)
			_, err = c.InsertMany(ctx, []document.JSON{`{"_id": 1, "u": 1}`, `{"_id": 2, "u": 2}`, `{"_id": 3, "u": 3}`}, nil)
			must(t, err)
			begin, want := s.Begin, test.serialisable
			if snapshot {
				begin, want = s.BeginSnapshot, test.snapshot
			}
			tx, err := begin(context.Background())
			must(t, err)
			test.before(t, tx.In(c))
			test.other(t, c)
			test.after(t, tx.In(c))
			err = tx.Commit(ctx)
			if (err == nil) != want || err != nil && !errors.Is(err, document.WriteConflict) {
				t.Errorf("%s, snapshot isolation: %t: %v", test.name, snapshot, err)
			}
		}
	}
}
