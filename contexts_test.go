package pando

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/pandodb/pando/vfs/memfs"
)

// The contexts of those who compact and make checkpoints end; that is no concern of those who write, or make one that has no end.
func TestContextsThatEndConcernNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := openMem(t, memfs.New(), Options{})
		ended, end := context.WithCancel(context.Background())
		end()
		stop := make(chan struct{})
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					err := db.Checkpoint(ended)
					if i == 0 {
						err = db.Compact(ended, CompactOptions{})
					}
					if err != nil && !errors.Is(err, context.Canceled) {
						t.Errorf("a context that has ended: %v", err)
					}
				}
			})
		}
		value := make([]byte, 900)
		for i := range endedPuts {
			must(t, db.Put(fmt.Appendf(nil, "%d", i), value))
			if i%50 == 0 {
				must(t, db.Checkpoint(context.Background()))
			}
		}
		close(stop)
		wg.Wait()
		must(t, db.Close())
	})
}
