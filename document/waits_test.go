package document

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs/memfs"
)

// inTime returns what comes, and fails the test where nothing does, since those who should send it wait for each other.
func inTime[T any](t *testing.T, done <-chan T) (got T) {
	t.Helper()
	select {
	case got = <-done:
	case <-time.After(time.Minute):
		t.Fatal("somebody waits for ever")
	}
	return got
}

// What is left of a session is removed in a commit, which waits for a batch that keeps other writers out; and the batch asks what its own
// session did before. Neither may wait for the other.
func TestForgettingSessionsKeepsNoBatchWaiting(t *testing.T) {
	o := &Options{Storage: pando.Options{FS: memfs.New()}, TTLInterval: -1}
	s := opened(t, o)
	ctx := func(session string) context.Context { return WithStatements(t.Context(), session, 1, 0) }
	c := s.Database("d").Lookup("c")
	for _, session := range []string{"is cut off", "comes back"} {
		if _, err := c.Insert(ctx(session), bson.D{{Key: "_id", Value: session}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, session := range []string{"begins", "comes back"} {
		s := opened(t, o)
		x, err := s.Database("d").Lookup("c").lookup()
		if err != nil {
			t.Fatal(err)
		}
		forgotten, stored := make(chan error, 1), make(chan error, 1)
		go func() {
			stored <- s.storeBatch(ctx(session), touch{x, x.indexes.Load(), x.settings.Load()}, func(w *writer) error {
				go func() { forgotten <- s.forgetSessions() }()
				time.Sleep(20 * time.Millisecond) // it comes to its commit
				w.did(0, Outcome{N: 1})
				return nil
			})
		}()
		for _, done := range []chan error{stored, forgotten} {
			if err := inTime(t, done); err != nil {
				t.Error(err)
			}
		}
		if o, err := s.Outcome(session, 1, 0); o == nil || err != nil {
			t.Errorf("what the batch did: %v, %v", o, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A tail waits for what an insert brings, and not for the insert itself, which the device may keep waiting: its caller can end it.
func TestTailsDoNotWaitForAnInsertThatWaits(t *testing.T) {
	s := opened(t, &Options{Storage: pando.Options{FS: memfs.New()}, TTLInterval: -1})
	defer s.Close()
	if err := s.Database("d").Create(t.Context(), "c", bson.D{{Key: "capped", Value: true}, {Key: "size", Value: 10_000}}); err != nil {
		t.Fatal(err)
	}
	c := s.Database("d").Lookup("c")
	tail, err := c.Tail(t.Context(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tail.Close()
	x, err := c.lookup()
	if err != nil {
		t.Fatal(err)
	}
	defer x.capped.inserting()()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	ended := make(chan bool, 1)
	go func() { ended <- tail.Next(ctx) }()
	if inTime(t, ended) {
		t.Error("the tail has found something")
	}
}

// A transaction over two collections waits until no list of indexes of theirs changes, and to put one in the place of the other waits until
// neither is written to: in the same order, or they would wait for each other.
func TestRenamesAndTransactionsDoNotWaitForEachOther(t *testing.T) {
	s := opened(t, &Options{Storage: pando.Options{FS: memfs.New()}, TTLInterval: -1})
	db := s.Database("d")
	ctx, cancel := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	for g := range 4 {
		names := []string{"a", "b"}
		if g%2 == 0 {
			slices.Reverse(names)
		}
		writers.Go(func() {
			for ctx.Err() == nil {
				err := s.Transaction(ctx, func(tx *Tx) (err error) {
					for _, name := range names {
						_, failed := tx.In(db.Lookup(name)).Insert(ctx, bson.D{{Key: "name", Value: name}})
						err = errors.Join(err, failed)
					}
					return err
				})
				if err != nil && ctx.Err() == nil {
					t.Log(err) // which is not what this is about
				}
			}
		})
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for renamed := 0; renamed < 30; {
			if db.Lookup("a").Rename(ctx, "d", "b", true) == nil {
				renamed++
			}
		}
		cancel()
		writers.Wait()
	}()
	inTime(t, done)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
