package engines

import (
	"bytes"
	"path/filepath"

	"go.etcd.io/bbolt"

	"github.com/pandodb/pando/bench/engine"
)

// bboltDriver: a copy-on-write B+tree in one mapped file, one writer at a time.
//
// Options set: FreelistMapType, because the default array is searched linearly at every allocation; NoFreelistSync, because
// writing the freelist with every commit costs more than rebuilding it at open; InitialMmapSize of 64 GiB, because
// growing the map stops readers; NoGrowSync with NoSync. One bucket; fill percent stays at its default, since keys come in
// random order. Several durable writers use DB.Batch, bbolt's group commit, with MaxBatchDelay of 1 ms instead of 10, so that
// groups do not wait longer than a sync takes.
func bboltDriver() engine.Driver {
	return engine.Driver{
		Name: "bbolt", Module: "go.etcd.io/bbolt", Kind: "copy-on-write B+tree, mapped",
		Classes: map[engine.Class]string{
			engine.None:    "NoSync (it has nothing weaker)",
			engine.Relaxed: "NoSync: pages are written with pwrite at every commit",
			engine.Durable: "default: two fdatasync per commit; Batch groups concurrent writers",
		},
		Settings: "FreelistMapType, NoFreelistSync, InitialMmapSize 64 GiB; Batch with 1 ms for several durable writers",
		Open:     openBbolt,
	}
}

type bboltStore struct {
	db      *bbolt.DB
	grouped bool
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
	opts.NoSync = o.Class != engine.Durable
	opts.NoGrowSync = opts.NoSync
	db, err := bbolt.Open(filepath.Join(o.Dir, "bolt.db"), 0o644, &opts)
	if err != nil {
		return nil, err
	}
	db.MaxBatchDelay = 1e6
	err = db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucketIfNotExists(bboltBucket)
		return err
	})
	if err != nil {
		db.Close()
		return nil, err
	}
	return &bboltStore{db, o.Class == engine.Durable && o.Writers > 1}, nil
}

func (s *bboltStore) update(fn func(tx *bbolt.Tx) error) error {
	if s.grouped {
		return s.db.Batch(fn)
	}
	return s.db.Update(fn)
}

func (s *bboltStore) Put(key, value []byte) error {
	return s.update(func(tx *bbolt.Tx) error { return tx.Bucket(bboltBucket).Put(key, value) })
}

func (s *bboltStore) Delete(key []byte) error {
	return s.update(func(tx *bbolt.Tx) error { return tx.Bucket(bboltBucket).Delete(key) })
}

func (s *bboltStore) Write(batch []engine.Op) error {
	return s.update(func(tx *bbolt.Tx) error {
		b := tx.Bucket(bboltBucket)
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

func (s *bboltStore) Get(dst, key []byte) (v []byte, found bool, err error) {
	err = s.db.View(func(tx *bbolt.Tx) error {
		v, found, _ = bboltReader{tx}.Get(dst, key)
		return nil
	})
	return v, found, err
}

func (s *bboltStore) Has(key []byte) (found bool, err error) {
	err = s.db.View(func(tx *bbolt.Tx) error {
		found = tx.Bucket(bboltBucket).Get(key) != nil
		return nil
	})
	return found, err
}

func (s *bboltStore) Scan(r engine.Scan, visit engine.Visit) error {
	return s.db.View(func(tx *bbolt.Tx) error { return bboltReader{tx}.Scan(r, visit) })
}

func (s *bboltStore) Snapshot() (engine.Snapshot, error) {
	tx, err := s.db.Begin(false)
	return bboltReader{tx}, err
}

func (s *bboltStore) Settle() error { return nil } // it does no work in the background
func (s *bboltStore) Close() error  { return s.db.Close() }

// Compact copies into a new file, as `bbolt compact` does, and goes on with it.
func (s *bboltStore) Compact() error {
	path := s.db.Path()
	opts := *bbolt.DefaultOptions
	opts.FreelistType, opts.NoFreelistSync = bbolt.FreelistMapType, true
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

type bboltReader struct{ tx *bbolt.Tx }

func (r bboltReader) Close() error { return r.tx.Rollback() }

func (r bboltReader) Get(dst, key []byte) ([]byte, bool, error) {
	v := r.tx.Bucket(bboltBucket).Get(key)
	return append(dst, v...), v != nil, nil
}

func (r bboltReader) Has(key []byte) (bool, error) {
	return r.tx.Bucket(bboltBucket).Get(key) != nil, nil
}

func (r bboltReader) Scan(s engine.Scan, visit engine.Visit) error {
	c := r.tx.Bucket(bboltBucket).Cursor()
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
