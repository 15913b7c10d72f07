package document_test

import (
	"context"
	"errors"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// usesInTransactions are calls on a collection of three documents in a transaction, which tell of how many they know.
func usesInTransactions() map[string]func(tx *document.Tx, c *document.Collection) (int64, error) {
	return map[string]func(tx *document.Tx, c *document.Collection) (int64, error){
		"count": func(tx *document.Tx, c *document.Collection) (int64, error) { return tx.In(c).Count(ctx, nil, nil) },
		"find": func(tx *document.Tx, c *document.Collection) (n int64, err error) {
			for _, err := range tx.In(c).Find(ctx, nil, nil) {
				if err != nil {
					return n, err
				}
				n++
			}
			return n, nil
		},
		"aggregate": func(tx *document.Tx, c *document.Collection) (n int64, err error) {
			for _, err := range tx.In(c).Aggregate(ctx, document.JSON(`[{"$sort": {"a": 1}}]`), nil) {
				if err != nil {
					return n, err
				}
				n++
			}
			return n, nil
		},
		"update": func(tx *document.Tx, c *document.Collection) (int64, error) {
			r, err := tx.In(c).Update(ctx, nil, document.JSON(`{"$set": {"a": 1}}`), &document.UpdateOptions{Many: true})
			if err != nil {
				return 0, err
			}
			return r.Matched, nil
		},
		"insert": func(tx *document.Tx, c *document.Collection) (int64, error) {
			_, err := tx.In(c).Insert(ctx, bson.D{{Key: "_id", Value: 7}})
			return 3, err
		},
	}
}

// A collection that is dropped, renamed or replaced under a transaction is there for it as it was, or is a conflict: it once was empty all
// of a sudden, and what the transaction wrote made another one.
func TestCollectionsDoNotVanishInTransactions(t *testing.T) {
	changes := map[string]func(t *testing.T, c *document.Collection){
		"dropped": func(t *testing.T, c *document.Collection) { must(t, c.Drop(ctx)) },
		"renamed": func(t *testing.T, c *document.Collection) {
			must(t, c.Rename(ctx, document.DefaultDatabase, "other", false))
		},
		"made anew": func(t *testing.T, c *document.Collection) {
			must(t, c.Drop(ctx))
			_, err := c.Insert(ctx, bson.D{{Key: "_id", Value: 9}})
			must(t, err)
		},
		"replaced": func(t *testing.T, c *document.Collection) {
			for _, err := range c.Aggregate(ctx, document.JSON(`[{"$match": {"_id": 9}}, {"$out": "c"}]`), nil) {
				must(t, err)
			}
		},
		"capped": func(t *testing.T, c *document.Collection) { must(t, c.MakeCapped(ctx, 1<<20)) },
	}
	uses := usesInTransactions()
	for changed, change := range changes {
		for used, use := range uses {
			for _, snapshot := range []bool{true, false} {
				s := open(t, memfs.New())
				c := collection(t, s, "c", nil)
				_, err := c.InsertMany(ctx, []document.JSON{`{"_id": 1}`, `{"_id": 2}`, `{"_id": 3}`}, nil)
				must(t, err)
				begin := s.Begin
				if snapshot {
					begin = s.BeginSnapshot
				}
				tx, err := begin(context.Background())
				must(t, err)
				if n, err := tx.In(c).Count(ctx, nil, nil); n != 3 || err != nil {
					t.Fatalf("%d documents, %v", n, err)
				}
				change(t, c)
				n, err := use(tx, c)
				if err == nil && n != 3 {
					t.Errorf("%s, then %s, snapshot isolation %t: %d documents instead of 3", changed, used, snapshot, n)
				}
				wrote := used == "update" || used == "insert"
				if err == nil {
					if err = tx.Commit(ctx); err == nil && wrote {
						t.Errorf("%s, then %s, snapshot isolation %t: the commit succeeds", changed, used, snapshot)
					}
				}
				if err != nil && !errors.Is(err, document.WriteConflict) {
					t.Errorf("%s, then %s, snapshot isolation %t: %v", changed, used, snapshot, err)
				}
				tx.Abort()
			}
		}
	}
}
