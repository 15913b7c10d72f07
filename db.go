package pando

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"

	"github.com/pandodb/pando/internal/engine"
	"github.com/pandodb/pando/vfs/osfs"
)

// DB is an open database. It is safe for concurrent use. Its reading and writing methods work on the default keyspace. It comes from Open:
// nil and the zero value, which is what there is when Open has failed, can be closed, and nothing else.
type DB struct {
	e    *engine.Engine
	main *Keyspace

	puts    sync.Pool    // of *putter
	writing sync.Pool    // of *txWrites
	payload atomic.Int64 // bytes of the commands of the batch or transaction that was committed last: the next may have as many
}

// Open opens the database in dir, and creates it where there is none. nil options mean the durable profile and the defaults.
//
// After a crash it replays the log: everything that was acknowledged is there, in the sense of the profile with which it was
// written. It fails with
//   - ErrLocked when somebody else has the database open, in this process or another;
//   - ErrNotFound, with MustExist or ReadOnly, when there is none;
//   - ErrNotDatabase when the directory is a file, or holds other things, so that none can be created there;
//   - ErrVersion when a newer version wrote it;
//   - ErrUnfinished when a Salvage or a Backup into it was interrupted;
//   - ErrCorrupt when its root or log is damaged;
//   - ErrOptions when opts make no sense;
//   - an error of the file system.
func Open(dir string, opts *Options) (*DB, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.FS == nil {
		o.FS = osfs.New()
	}
	return open(dir, &o, engine.Open)
}

// open is Open for options that are complete, and for an engine that may be opened in another way.
func open(dir string, o *Options, opener func(engine.Options) (*engine.Engine, error)) (*DB, error) {
	if err := o.Compression.check(); err != nil {
		return nil, fmt.Errorf("open %s: %w", dir, err)
	}
	e, err := opener(engine.Options{
		FS: o.FS, Dir: dir, Logger: o.Logger, Profile: o.Profile, ReadOnly: o.ReadOnly, MustExist: o.MustExist,
		MemoryBytes: o.MemoryBytes, ValueThreshold: o.ValueThreshold, Codec: o.Compression.codec(),
		SyncInterval: o.SyncInterval, SyncBytes: o.SyncBytes, KeepChanges: o.KeepChanges,
	})
	if err != nil {
		return nil, err
	}
	db := &DB{e: e}
	db.main = &Keyspace{db: db, ks: e.Keyspace(engine.DefaultID)}
	db.puts.New = func() any { return new(putter) }
	return db, nil
}

// Close waits for running calls, of which it ends a Compact, settles what was committed and closes the database. Iterators,
// snapshots, transactions and readers of values that are still open answer with ErrClosed afterwards. When it returns nil all that was
// acknowledged is durable, but for PutUnsynced: where the profile acknowledges earlier than that, closing a database that has
// failed is ErrFailed. Closing twice is no error: who does so while another Close is at work waits for it, and returns what it does. Closing
// what was never open is ErrClosed. It waits for the function of an Update that is at work, too, whose transaction is closed by then, and for
// the present step of a loop over Changes: neither may close the database itself.
func (db *DB) Close() error {
	if db == nil || db.e == nil {
		return ErrClosed
	}
	return db.e.Close()
}

// Get returns a copy of the value of key, or ErrNotFound.
func (db *DB) Get(key []byte) ([]byte, error) { return db.main.Get(key) }

// GetTo appends the value of key to dst and returns the result. It allocates nothing when the value fits into dst, of which all the capacity
// may be written to: see the package comment.
func (db *DB) GetTo(dst, key []byte) ([]byte, error) { return db.main.GetTo(dst, key) }

// Has reports whether key is there.
func (db *DB) Has(key []byte) (bool, error) { return db.main.Has(key) }

// Put stores value under key. A nil value is stored as an empty one. What is too long is ErrKeyTooLarge or ErrValueTooLarge.
func (db *DB) Put(key, value []byte) error { return db.main.Put(key, value) }

// Delete removes key. Deleting what is not there is no error.
func (db *DB) Delete(key []byte) error { return db.main.Delete(key) }

// DeleteRange removes every key in [lo, hi); a nil bound is open. Its cost does not depend on how many there are.
func (db *DB) DeleteRange(lo, hi []byte) error { return db.main.DeleteRange(lo, hi) }

// Iter opens an iterator; nil options walk over everything. It must be closed.
func (db *DB) Iter(o *IterOptions) *Iterator { return db.main.Iter(o) }

// Range walks over the pairs in [lo, hi) in the order of their keys; a nil bound is open. A pair is valid for its step only.
// When the walk fails it ends early: see Err.
func (db *DB) Range(lo, hi []byte) iter.Seq2[[]byte, []byte] { return db.main.Range(lo, hi) }

// RangeReverse is Range from the highest key to the lowest.
func (db *DB) RangeReverse(lo, hi []byte) iter.Seq2[[]byte, []byte] {
	return db.main.RangeReverse(lo, hi)
}

// Prefix walks over the pairs whose keys begin with p.
func (db *DB) Prefix(p []byte) iter.Seq2[[]byte, []byte] { return db.main.Prefix(p) }

// Count returns the number of pairs in [lo, hi); a nil bound is open. It costs O(log n) on settled data, and one look-up for
// each key of the range that has not settled.
func (db *DB) Count(lo, hi []byte) (int64, error) { return db.main.Count(lo, hi) }

// Nth returns the n-th pair of [lo, hi), counted from 0, or ErrNotFound. Its cost is that of Count.
func (db *DB) Nth(lo, hi []byte, n int64) (key, value []byte, err error) {
	return db.main.Nth(lo, hi, n)
}

// Err returns the error that ended the newest failed loop over Range, RangeReverse or Prefix.
func (db *DB) Err() error { return db.main.Err() }

// Keyspace opens a keyspace, and creates it where there is none; then opts, which may be nil, say how. Opening with nil
// options takes the keyspace as it is. A handle is cheap and may be kept. A name is 1 to MaxNameBytes bytes of UTF-8, else the error is
// ErrName; with ReadOnly a keyspace that is not there is ErrNotFound.
func (db *DB) Keyspace(name string, opts *KeyspaceOptions) (*Keyspace, error) {
	var o *engine.KeyspaceOptions
	if opts != nil {
		o = &engine.KeyspaceOptions{Layout: opts.Layout, LeafBytes: opts.LeafBytes, NoFilters: opts.NoBloomFilters}
		if opts.Compression != nil && *opts.Compression != DefaultCompression {
			if err := opts.Compression.check(); err != nil {
				return nil, fmt.Errorf("keyspace %q: %w", name, err)
			}
			o.Codec, o.OwnCodec = opts.Compression.codec(), true
		}
	}
	ks, err := db.e.OpenKeyspace(name, o)
	if err != nil {
		return nil, err
	}
	return &Keyspace{db: db, ks: ks}, nil
}

// Default returns the default keyspace, the one that the methods of DB work on. Its name is "default".
func (db *DB) Default() *Keyspace { return db.main }

// KeyspaceInfo describes a keyspace.
type KeyspaceInfo struct {
	Name   string
	Layout Layout
	// LeafBytes and NoBloomFilters are the options that the keyspace was created with; 0 bytes are the default.
	LeafBytes      int
	NoBloomFilters bool
	// Records is the number of settled pairs, expired ones included; Exact tells whether it is known exactly without
	// reading. Count gives the exact number of live pairs.
	Records int64
	Exact   bool
}

// Keyspaces lists the keyspaces, the default one included, in the order of their names.
func (db *DB) Keyspaces() ([]KeyspaceInfo, error) {
	s, err := db.e.Snapshot()
	if err != nil {
		return nil, err
	}
	defer s.Release()
	all := db.e.Keyspaces()
	list := make([]KeyspaceInfo, 0, len(all))
	for _, ks := range all {
		info := KeyspaceInfo{
			Name: ks.Name, Layout: Layout(ks.Layout), LeafBytes: int(ks.LeafBytes), NoBloomFilters: ks.NoFilters, Exact: true,
		}
		if root := s.View.Root(ks.ID); root != nil {
			info.Records, info.Exact = root.Records()
		}
		list = append(list, info)
	}
	return list, nil
}

// DropKeyspace removes a keyspace and all that it holds, at once and whatever its size; its space comes back later. Handles
// answer with ErrDropped from then on, in snapshots and transactions that begin later too, also when there is another one of its name
// by then; those that are open still read it. There being none of that name is ErrNotFound. The default
// keyspace stays: dropping it is ErrName.
func (db *DB) DropKeyspace(name string) error { return db.e.DropKeyspace(name) }

// Snapshot returns the database as it is now. It must be closed. While it is open, disk space that only it can see is not
// given back.
func (db *DB) Snapshot() *Snapshot { return db.snapshotOf(db.e.Snapshot()) }

// snapshotOf takes a moment over, if there is no error.
func (db *DB) snapshotOf(snap engine.Snapshot, err error) *Snapshot {
	s := &snapshotState{db: db}
	if err == nil {
		err = db.e.Hold(&s.held, snap)
	}
	if err != nil {
		s.held.Stop().Set(err)
		s.closed.Store(true)
	}
	s.handle = Snapshot{state: s, ks: db.main}
	return &s.handle
}

// Sync returns when everything that was acknowledged before is on stable storage, whatever the profile; in the Bench profile that
// takes a checkpoint, which waits for an Update that is at work. After it has failed nothing more is acknowledged: see ErrFailed.
func (db *DB) Sync() error { return db.e.Sync() }

// SyncCommits is Sync for those who have just made commits that did not wait: it comes in line with the writers, so that many who call it
// at once, and those whose commits wait, share one sync. It waits as long as an Update does that is at work, and must not be called
// within one.
func (db *DB) SyncCommits() error { return db.e.SyncCommits() }

// Checkpoint settles everything that was committed before the call: afterwards reads see one structure and recovery has
// nothing to do. The database does so by itself when it needs to, after a pause in writing, and when it is closed.
func (db *DB) Checkpoint(ctx context.Context) error { return db.e.Checkpoint(ctx) }
