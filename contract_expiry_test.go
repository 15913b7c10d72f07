package pando

import (
	"context"
	"testing"
	"time"

	"github.com/pandodb/pando/internal/clock"
	"github.com/pandodb/pando/internal/engine"
	"github.com/pandodb/pando/internal/view"
	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// withClock opens a database on a clock of the test's own.
func withClock(t *testing.T, fs vfs.FS, c clock.Clock) *DB {
	t.Helper()
	e, err := engine.Open(engine.Options{FS: fs, Dir: "db", Clock: c, MemoryBytes: 1 << 20})
	must(t, err)
	db := &DB{e: e, stops: map[*view.Stop]struct{}{}}
	db.main = &Keyspace{db: db, ks: e.Keyspace(engine.DefaultID)}
	db.puts.New = func() any { return new(putter) }
	t.Cleanup(func() { db.Close() })
	return db
}

func TestExpiry(t *testing.T) {
	fs := memfs.New()
	c := clock.NewManual(time.UnixMilli(1_000_000))
	db := withClock(t, fs, c)
	ks := db.Default()
	at := c.Now().Add(time.Minute)
	must(t, ks.PutExpiring([]byte("soon"), []byte("v"), at))
	must(t, db.Put([]byte("stays"), []byte("v")))
	if got, err := ks.Expiry([]byte("soon")); err != nil || !got.Equal(at) {
		t.Errorf("expiry: %v, %v", got, err)
	}
	never, err := ks.Expiry([]byte("stays"))
	if err != nil || !never.IsZero() {
		t.Errorf("expiry: %v, %v", never, err)
	}
	must(t, ks.PutExpiring([]byte("copied"), []byte("v"), never))
	if got, err := ks.Expiry([]byte("copied")); err != nil || !got.IsZero() {
		t.Errorf("expiry of a copy: %v, %v", got, err)
	}
	must(t, db.Delete([]byte("copied")))
	count := func(db *DB, want int64) {
		t.Helper()
		n, err := db.Count(nil, nil)
		walked := int64(0)
		for range db.Range(nil, nil) {
			walked++
		}
		for range db.RangeReverse(nil, nil) {
			walked++
		}
		if err != nil || n != want || walked != 2*want {
			t.Errorf("count %d, walked %d, %v, want %d", n, walked, err, want)
		}
	}
	count(db, 2)
	c.Advance(time.Minute - time.Millisecond)
	count(db, 2)
	c.Advance(time.Millisecond)
	count(db, 1)
	_, err = db.Get([]byte("soon"))
	wantErr(t, "expired", err, ErrNotFound)
	must(t, db.Checkpoint(context.Background()))
	count(db, 1)
	c.Set(time.UnixMilli(1_000_000)) // the wall clock jumps back
	count(db, 1)
	must(t, db.Close())
	db = withClock(t, fs, c)
	count(db, 1)
}
