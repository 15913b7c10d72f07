package pando

import (
	"errors"
	"fmt"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/engine"
)

// Errors of opening a database.
var (
	// ErrLocked means that another process has the database open, or this one has already; the error names the process id of one that
	// writes, but not of those that only read.
	ErrLocked = engine.ErrLocked
	// ErrNotDatabase means that the directory holds something else than a database, or is a file.
	ErrNotDatabase = engine.ErrNotDatabase
	// ErrVersion means that the database was written in a format newer than this program knows.
	ErrVersion = engine.ErrVersion
	// ErrUnfinished means that the directory holds the part of a database that a Salvage or a Backup has made which was interrupted; the
	// error says which. Remove it and salvage again; a backup is mended by making it again.
	ErrUnfinished = engine.ErrUnfinished
	// ErrOptions means that the options ask for what cannot be, such as a negative size, or that no directory is named; the error says
	// what. Nothing was made.
	ErrOptions = engine.ErrOptions
)

// Errors of a call.
var (
	// ErrNotFound means that there is no such key, pair, keyspace or database.
	ErrNotFound = engine.ErrNotFound
	// ErrClosed means that the database, snapshot or iterator was closed.
	ErrClosed = engine.ErrClosed
	// ErrReadOnly means that a write was asked of a database or transaction that only reads.
	ErrReadOnly = engine.ErrReadOnly
	// ErrConflict means that another commit changed what an optimistic transaction had read or written, or that this cannot be told any
	// more: since it began more than two memtables have settled, or a batch too large for memory was committed. Run it again.
	ErrConflict = engine.ErrConflict
	// ErrTxDone means that the transaction was committed or rolled back before.
	ErrTxDone = engine.ErrTxDone
	// ErrDropped means that the keyspace behind a handle was dropped.
	ErrDropped = engine.ErrDropped
	// ErrKeyTooLarge means that a key is longer than MaxKeyBytes.
	ErrKeyTooLarge = engine.ErrKeyTooLarge
	// ErrValueTooLarge means that a value is longer than MaxValueBytes.
	ErrValueTooLarge = engine.ErrValueTooLarge
	// ErrBatchTooLarge means that a batch or transaction holds more than MaxBatchBytes.
	ErrBatchTooLarge = engine.ErrBatchTooLarge
	// ErrBatchWritten means that a batch was written before and a part of it is not in memory any more. Reset makes it usable again.
	ErrBatchWritten = errors.New("the batch was written before and is not in memory any more")
	// ErrBatchLost means that an earlier call failed in a way that may have cost a part of a batch: the batch was not written, and Reset
	// makes it usable again.
	ErrBatchLost = engine.ErrBatchLost
	// ErrSavepoint means that a savepoint is of another transaction, or of a future that was rolled back.
	ErrSavepoint = errors.New("the savepoint is not of this transaction's past")
	// ErrName means that a keyspace name is empty, longer than MaxNameBytes or not UTF-8, or that the default keyspace was to be
	// dropped.
	ErrName = engine.ErrName
	// ErrNoOrder means that a range, or a place in the order of keys, was asked of a keyspace whose layout, Hash, keeps no order. The error
	// says what was attempted on which keyspace; nothing was read or written.
	ErrNoOrder = engine.ErrNoOrder
	// ErrLayout means that a keyspace has another layout than the one asked for, or one that this version cannot make.
	ErrLayout = engine.ErrLayout
	// ErrOtherDatabase means that a keyspace or a batch was passed to another database than the one that it was got from, or to a
	// transaction, snapshot, reader or batch of another.
	ErrOtherDatabase = errors.New("belongs to another database")
	// ErrChangesGone means that the log no longer holds the change from which a feed was to start.
	ErrChangesGone = engine.ErrChangesGone
)

// Errors of the storage underneath.
var (
	// ErrCorrupt means that bytes on the disk are not what was written. errors.As with a *CorruptError tells where.
	ErrCorrupt = corrupt.Err
	// ErrDiskFull means that the write found no space, or would leave less than checkpoints may need to give back what is deleted: then
	// commits that delete at least as many keys as they put go on. Nothing was written, what was there is intact, reads go on, and writes
	// work again as soon as there is space.
	ErrDiskFull = engine.ErrDiskFull
	// ErrFailed means that a sync failed earlier. Nothing more is acknowledged until the database is opened again, since
	// the operating system may have dropped what it could not write.
	ErrFailed = engine.ErrFailed
)

// CorruptError says which bytes of which file cannot be believed, and why. Its fields:
//
//	File   string // relative to the database directory where it lies inside it
//	Offset int64  // in bytes, of the first one that could not be believed
//	Length int64  // in bytes; 0: not known
//	Reason string // what was expected and what was found
type CorruptError = corrupt.Error

// keyspaceError says what was attempted on which keyspace.
func keyspaceError(what string, ks *engine.Keyspace, err error) error {
	return fmt.Errorf("%s keyspace %q: %w", what, ks.Name, err)
}
