package pando

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pandodb/pando/vfs/memfs"
)

// longRecords puts records whose values lie apart, more than a batch holds in memory.
func longRecords(put func(key, value []byte) error) error {
	noise := rand.NewChaCha8([32]byte{2})
	value := make([]byte, 1500)
	for i := range uint32(2500) {
		_, _ = noise.Read(value) // never fails
		if err := put(binary.BigEndian.AppendUint32(nil, i), value); err != nil {
			return err
		}
	}
	return nil
}

// A batch or a transaction larger than memory that found the disk full while it was loaded, and was given up, once left its long values
// where they were: their segments bore the numbers of commands that never came, and waited for these.
func TestLargeBatchThatIsGivenUpGivesItsValuesBack(t *testing.T) {
	for what, attempt := range map[string]func(db *DB, full func()) error{
		"batch": func(db *DB, full func()) error {
			b := db.NewBatch()
			defer b.Reset()
			if err := longRecords(b.Put); err != nil {
				return err
			}
			full()
			return db.Write(b)
		},
		"transaction": func(db *DB, full func()) error {
			return db.Update(func(tx *Tx) error {
				defer full()
				return longRecords(tx.Put)
			})
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fsys := memfs.New()
				db := openMem(t, fsys, Options{KeepChanges: 1 << 20})
				must(t, db.Put([]byte("first"), nil))
				must(t, db.Checkpoint(context.Background()))
				before := fsys.Used()
				// There is space for the rest of the commands, and none for what they are merged into.
				err := attempt(db, func() { fsys.SetCapacity(fsys.Used() + 64<<10) })
				wantErr(t, "on a full disk", err, ErrDiskFull)
				time.Sleep(5 * time.Second) // the background gives space back
				synctest.Wait()
				if more := fsys.Used() - before; more > 512<<10 {
					t.Errorf("%d bytes are in use that were not before", more)
				}
				fsys.SetCapacity(0)
				must(t, db.Put([]byte("last"), nil))
				must(t, db.Checkpoint(context.Background()))
				if n := db.Metrics().SegmentBytes; n > 256<<10 {
					t.Errorf("the segments have %d bytes behind a checkpoint", n)
				}
			})
		})
	}
}
