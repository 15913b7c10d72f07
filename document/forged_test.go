package document_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// forgedWorks are what meets a document as a whole, or the field in which it makes no sense.
var forgedWorks = map[string]func(ctx context.Context, c *document.Collection) error{
	"get": func(ctx context.Context, c *document.Collection) error { _, err := c.Get(ctx, 2); return err },
	"find": func(ctx context.Context, c *document.Collection) error {
		return failedFind(ctx, c, `{}`, nil)
	},
	"find by the field": func(ctx context.Context, c *document.Collection) error {
		return failedFind(ctx, c, `{"a.x": 7}`, nil)
	},
	"sort": func(ctx context.Context, c *document.Collection) error {
		return failedFind(ctx, c, `{}`, &document.FindOptions{Sort: document.JSON(`{"a": 1}`)})
	},
	"distinct": func(ctx context.Context, c *document.Collection) error {
		_, err := c.Distinct(ctx, "a.x", nil, nil)
		return err
	},
	"aggregate": func(ctx context.Context, c *document.Collection) error {
		for _, err := range c.Aggregate(ctx, document.JSON(`[{"$set": {"b": "$$ROOT"}}, {"$sort": {"b": 1}}, {"$group": {"_id": "$a"}}]`), nil) {
			if err != nil {
				return err
			}
		}
		return nil
	},
	"update": func(ctx context.Context, c *document.Collection) error {
		_, err := c.Update(ctx, document.JSON(`{}`), document.JSON(`{"$rename": {"a": "z"}}`), &document.UpdateOptions{Many: true})
		return err
	},
	"make an index": func(ctx context.Context, c *document.Collection) error {
		_, err := c.CreateIndex(ctx, document.Index{Keys: bson.D{{Key: "a.x", Value: 1}}})
		return err
	},
	"make a wildcard index": func(ctx context.Context, c *document.Collection) error {
		_, err := c.CreateIndex(ctx, document.Index{Keys: bson.D{{Key: "$**", Value: 1}}})
		return err
	},
	"sizes":    func(ctx context.Context, c *document.Collection) error { _, err := c.Sizes(ctx); return err },
	"validate": func(ctx context.Context, c *document.Collection) error { _, err := c.Validate(ctx); return err },
}

// forge changes the records of a collection, which is the only one of its store, and returns how many it has changed.
func forge(t *testing.T, s *document.Store, change func(record []byte) []byte) (changed int) {
	t.Helper()
	list, err := s.DB().Keyspaces()
	must(t, err)
	for _, info := range list {
		if strings.Count(info.Name, "/") != 1 {
			continue // it is the catalogue, or an index
		}
		ks, err := s.DB().Keyspace(info.Name, nil)
		must(t, err)
		for key, record := range ks.Range(nil, nil) {
			if forged := change(bytes.Clone(record)); forged != nil {
				must(t, ks.Put(bytes.Clone(key), forged))
				changed++
			}
		}
		must(t, ks.Err())
	}
	return changed
}

// TestRecordsThatMakeNoSense: a record that somebody has put there, or a faulty program has written, is damage to whoever reads it, however deep in
// the document it makes no sense. The lengths of a document were believed, and reading it ended the process.
func TestRecordsThatMakeNoSense(t *testing.T) {
	deep := func(b byte) bson.D {
		return bson.D{{Key: "_id", Value: 2}, {Key: "n", Value: 2}, {Key: "a", Value: bson.D{{Key: "x", Value: bson.D{{Key: "text", Value: string(b) + "bcdef"}}}}}}
	}
	whole, err := bson.Marshal(deep('a'))
	must(t, err)
	at := bytes.Index(whole, []byte("abcdef")) - 4
	for name, work := range forgedWorks {
		for what, length := range map[string]byte{"longer than all": 200, "too short": 2, "negative": 0xff} {
			t.Run(name+"/"+what, func(t *testing.T) {
				s := open(t, memfs.New())
				c := collection(t, s, "c", &document.CollectionOptions{Format: document.BSON})
				for i := range 3 {
					doc := deep('a')
					doc[0].Value = i + 1
					_, err := c.Insert(ctx, doc)
					must(t, err)
				}
				forged := slices.Clone(whole)
				forged[at] = length
				if what == "negative" {
					copy(forged[at:], []byte{0xff, 0xff, 0xff, 0xff})
				}
				id := whole[4 : 4+1+4+4] // type, name and value of the _id
				if n := forge(t, s, func(record []byte) []byte {
					if !bytes.Contains(record, id) {
						return nil
					}
					return append([]byte{0}, forged...)
				}); n != 1 {
					t.Fatalf("%d records are forged", n)
				}
				if err := work(ctx, c); !errors.Is(err, pando.ErrCorrupt) {
					t.Errorf("%v, want ErrCorrupt", err)
				}
				must(t, s.Close())
			})
		}
	}
}

// TestValidateReadsAllOfEachDocument: an index says nothing of most fields of a document.
func TestValidateReadsAllOfEachDocument(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "c", nil)
	for i := range 5 {
		_, err := c.Insert(ctx, bson.D{{Key: "_id", Value: i}, {Key: "n", Value: i}, {Key: "text", Value: "a text of its own"}})
		must(t, err)
	}
	_, err := c.CreateIndex(ctx, document.Index{Keys: bson.D{{Key: "n", Value: 1}}})
	must(t, err)
	v, err := c.Validate(ctx)
	if err != nil || v.Documents != 5 {
		t.Fatalf("%+v, %v", v, err)
	}
	left := 1
	if n := forge(t, s, func(record []byte) []byte {
		if left--; left != 0 {
			return nil
		}
		return record[:len(record)-1]
	}); n != 1 {
		t.Fatalf("%d records are forged", n)
	}
	if _, err := c.Get(ctx, 0); !errors.Is(err, pando.ErrCorrupt) {
		t.Fatalf("the document is read: %v", err)
	}
	if v, err := c.Validate(ctx); !errors.Is(err, pando.ErrCorrupt) {
		t.Errorf("%+v, %v, want ErrCorrupt", v, err)
	}
	must(t, s.Close())
}

// TestFieldThatMakesNoSenseIsNotMissing: a record that ends too early has all of its fields but the last. Who asks for that one is told; it was
// taken for a document without the field.
func TestFieldThatMakesNoSenseIsNotMissing(t *testing.T) {
	for name, work := range map[string]func(c *document.Collection) error{
		"find": func(c *document.Collection) error { return failedFind(ctx, c, `{"text": {"$ne": "another one"}}`, nil) },
		"find what lacks it": func(c *document.Collection) error {
			n, err := c.Count(ctx, document.JSON(`{"text": null}`), nil)
			if n != 0 {
				t.Errorf("%d documents lack the field", n)
			}
			return err
		},
		"sort": func(c *document.Collection) error {
			return failedFind(ctx, c, `{}`, &document.FindOptions{Sort: document.JSON(`{"text": 1}`), Projection: document.JSON(`{"n": 1}`)})
		},
		"make an index": func(c *document.Collection) error {
			_, err := c.CreateIndex(ctx, document.Index{Keys: bson.D{{Key: "text", Value: 1}}})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, memfs.New())
			c := collection(t, s, "c", nil)
			for i := range 5 {
				_, err := c.Insert(ctx, bson.D{{Key: "_id", Value: i}, {Key: "n", Value: i}, {Key: "text", Value: "a text of its own"}})
				must(t, err)
			}
			forge(t, s, func(record []byte) []byte { return record[:len(record)-1] })
			if err := work(c); !errors.Is(err, pando.ErrCorrupt) {
				t.Errorf("%v, want ErrCorrupt", err)
			}
			must(t, s.Close())
		})
	}
}

// TestCatalogueEntryThatMakesNoSense: what a collection was created with is read when it is used first. One of which that cannot be read keeps nobody
// from the others.
func TestCatalogueEntryThatMakesNoSense(t *testing.T) {
	for name, use := range map[string]func(c *document.Collection) error{
		"insert": func(c *document.Collection) error { _, err := c.Insert(ctx, bson.D{{Key: "n", Value: 1}}); return err },
		"get":    func(c *document.Collection) error { _, err := c.Get(ctx, 1); return err },
		"find":   func(c *document.Collection) error { return failedFind(ctx, c, `{"n": 1}`, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			fs := memfs.New()
			s := open(t, fs)
			validator := bson.D{{Key: "n", Value: bson.D{{Key: "$ne", Value: "a word of its own"}}}}
			for _, c := range []*document.Collection{collection(t, s, "c", &document.CollectionOptions{Validator: validator}), collection(t, s, "other", nil)} {
				_, err := c.Insert(ctx, bson.D{{Key: "_id", Value: 1}})
				must(t, err)
			}
			ks, err := s.DB().Keyspace("documents", nil)
			must(t, err)
			forged := 0
			for key, entry := range ks.Range(nil, nil) {
				if at := bytes.Index(entry, []byte("a word of its own")); at > 0 {
					entry = bytes.Clone(entry)
					entry[at-4] = 200 // the length of the string
					must(t, ks.Put(bytes.Clone(key), entry))
					forged++
				}
			}
			must(t, errors.Join(ks.Err(), s.Close()))
			if forged != 1 {
				t.Fatalf("%d entries are forged", forged)
			}
			s = open(t, fs)
			if err := use(s.Database("test").Lookup("c")); !errors.Is(err, pando.ErrCorrupt) {
				t.Errorf("%v, want ErrCorrupt", err)
			}
			if _, err := s.Database("test").Lookup("other").Get(ctx, 1); err != nil {
				t.Errorf("another collection: %v", err)
			}
			must(t, s.Close())
		})
	}
}
