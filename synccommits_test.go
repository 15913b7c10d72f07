package pando

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// commitUnsynced commits one pair without waiting for a sync.
func commitUnsynced(db *DB, key string, value []byte) error {
	tx, err := db.Begin(true)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	return errors.Join(tx.Put([]byte(key), value), tx.CommitUnsynced())
}

// Commits that do not wait are seen at once, whether their values lie in the log or apart. A power cut may take them, but only from the
// end; once SyncCommits has returned it takes none, and however many they are they have cost one sync.
func TestCommitsThatShareASync(t *testing.T) {
	fsys := memfs.New()
	calls := faultfs.New(fsys)
	db, err := Open("db", &Options{FS: calls})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	const commits = 50
	before, metric := calls.Count(faultfs.OpSync), db.Metrics().Syncs
	for i := range commits {
		var value []byte
		if i%10 == 0 {
			value = make([]byte, 100<<10) // apart
		}
		if err := commitUnsynced(db, fmt.Sprint(i), value); err != nil {
			t.Fatal(err)
		}
		if ok, err := db.Has(fmt.Append(nil, i)); !ok || err != nil {
			t.Fatalf("not to be seen: %v", err)
		}
	}
	if n := calls.Count(faultfs.OpSync) - before; n != 0 {
		t.Errorf("%d files were synced before anybody asked for it", n)
	}
	for seed := range uint64(10) {
		survivors := survivorsOf(t, fsys.CrashImage(memfs.Policy{Unsynced: memfs.Random, Seed: seed, Reordered: seed%2 == 0}), commits)
		for i := 1; i < commits; i++ {
			if survivors[i] && !survivors[i-1] {
				t.Fatalf("seed %d: commit %d has survived, and the one before has not", seed, i)
			}
		}
	}
	if err := db.SyncCommits(); err != nil {
		t.Fatal(err)
	}
	if n := db.Metrics().Syncs - metric; n != 1 {
		t.Errorf("%d syncs, not one", n)
	}
	for i, there := range survivorsOf(t, fsys.CrashImage(memfs.Policy{}), commits) {
		if !there {
			t.Fatalf("commit %d did not survive", i)
		}
	}
}

// survivorsOf says which of the commits are there after a crash.
func survivorsOf(t *testing.T, image *memfs.FS, commits int) []bool {
	t.Helper()
	db, err := Open("db", &Options{FS: image})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	there := make([]bool, commits)
	for i := range there {
		if there[i], err = db.Has(fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
	}
	return there
}

// Whether a commit waits is nothing that the next transaction has from the one before, whose memory it uses. One that only reads, or has
// ended, has nothing to commit.
func TestCommitBehindAnUnsyncedOneWaits(t *testing.T) {
	db, err := Open("db", &Options{FS: memfs.New()})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for i := range 10 {
		before := db.Metrics().Syncs
		if err := commitUnsynced(db, fmt.Sprint(i), nil); err != nil {
			t.Fatal(err)
		}
		if n := db.Metrics().Syncs - before; n != 0 {
			t.Errorf("the commit that does not wait took %d syncs", n)
		}
		if err := db.Update(func(tx *Tx) error { return tx.Put([]byte("k"), nil) }); err != nil {
			t.Fatal(err)
		}
		tx, err := db.Begin(true)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(tx.Put([]byte("k"), nil), tx.Commit()); err != nil {
			t.Fatal(err)
		}
		if n := db.Metrics().Syncs - before; n != 2 {
			t.Errorf("two commits that wait took %d syncs", n)
		}
		if err := tx.CommitUnsynced(); !errors.Is(err, ErrTxDone) {
			t.Errorf("of one that has ended: %v", err)
		}
	}
	tx, err := db.Begin(false)
	if err == nil {
		err = tx.CommitUnsynced()
	}
	if err != nil {
		t.Error(err)
	}
}

// However many commits do not wait, SyncBytes bounds what the next sync has to write.
func TestUnsyncedCommitsAreBounded(t *testing.T) {
	db, err := Open("db", &Options{FS: memfs.New(), SyncBytes: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	before := db.Metrics().Syncs
	for i := range 200 {
		if err := commitUnsynced(db, fmt.Sprint(i), make([]byte, 1<<10)); err != nil {
			t.Fatal(err)
		}
	}
	if n := db.Metrics().Syncs - before; n < 3 || n > 4 {
		t.Errorf("%d syncs for 200 KiB, with 64 KiB a sync", n)
	}
}

// What did not wait for a sync, and is not known to be durable after one that failed, is not said to be.
func TestSyncCommitsThatFails(t *testing.T) {
	calls := faultfs.New(memfs.New())
	db, err := Open("db", &Options{FS: calls})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := commitUnsynced(db, "k", nil); err != nil {
		t.Fatal(err)
	}
	calls.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpSync)})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := db.SyncCommits(); !errors.Is(err, ErrFailed) {
				t.Errorf("after a sync that failed: %v", err)
			}
		})
	}
	wg.Wait()
	calls.Set()
	if err := db.SyncCommits(); !errors.Is(err, ErrFailed) {
		t.Errorf("once more: %v", err)
	}
}
