package pando

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pandodb/pando/internal/segment"
	"github.com/pandodb/pando/vfs/memfs"
)

// overwriteLong replaces a few long values so often that the files of those that are dead are used again, and returns what is there.
func overwriteLong(t *testing.T, db *DB, seed uint64) map[string][]byte {
	t.Helper()
	rng := rand.NewChaCha8([32]byte{byte(seed)})
	last := map[string][]byte{}
	for i := range 200 {
		value := make([]byte, 40<<10)
		_, _ = rng.Read(value) // never fails
		key := fmt.Sprint("key", i%5)
		must(t, db.Put([]byte(key), value))
		last[key] = value
	}
	return last
}

// A backup made of links stays what it was, whatever is written to the files of the database that it shares.
func TestBackupOutlivesFilesThatAreUsedAgain(t *testing.T) {
	fsys := memfs.New()
	db := openMem(t, fsys, Options{})
	want := map[string]map[string][]byte{}
	for round := range 4 {
		state := overwriteLong(t, db, uint64(round))
		dir := fmt.Sprint("backup", round)
		must(t, db.Backup(context.Background(), dir))
		want[dir] = state
	}
	overwriteLong(t, db, 100)
	must(t, db.Checkpoint(context.Background()))
	for dir, state := range want {
		backup, err := Open(dir, &Options{FS: fsys, MemoryBytes: 1 << 20, ReadOnly: true})
		must(t, err)
		r, err := backup.Check(context.Background())
		if err != nil || len(r.Damage) > 0 {
			t.Errorf("%s: %v, %v", dir, r.Damage, err)
		}
		for k, v := range state {
			if got, err := backup.Get([]byte(k)); err != nil || !bytes.Equal(got, v) {
				t.Errorf("%s: %q: %d bytes, %v", dir, k, len(got), err)
			}
		}
		must(t, backup.Close())
	}
}

// A snapshot and an iterator see what they began with while files are used again.
func TestSnapshotOutlivesFilesThatAreUsedAgain(t *testing.T) {
	db := openMem(t, memfs.New(), Options{})
	state := overwriteLong(t, db, 1)
	snap := db.Snapshot()
	defer snap.Close()
	for round := range uint64(3) {
		overwriteLong(t, db, 2+round)
		for k, v := range state {
			if got, err := snap.Get([]byte(k)); err != nil || !bytes.Equal(got, v) {
				t.Errorf("round %d: %q: %d bytes, %v", round, k, len(got), err)
			}
		}
	}
}

// segmentBytes is how long the segment files of a database are together.
func segmentBytes(t *testing.T, fsys *memfs.FS) (n int64) {
	t.Helper()
	dir := "db/" + segment.DirName + "/"
	names, err := fsys.List(dir)
	must(t, err)
	for _, name := range names {
		info, err := fsys.Stat(dir + name)
		must(t, err)
		n += info.Size
	}
	return n
}

// keepFiles writes and deletes long values until files of 800 KiB at the least are kept for those to come: how many die together
// is up to when the background gets to them.
func keepFiles(t *testing.T, fsys *memfs.FS, db *DB, seed uint64) {
	t.Helper()
	var kept int64
	for range 20 {
		for k := range overwriteLong(t, db, seed) {
			must(t, db.Delete([]byte(k)))
		}
		must(t, db.Checkpoint(context.Background()))
		synctest.Wait() // the background takes files away, too
		if kept = segmentBytes(t, fsys) - db.Metrics().SegmentBytes; kept >= 800<<10 {
			return
		}
	}
	t.Fatalf("%d bytes of files are kept", kept)
}

// Values that are dead give their space back after a pause, also those in the file that values go to: it may be the only one.
func TestDeadValuesGoWhenNobodyWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := memfs.New()
		db := openMem(t, fsys, Options{MemoryBytes: 64 << 20})
		value, noise := make([]byte, 10_000), rand.NewChaCha8([32]byte{1})
		for i := range 400 {
			_, _ = noise.Read(value)
			must(t, db.Put(fmt.Appendf(nil, "key %02d", i%100), value))
		}
		must(t, db.Checkpoint(t.Context()))
		time.Sleep(5 * time.Second)
		synctest.Wait()
		m := db.Metrics()
		if m.SegmentBytes > 2*m.LiveBytes {
			t.Errorf("after a pause the files have %d bytes, of which %d are live", m.SegmentBytes, m.LiveBytes)
		}
	})
}

// Files that are kept for values to come go after a pause, and when the disk is full.
func TestKeptFilesAreGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := memfs.New()
		db := openMem(t, fsys, Options{})
		for round := range uint64(2) {
			keepFiles(t, fsys, db, round)
			if round == 0 {
				time.Sleep(5 * time.Second)
			} else {
				fsys.SetCapacity(fsys.Used())
				value := bytes.Repeat([]byte("more than there is room for in one file"), 15_000)
				if err := db.Put([]byte("large"), value); err != nil {
					wantErr(t, "a full disk", err, ErrDiskFull)
					must(t, db.Put([]byte("large"), value))
				}
				fsys.SetCapacity(0)
			}
			synctest.Wait()
			const open = 256 << 10 // of the segment that is being written
			if kept := segmentBytes(t, fsys) - db.Metrics().SegmentBytes; kept > open {
				t.Errorf("round %d: %d bytes of files stay", round, kept)
			}
		}
	})
}
