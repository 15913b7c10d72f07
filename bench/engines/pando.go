package engines

import (
	"context"
	"errors"
	"sync"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/bench/engine"
)

// pandoDriver: Pando with its default keyspace, a copy-on-write B+tree.
//
// Options set: Profile from the class, MemoryBytes from the budget that every engine gets. All else is the default: S2
// compression, leaves of 8 KiB (16 where they shrink by half), values above 1 KiB apart from their keys. There is nothing to tune for a workload.
func pandoDriver() engine.Driver {
	return engine.Driver{
		Name: "pando", Version: "this tree", Kind: "memtable with log over a copy-on-write B+tree",
		Classes: map[engine.Class]string{
			engine.None:    "Profile Bench: no log",
			engine.Relaxed: "Profile Relaxed: the log is a shared mapping, synced in the background",
			engine.Durable: "Profile Durable: fdatasync of the log, shared by all writers that wait",
		},
		Settings: "MemoryBytes = the budget; otherwise defaults (S2, 8 KiB leaves)",
		Open:     openPando, OpenDocuments: openPandoDocuments,
	}
}

// pandoStore is an open database of which one keyspace is used.
type pandoStore struct {
	db      *pando.DB
	ks      *pando.Keyspace
	batches sync.Pool
}

func openPando(o engine.Options) (engine.Store, error) {
	db, err := pando.Open(o.Dir, pandoOptions(o))
	if err != nil {
		return nil, err
	}
	return newPandoStore(db, db.Default()), nil
}

func newPandoStore(db *pando.DB, ks *pando.Keyspace) *pandoStore {
	s := &pandoStore{db: db, ks: ks}
	s.batches.New = func() any { return db.NewBatch().In(ks) }
	return s
}

func pandoOptions(o engine.Options) *pando.Options {
	profile := pando.Durable
	switch o.Class {
	case engine.None:
		profile = pando.Bench
	case engine.Relaxed:
		profile = pando.Relaxed
	}
	return &pando.Options{Profile: profile, MemoryBytes: o.MemoryBytes}
}

// Put is Pando's.
func (s *pandoStore) Put(key, value []byte) error { return s.ks.Put(key, value) }

// Delete is Pando's.
func (s *pandoStore) Delete(key []byte) error { return s.ks.Delete(key) }

// Close is Pando's.
func (s *pandoStore) Close() error { return s.db.Close() }

// Write is one batch, out of a pool: batches can be used again.
func (s *pandoStore) Write(batch []engine.Op) error {
	b := s.batches.Get().(*pando.Batch)
	for _, op := range batch {
		if op.Delete {
			b.Delete(op.Key) // Write returns the error
			continue
		}
		b.Put(op.Key, op.Value)
	}
	err := s.db.Write(b)
	b.Reset()
	s.batches.Put(b)
	return err
}

// Get appends to dst, which is what GetTo is for.
func (s *pandoStore) Get(dst, key []byte) ([]byte, bool, error) { return pandoGet(s.ks, dst, key) }

// Has reads no value.
func (s *pandoStore) Has(key []byte) (bool, error) { return s.ks.Has(key) }

// Scan opens an iterator of its own, which is a view of one moment.
func (s *pandoStore) Scan(r engine.Scan, visit engine.Visit) error {
	return pandoScan(s.ks.Iter(nil), r, visit)
}

// Snapshot holds one moment and makes nobody wait.
func (s *pandoStore) Snapshot() (engine.Snapshot, error) {
	snap := s.db.Snapshot().In(s.ks)
	return pandoSnapshot{snap}, snap.Err()
}

// View is Pando's.
func (s *pandoStore) View(fn func(engine.Reader) error) error {
	return s.db.View(func(tx *pando.Tx) error { return fn(s.within(tx)) })
}

// Update is Pando's: updates take turns, and are not noted for a check at their commit.
func (s *pandoStore) Update(fn func(engine.Transaction) error) error {
	return s.db.Update(func(tx *pando.Tx) error { return fn(s.within(tx)) })
}

// within is a transaction in the keyspace that is used; it begins in the default one.
func (s *pandoStore) within(tx *pando.Tx) pandoTransaction {
	if s.ks != s.db.Default() {
		tx = tx.In(s.ks)
	}
	return pandoTransaction{tx}
}

// Settle brings what is in the memtables into the tree, or the hash table.
func (s *pandoStore) Settle() error { return s.db.Checkpoint(context.Background()) }

// Compact rewrites what is worth it, with the codec that the keyspace has.
func (s *pandoStore) Compact() error {
	return s.db.Compact(context.Background(), pando.CompactOptions{})
}

type pandoSnapshot struct{ *pando.Snapshot }

// Get reads at the moment of the snapshot.
func (s pandoSnapshot) Get(dst, key []byte) ([]byte, bool, error) {
	return pandoGet(s.Snapshot, dst, key)
}

// Scan walks at the moment of the snapshot.
func (s pandoSnapshot) Scan(r engine.Scan, visit engine.Visit) error {
	return pandoScan(s.Iter(nil), r, visit)
}

// pandoTransaction has Put, Delete and Has of Pando.
type pandoTransaction struct{ *pando.Tx }

// Get reads what the transaction has written, or else what was there before it.
func (t pandoTransaction) Get(dst, key []byte) ([]byte, bool, error) {
	return pandoGet(t.Tx, dst, key)
}

// Scan walks over both.
func (t pandoTransaction) Scan(r engine.Scan, visit engine.Visit) error {
	return pandoScan(t.Iter(nil), r, visit)
}

// pandoGet translates the absence of a key.
func pandoGet(r interface {
	GetTo(dst, key []byte) ([]byte, error)
}, dst, key []byte) ([]byte, bool, error) {
	v, err := r.GetTo(dst, key)
	if errors.Is(err, pando.ErrNotFound) {
		return v, false, nil
	}
	return v, err == nil, err
}

// pandoScan walks and closes the iterator.
func pandoScan(it *pando.Iterator, r engine.Scan, visit engine.Visit) error {
	defer it.Close()
	step := it.Next
	if r.Reverse {
		step = it.Prev
	}
	ok := position(it, it.SeekGE, r)
	for n := 0; ok; n++ {
		var value []byte
		if r.WantsValue(n) {
			value = it.Value()
		}
		if !visit(it.Key(), value) || n+1 == r.Limit {
			break
		}
		ok = step()
	}
	return it.Err()
}
