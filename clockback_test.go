package pando

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pandodb/pando/vfs/memfs"
)

// A machine that crashes may come back with a clock that is wrong. What a reader has not found any more, a second before the crash, because
// it had expired, stays away; what goes by the time that passes goes on.
func TestClockThatIsSetBackAfterACrash(t *testing.T) {
	for _, profile := range []Profile{Durable, Relaxed} {
		for _, settled := range []bool{false, true} {
			var image *memfs.FS
			synctest.Test(t, func(t *testing.T) { image = expireAndCrash(t, profile, settled) })
			// In each bubble the clock begins at the same moment: it is set back by the time that the first one took.
			synctest.Test(t, func(t *testing.T) { lookAfterCrash(t, image, profile) })
		}
	}
}

// expireAndCrash stores records, lets one of them expire, and returns what a power cut leaves.
func expireAndCrash(t *testing.T, profile Profile, settled bool) *memfs.FS {
	fs := memfs.New()
	db := openMem(t, fs, Options{Profile: profile})
	must(t, db.Default().PutExpiring([]byte("expired"), []byte("v"), time.Now().Add(10*time.Second)))
	must(t, db.Default().PutExpiring([]byte("expires"), []byte("v"), time.Now().Add(40*time.Second)))
	if settled {
		must(t, db.Checkpoint(t.Context()))
	}
	time.Sleep(20 * time.Second)
	_, err := db.Get([]byte("expired"))
	wantErr(t, "expired", err, ErrNotFound)
	time.Sleep(3 * time.Second) // the mark of the clock is written, and synced
	synctest.Wait()
	return fs.CrashImage(memfs.Policy{Unsynced: memfs.None})
}

// lookAfterCrash opens what a power cut has left, with a clock that stands before it.
func lookAfterCrash(t *testing.T, fs *memfs.FS, profile Profile) {
	db := openMem(t, fs, Options{Profile: profile})
	if _, err := db.Get([]byte("expired")); !errors.Is(err, ErrNotFound) {
		t.Errorf("what had expired is back: %v", err)
	}
	if _, err := db.Get([]byte("expires")); err != nil {
		t.Errorf("what had not expired: %v", err)
	}
	must(t, db.Put([]byte("new"), []byte("v")))
	must(t, db.Default().PutExpiring([]byte("soon"), []byte("v"), time.Now().Add(25*time.Second)))
	time.Sleep(time.Second)
	synctest.Wait()
	after := openMem(t, fs.CrashImage(memfs.Policy{Unsynced: memfs.None}), Options{})
	if _, err := after.Get([]byte("new")); err != nil {
		t.Errorf("what was written since does not survive a power cut: %v", err)
	}
	time.Sleep(50 * time.Second)
	for _, key := range []string{"expires", "soon"} {
		_, err := db.Get([]byte(key))
		wantErr(t, key, err, ErrNotFound)
	}
}

// Whoever was told by a count, or the lack of an n-th pair, that a record has expired does not meet it after a crash with a clock that was
// set back.
func TestWhatACountLeavesOutStaysExpired(t *testing.T) {
	for _, settled := range []bool{false, true} {
		for what, look := range map[string]func(db *DB) error{
			"count": func(db *DB) error {
				n, err := db.Count(nil, nil)
				if n != 0 {
					err = fmt.Errorf("%d records", n)
				}
				return err
			},
			"the first pair": func(db *DB) error {
				if _, _, err := db.Nth(nil, nil, 0); !errors.Is(err, ErrNotFound) {
					return fmt.Errorf("%w is not %w", err, ErrNotFound)
				}
				return nil
			},
		} {
			var image *memfs.FS
			synctest.Test(t, func(t *testing.T) {
				fsys := memfs.New()
				db := openMem(t, fsys, Options{})
				must(t, db.Default().PutExpiring([]byte("expired"), []byte("v"), time.Now().Add(10*time.Second)))
				if settled {
					must(t, db.Checkpoint(t.Context()))
				}
				time.Sleep(20 * time.Second)
				for range 5 {
					must(t, look(db))
					time.Sleep(3 * time.Second)
				}
				synctest.Wait()
				image = fsys.CrashImage(memfs.Policy{})
			})
			synctest.Test(t, func(t *testing.T) { // time begins anew
				db := openMem(t, image, Options{})
				if _, err := db.Get([]byte("expired")); !errors.Is(err, ErrNotFound) {
					t.Errorf("%s, settled %t: what had expired is back: %v", what, settled, err)
				}
			})
		}
	}
}

// The moment up to which time was acted upon is kept also where there was no space for it at first.
func TestWhatHasExpiredOnAFullDiskStaysExpired(t *testing.T) {
	var image *memfs.FS
	synctest.Test(t, func(t *testing.T) {
		fsys := memfs.New()
		db := openMem(t, fsys, Options{})
		must(t, db.Default().PutExpiring([]byte("expired"), []byte("v"), time.Now().Add(10*time.Second)))
		must(t, db.Checkpoint(t.Context()))
		time.Sleep(5 * time.Second) // the next record begins a file of the log
		fsys.SetCapacity(1)
		time.Sleep(20 * time.Second)
		_, err := db.Get([]byte("expired"))
		wantErr(t, "expired", err, ErrNotFound)
		time.Sleep(3 * time.Second)
		fsys.SetCapacity(0)
		time.Sleep(3 * time.Second) // the mark of the clock is written, and synced
		synctest.Wait()
		image = fsys.CrashImage(memfs.Policy{})
	})
	synctest.Test(t, func(t *testing.T) { // time begins anew
		db := openMem(t, image, Options{})
		if _, err := db.Get([]byte("expired")); !errors.Is(err, ErrNotFound) {
			t.Errorf("what had expired is back: %v", err)
		}
	})
}
