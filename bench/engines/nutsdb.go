package engines

import (
	"errors"

	"github.com/nutsdb/nutsdb"

	"github.com/pandodb/pando/bench/engine"
)

// nutsdbDriver: a log of everything, and a B-tree in memory that holds the keys and the values too.
//
// Options set: HintKeyValAndRAMIdxMode, the default, which keeps the values in memory: its fastest reads, at the price of
// holding all data in RAM whatever the budget; segments of 64 MiB; no automatic merge, so that none falls into a cell by
// chance; buckets as B-trees. FileIO, since MMap writes bytes one segment at a time no faster and syncs more.
//
// An open read transaction makes writers wait.
func nutsdbDriver() engine.Driver {
	return engine.Driver{
		Name: "nutsdb", Module: "github.com/nutsdb/nutsdb", Kind: "log with all keys and values in RAM", BlocksWriters: true,
		Classes: map[engine.Class]string{
			engine.None:    "SyncEnable off (it has nothing weaker)",
			engine.Relaxed: "SyncEnable off: every commit is a write call",
			engine.Durable: "SyncEnable: fsync per commit",
		},
		Settings: "HintKeyValAndRAMIdxMode, 64 MiB segments, no automatic merge; holds all data in RAM",
		Open:     openNutsdb,
	}
}

type nutsdbStore struct{ db *nutsdb.DB }

const nutsdbBucket = "b"

func openNutsdb(o engine.Options) (engine.Store, error) {
	opts := nutsdb.DefaultOptions
	opts.Dir = o.Dir
	opts.SyncEnable = o.Class == engine.Durable
	opts.EntryIdxMode = nutsdb.HintKeyValAndRAMIdxMode
	opts.SegmentSize = 64 << 20
	opts.MergeInterval = 0
	opts.MaxBatchCount, opts.MaxBatchSize, opts.MaxWriteRecordCount = 1<<30, 1<<40, 1<<40
	db, err := nutsdb.Open(opts)
	if err != nil {
		return nil, err
	}
	err = db.Update(func(tx *nutsdb.Tx) error {
		if tx.ExistBucket(nutsdb.DataStructureBTree, nutsdbBucket) {
			return nil
		}
		return tx.NewBucket(nutsdb.DataStructureBTree, nutsdbBucket)
	})
	if err != nil {
		db.Close()
		return nil, err
	}
	return &nutsdbStore{db}, nil
}

// Put is a transaction of its own: NutsDB has no write outside of one.
func (s *nutsdbStore) Put(key, value []byte) error {
	return s.db.Update(func(tx *nutsdb.Tx) error {
		return tx.Put(nutsdbBucket, clone(key), clone(value), nutsdb.Persistent)
	})
}

// Delete is a transaction of its own.
func (s *nutsdbStore) Delete(key []byte) error {
	return s.db.Update(func(tx *nutsdb.Tx) error { return tx.Delete(nutsdbBucket, clone(key)) })
}

// Write is one transaction, whose entries are one write call at its commit.
func (s *nutsdbStore) Write(batch []engine.Op) error {
	return s.db.Update(func(tx *nutsdb.Tx) error {
		for _, op := range batch {
			var err error
			if op.Delete {
				err = tx.Delete(nutsdbBucket, clone(op.Key))
			} else {
				err = tx.Put(nutsdbBucket, clone(op.Key), clone(op.Value), nutsdb.Persistent)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// clone is needed: NutsDB keeps the slices that it is given.
func clone(b []byte) []byte { return append([]byte(nil), b...) }

func (s *nutsdbStore) view(fn func(r nutsdbReader) error) error {
	return s.db.View(func(tx *nutsdb.Tx) error { return fn(nutsdbReader{tx}) })
}

// Get is a read transaction of its own.
func (s *nutsdbStore) Get(dst, key []byte) (v []byte, found bool, err error) {
	err = s.view(func(r nutsdbReader) (err error) {
		v, found, err = r.Get(dst, key)
		return err
	})
	return v, found, err
}

// Has asks the index only.
func (s *nutsdbStore) Has(key []byte) (found bool, err error) {
	err = s.view(func(r nutsdbReader) (err error) {
		found, err = r.Has(key)
		return err
	})
	return found, err
}

// Scan walks inside of one read transaction, which holds writers up.
func (s *nutsdbStore) Scan(sc engine.Scan, visit engine.Visit) error {
	return s.view(func(r nutsdbReader) error { return r.Scan(sc, visit) })
}

// Snapshot is a read transaction that stays open, and holds writers up.
func (s *nutsdbStore) Snapshot() (engine.Snapshot, error) {
	tx, err := s.db.Begin(false)
	return nutsdbReader{tx}, err
}

// View is NutsDB's, which holds writers up.
func (s *nutsdbStore) View(fn func(engine.Reader) error) error {
	return s.view(func(r nutsdbReader) error { return fn(r) })
}

// Update is NutsDB's: updates take turns, and hold readers up.
func (s *nutsdbStore) Update(fn func(engine.Transaction) error) error {
	return s.db.Update(func(tx *nutsdb.Tx) error { return fn(nutsdbTransaction{nutsdbReader{tx}}) })
}

// Settle has nothing to wait for: there is no work in the background.
func (s *nutsdbStore) Settle() error { return nil }

// Compact merges the segments into new ones without what was overwritten.
func (s *nutsdbStore) Compact() error {
	err := s.db.Merge()
	if errors.Is(err, nutsdb.ErrDontNeedMerge) {
		return nil
	}
	return err
}

// Close lets go of all data in memory.
func (s *nutsdbStore) Close() error { return s.db.Close() }

type nutsdbReader struct{ tx *nutsdb.Tx }

// Close ends the transaction.
func (r nutsdbReader) Close() error { return r.tx.Rollback() }

func nutsdbAbsent(err error) bool {
	return errors.Is(err, nutsdb.ErrKeyNotFound) || errors.Is(err, nutsdb.ErrNotFoundKey)
}

// Get copies the value out of the index, which keeps the values in memory.
func (r nutsdbReader) Get(dst, key []byte) ([]byte, bool, error) {
	v, err := r.tx.Get(nutsdbBucket, key)
	if nutsdbAbsent(err) {
		return dst, false, nil
	}
	return append(dst, v...), err == nil, err
}

// Has asks the index only.
func (r nutsdbReader) Has(key []byte) (bool, error) {
	found, err := r.tx.Has(nutsdbBucket, key)
	if nutsdbAbsent(err) {
		return false, nil
	}
	return found, err
}

// Scan walks the index. Its Seek finds the first key that is not below in either direction, so that a walk backwards may have to go
// one record back.
func (r nutsdbReader) Scan(s engine.Scan, visit engine.Visit) error {
	it := nutsdb.NewIterator(r.tx, nutsdbBucket, nutsdb.IteratorOptions{Reverse: s.Reverse})
	if it == nil {
		return nil
	}
	defer it.Release()
	if s.From != nil {
		found := it.Seek(s.From)
		if s.Reverse && !found {
			it.Rewind()
		} else if s.Reverse && string(it.Key()) != string(s.From) {
			it.Next()
		}
	}
	for n := 0; it.Valid(); n++ {
		var value []byte
		if s.WantsValue(n) {
			var err error
			if value, err = it.Value(); err != nil {
				return err
			}
		}
		if !visit(it.Key(), value) || n+1 == s.Limit {
			break
		}
		it.Next()
	}
	return nil
}

type nutsdbTransaction struct{ nutsdbReader }

// Put is NutsDB's, with slices of its own.
func (t nutsdbTransaction) Put(key, value []byte) error {
	return t.tx.Put(nutsdbBucket, clone(key), clone(value), nutsdb.Persistent)
}

// Delete is NutsDB's, to which it is an error that there is no such key.
func (t nutsdbTransaction) Delete(key []byte) error {
	err := t.tx.Delete(nutsdbBucket, clone(key))
	if nutsdbAbsent(err) {
		return nil
	}
	return err
}

// Scan does not exist: iterators do not show what the transaction has put, and the range scan, which does, has no limit.
func (nutsdbTransaction) Scan(engine.Scan, engine.Visit) error { return engine.ErrUnsupported }
