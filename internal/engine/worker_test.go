package engine

import (
	"encoding/binary"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pandodb/pando/internal/command"
	"github.com/pandodb/pando/internal/commit"
	"github.com/pandodb/pando/internal/view"
	"github.com/pandodb/pando/vfs/memfs"
)

// A memtable that is nearly full settles after a short pause, one with little in it after a longer one.
func TestPatience(t *testing.T) {
	const full = 128 << 20
	for _, c := range []struct {
		used int
		want time.Duration
	}{
		{0, longestIdle}, {1 << 10, longestIdle}, {full / 30, longestIdle}, {full / 8, 8 * idleDelay}, {full/2 + 1, idleDelay}, {full, idleDelay},
		{2 * full, idleDelay},
	} {
		if got := patience(c.used, full); got != c.want {
			t.Errorf("with %d of %d bytes: %v, want %v", c.used, full, got, c.want)
		}
	}
}

// After a pause the memtable in front has the memory of the one that has settled, and after a longer one the system has it.
func TestMemoryOfSettledMemtables(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := Open(Options{FS: memfs.New(), Dir: "db", MemoryBytes: leastMemory})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		for range 3 {
			var enc command.Encoder
			for enc.Data() < e.sizes.memtable/8 {
				enc.Put(DefaultID, make([]byte, 1+enc.Count()), make([]byte, 100), 0)
			}
			if err := e.Commit(&commit.Request{Commands: enc.Payload(), Count: enc.Count(), Bytes: enc.Data()}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			front := func() (records, spare, bytes int) {
				defer e.epoch.Enter().Exit()
				table := e.current.Load().Tables[0]
				return table.Len(), table.Spare(), table.Bytes()
			}
			n, _, bytes := front()
			if n != enc.Count() {
				t.Fatalf("%d records of %d are in the memtable", n, enc.Count())
			}
			time.Sleep(patience(bytes, e.sizes.memtable) + trimDelay/2)
			synctest.Wait()
			if n, spare, _ := front(); n != 0 || spare == 0 || e.arenas.Waiting() != 0 {
				t.Fatalf("after a pause: %d records, %d bytes for the next ones, %d wait", n, spare, e.arenas.Waiting())
			}
			time.Sleep(trimDelay)
			synctest.Wait()
			if _, spare, _ := front(); spare != 0 || e.arenas.Waiting() != 0 {
				t.Fatalf("after a long pause: %d bytes are kept, %d wait", spare, e.arenas.Waiting())
			}
		}
	})
}

// When two memtables have settled, the one in front has the memory of the larger one, and keeps it until it is given back: they do not
// take turns.
func TestFrontIsRenewedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := Open(Options{FS: memfs.New(), Dir: "db", MemoryBytes: leastMemory})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		for range 14 {
			var enc command.Encoder
			for enc.Data() < e.sizes.memtable/8 {
				enc.Put(DefaultID, make([]byte, 1+enc.Count()), make([]byte, 100), 0)
			}
			if err := e.Commit(&commit.Request{Commands: enc.Payload(), Count: enc.Count(), Bytes: enc.Data()}); err != nil {
				t.Fatal(err)
			}
		}
		if err := e.Checkpoint(t.Context()); err != nil {
			t.Fatal(err)
		}
		var front *view.Table
		for tick := range 10 {
			time.Sleep(workerTick)
			synctest.Wait()
			guard := e.epoch.Enter()
			now := e.current.Load().Tables[0]
			spare := now.Spare()
			guard.Exit()
			if tick > 2 && (now != front || spare < e.arenas.Waiting() || spare == 0) {
				t.Fatalf("tick %d: another memtable is in front: %v; %d bytes for the next records, %d wait", tick, now != front, spare, e.arenas.Waiting())
			}
			front = now
		}
	})
}

// The memory of a memtable that was made for one large batch goes to the system as soon as it has settled: it is beyond the budget.
func TestMemoryOfLargeBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := Open(Options{FS: memfs.New(), Dir: "db", MemoryBytes: leastMemory})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		var enc command.Encoder
		for enc.Data() < 2*e.sizes.memtable {
			enc.Put(DefaultID, make([]byte, 1+enc.Count()%1000), make([]byte, 1000), 0)
		}
		if err := e.Commit(&commit.Request{Commands: enc.Payload(), Count: enc.Count(), Bytes: enc.Data()}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(longestIdle)
		synctest.Wait()
		defer e.epoch.Enter().Exit()
		if front := e.current.Load().Tables[0]; front.Len() != 0 || front.Spare() != 0 || e.arenas.Waiting() != 0 {
			t.Errorf("after a pause: %d records, %d bytes for the next ones, %d wait", front.Len(), front.Spare(), e.arenas.Waiting())
		}
	})
}

// Records whose keys come in order settle before the memtable is full, others do not.
func TestRecordsInOrderSettleEarly(t *testing.T) {
	for _, c := range []struct {
		name  string
		step  int // from one key to the next
		early bool
	}{{"in order", 1, true}, {"backwards", -1, false}, {"the same key", 0, false}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, err := Open(Options{FS: memfs.New(), Dir: "db", MemoryBytes: leastMemory})
				if err != nil {
					t.Fatal(err)
				}
				defer e.Close()
				e.sizes.ordered = e.sizes.memtable / 8
				settled := func() int64 { synctest.Wait(); return e.counters.checkpoints.Load() }
				before := settled()
				for i := range e.sizes.memtable / 4 / 128 {
					var enc command.Encoder
					enc.Put(DefaultID, binary.BigEndian.AppendUint32(nil, uint32(1<<20+i*c.step)), make([]byte, 100), 0)
					if err := e.Commit(&commit.Request{Commands: enc.Payload(), Count: 1, Bytes: enc.Data()}); err != nil {
						t.Fatal(err)
					}
				}
				if got := settled() > before; got != c.early {
					t.Errorf("a checkpoint with a quarter of a memtable written: %v, want %v", got, c.early)
				}
			})
		})
	}
}

// What is deleted and settled goes from the disk after a pause, though no further checkpoint is asked for.
func TestGarbageGoesWhenNobodyWrites(t *testing.T) {
	for _, layout := range []Layout{Tree, Hash} {
		t.Run(layout.String(), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { testGarbageGoes(t, layout) }) })
	}
}

func testGarbageGoes(t *testing.T, layout Layout) {
	const records = 5000
	e, err := Open(Options{FS: memfs.New(), Dir: "db", MemoryBytes: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	ks, err := e.OpenKeyspace("k", &KeyspaceOptions{Layout: layout})
	if err != nil {
		t.Fatal(err)
	}
	write := func(each func(enc *command.Encoder, key []byte)) {
		var enc command.Encoder
		for i := range records {
			each(&enc, binary.BigEndian.AppendUint64(nil, uint64(i)*0x9e3779b97f4a7c15))
		}
		if err := e.Commit(&commit.Request{Commands: enc.Payload(), Count: enc.Count(), Bytes: enc.Data()}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(longestIdle + workerTick) // all of it settles, in one round
		synctest.Wait()
	}
	write(func(enc *command.Encoder, key []byte) { enc.Put(ks.ID, key, make([]byte, 100), 0) })
	write(func(enc *command.Encoder, key []byte) {
		if key[7]%16 != 0 {
			enc.Delete(ks.ID, key)
		}
	})
	if e.settledSeq.Load() != e.visible.Load() {
		t.Fatal("the deletes have not settled")
	}
	time.Sleep(trimDelay + 20*workerTick)
	synctest.Wait()
	dead, much := e.garbage()
	if much {
		t.Errorf("%d bytes of %+v are garbage", dead, e.store.Segments())
	}
}

// What has been frozen settles once, whoever comes first: the worker, who sees it as well, or who asked for it. A second round would write
// a root, and sync what it wrote, for nothing.
func TestFrozenSettlesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // in which no time passes, so that there is no pause after which the worker settles by itself
		e, err := Open(Options{FS: memfs.New(), Dir: "db", MemoryBytes: leastMemory})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		const rounds = 500
		for i := range rounds {
			var enc command.Encoder
			enc.Put(DefaultID, binary.BigEndian.AppendUint32(nil, uint32(i)), make([]byte, 100), 0)
			if err := e.Commit(&commit.Request{Commands: enc.Payload(), Count: enc.Count(), Bytes: enc.Data()}); err != nil {
				t.Fatal(err)
			}
			if err := e.Checkpoint(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait() // the worker may be on its way
		if n := e.counters.checkpoints.Load(); n != rounds {
			t.Errorf("%d checkpoints, %d rounds were made", rounds, n)
		}
	})
}
