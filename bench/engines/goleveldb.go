package engines

import (
	"errors"
	"sync"
	"time"

	"github.com/syndtr/goleveldb/leveldb"
	"github.com/syndtr/goleveldb/leveldb/filter"
	"github.com/syndtr/goleveldb/leveldb/iterator"
	"github.com/syndtr/goleveldb/leveldb/opt"
	"github.com/syndtr/goleveldb/leveldb/util"

	"github.com/pandodb/pando/bench/engine"
	"github.com/pandodb/pando/bench/measure"
)

// goleveldbDriver: LevelDB in Go.
//
// Options set, after what go-ethereum ran it with: Bloom filter of 10 bits (none by default); the cache gets half of the
// budget and the write buffer a quarter, at most 64 MiB (8 and 4 MiB by default); more open files; compaction by seeks off,
// since reads would trigger writes. Snappy stays on. For transactions that need not be durable NoSync: each becomes a table and a record
// of the manifest, which goleveldb would sync one by one.
func goleveldbDriver() engine.Driver {
	return engine.Driver{
		Name: "goleveldb", Module: "github.com/syndtr/goleveldb", Kind: "log-structured merge tree",
		Classes: map[engine.Class]string{
			engine.None:    "Sync off (it has nothing weaker)",
			engine.Relaxed: "Sync off: every write is a write call",
			engine.Durable: "Sync: writers that wait are merged",
		},
		Settings: "Bloom 10 bits, write buffer 64 MiB, block cache half of the budget, seek compaction off, Snappy; NoSync for transactions that need not be durable",
		Open:     openGoleveldb,
	}
}

type goleveldbStore struct {
	db      *leveldb.DB
	write   *opt.WriteOptions
	batches sync.Pool
}

func openGoleveldb(o engine.Options) (engine.Store, error) {
	db, err := leveldb.OpenFile(o.Dir, &opt.Options{
		Filter:             filter.NewBloomFilter(10),
		BlockCacheCapacity: int(o.MemoryBytes / 2), WriteBuffer: int(min(o.MemoryBytes/4, 64<<20)),
		OpenFilesCacheCapacity: 4096, DisableSeeksCompaction: true,
		NoSync: o.Transactions && o.Class != engine.Durable,
	})
	if err != nil {
		return nil, err
	}
	s := &goleveldbStore{db: db, write: &opt.WriteOptions{Sync: o.Class == engine.Durable}}
	s.batches.New = func() any { return new(leveldb.Batch) }
	return s, nil
}

// Put is a batch of one.
func (s *goleveldbStore) Put(key, value []byte) error { return s.db.Put(key, value, s.write) }

// Delete writes a tombstone.
func (s *goleveldbStore) Delete(key []byte) error { return s.db.Delete(key, s.write) }

// Close leaves the memtable to the log.
func (s *goleveldbStore) Close() error { return s.db.Close() }

// Write is one batch, out of a pool.
func (s *goleveldbStore) Write(batch []engine.Op) error {
	b := s.batches.Get().(*leveldb.Batch)
	defer s.batches.Put(b)
	b.Reset()
	for _, op := range batch {
		if op.Delete {
			b.Delete(op.Key)
		} else {
			b.Put(op.Key, op.Value)
		}
	}
	return s.db.Write(b, s.write)
}

// Get returns what goleveldb has copied already.
func (s *goleveldbStore) Get(dst, key []byte) ([]byte, bool, error) {
	return goleveldbGet(s.db, dst, key)
}

// Has copies no value.
func (s *goleveldbStore) Has(key []byte) (bool, error) { return s.db.Has(key, nil) }

// Scan opens an iterator of its own.
func (s *goleveldbStore) Scan(r engine.Scan, visit engine.Visit) error {
	return goleveldbScan(s.db, r, visit)
}

// Snapshot keeps versions from being dropped.
func (s *goleveldbStore) Snapshot() (engine.Snapshot, error) {
	snap, err := s.db.GetSnapshot()
	return goleveldbSnapshot{snap}, err
}

// View is a snapshot that is let go of at the end.
func (s *goleveldbStore) View(fn func(engine.Reader) error) error {
	snap, err := s.db.GetSnapshot()
	if err != nil {
		return err
	}
	defer snap.Release()
	return fn(goleveldbSnapshot{snap})
}

// Update is a transaction of goleveldb, of which there is one at a time. Each becomes a table of its own at its commit: the
// documentation calls that very expensive for small ones, and has nothing else that reads what it has written.
func (s *goleveldbStore) Update(fn func(engine.Transaction) error) error {
	tr, err := s.db.OpenTransaction()
	if err != nil {
		return err
	}
	defer tr.Discard() // which does nothing after a commit
	if err := fn(goleveldbTransaction{tr}); err != nil {
		return err
	}
	return tr.Commit()
}

// Settle waits until the process has been idle for a while: it does not tell what it has to do.
func (s *goleveldbStore) Settle() error {
	measure.WaitIdle(50*time.Millisecond, time.Minute)
	return nil
}

// Compact rewrites everything into the lowest level.
func (s *goleveldbStore) Compact() error { return s.db.CompactRange(util.Range{}) }

type goleveldbSnapshot struct{ snap *leveldb.Snapshot }

// Close lets compactions drop what only this snapshot saw.
func (s goleveldbSnapshot) Close() error { s.snap.Release(); return nil }

// Get reads at the moment of the snapshot.
func (s goleveldbSnapshot) Get(dst, key []byte) ([]byte, bool, error) {
	return goleveldbGet(s.snap, dst, key)
}

// Has copies no value.
func (s goleveldbSnapshot) Has(key []byte) (bool, error) { return s.snap.Has(key, nil) }

// Scan opens an iterator at the moment of the snapshot.
func (s goleveldbSnapshot) Scan(r engine.Scan, visit engine.Visit) error {
	return goleveldbScan(s.snap, r, visit)
}

type goleveldbTransaction struct{ tr *leveldb.Transaction }

// Get reads what the transaction has written, or else what was there before it.
func (t goleveldbTransaction) Get(dst, key []byte) ([]byte, bool, error) {
	return goleveldbGet(t.tr, dst, key)
}

// Has copies no value.
func (t goleveldbTransaction) Has(key []byte) (bool, error) { return t.tr.Has(key, nil) }

// Scan walks over both.
func (t goleveldbTransaction) Scan(r engine.Scan, visit engine.Visit) error {
	return goleveldbScan(t.tr, r, visit)
}

// Put is goleveldb's; the transaction is synced or not as a whole.
func (t goleveldbTransaction) Put(key, value []byte) error { return t.tr.Put(key, value, nil) }

// Delete is goleveldb's.
func (t goleveldbTransaction) Delete(key []byte) error { return t.tr.Delete(key, nil) }

// goleveldbReader is what a DB, a Snapshot and a Transaction have in common.
type goleveldbReader interface {
	Get(key []byte, ro *opt.ReadOptions) ([]byte, error)
	NewIterator(slice *util.Range, ro *opt.ReadOptions) iterator.Iterator
}

// goleveldbGet copies nothing: what Get returns is a copy already.
func goleveldbGet(r goleveldbReader, dst, key []byte) ([]byte, bool, error) {
	v, err := r.Get(key, nil)
	if errors.Is(err, leveldb.ErrNotFound) {
		return dst, false, nil
	}
	if len(dst) > 0 {
		v = append(dst, v...)
	}
	return v, err == nil, err
}

func goleveldbScan(r goleveldbReader, s engine.Scan, visit engine.Visit) error {
	it := r.NewIterator(nil, nil)
	defer it.Release()
	step := it.Next
	if s.Reverse {
		step = it.Prev
	}
	ok := position(it, it.Seek, s)
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
