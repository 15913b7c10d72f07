package engines

import (
	"errors"
	"time"

	"github.com/dgraph-io/badger/v4"

	"github.com/pandodb/pando/bench/engine"
	"github.com/pandodb/pando/bench/measure"
)

// badgerDriver: a log-structured merge tree that keeps long values in a log of their own.
//
// Options set: DetectConflicts off where no update goes by what it has read, because it costs a hash per key; MetricsEnabled off;
// BlockCacheSize and IndexCacheSize from the budget, less the memtables (with IndexCacheSize 0, which keeps all indexes outside of any
// budget, gets are no faster); ValueThreshold 32 KiB (1 MiB by default), so that
// the values of 100 KB take the path that Badger was made for; memtables of 64 MiB as by default, fewer when the budget is
// small. Tables stay compressed with Snappy and filtered as by default. Transactions are batched by Badger itself.
func badgerDriver() engine.Driver {
	return engine.Driver{
		Name: "badger", Module: "github.com/dgraph-io/badger/v4", Kind: "log-structured merge tree with a value log",
		Classes: map[engine.Class]string{
			engine.None:    "SyncWrites off (it has nothing weaker)",
			engine.Relaxed: "SyncWrites off: the log is a shared mapping",
			engine.Durable: "SyncWrites: msync per group of transactions",
		},
		Settings: "DetectConflicts (but for transactions) and metrics off, block and index caches 3/4 of the budget, ValueThreshold 32 KiB, Snappy",
		Open:     openBadger,
	}
}

type badgerStore struct{ db *badger.DB }

func openBadger(o engine.Options) (engine.Store, error) {
	memtable := int64(64 << 20)
	for memtable*8 > o.MemoryBytes && memtable > 8<<20 {
		memtable /= 2
	}
	opts := badger.DefaultOptions(o.Dir).
		WithLogger(nil).WithMetricsEnabled(false).WithDetectConflicts(o.Transactions).
		WithSyncWrites(o.Class == engine.Durable).
		WithMemTableSize(memtable).WithValueThreshold(min(32<<10, memtable/8)).
		WithBlockCacheSize(o.MemoryBytes * 5 / 8).WithIndexCacheSize(o.MemoryBytes / 8).
		WithValueLogFileSize(256 << 20)
	db, err := badger.Open(opts)
	if err != nil {
		return nil, err
	}
	return &badgerStore{db}, nil
}

// Put is a transaction of its own; Badger groups those that commit together.
func (s *badgerStore) Put(key, value []byte) error {
	txn := s.db.NewTransaction(true)
	defer txn.Discard()
	if err := txn.Set(key, value); err != nil {
		return err
	}
	return txn.Commit()
}

// Delete is a transaction of its own.
func (s *badgerStore) Delete(key []byte) error {
	txn := s.db.NewTransaction(true)
	defer txn.Discard()
	if err := txn.Delete(key); err != nil {
		return err
	}
	return txn.Commit()
}

// Write is one transaction. WriteBatch would be faster by splitting it, but is not atomic.
func (s *badgerStore) Write(batch []engine.Op) error {
	txn := s.db.NewTransaction(true)
	defer txn.Discard()
	for _, op := range batch {
		var err error
		if op.Delete {
			err = txn.Delete(op.Key)
		} else {
			err = txn.Set(op.Key, op.Value)
		}
		if err != nil {
			return err
		}
	}
	return txn.Commit()
}

// Get is a read transaction of its own, which takes no lock.
func (s *badgerStore) Get(dst, key []byte) ([]byte, bool, error) {
	txn := s.db.NewTransaction(false)
	defer txn.Discard()
	return badgerReader{txn}.Get(dst, key)
}

// Has finds the item and does not read its value.
func (s *badgerStore) Has(key []byte) (bool, error) {
	txn := s.db.NewTransaction(false)
	defer txn.Discard()
	return badgerReader{txn}.Has(key)
}

// Scan walks inside of one read transaction.
func (s *badgerStore) Scan(r engine.Scan, visit engine.Visit) error {
	txn := s.db.NewTransaction(false)
	defer txn.Discard()
	return badgerReader{txn}.Scan(r, visit)
}

// Snapshot is a read transaction that stays open.
func (s *badgerStore) Snapshot() (engine.Snapshot, error) {
	return badgerReader{s.db.NewTransaction(false)}, nil
}

// View is Badger's.
func (s *badgerStore) View(fn func(engine.Reader) error) error {
	return s.db.View(func(txn *badger.Txn) error { return fn(badgerReader{txn}) })
}

// Update is Badger's, once more when another one was first.
func (s *badgerStore) Update(fn func(engine.Transaction) error) error {
	for {
		err := s.db.Update(func(txn *badger.Txn) error { return fn(badgerTransaction{badgerReader{txn}}) })
		if !errors.Is(err, badger.ErrConflict) {
			return err
		}
	}
}

// Settle waits until the process has been idle for a while: Badger does not tell what it has to do.
func (s *badgerStore) Settle() error {
	measure.WaitIdle(50*time.Millisecond, time.Minute)
	return nil
}

// Compact brings all tables to one level and rewrites the value log while a third of a file is garbage.
func (s *badgerStore) Compact() error {
	if err := s.db.Flatten(2); err != nil {
		return err
	}
	for {
		if err := s.db.RunValueLogGC(0.3); err != nil {
			if errors.Is(err, badger.ErrNoRewrite) {
				return nil
			}
			return err
		}
	}
}

// Close flushes the memtable.
func (s *badgerStore) Close() error { return s.db.Close() }

type badgerReader struct{ txn *badger.Txn }

// Close ends the transaction.
func (r badgerReader) Close() error { r.txn.Discard(); return nil }

// Get copies the value out of its block, or out of the mapped value log.
func (r badgerReader) Get(dst, key []byte) ([]byte, bool, error) {
	item, err := r.txn.Get(key)
	if errors.Is(err, badger.ErrKeyNotFound) {
		return dst, false, nil
	}
	if err != nil {
		return dst, false, err
	}
	err = item.Value(func(v []byte) error {
		dst = append(dst, v...)
		return nil
	})
	return dst, err == nil, err
}

// Has finds the item and does not read its value.
func (r badgerReader) Has(key []byte) (bool, error) {
	_, err := r.txn.Get(key)
	if errors.Is(err, badger.ErrKeyNotFound) {
		return false, nil
	}
	return err == nil, err
}

// Scan walks with Badger's iterator, which begins at the next key in its direction by itself.
func (r badgerReader) Scan(s engine.Scan, visit engine.Visit) error {
	o := badger.DefaultIteratorOptions
	o.Reverse = s.Reverse
	if s.Limit > 0 && s.Limit < o.PrefetchSize {
		o.PrefetchSize = s.Limit
	}
	o.PrefetchValues = false // inline values need no prefetching, and it costs a goroutine per record
	it := r.txn.NewIterator(o)
	defer it.Close()
	if s.From == nil {
		it.Rewind()
	} else {
		it.Seek(s.From)
	}
	more := true
	for n := 0; more && it.Valid(); it.Next() {
		item := it.Item()
		show := func(value []byte) error {
			more = visit(item.Key(), value) && n+1 != s.Limit
			return nil
		}
		if !s.WantsValue(n) {
			_ = show(nil) // it has no error
		} else if err := item.Value(show); err != nil {
			return err
		}
		n++
	}
	return nil
}

type badgerTransaction struct{ badgerReader }

// Put keeps the slices until the commit.
func (t badgerTransaction) Put(key, value []byte) error { return t.txn.Set(key, value) }

// Delete keeps the key until the commit.
func (t badgerTransaction) Delete(key []byte) error { return t.txn.Delete(key) }
