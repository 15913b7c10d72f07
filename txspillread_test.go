package pando

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// A transaction larger than memory reads its own writes from a file. Where that fails once the read fails, and the next one sees all of
// them: those that were to be read then were once missing until the end of the transaction.
func TestTransactionSeesItsWritesAfterAReadThatFailed(t *testing.T) {
	for _, op := range []faultfs.Op{faultfs.OpOpen, faultfs.OpReadAt} {
		for skip := range 6 {
			fsys := faultfs.New(memfs.New())
			db := openMem(t, fsys, Options{})
			key := func(i int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(i)) }
			failed := false
			must(t, db.Update(func(tx *Tx) error {
				const n = 6000
				for i := range n {
					if err := tx.Put(key(i), fmt.Append(nil, "value ", i)); err != nil {
						return err
					}
					if i == n/2 {
						if _, err := tx.Get(key(i)); err != nil {
							return err
						}
					}
				}
				if err := tx.Delete(key(1)); err != nil {
					return err
				}
				fsys.Set(faultfs.Rule{Ops: faultfs.Ops(op), Name: "*.spill", Skip: skip})
				_, err := tx.Get(key(0))
				failed = errors.Is(err, faultfs.ErrInjected)
				fsys.Set()
				for i := range n {
					switch v, err := tx.Get(key(i)); {
					case i == 1 && errors.Is(err, ErrNotFound):
					case i == 1 || err != nil || string(v) != fmt.Sprint("value ", i):
						return fmt.Errorf("call %d fails: %t: record %d is %q, %w", skip, failed, i, v, err)
					}
				}
				return nil
			}))
			if !failed {
				break
			}
		}
	}
}
