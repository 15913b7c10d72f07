package document

import (
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs/memfs"
)

// What was left of an index that a process was killed at, and that a full disk kept, takes nothing away from one that is made later.
func TestIndexBesideWhatAFullDiskKept(t *testing.T) {
	ctx := t.Context()
	o := &Options{Storage: pando.Options{MemoryBytes: 1 << 20}, TTLInterval: -1}
	for pad := 0; pad < 3000; pad += 16 {
		fs := memfs.New()
		o.Storage.FS = fs
		s := opened(t, o)
		c := s.Database("d").Lookup("c")
		if _, err := c.Insert(ctx, bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: 1}}); err != nil {
			t.Fatal(err)
		}
		left, err := s.DB().Keyspace(indexName(1, 1), nil)
		if err == nil {
			err = left.Put([]byte("of another one"), nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		fillWith(t, s, fs, pad)
		_ = s.Close() // what is not settled yet is in the log
		s = opened(t, o)
		kept := slices.Contains(s.undropped.names, indexName(1, 1))
		fs.SetCapacity(0)
		if kept {
			indexBesideLeftovers(t, s)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if kept {
			return
		}
	}
	t.Error("the disk was never so full that something was kept")
}

// indexBesideLeftovers makes an index of the collection d.c, which has one document, while something waits to be dropped.
func indexBesideLeftovers(t *testing.T, s *Store) {
	t.Helper()
	ctx := t.Context()
	c := s.Database("d").Lookup("c")
	if _, err := c.CreateIndex(ctx, Index{Keys: bson.D{{Key: "a", Value: 1}}}); err != nil {
		t.Fatal(err)
	}
	s.dropAgain()
	if v, err := c.Validate(ctx); err != nil || len(v.Indexes) != 1 || v.Indexes[0].Missing+v.Indexes[0].Extra > 0 {
		t.Errorf("%+v, %v", v, err)
	}
	n, err := c.Count(ctx, bson.D{{Key: "a", Value: 1}}, nil)
	if n != 1 || err != nil {
		t.Errorf("%d documents are found by the index: %v", n, err)
	}
}
