package document_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// byName makes n updates that find their documents by another field than _id, one of which fails, and the fields that they set.
func byName(n int) []document.Statement {
	list := make([]document.Statement, n)
	for i := range list {
		list[i] = document.Statement{Filter: bson.D{{Key: "name", Value: i}}, Update: bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: i}}}}, Options: document.UpdateOptions{Upsert: i%2 == 0}}
	}
	list[n/2].Update = bson.D{{Key: "$inc", Value: bson.D{{Key: "text", Value: 1}}}}
	return list
}

// named stores n documents with names and a text.
func named(t *testing.T, s *document.Store, n int) *document.Collection {
	t.Helper()
	c := collection(t, s, "c", nil)
	_, err := c.CreateIndex(ctx, document.Index{Keys: bson.D{{Key: "name", Value: 1}}})
	must(t, err)
	docs := make([]bson.D, n)
	for i := range docs {
		docs[i] = bson.D{{Key: "_id", Value: i}, {Key: "name", Value: i}, {Key: "text", Value: "t"}}
	}
	_, err = c.InsertMany(ctx, docs, nil)
	must(t, err)
	return c
}

// Calls that share a sync take one, however many they are and whichever of them fails; what they have done survives a power cut as soon
// as SyncOnce has returned, and may not before.
func TestCallsThatShareASync(t *testing.T) {
	for _, n := range []int{4, 300} {
		fs := memfs.New()
		s := open(t, fs)
		c := named(t, s, n)
		before := s.DB().Metrics().Syncs
		failed, boom := 0, errors.New("boom")
		err := s.SyncOnce(ctx, n, func(ctx context.Context) error {
			c.ApplyMany(ctx, byName(n), func(i int, _ *document.UpdateResult, err error) bool {
				if err != nil {
					failed++
				}
				return true
			})
			if got := survived(t, fs, "n"); got != 0 {
				t.Errorf("%d of %d were durable already: then it is not tested that they are when it counts", got, n)
			}
			return boom
		})
		if !errors.Is(err, boom) || failed != 1 {
			t.Fatalf("%d of the statements failed, and %v", failed, err)
		}
		if got := s.DB().Metrics().Syncs - before; got != 1 {
			t.Errorf("%d statements took %d syncs", n, got)
		}
		if got := survived(t, fs, "n"); got != n-1 {
			t.Errorf("%d of %d updates survive a power cut", got, n-1)
		}
	}
}

// survived counts the documents with a field that are there after a power cut.
func survived(t *testing.T, fs *memfs.FS, field string) int {
	t.Helper()
	s := open(t, fs.CrashImage(memfs.Policy{}))
	n, err := collection(t, s, "c", nil).Count(ctx, bson.D{{Key: field, Value: bson.D{{Key: "$exists", Value: true}}}}, nil)
	must(t, err)
	return int(n)
}

// One call that makes one commit waits with the others for a sync, and is not seen before it. Of an update of many documents the commits
// before the last do not wait.
func TestOneCallThatMakesSeveralCommits(t *testing.T) {
	for n, want := range map[int]int64{10: 1, 1000: 2, 2000: 2} { // that of the last commit, and one which finds that there is nothing to do
		fs := memfs.New()
		s := open(t, fs)
		c := named(t, s, n)
		before := s.DB().Metrics().Syncs
		must(t, s.SyncOnce(ctx, 1, func(ctx context.Context) error {
			_, err := c.Update(ctx, nil, bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: 1}}}}, &document.UpdateOptions{Many: true})
			if got := survived(t, fs, "n"); got != n {
				t.Errorf("%d of %d documents are durable behind the last commit, which waits", got, n)
			}
			return err
		}))
		if got := s.DB().Metrics().Syncs - before; got != want {
			t.Errorf("%d documents took %d syncs", n, got)
		}
	}
}

// While calls share a sync others see what is not durable yet. SyncSeen makes it so, and costs nothing at other times.
func TestSyncSeen(t *testing.T) {
	fs := memfs.New()
	s := open(t, fs)
	c := named(t, s, 4)
	before := s.DB().Metrics().Syncs
	syncs := func(want int64, when string) {
		t.Helper()
		must(t, s.SyncSeen())
		if got := s.DB().Metrics().Syncs - before; got != want {
			t.Errorf("%d syncs %s", got, when)
		}
	}
	syncs(0, "with nothing to wait for")
	must(t, s.SyncOnce(ctx, 2, func(ctx context.Context) error {
		syncs(0, "before the first commit")
		_, err := c.Update(ctx, bson.D{{Key: "name", Value: 1}}, bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: 1}}}}, nil)
		must(t, err)
		if n, err := c.Count(ctx, bson.D{{Key: "n", Value: 1}}, nil); n != 1 || err != nil {
			t.Errorf("the commit is not seen: %d, %v", n, err)
		}
		syncs(1, "behind a commit that did not wait")
		if survived(t, fs, "n") != 1 {
			t.Error("what was seen is not durable")
		}
		return nil
	}))
	before = s.DB().Metrics().Syncs
	syncs(0, "afterwards")
}

// When the one sync fails nobody is told that anything is durable, those who have seen it included.
func TestSyncOnceThatFails(t *testing.T) {
	faults := faultfs.New(memfs.New())
	s, err := document.Open("db", &document.Options{Storage: pando.Options{FS: faults, MemoryBytes: 8 << 20}, TTLInterval: -1})
	must(t, err)
	defer s.Close()
	c := named(t, s, 4)
	err = s.SyncOnce(ctx, 4, func(ctx context.Context) error {
		for i := range 4 {
			_, err := c.Update(ctx, bson.D{{Key: "name", Value: i}}, bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: 1}}}}, nil)
			must(t, err)
		}
		faults.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpSync)})
		return nil
	})
	faults.Set()
	if !errors.Is(err, pando.ErrFailed) {
		t.Errorf("SyncOnce: %v", err)
	}
	if err := s.SyncSeen(); !errors.Is(err, pando.ErrFailed) {
		t.Errorf("SyncSeen: %v", err)
	}
}

// Outside of the Durable profile there is nothing to wait for, and nothing changes.
func TestSyncOnceInOtherProfiles(t *testing.T) {
	s, err := document.Open("db", &document.Options{Storage: pando.Options{FS: memfs.New(), Profile: pando.Relaxed}, TTLInterval: -1})
	must(t, err)
	defer s.Close()
	c := named(t, s, 4)
	boom := fmt.Errorf("boom")
	if err := s.SyncOnce(ctx, 2, func(ctx context.Context) error {
		_, err := c.Insert(ctx, bson.D{{Key: "n", Value: 1}})
		return errors.Join(err, boom)
	}); !errors.Is(err, boom) || errors.Is(err, pando.ErrFailed) {
		t.Error(err)
	}
	must(t, s.SyncSeen())
}
