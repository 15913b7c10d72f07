package document_test

import (
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestLeftovers: of the keyspaces below its own a store keeps those of its collections and of their indexes, by the very names that it
// gave them, and gives the number of none of the others to a new collection.
func TestLeftovers(t *testing.T) {
	fs := memfs.New()
	s := open(t, fs)
	c, err := s.Collection(t.Context(), "users", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.CreateIndex(t.Context(), document.Index{Keys: bson.D{{Key: "name", Value: 1}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Insert(t.Context(), bson.D{{Key: "_id", Value: 1}, {Key: "name", Value: "Anna"}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	names := func() (list []string) {
		db, err := pando.Open("db", &pando.Options{FS: fs})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		all, err := db.Keyspaces()
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range all {
			list = append(list, k.Name)
		}
		return list
	}
	want := names()
	if !slices.Contains(want, "documents/1/1") {
		t.Fatalf("there is no index among %q", want)
	}
	db, err := pando.Open("db", &pando.Options{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"elsewhere", "documents/1/", "documents/1/2", "documents/1/01", "documents/1/1/1", "documents/01", "documents/+1", "documents/",
		"documents/7", "documents/6/1", "documents/users",
	} {
		if _, err := db.Keyspace(name, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, fs)
	if n, err := s.Database("test").Lookup("users").Count(t.Context(), bson.D{{Key: "name", Value: "Anna"}}, nil); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := s.Collection(t.Context(), "others", nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	want = append(want, "elsewhere", "documents/8")
	slices.Sort(want)
	if got := names(); !slices.Equal(got, want) {
		t.Errorf("the keyspaces are %q, want %q", got, want)
	}
}
