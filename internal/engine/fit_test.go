package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/pandodb/pando/internal/command"
	"github.com/pandodb/pando/internal/commit"
	"github.com/pandodb/pando/vfs/memfs"
)

// The page cache has what memtables leave of the budget: most of it where next to nothing is written, less as the memtable in front fills,
// its least share once there was a second one, and most of it again after a pause.
func TestCacheFitsBesideMemtables(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := Open(Options{FS: memfs.New(), Dir: "db", MemoryBytes: 8 << 20})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		const rounding = 64 << 10
		check := func(when string, want int64) {
			t.Helper()
			synctest.Wait()
			if got := e.cacheSize.Load() + e.env.Inner.Load(); got > want || got <= want-rounding {
				t.Errorf("%s: cache and inner nodes have %d bytes, want %d", when, got, want)
			}
		}
		written := 0
		write := func() {
			t.Helper()
			var enc command.Encoder
			for range 20 {
				written++
				enc.Put(DefaultID, []byte{byte(written >> 16), byte(written >> 8), byte(written)}, make([]byte, 500), 0)
			}
			if err := e.Commit(&commit.Request{Commands: enc.Payload(), Count: enc.Count(), Bytes: enc.Data()}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		front := func() int {
			defer e.epoch.Enter().Exit()
			return e.current.Load().Tables[0].Bytes()
		}
		check("opened", e.sizes.most)
		time.Sleep(workerTick)
		check("after opening", e.sizes.most)
		step := e.sizes.memtable / frontSteps
		for front() < step*5/4 {
			write() // without a pause: writing itself makes the cache smaller
		}
		check("with a second step of a memtable", e.sizes.most-int64(step))
		for generation := e.current.Load().Generation; e.current.Load().Generation == generation; {
			write()
		}
		check("after the first memtable", e.sizes.cache)
		time.Sleep(trimDelay / 2)
		check("soon after that", e.sizes.cache)
		time.Sleep(longestIdle + 2*trimDelay)
		check("after a pause", e.sizes.most)
	})
}

// Memtables that have settled and are kept for an optimistic transaction, which is to be checked against them, are memory of the budget.
func TestCacheFitsBesideMemtablesOfTransactions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := Open(Options{FS: memfs.New(), Dir: "db", MemoryBytes: 8 << 20})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		start, s, err := e.Begin()
		if err != nil {
			t.Fatal(err)
		}
		s.Release() // as when it has been moved
		for i := range 2 * e.sizes.memtable >> 10 {
			var enc command.Encoder
			enc.Put(DefaultID, []byte{byte(i), byte(i >> 8)}, make([]byte, 1000), 0)
			if err := e.Commit(&commit.Request{Commands: enc.Payload(), Count: enc.Count(), Bytes: enc.Data()}); err != nil {
				t.Fatal(err)
			}
		}
		if err := e.Checkpoint(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(longestIdle + 2*trimDelay)
		synctest.Wait()
		kept := int64(0)
		for _, table := range e.recent {
			kept += int64(table.Bytes())
		}
		if kept < int64(e.sizes.memtable) {
			t.Fatalf("%d bytes are kept, of memtables of %d", kept, e.sizes.memtable)
		}
		if got, want := e.cacheSize.Load()+e.env.Inner.Load(), e.sizes.most-kept; got > want {
			t.Errorf("cache and inner nodes have %d bytes beside %d that are kept, want %d", got, kept, want)
		}
		e.End(start)
		time.Sleep(workerTick)
		synctest.Wait()
		if got, want := e.cacheSize.Load()+e.env.Inner.Load(), e.sizes.most-64<<10; got < want {
			t.Errorf("cache and inner nodes have %d bytes behind the transaction, want %d", got, want)
		}
	})
}
