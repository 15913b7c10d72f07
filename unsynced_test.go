package pando

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/pandodb/pando/vfs/memfs"
)

// What was put without a sync is lost by a power cut alone, or it is there: whatever follows it is never there without it.
func TestPutUnsyncedIsAsDurableAsWhatFollows(t *testing.T) {
	fsys := memfs.New()
	db, err := Open("db", &Options{FS: fsys, MemoryBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	k, err := db.Keyspace("k", nil)
	if err != nil {
		t.Fatal(err)
	}
	before := db.Metrics().Syncs
	large := make([]byte, 1<<20)
	for i := range 40 {
		if err := k.PutUnsynced(fmt.Appendf(nil, "unsynced%d", i), nil); err != nil {
			t.Fatal(err)
		}
		if _, err := k.Get(fmt.Appendf(nil, "unsynced%d", i)); err != nil {
			t.Fatalf("not to be seen: %v", err)
		}
		if got := db.Metrics().Syncs - before; got != int64(i) {
			t.Fatalf("%d syncs after %d puts that wait for one", got, i)
		}
		for seed := range uint64(5) {
			checkUnsynced(t, fsys.CrashImage(memfs.Policy{Unsynced: memfs.Random, Seed: seed, Reordered: seed%2 == 0}), i)
		}
		if err := k.Put(fmt.Appendf(nil, "synced%d", i), nil); err != nil {
			t.Fatal(err)
		}
		checkUnsynced(t, fsys.CrashImage(memfs.Policy{}), i+1)
	}
	if err := k.PutUnsynced([]byte("large"), large); err != nil {
		t.Fatal(err)
	}
	if got := db.Metrics().Syncs - before; got != 40 {
		t.Errorf("a value apart waited for %d syncs", got-40)
	}
	checkUnsynced(t, fsys.CrashImage(memfs.Policy{}), 40)
	if err := k.Put([]byte("after"), nil); err != nil {
		t.Fatal(err)
	}
	checkUnsyncedLarge(t, fsys.CrashImage(memfs.Policy{}), large)
	if err := errors.Join(k.PutUnsynced([]byte("last"), nil), db.Checkpoint(t.Context())); err != nil {
		t.Fatal(err)
	}
	if got := db.Metrics().Syncs - before; got != 41 {
		t.Errorf("%d syncs are counted for a checkpoint", got-41)
	}
	if err := k.PutUnsynced(make([]byte, MaxKeyBytes+1), nil); !errors.Is(err, ErrKeyTooLarge) {
		t.Errorf("a key that is too large: %v", err)
	}
}

// checkUnsyncedLarge checks that a value apart which was put without a sync is there with what was put after it.
func checkUnsyncedLarge(t *testing.T, image *memfs.FS, want []byte) {
	t.Helper()
	db, err := Open("db", &Options{FS: image, MemoryBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	k, err := db.Keyspace("k", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = k.Get([]byte("after"))
	got, apartErr := k.Get([]byte("large"))
	if err = errors.Join(err, apartErr); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes of %d, %v", len(got), len(want), err)
	}
}

// checkUnsynced checks that an image has at least n pairs of an unsynced put and a synced one, and none without the former.
func checkUnsynced(t *testing.T, image *memfs.FS, n int) {
	t.Helper()
	db, err := Open("db", &Options{FS: image, MemoryBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	k, err := db.Keyspace("k", nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		for _, name := range []string{"unsynced", "synced"} {
			if ok, err := k.Has(fmt.Appendf(nil, "%s%d", name, i)); !ok || err != nil {
				t.Fatalf("%s%d of %d is not there: %v", name, i, n, err)
			}
		}
	}
}
