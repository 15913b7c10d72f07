package pando

import (
	"context"
	"errors"
	"fmt"

	"github.com/pandodb/pando/internal/engine"
	"github.com/pandodb/pando/internal/progress"
	"github.com/pandodb/pando/internal/segment"
)

// CompactOptions says how to compact.
type CompactOptions struct {
	// Compression, if set, stores everything with it from now on until it is rewritten by later changes, whatever the
	// options of the database and its keyspaces say. Zstd gives the smallest files.
	Compression Compression
	// Progress, if set, is told how many bytes have been done and how many there are, all of them when Compact has succeeded. Compact waits
	// for it, so it must not wait for writes of more than what a memtable takes.
	Progress func(done, total int64)
}

// Compact rewrites everything as small as it gets: full leaves, no garbage. It needs as much free space as the live data
// takes at most; readers and writers go on meanwhile. It does so in rounds, each of which is a checkpoint: when ctx ends it, or it fails,
// nothing is lost, and those parts stay small that it has come to. Close ends it with ErrClosed, behind the round that it is in.
// When it returns, the files are gone that no iterator, snapshot or transaction reads from any more.
func (db *DB) Compact(ctx context.Context, o CompactOptions) error {
	var codec *segment.Codec
	if err := o.Compression.check(); err != nil {
		return fmt.Errorf("compact: %w", err)
	}
	if o.Compression != DefaultCompression {
		c := o.Compression.codec()
		codec = &c
	}
	return db.e.Compact(ctx, codec, o.Progress)
}

// WithProgress returns a context for one call of Check, Backup or Salvage, which then tells how much it has done of how much. Only the
// proportion means something: records are counted, or bytes. A call may have several parts, one after the other, each of which begins
// with nothing done. tell is called by one goroutine at a time, about a thousand times for each part, and the call waits for it.
func WithProgress(ctx context.Context, tell func(done, total int64)) context.Context {
	return progress.With(ctx, tell)
}

// Backup writes a copy of the database as it is now into dir, while it runs. The copy opens as a database. Files are hard
// links where the file system has them, else copies; an earlier backup of the same database in dir is brought up to date by
// adding what is new and removing what is not needed any more. One that failed, or was ended by ctx, is made again the same way; until
// then Open answers ErrUnfinished to it, unless the earlier backup is still whole.
//
// dir is refused with ErrNotDatabase when it holds something and no backup, or lies inside of the database, with ErrLocked when it is
// open, and with another error when it holds another database or was written to since it was made a backup. Other files beside a
// backup stay. A database that is opened with ReadOnly answers ErrReadOnly when a crash has left changes in its log which have not
// settled: open it for writing once.
func (db *DB) Backup(ctx context.Context, dir string) error { return db.e.Backup(ctx, dir) }

// Damage is one thing that Check found wrong. Err says what and where: errors.As with a *CorruptError gives file and offset.
type Damage struct {
	Keyspace string // empty: it concerns the whole database
	Err      error
}

// Report is what Check found.
type Report struct {
	Keyspaces int64 // checked
	Blobs     int64 // read and verified
	Bytes     int64 // that they take on the disk
	Damage    []Damage
	Truncated bool // there is more damage than MaxDamage
}

// MaxDamage is how many damages a Report lists at most.
const MaxDamage = 10_000

// Check reads and verifies everything that readers can reach, in bounded memory, and lists every damage. Damage found is no
// error; an error says that the check could not be carried out, or was ended by ctx. Readers and writers go on meanwhile.
func (db *DB) Check(ctx context.Context) (*Report, error) {
	r := new(Report)
	sum, err := db.e.Check(ctx, func(d engine.Damage) {
		if len(r.Damage) == MaxDamage {
			r.Truncated = true
			return
		}
		r.Damage = append(r.Damage, Damage(d))
	})
	r.Keyspaces, r.Blobs, r.Bytes = sum.Keyspaces, sum.Blobs, sum.Bytes
	return r, err
}

// Err returns nil when nothing was damaged, else an error that wraps all damages.
func (r *Report) Err() error {
	errs := make([]error, len(r.Damage))
	for i, d := range r.Damage {
		errs[i] = d.Err
	}
	return errors.Join(errs...)
}

// Metrics are counters since the database was opened, and sizes as they are now. Its fields:
//
//	Profile Profile
//	LastSeq uint64 // sequence number of the newest visible change
//	Settled uint64 // everything up to it is settled
//
//	Commits     int64         // number
//	Checkpoints int64         // number
//	Syncs       int64         // number of syncs of the log that commits, Sync or the Relaxed profile asked for
//	Stalls      int64         // number of times a writer was slowed down because settling lagged behind
//	StallTime   time.Duration // for how long in total
//
//	UserBytes          int64   // keys and values that were handed over
//	LogBytes           int64   // written to the log
//	ValueBytes         int64   // written to value segments by commits
//	SettledBytes       int64   // written by checkpoints, the cleaner and Compact
//	WriteAmplification float64 // everything written over UserBytes; 0 when nothing was handed over
//
//	SegmentBytes       int64   // bytes of segment files
//	LiveBytes          int64   // of these, what is in use
//	LogSize            int64   // bytes of log files in use
//	SpaceAmplification float64 // all files over what is in use; 0 when nothing is
//	Segments           int     // number of segment files
//
//	DiskFree   int64 // bytes free on its disk, and below 0 where the system does not tell
//	DiskNeeded int64 // of these, what checkpoints may need: where less is free, what adds is refused (ErrDiskFull)
//
//	MemtableBytes  int64 // bytes in memtables, of what has not settled
//	MemtableCount  int   // number
//	CacheBytes     int64 // budget of the page cache in bytes
//	CacheUsed      int64 // of it in use
//	CacheMisses    int64 // number of pages read because they were not in the cache
//	CacheEvictions int64 // number
//	InnerBytes     int64 // bytes of resident inner nodes
//
//	Readers      int    // number of earlier pictures of the database that readers still hold
//	OldestReader uint64 // by how many checkpoints the oldest of them lags behind
type Metrics = engine.Metrics

// Metrics returns what the database counts. It is cheap.
func (db *DB) Metrics() Metrics { return db.e.Metrics() }
