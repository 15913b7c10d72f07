package document

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs/memfs"
)

// longWrite returns the context of a numbered write of which so many statements have been carried out that what is kept of them is long, and of
// n more.
func longWrite(t *testing.T, s *Store, session string, n int) context.Context {
	t.Helper()
	var list []Statement
	var ids []int32
	for i := range 1000 + n {
		ids = append(ids, int32(i))
	}
	for i := range 1000 {
		list = append(list, Statement{Filter: bson.D{{Key: "_id", Value: i}}, Update: bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}, Options: UpdateOptions{Upsert: true}})
	}
	if _, failed := outcomesOf(WithStatements(context.Background(), session, 1, ids[:1000]...), s.Database("d").Lookup(session), list, true); failed {
		t.Fatal("statements that fail")
	}
	return WithStatements(context.Background(), session, 1, ids[1000:]...)
}

// What a session's write has done is written with each commit. So statements that a plan finds share commits once it is long: each sees what
// those before it did, and those who send them again are told of each.
func TestStatementsOfALongWriteShareCommits(t *testing.T) {
	s := opened(t, &Options{Storage: pando.Options{FS: memfs.New()}})
	defer s.Close()
	c := s.Database("d").Lookup("c")
	const n = 400
	var docs []any
	var list []Statement
	for range n {
		docs = append(docs, bson.D{{Key: "state", Value: "new"}})
		list = append(list, Statement{Filter: bson.D{{Key: "state", Value: "new"}}, Update: bson.D{{Key: "$set", Value: bson.D{{Key: "state", Value: "old"}}}}})
	}
	if _, err := c.InsertMany(context.Background(), docs, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CreateIndex(context.Background(), Index{Keys: bson.D{{Key: "state", Value: 1}}}); err != nil {
		t.Fatal(err)
	}
	ctx := longWrite(t, s, "session", n)
	before := s.DB().Metrics().Commits
	told, failed := outcomesOf(ctx, c, list, true)
	if failed || slices.ContainsFunc(told, func(text string) bool { return text != "1 1 " }) {
		t.Fatalf("reported: %q", told)
	}
	// Those beside the ones of the groups are for templates and dictionaries, which nobody waits for.
	if commits := s.DB().Metrics().Commits - before; commits > n/4 {
		t.Errorf("%d commits for %d statements", commits, n)
	}
	if left, err := c.Count(ctx, bson.D{{Key: "state", Value: "new"}}, nil); left != 0 || err != nil {
		t.Errorf("%d documents are left, %v", left, err)
	}
	for i := range n {
		if o, err := s.Outcome("session", 1, int32(1000+i)); err != nil || o == nil || o.Modified != 1 {
			t.Fatalf("statement %d: %+v, %v", i, o, err)
		}
	}
}

// Statements of a long write do and report what they do and report one by one, those that fail included.
func TestStatementsOfALongWriteDoWhatTheyDoAlone(t *testing.T) {
	s := opened(t, &Options{Storage: pando.Options{FS: memfs.New()}})
	defer s.Close()
	ctx := context.Background()
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, 2))
		ordered := seed%2 == 0
		alone, together := s.Database("d").Lookup(fmt.Sprint("alone", seed)), s.Database("d").Lookup(fmt.Sprint("together", seed))
		for _, c := range []*Collection{alone, together} {
			if _, err := c.CreateIndex(ctx, Index{Keys: bson.D{{Key: "v", Value: -1}, {Key: "n", Value: 1}}, Unique: true, Sparse: true}); err != nil {
				t.Fatal(err)
			}
		}
		list := make([]Statement, 60)
		for i := range list {
			list[i] = someStatement(rng)
		}
		var want []string
		for i := range list {
			told, failed := outcomesOf(ctx, alone, list[i:i+1], ordered)
			if want = append(want, told...); ordered && failed {
				break
			}
		}
		if got, _ := outcomesOf(longWrite(t, s, fmt.Sprint("session", seed), len(list)), together, list, ordered); !slices.Equal(got, want) {
			t.Errorf("seed %d: %v, want %v", seed, got, want)
		}
		if got, want := allOf(t, together), allOf(t, alone); !slices.Equal(got, want) {
			t.Errorf("seed %d: the collection holds %v, want %v", seed, got, want)
		}
	}
}

// Long writes of several sessions that others overtake go through all the same, and each of their statements counts once.
func TestStatementsOfLongWritesBesideOthers(t *testing.T) {
	s := opened(t, &Options{Storage: pando.Options{FS: memfs.New()}})
	defer s.Close()
	c := s.Database("d").Lookup("c")
	const sessions, rounds, documents = 3, 20, 10
	for i := range documents {
		if _, err := c.Insert(context.Background(), bson.D{{Key: "k", Value: i}}); err != nil {
			t.Fatal(err)
		}
	}
	var list []Statement
	for i := range rounds * documents {
		list = append(list, Statement{Filter: bson.D{{Key: "k", Value: i % documents}}, Update: bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}})
	}
	var wg sync.WaitGroup
	for i := range sessions {
		ctx := longWrite(t, s, fmt.Sprint("session", i), len(list))
		wg.Go(func() {
			if told, failed := outcomesOf(ctx, c, list, true); failed || len(told) != len(list) {
				t.Errorf("reported: %v", told)
			}
		})
	}
	wg.Wait()
	n, err := c.Count(context.Background(), bson.D{{Key: "n", Value: sessions * rounds}}, nil)
	if n != documents || err != nil {
		t.Errorf("%d documents counted right, %v: %v", n, err, allOf(t, c))
	}
}
