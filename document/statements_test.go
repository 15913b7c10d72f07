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

// outcomesOf carries statements out and writes down what was reported of each, and whether the last one failed.
func outcomesOf(ctx context.Context, c *Collection, list []Statement, ordered bool) (told []string, failed bool) {
	c.ApplyMany(ctx, list, func(i int, r *UpdateResult, err error) bool {
		if failed = err != nil; failed {
			told = append(told, CodeOf(err).String())
			return !ordered
		}
		told = append(told, fmt.Sprint(r.Matched, r.Modified, r.UpsertedID))
		return true
	})
	return told, failed
}

func allOf(t *testing.T, c *Collection) (docs []string) {
	t.Helper()
	for doc, err := range c.Find(context.Background(), nil, nil) {
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, doc.String())
	}
	return docs
}

// someStatement makes a statement, most of them of the kinds that share commits, and some that fail.
func someStatement(rng *rand.Rand) Statement {
	id, n := rng.IntN(20), rng.IntN(8)
	s := Statement{Filter: bson.D{{Key: "_id", Value: id}}, Options: UpdateOptions{Upsert: rng.IntN(2) == 0}}
	if rng.IntN(3) == 0 { // by what a unique index knows
		s.Filter = bson.D{{Key: "u", Value: n}}
		if rng.IntN(4) == 0 {
			s.Filter = bson.D{{Key: "n", Value: rng.IntN(3)}, {Key: "v", Value: rng.IntN(3)}}
		}
		s.Options.Many = rng.IntN(8) == 0
	}
	switch rng.IntN(10) {
	case 0, 1, 2:
		s.Update = bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: n}}}}
	case 3, 4:
		s.Update = bson.D{{Key: "n", Value: n}, {Key: "u", Value: id*10 + n}}
	case 5:
		s.Update = bson.A{bson.D{{Key: "$set", Value: bson.D{{Key: "twice", Value: bson.D{{Key: "$add", Value: bson.A{"$n", "$n"}}}}}}}}
	case 6:
		s.Update = bson.D{{Key: "$set", Value: bson.D{{Key: "u", Value: n}}}} // which another may have
		switch rng.IntN(4) {
		case 0:
			s.Update = bson.D{{Key: "$set", Value: bson.D{{Key: "u", Value: bson.A{n, n + 1}}}}}
		case 1:
			s.Update = bson.D{{Key: "$set", Value: bson.D{{Key: "v", Value: rng.IntN(3)}}}}
		}
	case 7:
		s.Options.Upsert = false // a delete
	case 8:
		s.Filter, s.Update = bson.D{{Key: "n", Value: n}}, bson.D{{Key: "$set", Value: bson.D{{Key: "seen", Value: true}}}}
		s.Options = UpdateOptions{Many: n < 4}
	default:
		s.Update = bson.D{{Key: "$nothing", Value: 1}}
		if n > 0 {
			s.Update = bson.D{{Key: "$push", Value: bson.D{{Key: "n", Value: 1}}}} // fails where n is a number
		}
	}
	if u, ok := s.Update.(bson.D); s.Options.Upsert && s.Filter.(bson.D)[0].Key != "_id" {
		if s.Options.Upsert = ok && u[0].Key[0] == '$'; s.Options.Upsert {
			s.Update = append(u, bson.E{Key: "$setOnInsert", Value: bson.D{{Key: "_id", Value: 100 + id}}}) // or it would be a new one each time
		}
	}
	return s
}

// Statements that share commits do and report what they do and report one by one, those that fail included.
func TestStatementsTogetherDoWhatTheyDoAlone(t *testing.T) {
	s := opened(t, &Options{Storage: pando.Options{FS: memfs.New()}})
	defer s.Close()
	ctx := context.Background()
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		ordered := seed%2 == 0
		alone, together := s.Database("d").Lookup(fmt.Sprint("alone", seed)), s.Database("d").Lookup(fmt.Sprint("together", seed))
		for _, c := range []*Collection{alone, together} {
			for _, keys := range []bson.D{{{Key: "u", Value: 1}}, {{Key: "v", Value: -1}, {Key: "n", Value: 1}}} {
				if _, err := c.CreateIndex(ctx, Index{Keys: keys, Unique: true, Sparse: true}); err != nil {
					t.Fatal(err)
				}
			}
		}
		for range 10 {
			list := make([]Statement, 1+rng.IntN(12))
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
			if got, _ := outcomesOf(ctx, together, list, ordered); !slices.Equal(got, want) {
				t.Fatalf("seed %d: %v, want %v", seed, got, want)
			}
			if got, want := allOf(t, together), allOf(t, alone); !slices.Equal(got, want) {
				t.Fatalf("seed %d: the collection holds %v, want %v", seed, got, want)
			}
		}
	}
}

// Neighbours that are known by their _id wait for one sync, and those who send them again are told of each.
func TestStatementsTogetherShareACommit(t *testing.T) {
	s := opened(t, &Options{Storage: pando.Options{FS: memfs.New(), Profile: pando.Durable}})
	defer s.Close()
	c := s.Database("d").Lookup("c")
	if _, err := c.Insert(context.Background(), bson.D{{Key: "_id", Value: 0}}); err != nil {
		t.Fatal(err)
	}
	var list []Statement
	var numbers []int32
	for i := range 100 {
		list = append(list, Statement{Filter: bson.D{{Key: "_id", Value: i % 80}}, Update: bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}, Options: UpdateOptions{Upsert: true}})
		numbers = append(numbers, int32(1000+i))
	}
	list[99] = Statement{Filter: bson.D{{Key: "_id", Value: 7}}}
	before := s.DB().Metrics()
	told, failed := outcomesOf(WithStatements(context.Background(), "session", 5, numbers...), c, list, true)
	if len(told) != 100 || failed {
		t.Fatalf("reported: %v", told)
	}
	// A commit of its own may be for a template, which nobody waits for.
	if after := s.DB().Metrics(); after.Syncs-before.Syncs > 2 || after.Commits-before.Commits > 5 {
		t.Errorf("%d syncs and %d commits", after.Syncs-before.Syncs, after.Commits-before.Commits)
	}
	for i, n := range numbers {
		o, err := s.Outcome("session", 5, n)
		if err != nil || o == nil {
			t.Fatalf("statement %d: %v, %v", i, o, err)
		}
		if inserts := i > 0 && i < 80; o.N != 1 || (o.UpsertedID.Type != 0) != inserts || (o.Modified == 1) == inserts {
			t.Errorf("statement %d: %+v", i, o)
		}
	}
	if docs := allOf(t, c); len(docs) != 79 {
		t.Errorf("%d documents", len(docs))
	}
}

// A group that others overtake goes through all the same, and each of its statements counts once.
func TestStatementsTogetherBesideOthers(t *testing.T) {
	s := opened(t, &Options{Storage: pando.Options{FS: memfs.New()}})
	defer s.Close()
	c := s.Database("d").Lookup("c")
	ctx := context.Background()
	const writers, rounds, ids = 4, 25, 10
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for range rounds {
				var list []Statement
				for id := range ids {
					list = append(list, Statement{Filter: bson.D{{Key: "_id", Value: id}}, Update: bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}, Options: UpdateOptions{Upsert: true}})
				}
				if told, failed := outcomesOf(ctx, c, list, true); failed || len(told) != ids {
					t.Errorf("reported: %v", told)
				}
			}
		})
	}
	wg.Wait()
	n, err := c.Count(ctx, bson.D{{Key: "n", Value: writers * rounds}}, nil)
	if n != ids || err != nil {
		t.Errorf("%d documents counted right, %v: %v", n, err, allOf(t, c))
	}
}

// A $merge by _id writes its documents in groups, into the collection that it reads too.
func TestMergesShareCommits(t *testing.T) {
	s := opened(t, &Options{Storage: pando.Options{FS: memfs.New(), Profile: pando.Durable}})
	defer s.Close()
	ctx := context.Background()
	c, into := s.Database("d").Lookup("c"), s.Database("d").Lookup("into")
	var docs []any
	for i := range 1000 {
		docs = append(docs, bson.D{{Key: "_id", Value: i}, {Key: "n", Value: i}})
	}
	if _, err := c.InsertMany(ctx, docs, nil); err != nil {
		t.Fatal(err)
	}
	merge := func(stage bson.D) {
		t.Helper()
		for _, err := range c.Aggregate(ctx, bson.A{bson.D{{Key: "$set", Value: bson.D{{Key: "m", Value: "$n"}}}}, bson.D{{Key: "$merge", Value: stage}}}, nil) {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	before := s.DB().Metrics().Syncs
	merge(bson.D{{Key: "into", Value: "into"}})
	merge(bson.D{{Key: "into", Value: "into"}, {Key: "whenMatched", Value: "replace"}})
	merge(bson.D{{Key: "into", Value: "c"}})
	if n := s.DB().Metrics().Syncs - before; n > 30 {
		t.Errorf("%d syncs for three times 1000 documents", n)
	}
	for _, c := range []*Collection{c, into} {
		if n, err := c.Count(ctx, bson.D{{Key: "$expr", Value: bson.D{{Key: "$eq", Value: bson.A{"$n", "$m"}}}}}, nil); n != 1000 || err != nil {
			t.Errorf("%d documents, %v", n, err)
		}
	}
}

// Neighbours that are known by a unique index share commits as those do that are known by their _id: each sees what those before it did.
func TestStatementsByAUniqueIndexShareCommits(t *testing.T) {
	s := opened(t, &Options{Storage: pando.Options{FS: memfs.New()}})
	defer s.Close()
	ctx := context.Background()
	c := s.Database("d").Lookup("c")
	if _, err := c.CreateIndex(ctx, Index{Keys: bson.D{{Key: "email", Value: 1}}, Unique: true}); err != nil {
		t.Fatal(err)
	}
	var docs []any
	for i := range 100 {
		docs = append(docs, bson.D{{Key: "_id", Value: i}, {Key: "email", Value: fmt.Sprint("user", i)}})
	}
	if _, err := c.InsertMany(ctx, docs, nil); err != nil {
		t.Fatal(err)
	}
	by := func(name string) bson.D { return bson.D{{Key: "email", Value: name}} }
	rename := func(from, to string) Statement {
		return Statement{Filter: by(from), Update: bson.D{{Key: "$set", Value: by(to)}}}
	}
	list := []Statement{rename("user0", "gone"), rename("user1", "user0"), rename("user0", "again"), rename("user0", "nobody"), {Filter: by("user2")}}
	list = append(list, Statement{Filter: by("new"), Update: bson.D{{Key: "$setOnInsert", Value: bson.D{{Key: "_id", Value: 100}}}}, Options: UpdateOptions{Upsert: true}})
	want := []string{"1 1 ", "1 1 ", "1 1 ", "0 0 ", "1 1 ", `0 0 {"$numberInt":"100"}`}
	for i := 10; i < 100; i++ {
		list = append(list, Statement{Filter: by(fmt.Sprint("user", i)), Update: bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}})
		want = append(want, "1 1 ")
	}
	before := s.DB().Metrics().Commits
	if told, failed := outcomesOf(ctx, c, list, true); failed || !slices.Equal(told, want) {
		t.Errorf("reported: %q, want %q", told, want)
	}
	// Those beside the one of the group are for templates and dictionaries, which nobody waits for.
	if n := s.DB().Metrics().Commits - before; n > int64(len(list)/3) {
		t.Errorf("%d commits for %d statements", n, len(list))
	}
	for name, id := range map[string]int{"gone": 0, "again": 1, "new": 100, "user10": 10} {
		if n, err := c.Count(ctx, append(by(name), bson.E{Key: "_id", Value: id}), nil); n != 1 || err != nil {
			t.Errorf("%q is not document %d: %v", name, id, err)
		}
	}
}

// A document that a unique index led to is looked for by a plan when that index goes meanwhile.
func TestUpdatesBesideAnIndexThatComesAndGoes(t *testing.T) {
	s := opened(t, &Options{Storage: pando.Options{FS: memfs.New()}})
	defer s.Close()
	ctx := context.Background()
	c := s.Database("d").Lookup("c")
	const documents, rounds = 20, 40
	for i := range documents {
		if _, err := c.Insert(ctx, bson.D{{Key: "_id", Value: i}, {Key: "u", Value: i}, {Key: "n", Value: 0}}); err != nil {
			t.Fatal(err)
		}
	}
	var wg sync.WaitGroup
	for together := range 2 {
		wg.Go(func() {
			for range rounds {
				var list []Statement
				for i := range documents {
					list = append(list, Statement{Filter: bson.D{{Key: "u", Value: i}}, Update: bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}})
				}
				step := 1 + together*documents
				for at := 0; at < len(list); at += step {
					told, failed := outcomesOf(ctx, c, list[at:min(at+step, len(list))], true)
					if failed || slices.ContainsFunc(told, func(s string) bool { return s != "1 1 " }) {
						t.Errorf("reported: %q", told)
					}
				}
			}
		})
	}
	wg.Go(func() {
		for range rounds {
			name, err := c.CreateIndex(ctx, Index{Keys: bson.D{{Key: "u", Value: 1}}, Unique: true})
			if err == nil {
				err = c.DropIndex(ctx, name)
			}
			if err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
	if n, err := c.Count(ctx, bson.D{{Key: "n", Value: 2 * rounds}}, nil); n != documents || err != nil {
		t.Errorf("%d documents counted right, %v: %v", n, err, allOf(t, c))
	}
}

// A commit does not go by an index that was completed after it began: of what it sees there may be no entries.
func TestAnIndexYoungerThanTheCommitIsNotAsked(t *testing.T) {
	s := opened(t, &Options{Storage: pando.Options{FS: memfs.New()}})
	defer s.Close()
	ctx := context.Background()
	c := s.Database("d").Lookup("c")
	if _, err := c.Insert(ctx, bson.D{{Key: "_id", Value: 1}, {Key: "u", Value: 2}}); err != nil {
		t.Fatal(err)
	}
	ask := func(w *writer) ([][]byte, error) {
		ch, err := c.parseStatement(t.Context(), &Statement{Filter: bson.D{{Key: "u", Value: 2}}})
		if err != nil {
			t.Fatal(err)
		}
		x, err := c.use()
		if err != nil {
			t.Fatal(err)
		}
		ch.changeBuffers = new(changeBuffers)
		return ch.onlyKey(w, x)
	}
	older, err := s.newWriter(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer older.tx.Rollback()
	if _, err := c.CreateIndex(ctx, Index{Keys: bson.D{{Key: "u", Value: 1}}, Unique: true}); err != nil {
		t.Fatal(err)
	}
	if keys, err := ask(older); err != errNeedsPlan {
		t.Errorf("a commit that began before the index was made: %q, %v", keys, err)
	}
	younger, err := s.newWriter(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer younger.tx.Rollback()
	if keys, err := ask(younger); err != nil || len(keys) != 1 {
		t.Errorf("a commit that began after the index was made: %q, %v", keys, err)
	}
}
