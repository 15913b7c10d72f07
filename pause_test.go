package pando

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// Damage to the last record of the log looks like the torn end of what was being written. A pause of half a minute settles everything, so
// that an older record does not depend on the log any more: it is there, or an error says that something is wrong.
func TestLastRecordOutlivesItsLogAfterAPause(t *testing.T) {
	for _, profile := range []Profile{Durable, Relaxed} {
		synctest.Test(t, func(t *testing.T) {
			fs := memfs.New()
			db := openMem(t, fs, Options{Profile: profile})
			must(t, db.Put([]byte("first"), []byte("v")))
			must(t, db.Put([]byte("last"), []byte("v")))
			time.Sleep(31 * time.Second)
			synctest.Wait()
			image := fs.KillImage()
			blotLog(t, image)
			after, err := Open("db", &Options{FS: image, MemoryBytes: 1 << 20})
			if err != nil {
				wantErr(t, "a log without frames", err, ErrCorrupt)
				return
			}
			defer after.Close()
			if _, err := after.Get([]byte("last")); err != nil {
				t.Errorf("after a pause and damage to the log: %v", err)
			}
		})
	}
}

// blotLog makes all frames of the log unreadable.
func blotLog(t *testing.T, fs vfs.FS) {
	t.Helper()
	names, err := fs.List("db/wal")
	must(t, err)
	for _, name := range names {
		info, err := fs.Stat("db/wal/" + name)
		must(t, err)
		f, err := fs.OpenReadWrite("db/wal/" + name)
		must(t, err)
		const header = 4096
		if n := info.Size - 2*header; n > 0 {
			_, err = f.WriteAt(make([]byte, n), header)
			must(t, err)
		}
		must(t, f.Close())
	}
}
