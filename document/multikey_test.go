package document_test

import (
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// arrays is a document of which no element lies between 1 and 8, though it matches {$gt: 1, $lt: 8}: an index that has never met an array
// would not look for it.
func arrays(id string) bson.D {
	return bson.D{{Key: "_id", Value: id}, {Key: "a", Value: bson.A{0, 9}}}
}

// TestArraysAreKnownAfterCommitsThatFailed: that an index holds arrays is stored with the first commit that lasts, whatever became of
// those before it.
func TestArraysAreKnownAfterCommitsThatFailed(t *testing.T) {
	tooLong := bson.D{{Key: "_id", Value: "long"}, {Key: "a", Value: bson.A{1, strings.Repeat("x", pando.MaxKeyBytes)}}}
	for name, fail := range map[string]func(t *testing.T, s *document.Store, c *document.Collection){
		"nothing": func(*testing.T, *document.Store, *document.Collection) {},
		"an entry that is too long": func(t *testing.T, _ *document.Store, c *document.Collection) {
			if _, err := c.Insert(ctx, tooLong); err == nil {
				t.Fatal("it was stored")
			}
		},
		"a transaction that is aborted": func(t *testing.T, s *document.Store, c *document.Collection) {
			tx, err := s.Begin(ctx)
			must(t, err)
			_, err = tx.In(c).Insert(ctx, arrays("aborted"))
			must(t, err)
			tx.Abort()
		},
		"a transaction that is overtaken": func(t *testing.T, s *document.Store, c *document.Collection) {
			tx, err := s.Begin(ctx)
			must(t, err)
			_, err = tx.In(c).Get(ctx, "first")
			must(t, err)
			_, err = tx.In(c).Insert(ctx, arrays("overtaken"))
			must(t, err)
			_, err = c.Update(ctx, document.JSON(`{"_id": "first"}`), document.JSON(`{"$set": {"b": 5}}`), nil)
			must(t, err)
			if tx.Commit(ctx) == nil {
				t.Fatal("it was committed")
			}
		},
		"a statement of a transaction": func(t *testing.T, s *document.Store, c *document.Collection) {
			must(t, s.Transaction(ctx, func(tx *document.Tx) error {
				if _, err := tx.In(c).Insert(ctx, tooLong); err == nil {
					t.Fatal("it was stored")
				}
				_, err := tx.In(c).Insert(ctx, document.JSON(`{"_id": "plain", "a": 0}`))
				return err
			}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			fs := memfs.New()
			s := open(t, fs)
			c := collection(t, s, "c", nil)
			_, err := c.CreateIndex(ctx, document.Index{Keys: bson.D{{Key: "a", Value: 1}}})
			must(t, err)
			_, err = c.Insert(ctx, document.JSON(`{"_id": "first", "a": 0}`))
			must(t, err)
			fail(t, s, c)
			_, err = c.Insert(ctx, arrays("arrays"))
			must(t, err)
			must(t, s.Close())
			wantArrays(t, open(t, fs), "arrays")
		})
	}
}

// wantArrays checks that a store finds the document by a query that its index bounds.
func wantArrays(t *testing.T, s *document.Store, id string) {
	t.Helper()
	c := collection(t, s, "c", nil)
	o := &document.FindOptions{Hint: "a_1", Projection: document.JSON(`{"a": 1, "_id": 0}`)}
	expect(t, "the document with the array "+id, find(t, c, `{"a": {"$gt": 1, "$lt": 8}}`, o), "{\"a\":[0,9]}\n")
}

// TestArraysAreKnownBeforeOthersCommit: who stores an array while a transaction that stored the first one is open does not count on it.
func TestArraysAreKnownBeforeOthersCommit(t *testing.T) {
	fs := memfs.New()
	s := open(t, fs)
	c := collection(t, s, "c", nil)
	_, err := c.CreateIndex(ctx, document.Index{Keys: bson.D{{Key: "a", Value: 1}}})
	must(t, err)
	tx, err := s.Begin(ctx)
	must(t, err)
	defer tx.Abort()
	_, err = tx.In(c).Insert(ctx, arrays("open"))
	must(t, err)
	_, err = c.Insert(ctx, arrays("arrays"))
	must(t, err)
	wantArrays(t, open(t, fs.CrashImage(memfs.Policy{Unsynced: memfs.None})), "arrays")
}

// TestMeasurementsOutOfOrderAreKnownAfterFailures: as TestArraysAreKnownAfterCommitsThatFailed, of the order of a time series.
func TestMeasurementsOutOfOrderAreKnownAfterFailures(t *testing.T) {
	fs := memfs.New()
	s := open(t, fs)
	must(t, s.Database("db").Create(ctx, "c", document.JSON(`{"timeseries": {"timeField": "t", "metaField": "m"}}`)))
	c := s.Database("db").Lookup("c")
	_, err := c.CreateIndex(ctx, document.Index{Keys: bson.D{{Key: "x", Value: 1}}})
	must(t, err)
	measurement := func(x any) bson.D {
		return bson.D{{Key: "t", Value: time.Unix(1, 0)}, {Key: "m", Value: bson.A{1, 2}}, {Key: "x", Value: x}}
	}
	if _, err := c.Insert(ctx, measurement(strings.Repeat("x", pando.MaxKeyBytes))); err == nil {
		t.Fatal("it was stored")
	}
	_, err = c.Insert(ctx, measurement(1))
	must(t, err)
	must(t, s.Close())
	if n, err := open(t, fs).Database("db").Lookup("c").Count(ctx, document.JSON(`{"m": 2}`), nil); n != 1 || err != nil {
		t.Errorf("%d measurements of a list, %v; want 1", n, err)
	}
}
