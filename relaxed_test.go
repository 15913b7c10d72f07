package pando

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

const (
	relaxedInterval = 100 * time.Millisecond
	relaxedBytes    = 64 << 10
)

// openRelaxed opens a database of the Relaxed profile with bounds of the test's own.
func openRelaxed(t *testing.T, fs vfs.FS) *DB {
	t.Helper()
	return openMem(t, fs, Options{Profile: Relaxed, SyncInterval: relaxedInterval, SyncBytes: relaxedBytes, MemoryBytes: 1 << 20, ValueThreshold: 1000})
}

// numbered is the key of the n-th record.
func numbered(n int) []byte { return fmt.Appendf(nil, "%06d", n) }

// leftByPowerCut returns how many of the first n records the database holds after a power cut now that takes all that was not
// synced. They have to be the first ones.
func leftByPowerCut(t *testing.T, fs *memfs.FS, n int) int {
	t.Helper()
	db, err := Open("db", &Options{FS: fs.CrashImage(memfs.Policy{Unsynced: memfs.None}), MemoryBytes: 1 << 20})
	must(t, err)
	defer db.Close()
	left := 0
	for key := range db.Range(nil, nil) {
		if want := numbered(left); string(key) != string(want) {
			t.Fatalf("record %d of %d is %s", left, n, key)
		}
		left++
	}
	must(t, db.Err())
	return left
}

// A power cut takes less than SyncBytes of what the Relaxed profile has acknowledged, however fast it comes in: no time passes here.
func TestRelaxedLosesFewerBytesThanSyncBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs, rng := memfs.New(), rand.New(rand.NewPCG(1, 1))
		db := openRelaxed(t, fs)
		var lengths []int
		lost := false
		for len(lengths) < 1500 {
			length := rng.IntN(300)
			if rng.IntN(20) == 0 {
				length = 5000 + rng.IntN(5000) // a value that lies apart
			}
			if rng.IntN(200) == 0 {
				length = relaxedBytes + rng.IntN(relaxedBytes)
			}
			key := numbered(len(lengths))
			must(t, db.Put(key, make([]byte, length)))
			lengths = append(lengths, len(key)+length)
			if rng.IntN(300) == 0 {
				must(t, db.Checkpoint(context.Background()))
			}
			if rng.IntN(15) > 0 {
				continue
			}
			risk, left := 0, leftByPowerCut(t, fs, len(lengths))
			for _, length := range lengths[left:] {
				risk += length
			}
			if lost = lost || risk > 0; risk >= relaxedBytes {
				t.Fatalf("%d bytes are lost in %d of %d records", risk, len(lengths)-left, len(lengths))
			}
		}
		if !lost {
			t.Error("nothing was ever lost: the test shows nothing")
		}
	})
}

// A value that lies apart is at risk for as long as the commit that refers to it is, also where the value itself was synced before.
func TestRelaxedCountsValuesThatWereSyncedBeforeTheirCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := memfs.New()
		db := openRelaxed(t, fs)
		must(t, db.Put(numbered(0), []byte("v")))
		b := db.NewBatch()
		defer b.Reset()
		must(t, b.Put(numbered(1), make([]byte, relaxedBytes)))
		must(t, db.Sync())
		must(t, db.Write(b))
		if left := leftByPowerCut(t, fs, 2); left < 2 {
			t.Errorf("%d bytes are lost", relaxedBytes)
		}
	})
}

// So it is while a sync has made the values durable, and not yet the log that refers to them.
func TestRelaxedCountsValuesWhoseLogIsBeingSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const length = relaxedBytes * 3 / 5 // of two values the second one is too much
		fs := memfs.New()
		hooked := faultfs.New(fs)
		db := openRelaxed(t, hooked)
		must(t, db.Put(numbered(0), []byte("v"))) // makes the log
		must(t, db.Sync())
		begun, goOn := make(chan struct{}), make(chan struct{})
		begin, release := sync.OnceFunc(func() { close(begun) }), sync.OnceFunc(func() { close(goOn) })
		defer release()
		var held atomic.Bool
		hooked.OnCall(func(op faultfs.Op, name string) error {
			switch {
			case op != faultfs.OpSync:
			case path.Dir(name) == "db/wal" && held.CompareAndSwap(false, true):
				begin()
				<-goOn
			case path.Dir(name) == "db/segments":
				select {
				case <-begun:
					release() // the writer waits for a sync of his own
				default:
				}
			}
			return nil
		})
		must(t, db.Put(numbered(1), make([]byte, length))) // and the background syncs
		<-begun
		must(t, db.Put(numbered(2), make([]byte, length)))
		if left := leftByPowerCut(t, fs, 3); (3-left)*length >= relaxedBytes {
			t.Errorf("%d bytes are lost while the log is being synced", (3-left)*length)
		}
	})
}

// A power cut takes nothing that is older than SyncInterval, and a sync that takes no time.
func TestRelaxedLosesNothingOlderThanSyncInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type moment struct {
			at      time.Time
			records int
		}
		fs, rng := memfs.New(), rand.New(rand.NewPCG(1, 2))
		db := openRelaxed(t, fs)
		n, lost := 0, false
		var history []moment
		for range 200 {
			must(t, db.Put(numbered(n), make([]byte, rng.IntN(100))))
			n++
			history = append(history, moment{time.Now(), n})
			time.Sleep(time.Duration(rng.Int64N(int64(relaxedInterval) / 2)))
			synctest.Wait() // a sync takes no time
			left := leftByPowerCut(t, fs, n)
			lost = lost || left < n
			for _, m := range history {
				if age := time.Since(m.at); age >= relaxedInterval && left < m.records {
					t.Fatalf("record %d of %d, which is %v old, is lost", left, n, age)
				}
			}
		}
		if !lost {
			t.Error("nothing was ever lost: the test shows nothing")
		}
	})
}
