package pando

import (
	"testing"
	"testing/synctest"

	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// Who closes a database while another Close is at work does not return before that: what was acknowledged would not be durable yet.
func TestCloseWaitsForAnotherClose(t *testing.T) {
	for _, fails := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			ffs := faultfs.New(memfs.New())
			db, err := Open("db", &Options{FS: ffs, MemoryBytes: 1 << 20, Profile: Bench})
			must(t, err)
			must(t, db.Put([]byte("key"), nil))
			goOn := make(chan struct{})
			ffs.OnCall(func(op faultfs.Op, _ string) error {
				<-goOn
				if fails && op == faultfs.OpSync {
					return faultfs.ErrInjected
				}
				return nil
			})
			closed := make(chan error, 2)
			for range 2 {
				go func() { closed <- db.Close() }()
			}
			synctest.Wait()
			if len(closed) > 0 {
				t.Errorf("one of two has returned before anything is durable: %v", <-closed)
			}
			close(goOn)
			first, second := <-closed, <-closed
			if first != second || fails == (first == nil) {
				t.Errorf("%v and %v", first, second)
			}
			must(t, db.Close())
		})
	}
}
