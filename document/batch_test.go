package document_test

import (
	"errors"
	"fmt"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// Large batches are prepared by several goroutines and stored while others wait: they fail, and keep the order of what they make,
// like small ones.
func TestLargeBatches(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "things", nil)
	_, err := c.CreateIndex(ctx, document.Index{Keys: bson.D{{Key: "tags", Value: 1}}, Unique: true})
	must(t, err)
	const n = 3000
	batch := func(change func(i int, d bson.D) bson.D) []bson.D {
		list := make([]bson.D, n)
		for i := range list {
			list[i] = bson.D{{Key: "n", Value: i}, {Key: "tags", Value: bson.A{fmt.Sprint("a", i), fmt.Sprint("b", i), fmt.Sprint("c", i)}}}
			list[i] = change(i, list[i])
		}
		return list
	}
	count := func(what string, want int64) {
		t.Helper()
		if got, err := c.Count(ctx, nil, nil); err != nil || got != want {
			t.Errorf("%s: %d documents, not %d: %v", what, got, want, err)
		}
	}
	twice := func(i int, d bson.D) bson.D {
		if i == 1000 || i == 2500 {
			return append(d[:1], bson.E{Key: "tags", Value: bson.A{"x", "a3"}})
		}
		return d
	}
	var failed document.WriteErrors
	if _, err := c.InsertMany(ctx, batch(twice), nil); !errors.As(err, &failed) || len(failed) != 1 || failed[0].Index != 1000 || !errors.Is(err, document.DuplicateKey) {
		t.Errorf("all or none: %v", err)
	}
	count("all or none", 0)
	stored, err := c.InsertMany(ctx, batch(twice), &document.InsertOptions{Ordered: true})
	if !errors.As(err, &failed) || len(failed) != 1 || failed[0].Index != 1000 || stored != 1000 {
		t.Errorf("ordered: %d, %v", stored, err)
	}
	count("ordered", 1000)
	i := 0
	for doc, err := range c.Find(ctx, bson.D{}, &document.FindOptions{Sort: bson.D{{Key: "_id", Value: 1}}}) {
		must(t, err)
		if got := doc.Lookup("n").Int32(); int(got) != i {
			t.Fatalf("document %d is the %dth by its _id", got, i)
		}
		i++
	}
	stored, err = c.InsertMany(ctx, batch(func(i int, d bson.D) bson.D { return d }), &document.InsertOptions{Unordered: true})
	if !errors.As(err, &failed) || len(failed) != 1000 || stored != 2000 {
		t.Errorf("unordered: %d, %d errors", stored, len(failed))
	}
	count("unordered", 3000)
	plain := func(list []bson.D, first int) []bson.D {
		for i := range list {
			list[i] = bson.D{{Key: "_id", Value: first + i}, {Key: "tags", Value: fmt.Sprint(first + i)}}
		}
		return list
	}
	_, err = c.InsertMany(ctx, plain(make([]bson.D, n), 0), nil)
	must(t, err)
	if _, err := c.InsertMany(ctx, plain(make([]bson.D, n), n-1), nil); !errors.As(err, &failed) || failed[0].Index != 0 {
		t.Errorf("an _id that is there: %v", err)
	}
	bad := plain(make([]bson.D, n), n)
	bad[2800][0].Value = n + 10
	if _, err := c.InsertMany(ctx, bad, nil); !errors.As(err, &failed) || failed[0].Index != 2800 {
		t.Errorf("an _id that comes twice: %v", err)
	}
	bad = plain(make([]bson.D, n), n)
	bad[100][0].Value, bad[2900][0].Value = bson.A{1}, bson.A{1}
	stored, err = c.InsertMany(ctx, bad, &document.InsertOptions{Unordered: true})
	if !errors.As(err, &failed) || len(failed) != 2 || failed[0].Index != 100 || failed[1].Index != 2900 || stored != n-2 {
		t.Errorf("documents that are refused: %d, %v", stored, err)
	}
	count("in the end", 3000+n+n-2)
}
