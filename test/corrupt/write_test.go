package corrupt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pandodb/pando"
)

// Damage in one keyspace once made every checkpoint fail as soon as the cleaner came across it, and then all writes; what was damaged
// could neither be dropped, nor deleted, nor written over.
func TestDamageDoesNotStopWriters(t *testing.T) {
	const leaf, long = "inline 60", "bad/key 050 long"
	for name, c := range map[string]struct {
		damaged string // the text whose blobs are damaged
		act     func(bad *pando.Keyspace, db *pando.DB) error
		heals   bool // nothing of the damage is left
	}{
		"leaf beside":  {leaf, func(_ *pando.Keyspace, db *pando.DB) error { return db.DropKeyspace("garbage") }, false},
		"bulk beside":  {leaf, writeLots, false},
		"value beside": {long, func(_ *pando.Keyspace, db *pando.DB) error { return db.DropKeyspace("garbage") }, false},
		"dropped":      {leaf, func(_ *pando.Keyspace, db *pando.DB) error { return db.DropKeyspace("bad") }, true},
		"deleted":      {leaf, func(bad *pando.Keyspace, _ *pando.DB) error { return bad.DeleteRange(nil, nil) }, true},
		"value overwrite": {long, func(bad *pando.Keyspace, _ *pando.DB) error {
			return bad.Put([]byte("bad/key 050 long"), []byte("new"))
		}, true},
		"value deleted": {long, func(bad *pando.Keyspace, _ *pando.DB) error { return bad.Delete([]byte("bad/key 050 long")) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			fsys, o, db := uncompressed(t)
			bad, good := twoKeyspaces(t, db)
			garbage, err := db.Keyspace("garbage", nil)
			must(t, err)
			for i := range 1000 {
				must(t, garbage.Put(fmt.Append(nil, i), distinct(i)[:150]))
			}
			for i := range 100 {
				must(t, good.Put(fmt.Appendf(nil, "good %d", i), distinct(i)))
				must(t, bad.Put(fmt.Appendf(nil, "bad/key %03d", i), distinct(i)))
				must(t, bad.Put(fmt.Appendf(nil, "bad/key %03d inline", i), fmt.Appendf(nil, "inline %d", i)))
			}
			must(t, bad.Put([]byte("bad/key 050 long"), []byte(strings.Repeat("what goes on and on ", 90_000))))
			must(t, db.Compact(context.Background(), pando.CompactOptions{})) // no key stands alone in a page, where it would be found too
			must(t, db.Close())
			if damageValues(t, fsys, []byte(c.damaged)) == 0 {
				t.Fatal("nothing was damaged")
			}

			db, err = pando.Open(dir, o)
			must(t, err)
			bad, good = twoKeyspaces(t, db)
			must(t, c.act(bad, db))
			const rounds = 8
			for round := range rounds { // of garbage, so that the cleaner gets to every segment
				for i := range 100 {
					must(t, good.Put(fmt.Appendf(nil, "good %d", i), distinct(i*rounds+round)))
				}
				must(t, db.Checkpoint(context.Background()))
			}
			must(t, db.Close())

			db, err = pando.Open(dir, o)
			must(t, err)
			_, good = twoKeyspaces(t, db)
			for i := range 100 {
				if v, err := good.Get(fmt.Appendf(nil, "good %d", i)); err != nil || !bytes.Equal(v, distinct(i*rounds+rounds-1)) {
					t.Fatalf("record %d of the other keyspace: %d bytes, %v", i, len(v), err)
				}
			}
			report, err := db.Check(context.Background())
			must(t, err)
			if healed := report.Err() == nil; healed != c.heals {
				t.Errorf("damage that is left: %v", report.Err())
			}
			must(t, db.Close())
		})
	}
}

// What had been written to damaged pages once kept everything from settling, until it was dropped or deleted, and even then until the
// database was opened again.
func TestDroppingWhatIsDamagedLetsTheRestSettle(t *testing.T) {
	for what, drop := range map[string]func(bad *pando.Keyspace, db *pando.DB) error{
		"dropped": func(_ *pando.Keyspace, db *pando.DB) error { return db.DropKeyspace("bad") },
		"deleted": func(bad *pando.Keyspace, _ *pando.DB) error { return bad.DeleteRange(nil, nil) },
	} {
		db, o := writtenToDamaged(t)
		bad, good := twoKeyspaces(t, db)
		for range 2 {
			if err := db.Checkpoint(context.Background()); err != nil {
				t.Errorf("what goes to a damaged page: %v", err)
			}
			must(t, good.Put([]byte("g"), []byte("in between")))
		}
		must(t, drop(bad, db))
		if err := db.Checkpoint(context.Background()); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		must(t, db.Close())

		db, err := pando.Open(dir, o)
		must(t, err)
		_, good = twoKeyspaces(t, db)
		if v, err := good.Get([]byte("g")); string(v) != "in between" || err != nil {
			t.Errorf("%s: the other keyspace has %q, %v", what, v, err)
		}
		must(t, db.Close())
	}
}

// A snapshot whose memtables could not be settled for it, because of damage in what it reads, once made every checkpoint fail until it
// was closed.
func TestDamageUnderAHeldSnapshotDoesNotStopWriters(t *testing.T) {
	db, _ := writtenToDamaged(t)
	bad, good := twoKeyspaces(t, db)
	must(t, good.Put([]byte("g"), []byte("of the snapshot")))
	s := db.Snapshot()
	must(t, bad.DeleteRange(nil, nil))
	for i := range 3 {
		must(t, good.Put([]byte("g"), fmt.Append(nil, i)))
		must(t, db.Checkpoint(context.Background()))
	}
	if v, err := s.In(good).Get([]byte("g")); string(v) != "of the snapshot" || err != nil {
		t.Errorf("the snapshot has %q, %v", v, err)
	}
	must(t, s.Close())
	must(t, db.Close())
}

// writtenToDamaged opens a database of twoKeyspaces with a new record "a" in the bad one, whose page is damaged, and returns its options.
func writtenToDamaged(t *testing.T) (*pando.DB, *pando.Options) {
	t.Helper()
	fsys, o, db := uncompressed(t)
	bad, _ := twoKeyspaces(t, db)
	must(t, bad.Put([]byte("a"), []byte("damage me")))
	must(t, db.Close())
	if damageValues(t, fsys, []byte("damage me")) != 1 {
		t.Fatal("the record is not where it was looked for")
	}
	db, err := pando.Open(dir, o)
	must(t, err)
	bad, _ = twoKeyspaces(t, db)
	must(t, bad.Put([]byte("a"), []byte("new")))
	return db, o
}

func twoKeyspaces(t *testing.T, db *pando.DB) (bad, good *pando.Keyspace) {
	t.Helper()
	o := &pando.KeyspaceOptions{LeafBytes: 256}
	bad, err := db.Keyspace("bad", o)
	must(t, err)
	good, err = db.Keyspace("good", o)
	must(t, err)
	return bad, good
}

// writeLots makes garbage, and writes more than a transaction holds in memory, a few times.
func writeLots(_ *pando.Keyspace, db *pando.DB) error {
	err := errors.Join(db.DropKeyspace("garbage"), db.Checkpoint(context.Background()))
	for range 3 {
		err = errors.Join(err, db.Update(func(tx *pando.Tx) error {
			for i := range 6000 {
				if err := tx.Put(fmt.Append(nil, i), distinct(i)[:100]); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	return err
}
