package document

import (
	"context"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs/memfs"
)

// A session that a restart cuts off never ends: what it did is forgotten in time, unless it has gone on.
func TestSessionsThatARestartCutOffAreForgotten(t *testing.T) {
	fs := memfs.New()
	reopen := func() *Store {
		t.Helper()
		s, err := Open("db", &Options{Storage: pando.Options{FS: fs}, FS: fs, TTLInterval: -1})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	insert := func(s *Store, session string, id int) {
		t.Helper()
		ctx := WithStatements(context.Background(), session, int64(id), 0)
		if _, err := s.Database("d").Lookup("c").Insert(ctx, bson.D{{Key: "_id", Value: session + string(rune('0'+id))}}); err != nil {
			t.Fatal(err)
		}
	}
	known := func(s *Store) (n int) {
		t.Helper()
		for range s.meta.Prefix([]byte{sessionKey}) {
			n++
		}
		return n
	}
	s := reopen()
	insert(s, "goes on", 1)
	insert(s, "is cut off", 1)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = reopen()
	defer s.Close()
	insert(s, "goes on", 2)
	if n := known(s); n != 2 {
		t.Errorf("%d sessions are known", n)
	}
	if err := s.forgetSessions(); err != nil || known(s) != 1 {
		t.Errorf("%d sessions are left, %v", known(s), err)
	}
	if o, err := s.Outcome("goes on", 2, 0); o == nil || err != nil {
		t.Errorf("the one that goes on: %v, %v", o, err)
	}
}

// What is needed to read of dropped collections goes when the log does not reach back to them.
func TestDroppedCollectionsAreForgotten(t *testing.T) {
	fs := memfs.New()
	s, err := Open("db", &Options{Storage: pando.Options{FS: fs, MemoryBytes: 16 << 20}, FS: fs, TTLInterval: -1, History: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx := context.Background()
	c := s.Database("d").Lookup("c")
	kept := func() (n int) {
		for range s.meta.Prefix([]byte{droppedKey}) {
			n++
		}
		for range s.meta.Prefix([]byte{templateKey}) {
			n++
		}
		return n
	}
	fill := func() {
		t.Helper()
		pad := string(make([]byte, 500))
		for i := range 10 {
			var docs []bson.D
			for j := range 1000 {
				docs = append(docs, bson.D{{Key: "_id", Value: i*1000 + j}, {Key: "pad", Value: pad}})
			}
			if _, err := c.InsertMany(ctx, docs, nil); err != nil {
				t.Fatal(err)
			}
			if err := s.db.Checkpoint(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	fill()
	if err := c.Drop(ctx); err != nil {
		t.Fatal(err)
	}
	before := kept()
	if err := s.forgetDropped(); err != nil || kept() != before || before < 2 {
		t.Errorf("%d things are kept at once, %d after, %v", before, kept(), err)
	}
	fill()
	if err := s.forgetDropped(); err != nil || kept() != before-1 {
		t.Errorf("%d things are kept in the end, %v", kept(), err)
	}
}
