package document

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs/memfs"
)

// What those are told who send a statement again may be a whole document, for each of as many sessions as there may be. Most of it is read
// again when it is asked for: it once stayed in memory as long as the session.
func TestLargeOutcomesAreNotKeptInMemory(t *testing.T) {
	s := opened(t, &Options{Storage: pando.Options{FS: memfs.New(), MemoryBytes: 8 << 20}, TTLInterval: -1})
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	c := s.Database("d").Lookup("c")
	const sessions, size = 100, 1 << 20
	pad := strings.Repeat("x", size)
	if _, err := c.Insert(context.Background(), bson.D{{Key: "_id", Value: 1}, {Key: "pad", Value: pad}}); err != nil {
		t.Fatal(err)
	}
	modify := func(session string, id int32) (bson.Raw, error) {
		ctx := WithStatements(context.Background(), session, 1, id)
		doc, _, err := c.FindAndModify(ctx, bson.D{{Key: "_id", Value: 1}}, bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}, &ModifyOptions{New: true})
		return doc, err
	}
	var want [sessions]bson.Raw
	for i := range sessions {
		var err error
		if want[i], err = modify(fmt.Sprint("session ", i), 0); err != nil {
			t.Fatal(err)
		}
	}
	held := 0
	for _, r := range s.retries.bySession {
		held += len(r.entries)
	}
	if most := 40 << 20; held > most {
		t.Errorf("%d bytes are held for %d sessions", held, sessions)
	}
	for i := range sessions {
		session := fmt.Sprint("session ", i)
		if o, err := s.Outcome(session, 1, 0); err != nil || o == nil || !bytes.Equal(o.Document, want[i]) {
			t.Fatalf("session %d is not told what it did: %v", i, err)
		}
		if o, err := s.Outcome(session, 2, 0); o != nil || err != nil {
			t.Errorf("session %d is told of what it did not do: %v, %v", i, o, err)
		}
	}
	// One more statement of the same command: both are known afterwards, and after a restart.
	second, err := modify("session 99", 1)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for id, doc := range []bson.Raw{want[99], second} {
			if o, err := s.Outcome("session 99", 1, int32(id)); err != nil || o == nil || !bytes.Equal(o.Document, doc) {
				t.Errorf("statement %d: %v", id, err)
			}
		}
		s.retries = retries{}
	}
}

// Many statements of one command that are sent again are found each without a look at all of them.
func TestManyStatementsAreSentAgain(t *testing.T) {
	s := opened(t, &Options{Storage: pando.Options{FS: memfs.New(), MemoryBytes: 8 << 20}, TTLInterval: -1})
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	c := s.Database("d").Lookup("c")
	const n = 20_000
	ids := make([]int32, n)
	docs := make([]bson.D, n)
	list := make([]Statement, n)
	for i := range n {
		ids[i], docs[i] = int32(i), bson.D{{Key: "_id", Value: i}}
		list[i] = Statement{Filter: docs[i], Update: bson.D{{Key: "$set", Value: bson.D{{Key: "a", Value: i}}}}}
	}
	if _, err := c.InsertMany(WithStatements(context.Background(), "session", 1, ids...), docs, nil); err != nil {
		t.Fatal(err)
	}
	c.ApplyMany(WithStatements(context.Background(), "session", 2, ids...), list, func(i int, r *UpdateResult, err error) bool {
		if err != nil || r.Modified != 1 {
			t.Errorf("%d: %+v, %v", i, r, err)
		}
		return true
	})
	for i := range n {
		if o, err := s.Outcome("session", 2, int32(i)); o == nil || err != nil || o.Modified != 1 {
			t.Fatalf("statement %d: %+v, %v", i, o, err)
		}
	}
	if o, err := s.Outcome("session", 2, n); o != nil || err != nil {
		t.Errorf("a statement that was not carried out: %+v, %v", o, err)
	}
}

// A capped collection has a commit for each document of an insert, and each of them tells of all before it: they are told of as one run.
func TestInsertsIntoACappedCollectionAreOneRun(t *testing.T) {
	s := opened(t, &Options{Storage: pando.Options{FS: memfs.New(), MemoryBytes: 8 << 20}, TTLInterval: -1})
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	c, err := s.Collection(context.Background(), "c", &CollectionOptions{Capped: true, SizeBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	const n = 1000
	insert := func(from, to int32) {
		t.Helper()
		var ids []int32
		var docs []bson.D
		for i := from; i < to; i++ {
			ids, docs = append(ids, i), append(docs, bson.D{{Key: "_id", Value: i}})
		}
		if _, err := c.InsertMany(WithStatements(context.Background(), "session", 1, ids...), docs, nil); err != nil {
			t.Fatal(err)
		}
	}
	insert(5, n)
	if size := len(s.retries.bySession["session"].entries); size > 10 {
		t.Errorf("%d bytes tell of the inserts", size)
	}
	insert(n+1, n+3) // not behind the others
	if _, err := c.Update(WithStatements(context.Background(), "session", 1, n+3), bson.D{{Key: "_id", Value: 7}}, bson.D{{Key: "$set", Value: bson.D{{Key: "a", Value: 1}}}}, nil); err != nil {
		t.Fatal(err)
	}
	insert(n+4, n+6)
	for range 2 {
		for id := range int32(n + 8) {
			did := id >= 5 && id < n+6 && id != n
			o, err := s.Outcome("session", 1, id)
			if err != nil || (o != nil) != did || did && (o.Modified == 1) != (id == n+3) {
				t.Fatalf("statement %d: %+v, %v", id, o, err)
			}
		}
		s.retries = retries{} // what is in the store says the same
	}
}
