package document_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// sampled returns the numbers of the documents that a $sample gives, in its order.
func sampled(t *testing.T, c *document.Collection, size int, behind ...bson.D) (list []int) {
	t.Helper()
	pipeline := append([]bson.D{{{Key: "$sample", Value: bson.D{{Key: "size", Value: size}}}}}, behind...)
	seen := map[int]bool{}
	for doc, err := range c.Aggregate(ctx, pipeline, nil) {
		must(t, err)
		n := int(doc.Lookup("n").AsInt64())
		if seen[n] {
			t.Fatalf("%d is there twice", n)
		}
		seen[n] = true
		list = append(list, n)
	}
	return list
}

// A sample has as many documents as there are to be, each once, and every document and every place in it is as likely as any other.
func TestSampleIsDrawnFromAll(t *testing.T) {
	const documents, size, rounds = 60, 20, 1500
	for _, o := range []*document.CollectionOptions{nil, {Capped: true, SizeBytes: 1 << 20}} {
		s := open(t, memfs.New())
		c := collection(t, s, "things", o)
		for i := range documents {
			_, err := c.Insert(ctx, bson.D{{Key: "_id", Value: bson.NewObjectID()}, {Key: "n", Value: i}, {Key: "text", Value: strings.Repeat("x", i)}})
			must(t, err)
			if i == documents/2 { // some have settled
				must(t, s.DB().Compact(ctx, pando.CompactOptions{}))
			}
		}
		for _, n := range []int{1, 2, size, documents - 1, documents, documents + 1, 1 << 20} {
			if got := len(sampled(t, c, n)); got != min(n, documents) {
				t.Errorf("%d of %d", got, n)
			}
		}
		var drawn, first [documents]int
		for range rounds {
			list := sampled(t, c, size)
			for _, n := range list {
				drawn[n]++
			}
			first[list[0]]++
		}
		for n := range documents { // 500 and 25 are expected, with deviations of 18 and 5
			if drawn[n] < 350 || drawn[n] > 650 || first[n] == 0 || first[n] > 80 {
				t.Errorf("%d was drawn %d times, as the first one %d times", n, drawn[n], first[n])
			}
		}
		if got := sampled(t, c, documents, bson.D{{Key: "$match", Value: bson.D{{Key: "n", Value: bson.D{{Key: "$lt", Value: 5}}}}}}); len(got) != 5 {
			t.Errorf("a match behind the sample gives %d", got)
		}
	}
}

// A sample that takes more memory than a query may have is still one, and one of nothing has nothing.
func TestSampleBeyondMemory(t *testing.T) {
	s, err := document.Open("db", &document.Options{Storage: pando.Options{FS: memfs.New(), MemoryBytes: 8 << 20}, TTLInterval: -1, QueryMemoryBytes: 20_000})
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	c := collection(t, s, "things", nil)
	if got := sampled(t, c, 10); len(got) != 0 {
		t.Errorf("%d of nothing", got)
	}
	if got := sampled(t, s.Database("no").Lookup("such"), 10); len(got) != 0 {
		t.Errorf("%d of a collection that is not there", got)
	}
	for i := range 100 {
		_, err := c.Insert(ctx, bson.D{{Key: "n", Value: i}, {Key: "text", Value: strings.Repeat("long ", 200)}})
		must(t, err)
	}
	for _, n := range []int{5, 50, 100} {
		if got := len(sampled(t, c, n)); got != n {
			t.Errorf("%d of %d", got, n)
		}
	}
}

// A sample of who has given up ends.
func TestSampleIsCancelled(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "things", nil)
	_, err := c.InsertMany(ctx, []any{bson.D{}, bson.D{}, bson.D{}}, nil)
	must(t, err)
	gone, cancel := context.WithCancel(ctx)
	cancel()
	for _, err := range c.Aggregate(gone, []bson.D{{{Key: "$sample", Value: bson.D{{Key: "size", Value: 1}}}}}, nil) {
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}
