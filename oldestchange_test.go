package pando

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pandodb/pando/test/entropy"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// OldestChange is where the changes can be asked for from, also after a kill: files of the log that wait to be used again were once taken
// for log that is kept, though values and files of batches that it tells of had gone.
func TestChangesReachBackToOldestChangeAfterAKill(t *testing.T) {
	fsys := memfs.New()
	o := Options{KeepChanges: 64 << 10, Compression: None}
	db := openMem(t, fsys, o)
	for i := range 2000 { // with little data the log keeps no files
		must(t, db.Put(fmt.Append(nil, "before", i), make([]byte, 900)))
	}
	for round := range byte(8) {
		for i := range 60 {
			must(t, db.Put(fmt.Append(nil, "long", i%7), bytes.Repeat([]byte{round}, 40_000)))
			must(t, db.Put(fmt.Append(nil, "short", i), bytes.Repeat([]byte{round}, 900)))
		}
		must(t, db.Checkpoint(t.Context()))
		before := db.OldestChange()
		killed := openMem(t, fsys.KillImage(), o)
		oldest := killed.OldestChange()
		if oldest < before {
			t.Errorf("round %d: the oldest change was %d, and is %d after a kill", round, before, oldest)
		}
		for _, err := range killed.Changes(t.Context(), ChangesOptions{From: oldest}) {
			if err != nil {
				t.Errorf("round %d: %v", round, err)
			}
		}
	}
}

// Without KeepChanges the feed is told of what the log happens to have: OldestChange is behind what that refers to and has gone, in the
// run that has given it up and in later ones, with KeepChanges too.
func TestOldestChangeIsBehindWhatHasGone(t *testing.T) {
	apart := func(t *testing.T, db *DB) {
		for round := range byte(3) {
			must(t, db.Put([]byte("long"), bytes.Repeat([]byte{round}, 5_000)))
		}
		must(t, db.Compact(t.Context(), CompactOptions{}))
	}
	bulk := func(t *testing.T, db *DB) {
		must(t, db.Put([]byte("before"), nil))
		putMany(t, db)
	}
	const kept = 1 << 20
	for name, run := range map[string]struct {
		before, o Options
		do        func(t *testing.T, db *DB)
	}{
		"bulk":  {Options{}, Options{}, bulk},
		"apart": {Options{}, Options{}, apart},
		"bench": {Options{KeepChanges: kept}, Options{Profile: Bench, KeepChanges: kept}, apart},
	} {
		t.Run(name, func(t *testing.T) {
			fsys := memfs.New()
			for i, o := range []Options{run.before, run.o, run.before, {KeepChanges: kept}, {KeepChanges: kept}} {
				db := openMem(t, fsys, o)
				endsWith(t, db, "b")
				if i == 1 {
					run.do(t, db)
				}
				must(t, db.Put([]byte("b"), nil))
				endsWith(t, db, "b")
				must(t, db.Close())
			}
		})
	}
}

// putMany commits a batch that goes to a file.
func putMany(t *testing.T, db *DB) {
	b := db.NewBatch()
	for i := range 2000 {
		must(t, b.Put(fmt.Append(nil, "many", i), make([]byte, 100)))
	}
	must(t, db.Write(b))
}

// endsWith checks that the feed can be read from the oldest change on, and ends with a change of a key, if there is any.
func endsWith(t *testing.T, db *DB, key string) {
	t.Helper()
	oldest := db.OldestChange()
	if oldest > db.LastSeq() {
		return
	}
	last := ""
	for c, err := range db.Changes(t.Context(), ChangesOptions{From: oldest}) {
		if err != nil {
			t.Errorf("changes from %d of %d: %v", oldest, db.LastSeq(), err)
		}
		last = string(c.Key)
	}
	if last != key {
		t.Errorf("the last change is of %q, not of %q", last, key)
	}
}

// Where what would tell what has gone cannot be read for a while OldestChange looks again: it once took all to be there from then on.
func TestOldestChangeLooksAgainWhereReadsFailed(t *testing.T) {
	long := func(t *testing.T, db *DB) {
		for round := range byte(3) {
			must(t, db.Put([]byte("long"), bytes.Repeat([]byte{round}, 5_000)))
		}
		must(t, db.Compact(t.Context(), CompactOptions{}))
	}
	for files, do := range map[string]func(t *testing.T, db *DB){"*.wal": long, "*.spill": putMany} {
		t.Run(files, func(t *testing.T) {
			fsys := faultfs.New(memfs.New())
			db := openMem(t, fsys, Options{})
			do(t, db)
			must(t, db.Put([]byte("b"), nil))
			must(t, db.Close())
			db = openMem(t, fsys, Options{KeepChanges: 1 << 20})
			fsys.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpReadAt, faultfs.OpOpen), Name: files, Times: -1})
			_ = db.OldestChange()
			if fsys.Triggered() == 0 {
				t.Error("nothing was read")
			}
			fsys.Set()
			endsWith(t, db, "b")
		})
	}
}

// A value that only the log refers to has not gone because the device does not give it back for a while, however long that is: OldestChange
// was behind it for good then, though it could be read again.
func TestOldestChangeWhereAValueCouldNotBeReadForLong(t *testing.T) {
	for name, length := range map[string]int{"short": 12_000, "in chunks": 5 << 19} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rng := rand.New(rand.NewPCG(1, uint64(length)))
				fsys := faultfs.New(memfs.New())
				o := Options{KeepChanges: 8 << 20, Compression: None}
				db := openMem(t, fsys, o)
				must(t, db.Put([]byte("a"), entropy.Bytes(rng, length)))
				must(t, db.Checkpoint(t.Context()))
				must(t, db.Close())
				db = openMem(t, fsys, o) // and a segment of its own
				must(t, db.Put([]byte("a"), entropy.Bytes(rng, length)))
				must(t, db.Checkpoint(t.Context()))
				must(t, db.Close())
				db = openMem(t, fsys, o)
				fsys.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpReadAt, faultfs.OpMap), Name: "*.seg", Times: -1})
				for range 20 {
					_ = db.OldestChange()
					time.Sleep(3 * time.Second)
				}
				if fsys.Triggered() == 0 {
					t.Error("nothing was read")
				}
				fsys.Set()
				if oldest := db.OldestChange(); oldest != 1 {
					t.Errorf("the oldest change is %d, of which nothing has gone", oldest)
				}
				feedIsWhole(t, db, 2*length)
				must(t, db.Close())
			})
		})
	}
}
