package pando

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// What has settled is closed without an error on a full disk, too: a new file for the log, which would have saved space, is not needed.
func TestCloseOfWhatHasSettledOnAFullDisk(t *testing.T) {
	fsys := memfs.New()
	db := openMem(t, fsys, Options{})
	const n = 50
	for i := range n {
		must(t, db.Put(fmt.Append(nil, "key", i), make([]byte, 900)))
	}
	must(t, db.Checkpoint(t.Context()))
	fsys.SetCapacity(1)
	must(t, db.Close())
	fsys.SetCapacity(0)
	db = openMem(t, fsys, Options{})
	if c, err := db.Count(nil, nil); c != n || err != nil {
		t.Errorf("%d records, %v", c, err)
	}
}

// A batch larger than memory is in both root slots behind a pause, and behind Close. A full disk that keeps it from the second one passes like
// any other: writes go on, and Close tells that it is full.
func TestSecondRootSlotOfALargeBatchOnAFullDisk(t *testing.T) {
	for _, pause := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			ffs := faultfs.New(memfs.New())
			o := &Options{FS: ffs, MemoryBytes: 1 << 20}
			db, err := Open("db", o)
			must(t, err)
			const n = 3000
			b := db.NewBatch()
			for i := range n {
				must(t, b.Put(fmt.Appendf(nil, "%06d", i), make([]byte, 100)))
			}
			must(t, db.Write(b))
			ffs.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpWriteAt), Name: "ROOT", Err: vfs.ErrNoSpace, Times: -1})
			if pause {
				time.Sleep(time.Minute)
				if err := db.Put([]byte("later"), nil); err != nil || ffs.Triggered() == 0 {
					t.Errorf("behind %d attempts to store a root: %v", ffs.Triggered(), err)
				}
				ffs.Set()
				must(t, db.Close())
			} else {
				if err := db.Close(); !errors.Is(err, ErrDiskFull) || errors.Is(err, ErrFailed) {
					t.Errorf("Close: %v", err)
				}
				ffs.Set()
			}
			db, err = Open("db", o)
			must(t, err)
			if c, err := db.Count([]byte("0"), []byte("a")); c != n || err != nil {
				t.Errorf("%d records, %v", c, err)
			}
			must(t, db.Close())
		})
	}
}
