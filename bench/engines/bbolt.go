package engines

import (
	"bytes"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"

	"github.com/pandodb/pando/bench/engine"
)

// bboltDriver: a copy-on-write B+tree in one mapped file, one writer at a time.
//
// Options set: FreelistMapType, because the default array is searched linearly at every allocation; NoFreelistSync, because
// writing the freelist with every commit costs more than rebuilding it at open; InitialMmapSize of 64 GiB, because
// growing the map stops readers; NoGrowSync with NoSync; NoStatistics. One bucket; FillPercent is 1 where keys come in order, so
// that pages are left full, and otherwise stays at its default. Several durable writers use DB.Batch, bbolt's group commit: with
// MaxBatchSize as many as there are, so that nobody waits for more when all wait already, and MaxBatchDelay of 1 ms instead of 10.
func bboltDriver() engine.Driver {
	return engine.Driver{
		Name: "bbolt", Module: "go.etcd.io/bbolt", Kind: "copy-on-write B+tree, mapped",
		Classes: map[engine.Class]string{
			engine.None:    "NoSync (it has nothing weaker)",
			engine.Relaxed: "NoSync: pages are written with pwrite at every commit",
			engine.Durable: "default: two fdatasync per commit; Batch groups concurrent writers",
		},
		Settings: "FreelistMapType, NoFreelistSync, NoStatistics, InitialMmapSize 64 GiB; FillPercent 1 for inserts in order; Batch of as many as there are, or 1 ms, for several durable writers",
		Open:     openBbolt,
	}
}

type bboltStore struct {
	db      *bbolt.DB
	grouped bool
	fill    float64
}

// bboltMap is address space, not memory. It is far above the data because a writer that has to grow the map waits for all
// readers, for ever when it holds one open itself, and because open readers keep all pages that are rewritten meanwhile.
const bboltMap = 64 << 30

var bboltBucket = []byte("b")

func openBbolt(o engine.Options) (engine.Store, error) {
	opts := *bbolt.DefaultOptions
	opts.FreelistType = bbolt.FreelistMapType
	opts.NoFreelistSync = true
	opts.InitialMmapSize = bboltMap
	opts.NoStatistics = true
	opts.NoSync = o.Class != engine.Durable
	opts.NoGrowSync = opts.NoSync
	db, err := bbolt.Open(filepath.Join(o.Dir, "bolt.db"), 0o644, &opts)
	if err != nil {
		return nil, err
	}
	db.MaxBatchDelay, db.MaxBatchSize = time.Millisecond, max(o.Writers, 1)
	err = db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucketIfNotExists(bboltBucket)
		return err
	})
	if err != nil {
		db.Close()
		return nil, err
	}
	s := &bboltStore{db: db, grouped: o.Class == engine.Durable && o.Writers > 1, fill: bbolt.DefaultFillPercent}
	if o.InOrder {
		s.fill = 1
	}
	return s, nil
}

func (s *bboltStore) update(fn func(tx *bbolt.Tx) error) error {
	if s.grouped {
		return s.db.Batch(fn)
	}
	return s.db.Update(fn)
}

// bucket is the bucket of a transaction that puts.
func (s *bboltStore) bucket(tx *bbolt.Tx) *bbolt.Bucket {
	b := tx.Bucket(bboltBucket)
	b.FillPercent = s.fill
	return b
}

// Put is a transaction of its own.
func (s *bboltStore) Put(key, value []byte) error {
	return s.update(func(tx *bbolt.Tx) error { return s.bucket(tx).Put(key, value) })
}

// Delete is a transaction of its own.
func (s *bboltStore) Delete(key []byte) error {
	return s.update(func(tx *bbolt.Tx) error { return tx.Bucket(bboltBucket).Delete(key) })
}

// Write is one transaction.
func (s *bboltStore) Write(batch []engine.Op) error {
	return s.update(func(tx *bbolt.Tx) error {
		b := s.bucket(tx)
		for _, op := range batch {
			var err error
			if op.Delete {
				err = b.Delete(op.Key)
			} else {
				err = b.Put(op.Key, op.Value)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// Get is a read transaction of its own; the value, which lies in the map, is copied.
func (s *bboltStore) Get(dst, key []byte) (v []byte, found bool, err error) {
	err = s.db.View(func(tx *bbolt.Tx) error {
		v, found, _ = bboltReader{tx.Bucket(bboltBucket)}.Get(dst, key)
		return nil
	})
	return v, found, err
}

// Has is a read transaction of its own.
func (s *bboltStore) Has(key []byte) (found bool, err error) {
	err = s.db.View(func(tx *bbolt.Tx) error {
		found = tx.Bucket(bboltBucket).Get(key) != nil
		return nil
	})
	return found, err
}

// Scan walks inside of one read transaction.
func (s *bboltStore) Scan(r engine.Scan, visit engine.Visit) error {
	return s.db.View(func(tx *bbolt.Tx) error { return bboltReader{tx.Bucket(bboltBucket)}.Scan(r, visit) })
}

// Snapshot is a read transaction that stays open, and keeps the pages of its moment from being used again.
func (s *bboltStore) Snapshot() (engine.Snapshot, error) {
	tx, err := s.db.Begin(false)
	if err != nil {
		return nil, err
	}
	return bboltReader{tx.Bucket(bboltBucket)}, nil
}

// View is bbolt's.
func (s *bboltStore) View(fn func(engine.Reader) error) error {
	return s.db.View(func(tx *bbolt.Tx) error { return fn(bboltReader{tx.Bucket(bboltBucket)}) })
}

// Update is bbolt's, or its group commit where other writes are grouped too: updates take turns.
func (s *bboltStore) Update(fn func(engine.Transaction) error) error {
	return s.update(func(tx *bbolt.Tx) error { return fn(bboltTransaction{bboltReader{s.bucket(tx)}}) })
}

// Settle has nothing to wait for: there is no work in the background.
func (s *bboltStore) Settle() error { return nil }

// Close waits for readers and unmaps the file.
func (s *bboltStore) Close() error { return s.db.Close() }

// Compact copies into a new file, as `bbolt compact` does, and goes on with it.
func (s *bboltStore) Compact() error {
	path := s.db.Path()
	opts := *bbolt.DefaultOptions
	opts.FreelistType, opts.NoFreelistSync, opts.NoStatistics = bbolt.FreelistMapType, true, true
	opts.NoSync, opts.NoGrowSync = s.db.NoSync, s.db.NoGrowSync
	dst, err := bbolt.Open(path+".compact", 0o644, &opts)
	if err != nil {
		return err
	}
	if err := bbolt.Compact(dst, s.db, 64<<20); err != nil {
		return err
	}
	if err := dst.Close(); err != nil {
		return err
	}
	if err := s.db.Close(); err != nil {
		return err
	}
	if err := renameOver(path+".compact", path); err != nil {
		return err
	}
	s.db, err = bbolt.Open(path, 0o644, &opts)
	return err
}

// bboltReader is the bucket of a transaction, which is looked up once.
type bboltReader struct{ b *bbolt.Bucket }

// Close ends the transaction.
func (r bboltReader) Close() error { return r.b.Tx().Rollback() }

// Get copies the value out of the map.
func (r bboltReader) Get(dst, key []byte) ([]byte, bool, error) {
	v := r.b.Get(key)
	return append(dst, v...), v != nil, nil
}

// Has copies nothing.
func (r bboltReader) Has(key []byte) (bool, error) {
	return r.b.Get(key) != nil, nil
}

// Scan walks with a cursor over the pages in the map.
func (r bboltReader) Scan(s engine.Scan, visit engine.Visit) error {
	c := r.b.Cursor()
	step := c.Next
	var k, v []byte
	switch {
	case s.From != nil:
		k, v = c.Seek(s.From)
		if s.Reverse {
			step = c.Prev
			if k == nil {
				k, v = c.Last()
			} else if !bytes.Equal(k, s.From) {
				k, v = c.Prev()
			}
		}
	case s.Reverse:
		step = c.Prev
		k, v = c.Last()
	default:
		k, v = c.First()
	}
	for n := 1; k != nil; n++ {
		if !visit(k, v) || n == s.Limit {
			break
		}
		k, v = step()
	}
	return nil
}

type bboltTransaction struct{ bboltReader }

// Put copies the key; the value is copied into its page at the commit.
func (t bboltTransaction) Put(key, value []byte) error { return t.b.Put(key, value) }

// Delete is bbolt's.
func (t bboltTransaction) Delete(key []byte) error { return t.b.Delete(key) }
