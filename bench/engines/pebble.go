package engines

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"

	"github.com/pandodb/pando/bench/engine"
)

// pebbleDriver: CockroachDB's log-structured merge tree.
//
// Options set, after CockroachDB's own: Bloom filters of 10 bits per key on every level (there is none by default); memtables
// of 64 MiB (4 MiB by default), up to 4 waiting, so that loads do not stall; L0CompactionThreshold 2 and L0StopWrites 1000,
// LBaseMaxBytes 64 MiB, blocks of 32 KiB and index blocks of 256 KiB with Snappy; one compaction for each of two cores; the
// newest format. Where the data is more than the budget, blocks of 8 KiB and index blocks of 64 KiB: a third off a get that misses
// the cache. The cache is the budget less the memtables. Separation of values is experimental, and left off.
//
// It has no transactions. Updates are indexed batches, which show what they have written, under a lock that the program has to have.
//
// NoSync leaves up to 32 KiB of the log in the process's memory, which a kill loses: "relaxed" is given only nearly.
func pebbleDriver() engine.Driver {
	return engine.Driver{
		Name: "pebble", Module: "github.com/cockroachdb/pebble/v2", Kind: "log-structured merge tree",
		Classes: map[engine.Class]string{
			engine.None:    "DisableWAL",
			engine.Relaxed: "NoSync",
			engine.Durable: "Sync: shared by the writers that wait",
		},
		Weaker:   map[engine.Class]string{engine.Relaxed: "a kill loses up to 32 KiB of the log that were not yet written"},
		Settings: "Bloom 10 bits on all levels, 64 MiB memtables, 32 KiB blocks (8 where memory is scarce), Snappy, L0 threshold 2, 2 compactions, newest format; update transactions are indexed batches under a lock of the program",
		Open:     openPebble,
	}
}

type pebbleStore struct {
	db    *pebble.DB
	cache *pebble.Cache
	write *pebble.WriteOptions
	turns sync.Mutex // of updates
}

func openPebble(o engine.Options) (engine.Store, error) {
	memtable := uint64(64 << 20)
	for int64(memtable)*4 > o.MemoryBytes {
		memtable /= 2
	}
	cache := pebble.NewCache(max(o.MemoryBytes-2*int64(memtable), 8<<20))
	opts := &pebble.Options{
		Cache: cache, MemTableSize: memtable, MemTableStopWritesThreshold: 4,
		L0CompactionThreshold: 2, L0StopWritesThreshold: 1000, LBaseMaxBytes: 64 << 20,
		CompactionConcurrencyRange: func() (int, int) { return 1, 2 },
		FormatMajorVersion:         pebble.FormatNewest,
		DisableWAL:                 o.Class == engine.None,
		Logger:                     quiet{},
	}
	block, index := 32<<10, 256<<10
	if o.DataBytes > o.MemoryBytes {
		block, index = 8<<10, 64<<10
	}
	for i := range opts.Levels {
		l := &opts.Levels[i]
		l.BlockSize, l.IndexBlockSize = block, index
		l.FilterPolicy = bloom.FilterPolicy(10)
	}
	db, err := pebble.Open(o.Dir, opts)
	if err != nil {
		cache.Unref()
		return nil, err
	}
	s := &pebbleStore{db: db, cache: cache, write: pebble.NoSync}
	if o.Class == engine.Durable {
		s.write = pebble.Sync
	}
	return s, nil
}

// Put is a batch of one, which Pebble keeps in a pool.
func (s *pebbleStore) Put(key, value []byte) error { return s.db.Set(key, value, s.write) }

// Delete writes a tombstone.
func (s *pebbleStore) Delete(key []byte) error { return s.db.Delete(key, s.write) }

// Write is one batch, which Pebble keeps in a pool.
func (s *pebbleStore) Write(batch []engine.Op) error {
	b := s.db.NewBatch()
	defer b.Close()
	for _, op := range batch {
		var err error
		if op.Delete {
			err = b.Delete(op.Key, nil)
		} else {
			err = b.Set(op.Key, op.Value, nil)
		}
		if err != nil {
			return err
		}
	}
	return b.Commit(s.write)
}

// Get copies the value out of the block, and lets go of the block.
func (s *pebbleStore) Get(dst, key []byte) ([]byte, bool, error) { return pebbleGet(s.db, dst, key) }

// Has is a Get that copies nothing.
func (s *pebbleStore) Has(key []byte) (bool, error) { return pebbleHas(s.db, key) }

// Scan opens an iterator of its own.
func (s *pebbleStore) Scan(r engine.Scan, visit engine.Visit) error {
	return pebbleScan(s.db, r, visit)
}

// Snapshot keeps versions from being dropped.
func (s *pebbleStore) Snapshot() (engine.Snapshot, error) {
	return pebbleSnapshot{s.db.NewSnapshot()}, nil
}

// View is a snapshot that is closed at the end.
func (s *pebbleStore) View(fn func(engine.Reader) error) (err error) {
	snap := s.db.NewSnapshot()
	defer func() { err = errors.Join(err, snap.Close()) }()
	return fn(pebbleSnapshot{snap})
}

// Update is an indexed batch: updates take turns. What is written outside of them takes no lock, as no program of the benchmark
// does both at once.
func (s *pebbleStore) Update(fn func(engine.Transaction) error) error {
	s.turns.Lock()
	defer s.turns.Unlock()
	b := s.db.NewIndexedBatch()
	defer b.Close()
	if err := fn(pebbleTransaction{b}); err != nil {
		return err
	}
	return b.Commit(s.write)
}

// Settle flushes, and waits until no flush and no compaction has run for five looks in a row.
func (s *pebbleStore) Settle() error {
	if err := s.db.Flush(); err != nil {
		return err
	}
	for quietTurns := 0; quietTurns < 5; {
		m := s.db.Metrics()
		if m.Compact.NumInProgress == 0 && m.Flush.NumInProgress == 0 {
			quietTurns++
		} else {
			quietTurns = 0
		}
		time.Sleep(10 * time.Millisecond)
	}
	return nil
}

// Compact rewrites all keys that the benchmark has into the lowest level.
func (s *pebbleStore) Compact() error {
	return s.db.Compact(context.Background(), []byte{0}, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, true)
}

// Close gives the cache back too.
func (s *pebbleStore) Close() error {
	err := s.db.Close()
	s.cache.Unref()
	return err
}

type pebbleSnapshot struct{ snap *pebble.Snapshot }

// Close lets compactions drop what only this snapshot saw.
func (s pebbleSnapshot) Close() error { return s.snap.Close() }

// Get reads at the moment of the snapshot.
func (s pebbleSnapshot) Get(dst, key []byte) ([]byte, bool, error) {
	return pebbleGet(s.snap, dst, key)
}

// Has is a Get that copies nothing.
func (s pebbleSnapshot) Has(key []byte) (bool, error) { return pebbleHas(s.snap, key) }

// Scan opens an iterator at the moment of the snapshot.
func (s pebbleSnapshot) Scan(r engine.Scan, visit engine.Visit) error {
	return pebbleScan(s.snap, r, visit)
}

type pebbleTransaction struct{ b *pebble.Batch }

// Get reads what the batch has, or else what the database has.
func (t pebbleTransaction) Get(dst, key []byte) ([]byte, bool, error) {
	return pebbleGet(t.b, dst, key)
}

// Has is a Get that copies nothing.
func (t pebbleTransaction) Has(key []byte) (bool, error) { return pebbleHas(t.b, key) }

// Scan walks over both.
func (t pebbleTransaction) Scan(r engine.Scan, visit engine.Visit) error {
	return pebbleScan(t.b, r, visit)
}

// Put copies both into the batch.
func (t pebbleTransaction) Put(key, value []byte) error { return t.b.Set(key, value, nil) }

// Delete puts a tombstone into the batch.
func (t pebbleTransaction) Delete(key []byte) error { return t.b.Delete(key, nil) }

func pebbleGet(r pebble.Reader, dst, key []byte) ([]byte, bool, error) {
	v, closer, err := r.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return dst, false, nil
	}
	if err != nil {
		return dst, false, err
	}
	dst = append(dst, v...)
	return dst, true, closer.Close()
}

func pebbleHas(r pebble.Reader, key []byte) (bool, error) {
	_, closer, err := r.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, closer.Close()
}

func pebbleScan(r pebble.Reader, s engine.Scan, visit engine.Visit) (err error) {
	it, err := r.NewIter(nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	step := it.Next
	if s.Reverse {
		step = it.Prev
	}
	ok := position(it, it.SeekGE, s)
	for n := 0; ok; n++ {
		var value []byte
		if s.WantsValue(n) {
			value = it.Value()
		}
		if !visit(it.Key(), value) || n+1 == s.Limit {
			break
		}
		ok = step()
	}
	return it.Error()
}

// quiet drops an engine's log.
type quiet struct{}

// Infof drops it.
func (quiet) Infof(string, ...any) {}

// Errorf drops it: the call that failed returns the error too.
func (quiet) Errorf(string, ...any) {}

// Warningf drops it.
func (quiet) Warningf(string, ...any) {}

// Debugf drops it.
func (quiet) Debugf(string, ...any) {}

// Fatalf ends the process, as the engine wants it; the harness notes what it said.
func (quiet) Fatalf(f string, a ...any) { panic(fmt.Sprintf("fatal error of the engine: "+f, a...)) }
