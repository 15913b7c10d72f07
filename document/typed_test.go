package document_test

import (
	"context"
	"errors"
	"testing"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// A typed collection gives and takes structs wherever a collection gives and takes documents.
func TestTypedCollection(t *testing.T) {
	ctx := context.Background()
	s, err := document.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	plain, err := s.Collection(ctx, "trees", nil)
	if err != nil {
		t.Fatal(err)
	}
	c := document.Typed[Tree](plain)
	if n, err := c.InsertMany(ctx, []Tree{{ID: 1, Name: "aspen", Height: 25}, {ID: 2, Name: "birch", Soil: []string{"sand"}}}); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	if n, err := c.InsertMany(ctx, []Tree{{ID: 3}, {ID: 1}}); !errors.Is(err, document.DuplicateKey) {
		t.Errorf("values of which one is there: %d, %v", n, err)
	}
	if _, err := c.Get(ctx, 3); !errors.Is(err, document.ErrNotFound) {
		t.Errorf("a value beside one that was there: %v", err)
	}
	if tree, err := c.Get(ctx, 2); err != nil || tree.Name != "birch" || len(tree.Soil) != 1 {
		t.Errorf("Get: %+v, %v", tree, err)
	}
	if r, err := c.Replace(ctx, document.JSON(`{"name": "birch"}`), &Tree{ID: 2, Name: "Betula", Height: 20}, nil); err != nil || r.Modified != 1 {
		t.Errorf("Replace: %+v, %v", r, err)
	}
	if tree, err := c.FindOne(ctx, document.JSON(`{"height": 20}`), nil); err != nil || tree.Name != "Betula" || tree.Soil != nil {
		t.Errorf("FindOne: %+v, %v", tree, err)
	}
	if _, err := c.FindOne(ctx, document.JSON(`{"height": 99}`), nil); !errors.Is(err, document.ErrNotFound) {
		t.Errorf("FindOne of what is not there: %v", err)
	}
}

// A transaction's own writes are seen through it, and by nobody else until it is committed.
func TestTypedCollectionInATransaction(t *testing.T) {
	ctx := context.Background()
	s, done := openExample()
	defer done()
	c := document.Typed[Tree](trees(s))
	err := s.Transaction(ctx, func(tx *document.Tx) error {
		mine := c.In(tx)
		if _, err := mine.Insert(ctx, &Tree{ID: 4, Name: "douglas"}); err != nil {
			return err
		}
		if tree, err := mine.Get(ctx, 4); err != nil || tree.Name != "douglas" {
			t.Errorf("through the transaction: %+v, %v", tree, err)
		}
		if _, err := c.Get(ctx, 4); !errors.Is(err, document.ErrNotFound) {
			t.Errorf("beside the transaction: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Get(ctx, 4); err != nil {
		t.Error(err)
	}
}

// A document that does not fit into the struct is an error that says so, at that document, and the loop ends with it.
func TestTypedCollectionOfOtherDocuments(t *testing.T) {
	ctx := context.Background()
	s, done := openExample()
	defer done()
	plain := trees(s)
	if _, err := plain.Insert(ctx, document.JSON(`{"_id": 0, "name": ["no", "name"]}`)); err != nil {
		t.Fatal(err)
	}
	c := document.Typed[Tree](plain)
	if _, err := c.Get(ctx, 0); !errors.Is(err, document.BadValue) {
		t.Errorf("Get: %v", err)
	}
	if _, err := c.FindOne(ctx, document.JSON(`{"_id": 0}`), nil); !errors.Is(err, document.BadValue) {
		t.Errorf("FindOne: %v", err)
	}
	steps := 0
	for tree, err := range c.Find(ctx, nil, &document.FindOptions{Sort: document.JSON(`{"_id": 1}`)}) {
		if steps++; tree != nil || !errors.Is(err, document.BadValue) {
			t.Errorf("Find: %+v, %v", tree, err)
		}
	}
	if steps != 1 {
		t.Errorf("the loop took %d steps", steps)
	}
}

// A store over a database of the caller's leaves that open when it is closed.
func TestStoreInAnOpenDatabase(t *testing.T) {
	ctx := context.Background()
	db, err := pando.Open("db", &pando.Options{FS: memfs.New(), MemoryBytes: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	s, err := document.New(db)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := trees(s).Get(ctx, 1); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := db.Put([]byte("k"), nil); err != nil {
		t.Errorf("the database after its store: %v", err)
	}
	again, err := document.New(db)
	if err != nil {
		t.Fatal(err)
	}
	if c, err := again.Collection(ctx, "trees", nil); err != nil {
		t.Error(err)
	} else if _, err := c.Get(ctx, 1); err != nil {
		t.Error(err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}
