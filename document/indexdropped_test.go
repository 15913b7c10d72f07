package document

import (
	"errors"
	"testing"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/vfs/memfs"
)

// changing sets a field of both documents of a collection to 7, by a collection or a transaction that use makes of it, and calls meanwhile
// when it has changed the first.
func changing(t *testing.T, c *Collection, use func(*Collection) *Collection, meanwhile func() error) (*change, error) {
	t.Helper()
	if _, err := c.InsertMany(t.Context(), []any{JSON(`{"_id": 1, "a": 1}`), JSON(`{"_id": 2, "a": 2}`)}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CreateIndex(t.Context(), Index{Keys: JSON(`{"a": 1}`)}); err != nil {
		t.Fatal(err)
	}
	u, err := toUpdate(JSON(`{"$set": {"a": 7}}`))
	if err != nil {
		t.Fatal(err)
	}
	ch, err := use(c).parseChange(t.Context(), JSON(`{}`), u, &UpdateOptions{Many: true})
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	ch.keep = func(old, new document) (document, error) {
		if told++; told == 2 {
			return nil, meanwhile()
		}
		return nil, nil
	}
	return ch, ch.run(t.Context())
}

// TestChangesOutliveTheirIndexes: an index that is dropped while a change is on its way takes nothing of the change with it, and a collection
// that is dropped has nothing that was changed.
func TestChangesOutliveTheirIndexes(t *testing.T) {
	s := opened(t, &Options{Storage: pando.Options{FS: memfs.New()}, TTLInterval: -1})
	defer s.Close()
	same := func(c *Collection) *Collection { return c }
	c := s.Database(DefaultDatabase).Lookup("c")
	ch, err := changing(t, c, same, func() error { return c.DropIndex(t.Context(), "a_1") })
	if n, wrong := c.Count(t.Context(), JSON(`{"a": 7}`), nil); n != 2 || ch.matched != 2 || errors.Join(err, wrong) != nil {
		t.Errorf("%d documents are changed of %d, %v, %v", n, ch.matched, err, wrong)
	}
	gone := s.Database(DefaultDatabase).Lookup("gone")
	if ch, err := changing(t, gone, same, func() error { return gone.Drop(t.Context()) }); ch.matched+ch.modified > 0 || err != nil {
		t.Errorf("of a collection that was dropped %d documents are changed of %d, %v", ch.modified, ch.matched, err)
	}
}

// TestTransactionsDoNotOutliveTheirIndexes: they saw the index, so that they have to begin again.
func TestTransactionsDoNotOutliveTheirIndexes(t *testing.T) {
	s := opened(t, &Options{Storage: pando.Options{FS: memfs.New()}, TTLInterval: -1})
	defer s.Close()
	for name, drop := range map[string]func(c *Collection) error{
		"index":      func(c *Collection) error { return c.DropIndex(t.Context(), "a_1") },
		"collection": func(c *Collection) error { return c.Drop(t.Context()) },
	} {
		c := s.Database(DefaultDatabase).Lookup(name)
		var tx *Tx
		begin := func(c *Collection) *Collection {
			var err error
			if tx, err = s.Begin(t.Context()); err != nil {
				t.Fatal(err)
			}
			return tx.In(c)
		}
		if _, err := changing(t, c, begin, func() error { return drop(c) }); !errors.Is(err, mongoerror.WriteConflict) {
			t.Errorf("%s: %v, want a conflict", name, err)
		}
		tx.Abort()
	}
}
