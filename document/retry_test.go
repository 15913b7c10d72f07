package document

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// A session that a restart cuts off never ends: what it did is forgotten in time, unless it has gone on.
func TestSessionsThatARestartCutOffAreForgotten(t *testing.T) {
	fs := memfs.New()
	o := &Options{Storage: pando.Options{FS: fs}, FS: fs, TTLInterval: -1}
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
	s := opened(t, o)
	insert(s, "goes on", 1)
	insert(s, "is cut off", 1)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = opened(t, o)
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

// Whoever sends the commit of a transaction again, as its answer was lost with the server, has to find out that it was committed. It is known
// when the transaction is there, and only then; a later write of the session takes its place.
func TestCommittedTransactionsAreKnownAfterARestart(t *testing.T) {
	fs := memfs.New()
	o := &Options{Storage: pando.Options{FS: fs}, FS: fs, TTLInterval: -1}
	begin := func(s *Store, session string, number int64) *Tx {
		t.Helper()
		tx, err := s.BeginSnapshot(WithStatements(context.Background(), session, number))
		if err != nil {
			t.Fatal(err)
		}
		return tx
	}
	insert := func(ctx context.Context, c *Collection, id any) {
		t.Helper()
		if _, err := c.Insert(ctx, bson.D{{Key: "_id", Value: id}}); err != nil {
			t.Fatal(err)
		}
	}
	want := func(s *Store, session string, number int64, transaction bool) {
		t.Helper()
		n, is, err := s.NewestNumber(session)
		if n != number || is != transaction || err != nil {
			t.Errorf("%s: the newest number is %d, that of a transaction: %v, %v; want %d, %v", session, n, is, err, number, transaction)
		}
	}
	ctx := context.Background()
	s := opened(t, o)
	c := s.Database("d").Lookup("c")
	insert(ctx, c, 0)
	for _, session := range []string{"committed", "went on"} {
		tx := begin(s, session, 5)
		insert(ctx, tx.In(c), session)
		want(s, session, -1, false)
		if err := tx.Commit(ctx); err != nil {
			t.Fatal(err)
		}
		want(s, session, 5, true)
	}
	if _, err := s.Outcome("committed", 5, 0); CodeOf(err) != 217 {
		t.Errorf("a statement with the number of a transaction: %v", err)
	}
	insert(WithStatements(ctx, "went on", 6, 0), c, 6)
	aborted := begin(s, "aborted", 1)
	insert(ctx, aborted.In(c), "aborted")
	aborted.Abort()
	read := begin(s, "only read", 1)
	if _, err := read.In(c).Count(ctx, nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := read.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	overtaken := begin(s, "overtaken", 1)
	insert(ctx, overtaken.In(c), 7)
	insert(ctx, c, 7)
	if err := overtaken.Commit(ctx); err == nil {
		t.Fatal("two have inserted the same document")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = opened(t, o)
	defer s.Close()
	want(s, "committed", 5, true)
	want(s, "went on", 6, false)
	for _, session := range []string{"aborted", "only read", "overtaken"} {
		want(s, session, -1, false)
	}
	if err := s.ForgetSession("committed"); err != nil {
		t.Fatal(err)
	}
	want(s, "committed", -1, false)
}

// withManySessions opens a store that has written in many sessions before, and has dropped its first collection.
func withManySessions(t *testing.T, fs vfs.FS, history int64) *Store {
	t.Helper()
	o := &Options{Storage: pando.Options{FS: fs, MemoryBytes: 1 << 20}, FS: fs, TTLInterval: -1, History: history}
	s := opened(t, o)
	gone := s.Database("d").Lookup("gone")
	for i := range 20 { // the first ones of a shape have no template
		if _, err := gone.Insert(t.Context(), bson.D{{Key: "_id", Value: i}, {Key: "a", Value: 1}, {Key: "b", Value: "x"}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := gone.Drop(t.Context()); err != nil {
		t.Fatal(err)
	}
	const n = 6000
	err := s.SyncOnce(t.Context(), n, func(ctx context.Context) error {
		for i := range n {
			session := fmt.Sprintf("session %x %d", sha256.Sum256([]byte{byte(i), byte(i >> 8)}), i)
			if _, err := s.Database("d").Lookup("c").Insert(WithStatements(ctx, session, 1, 0), bson.D{{Key: "_id", Value: i}}); err != nil {
				return err
			}
		}
		return nil
	})
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	s = opened(t, o)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// An error of the catalogue is told to whom it concerns. Whoever walked over the catalogue later once heard of it, for ever: sessions were not
// forgotten without a complaint, and no collection was dropped.
func TestErrorsOfTheCatalogueAreToldOnce(t *testing.T) {
	fs := faultfs.New(memfs.New())
	s := withManySessions(t, fs, -1)
	c := s.Database("d").Lookup("other")
	if _, err := c.Insert(t.Context(), bson.D{{Key: "_id", Value: 1}}); err != nil {
		t.Fatal(err)
	}
	fs.Set(segmentsCannotBeRead())
	if err := s.forgetSessions(); !errors.Is(err, faultfs.ErrInjected) {
		t.Errorf("sessions were forgotten that could not be read: %v", err)
	}
	fs.Set()
	if err := s.forgetSessions(); err != nil {
		t.Errorf("sessions that can be read again: %v", err)
	}
	if err := c.Drop(t.Context()); err != nil {
		t.Errorf("drop: %v", err)
	}
}

// Sessions that a restart has cut off are looked for again where they could not be read: they once stayed until the next restart.
func TestSessionsAreForgottenWhenTheyCanBeReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := faultfs.New(memfs.New())
		s := withManySessions(t, fs, -1)
		time.Sleep(sessionAge + forgetInterval/2)
		fs.Set(segmentsCannotBeRead())
		time.Sleep(forgetInterval)
		if fs.Triggered() == 0 {
			t.Error("nothing was to be read")
		}
		fs.Set()
		time.Sleep(2 * forgetInterval)
		n := 0
		err := s.eachOfKind(sessionKey, func([]byte, []byte) error { n++; return nil })
		if n > 0 || err != nil {
			t.Errorf("%d sessions are left, %v", n, err)
		}
	})
}
