package document_test

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// An index may compare byte by byte in a collection that has a collation. Its specification then names none, and what reads that later on
// must not give it the collection's: the entries would be others than those that are there.
func TestIndexWithoutTheCollationOfItsCollection(t *testing.T) {
	for _, test := range []struct {
		name  string
		after func(t *testing.T, s *document.Store, c *document.Collection) *document.Store
	}{
		{"opened again", func(t *testing.T, s *document.Store, c *document.Collection) *document.Store { return s }},
		{"modified", func(t *testing.T, s *document.Store, c *document.Collection) *document.Store {
			must(t, c.Modify(ctx, document.JSON(`{"index": {"name": "s_1", "expireAfterSeconds": 1000}}`)))
			return s
		}},
		{"taken over by $out", func(t *testing.T, s *document.Store, c *document.Collection) *document.Store {
			for _, err := range c.Aggregate(ctx, document.JSON(`[{"$out": "c"}]`), nil) {
				must(t, err)
			}
			return s
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			fs := memfs.New()
			s := open(t, fs)
			c := collection(t, s, "c", &document.CollectionOptions{Collation: bson.D{{Key: "locale", Value: "en"}, {Key: "strength", Value: 2}}})
			_, err := c.CreateIndex(ctx, document.Index{Keys: bson.D{{Key: "s", Value: 1}}, Unique: true, Collation: bson.D{{Key: "locale", Value: "simple"}}})
			must(t, err)
			_, err = c.InsertMany(ctx, []any{bson.D{{Key: "_id", Value: 1}, {Key: "s", Value: "a"}}, bson.D{{Key: "_id", Value: 2}, {Key: "s", Value: "A"}}}, nil)
			must(t, err)
			test.after(t, s, c)
			must(t, s.Close())
			s = open(t, fs)
			c = s.Database("test").Lookup("c")
			v, err := c.Validate(ctx)
			must(t, err)
			for _, x := range v.Indexes {
				if x.Missing != 0 || x.Extra != 0 {
					t.Errorf("%+v", x)
				}
			}
			expect(t, "by the collection's collation", find(t, c, `{"s": "A"}`, nil), `{"_id":1,"s":"a"}`+"\n"+`{"_id":2,"s":"A"}`+"\n")
		})
	}
}
