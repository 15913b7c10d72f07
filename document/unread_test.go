package document_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// firstUses is what may be done first with a collection of a store that was opened again.
func firstUses() map[string]func(t *testing.T, s *document.Store, c *document.Collection) {
	return map[string]func(t *testing.T, s *document.Store, c *document.Collection){
		"get": func(t *testing.T, _ *document.Store, c *document.Collection) {
			doc, err := c.Get(t.Context(), 3)
			if err != nil || doc.Lookup("name").StringValue() != "ANNA" {
				t.Errorf("%s, %v", doc, err)
			}
		},
		"list": func(t *testing.T, s *document.Store, _ *document.Collection) {
			list, err := s.Database("test").Collections(t.Context())
			if err != nil || len(list) != 1 || list[0].Name != "users" || len(list[0].UUID.Data) != 16 || list[0].Options.Lookup("collation").Type == 0 {
				t.Errorf("%v, %v", list, err)
			}
		},
		"collation of the collection": func(t *testing.T, _ *document.Store, c *document.Collection) {
			n, err := c.Count(t.Context(), bson.D{{Key: "name", Value: "anna"}}, nil)
			if err != nil || n != 4 {
				t.Errorf("%d, %v", n, err)
			}
		},
		"insert": func(t *testing.T, _ *document.Store, c *document.Collection) {
			_, err := c.Insert(t.Context(), bson.D{{Key: "_id", Value: 9}, {Key: "email", Value: "mail 2"}})
			if document.CodeOf(err) != document.DuplicateKey {
				t.Errorf("a value of a unique index that is there: %v", err)
			}
		},
		"create again": func(t *testing.T, s *document.Store, c *document.Collection) {
			if _, err := s.Collection(t.Context(), "users", nil); err != nil {
				t.Error(err)
			}
			if _, err := c.Insert(t.Context(), bson.D{{Key: "_id", Value: 9}}); err != nil {
				t.Error(err)
			}
		},
		"rename": func(t *testing.T, s *document.Store, c *document.Collection) {
			if err := c.Rename(t.Context(), "test", "people", false); err != nil {
				t.Error(err)
			}
			if n, err := s.Database("test").Lookup("people").Count(t.Context(), bson.D{}, nil); n != 4 || err != nil {
				t.Errorf("%d, %v", n, err)
			}
		},
		"drop": func(t *testing.T, s *document.Store, c *document.Collection) {
			if err := c.Drop(t.Context()); err != nil {
				t.Error(err)
			}
			if list, err := s.DB().Keyspaces(); err != nil || len(list) != 2 {
				t.Errorf("keyspaces left: %v, %v", list, err)
			}
		},
		"expire": func(t *testing.T, s *document.Store, _ *document.Collection) {
			if n, err := s.DeleteExpired(t.Context()); n != 4 || err != nil {
				t.Errorf("%d expired, %v", n, err)
			}
		},
		"lookup from another": func(t *testing.T, s *document.Store, _ *document.Collection) {
			other := collection(t, s, "others", nil)
			_, err := other.Insert(t.Context(), bson.D{{Key: "of", Value: 1}})
			must(t, err)
			for doc, err := range other.Aggregate(t.Context(), bson.A{bson.D{{Key: "$lookup", Value: bson.D{
				{Key: "from", Value: "users"}, {Key: "localField", Value: "of"}, {Key: "foreignField", Value: "_id"}, {Key: "as", Value: "list"},
			}}}}, nil) {
				if list, ok := doc.Lookup("list").ArrayOK(); err != nil || !ok || len(list) < 20 {
					t.Errorf("%s, %v", doc, err)
				}
			}
		},
	}
}

// TestUnreadCollections: after the store was opened again, what is done first with a collection finds it whole, whatever it is; so
// does what is done beside and after a get, which opens a part of it.
func TestUnreadCollections(t *testing.T) {
	for name, use := range firstUses() {
		t.Run(name, func(t *testing.T) {
			fsys := memfs.New()
			open := func() *document.Store {
				s, err := document.Open("db", &document.Options{Storage: pando.Options{FS: fsys}, TTLInterval: -1})
				must(t, err)
				return s
			}
			s := open()
			fillUnread(t, s)
			s = open()
			use(t, s, s.Database("test").Lookup("users"))
			must(t, s.Close())
			must(t, open().Close())
		})
		t.Run(name+" beside gets", func(t *testing.T) {
			fsys := memfs.New()
			s, err := document.Open("db", &document.Options{Storage: pando.Options{FS: fsys}, TTLInterval: -1})
			must(t, err)
			fillUnread(t, s)
			s, err = document.Open("db", &document.Options{Storage: pando.Options{FS: fsys}, TTLInterval: -1})
			must(t, err)
			c := s.Database("test").Lookup("users")
			var gets sync.WaitGroup
			for range 2 {
				gets.Go(func() {
					if _, err := c.Get(t.Context(), 1); err != nil && !errors.Is(err, document.ErrNotFound) { // dropped, renamed or expired meanwhile
						t.Error(err)
					}
				})
			}
			use(t, s, c)
			gets.Wait()
			must(t, s.Close())
		})
	}
}

// fillUnread makes a collection with a collation of its own and indexes, and closes the store.
func fillUnread(t *testing.T, s *document.Store) {
	c := collection(t, s, "users", &document.CollectionOptions{Collation: bson.D{{Key: "locale", Value: "en"}, {Key: "strength", Value: 2}}})
	second := int32(1)
	for _, x := range []document.Index{
		{Keys: bson.D{{Key: "email", Value: 1}}, Unique: true},
		{Keys: bson.D{{Key: "seen", Value: 1}}, ExpireAfterSeconds: &second},
	} {
		_, err := c.CreateIndex(t.Context(), x)
		must(t, err)
	}
	for i := range 4 {
		_, err := c.Insert(t.Context(), bson.D{
			{Key: "_id", Value: i}, {Key: "name", Value: "ANNA"}, {Key: "email", Value: fmt.Sprint("mail ", i)},
			{Key: "seen", Value: time.Unix(1_700_000_000, 0)},
		})
		must(t, err)
	}
	must(t, s.Close())
}
