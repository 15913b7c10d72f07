package pando

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/pandodb/pando/internal/clock"
	"github.com/pandodb/pando/internal/engine"
	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// withClock opens a database on a clock of the test's own.
func withClock(t *testing.T, fs vfs.FS, c clock.Clock) *DB {
	t.Helper()
	e, err := engine.Open(engine.Options{FS: fs, Dir: "db", Clock: c, MemoryBytes: 1 << 20})
	must(t, err)
	db := &DB{e: e}
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

// Moments of which nobody has heard, past and future, are just that: what is to be there until the end of time is not gone at once.
func TestExpiryFarAway(t *testing.T) {
	fs := memfs.New()
	c := clock.NewManual(time.UnixMilli(1_000_000))
	db := withClock(t, fs, c)
	latest := time.Unix(1<<63-62135596801, 999_999_999) // what time.Time can compare
	moments := map[string]time.Time{
		"latest": latest, "end of int64": time.Unix(math.MaxInt64, 0), "last millisecond": time.UnixMilli(math.MaxInt64),
		"year 9999": time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC),
		"epoch":     time.Unix(0, 0), "before it": time.Unix(-1, 0), "long before it": time.Unix(math.MinInt64/2, 0),
	}
	for name, at := range moments {
		must(t, db.Default().PutExpiring([]byte(name), nil, at))
	}
	look := func(db *DB) {
		t.Helper()
		for name, at := range moments {
			there, err := db.Has([]byte(name))
			if want := at.After(c.Now()); there != want || err != nil {
				t.Errorf("%s: there: %t, %v, want %t", name, there, err, want)
			}
			if got, err := db.Default().Expiry([]byte(name)); there && (err != nil || got.After(at) || got.Before(c.Now())) {
				t.Errorf("%s: expires at %v, %v, want %v", name, got, err, at)
			}
		}
	}
	look(db)
	must(t, db.Checkpoint(context.Background()))
	look(db)
	must(t, db.Close())
	look(withClock(t, fs, c))
}
