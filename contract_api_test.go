package pando_test

import (
	"context"
	"iter"
	"log/slog"
	"time"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs"
)

// Other programs are compiled against these names and types. Add to them; never change them.

type reader interface {
	Get(key []byte) ([]byte, error)
	GetTo(dst, key []byte) ([]byte, error)
	Has(key []byte) (bool, error)
	Iter(o *pando.IterOptions) *pando.Iterator
	Range(lo, hi []byte) iter.Seq2[[]byte, []byte]
	RangeReverse(lo, hi []byte) iter.Seq2[[]byte, []byte]
	Prefix(p []byte) iter.Seq2[[]byte, []byte]
	Count(lo, hi []byte) (int64, error)
	Nth(lo, hi []byte, n int64) (key, value []byte, err error)
	Err() error
}

type writer interface {
	Put(key, value []byte) error
	Delete(key []byte) error
	DeleteRange(lo, hi []byte) error
}

type iterator interface {
	First() bool
	Last() bool
	Next() bool
	Prev() bool
	SeekGE(key []byte) bool
	SeekLT(key []byte) bool
	Valid() bool
	Key() []byte
	Value() []byte
	Err() error
	Close() error
}

type database interface {
	NewBatch() *pando.Batch
	Write(b *pando.Batch) error
	View(fn func(tx *pando.Tx) error) error
	Update(fn func(tx *pando.Tx) error) error
	Begin(writable bool) (*pando.Tx, error)
	Snapshot() *pando.Snapshot
	Keyspace(name string, opts *pando.KeyspaceOptions) (*pando.Keyspace, error)
	Keyspaces() ([]pando.KeyspaceInfo, error)
	DropKeyspace(name string) error
	Sync() error
	Checkpoint(ctx context.Context) error
	Compact(ctx context.Context, o pando.CompactOptions) error
	Backup(ctx context.Context, dir string) error
	Check(ctx context.Context) (*pando.Report, error)
	Metrics() pando.Metrics
	Close() error
}

type transaction interface {
	In(ks *pando.Keyspace) *pando.Tx
	Commit() error
	Rollback() error
}

type snapshot interface {
	In(ks *pando.Keyspace) *pando.Snapshot
	Close() error
}

type batch interface {
	In(ks *pando.Keyspace) *pando.Batch
	Len() int
	Size() int64
	Reset()
}

var (
	_ func(string, *pando.Options) (*pando.DB, error) = pando.Open

	_ interface {
		database
		reader
		writer
	} = (*pando.DB)(nil)
	_ interface {
		reader
		writer
		Name() string
	} = (*pando.Keyspace)(nil)
	_ interface {
		transaction
		reader
		writer
	} = (*pando.Tx)(nil)
	_ interface {
		snapshot
		reader
	} = (*pando.Snapshot)(nil)
	_ interface {
		batch
		writer
	} = (*pando.Batch)(nil)
	_ iterator = (*pando.Iterator)(nil)

	_ = pando.Options{
		Profile: pando.Durable, ReadOnly: false, MustExist: false, MemoryBytes: int64(0), ValueThreshold: int(0),
		Compression: pando.S2, SyncInterval: time.Duration(0), SyncBytes: int64(0), Logger: (*slog.Logger)(nil), FS: vfs.FS(nil),
	}
	_ = pando.KeyspaceOptions{Layout: pando.Tree, Compression: new(pando.Zstd)}
	_ = pando.IterOptions{Lower: []byte(nil), Upper: []byte(nil), KeysOnly: false}
	_ = pando.CompactOptions{Progress: func(done, total int64) {}}
	_ = []pando.Profile{pando.Durable, pando.Relaxed, pando.Bench}
	_ = []pando.Layout{pando.Tree, pando.Flex, pando.Hash}
	_ = []pando.Compression{pando.None, pando.S2, pando.Zstd}
	_ = []error{
		pando.ErrNotFound, pando.ErrClosed, pando.ErrLocked, pando.ErrReadOnly, pando.ErrConflict, pando.ErrTxDone,
		pando.ErrCorrupt, pando.ErrKeyTooLarge, pando.ErrValueTooLarge, pando.ErrNoOrder, pando.ErrVersion,
		pando.ErrDiskFull, pando.ErrFailed, &pando.CorruptError{File: "", Offset: int64(0)},
	}
)
