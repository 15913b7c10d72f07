package engine

import (
	"errors"
	"fmt"

	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/root"
	"github.com/pandodb/pando/internal/spill"
	"github.com/pandodb/pando/internal/wal"
	"github.com/pandodb/pando/vfs"
)

// The errors that the public package shows. Their texts are read in terminals: each says what is wrong, the wrapping error
// says with what.
var (
	ErrLocked        = vfs.ErrLocked
	ErrDiskFull      = vfs.ErrNoSpace
	ErrNotDatabase   = root.ErrNotDatabase
	ErrVersion       = root.ErrVersion
	ErrOptions       = errors.New("options make no sense")
	ErrFailed        = wal.ErrFailed
	ErrChangesGone   = wal.ErrRecycled
	ErrNotFound      = errors.New("not found")
	ErrClosed        = errors.New("closed")
	ErrReadOnly      = errors.New("read-only")
	ErrConflict      = errors.New("conflict with another commit")
	ErrTxDone        = errors.New("transaction was committed or rolled back before")
	ErrDropped       = errors.New("keyspace was dropped")
	ErrKeyTooLarge   = fmt.Errorf("key is longer than %d bytes", MaxKeyBytes)
	ErrValueTooLarge = fmt.Errorf("value is longer than %d bytes", MaxValueBytes)
	ErrBatchTooLarge = fmt.Errorf("batch is larger than %d bytes", int64(MaxBatchBytes))
	ErrBatchLost     = spill.ErrLost
	ErrName          = fmt.Errorf("keyspace names are 1 to %d bytes of UTF-8", MaxNameBytes)
	ErrNoOrder       = layout.ErrNoOrder
	ErrLayout        = errors.New("layout does not fit")
)

// isDiskFull reports whether err passes as soon as there is space again.
func isDiskFull(err error) bool { return errors.Is(err, ErrDiskFull) }
