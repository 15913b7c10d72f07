// Package engine puts the parts together: it opens and recovers a database, carries commits through the log into the
// memtable, settles memtables into the layouts' roots, gives space back, and hands out the views that reads are made of.
// The public package is a thin coat over it.
//
// What it promises:
//   - A commit is all or nothing, and survives what its profile says. What recovery finds is a prefix of history.
//   - Readers never wait for writers, checkpoints or the cleaner, nor these for readers.
//   - A root is stored only after everything that it refers to is on stable storage; a segment file is removed only after a
//     root that does without it has been stored, and no reader can still ask for it; log is recycled only below the stored root.
//   - After a failed sync nothing more is acknowledged.
//   - Memory stays within the budget: memtables, two mapped log segments, the page cache and the inner nodes. What comes on top is
//     listed in docs/operating.md.
//
// It never overwrites what a stored root refers to, retries no sync, and leaves no goroutine behind Close.
//
// How it fails: damage is a *corrupt.Error of the read, the checkpoint or the check that met it, and what lies elsewhere goes on. A full
// disk fails the write that met it, and passes. An error of a sync, or of the log, is ErrFailed for every later write; reads go on.
//
// Locks, in the order in which they may be taken:
//
//  1. compacting: one compaction at a time
//  2. the lead of the commit pipeline
//  3. settling: one checkpoint at a time
//  4. that of a Held
//  5. mu: the current view, the catalogue, the list of live views; nothing is called out to under it
//
// That of the kept spill files is held while the log is asked and files are removed. Under the others (heldMu, and those of the
// keyspaces, of values that are held and of those who follow the log) no further lock is taken.
package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pandodb/pando/internal/cache"
	"github.com/pandodb/pando/internal/commit"
	"github.com/pandodb/pando/internal/epoch"
	"github.com/pandodb/pando/internal/gap"
	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/memtable"
	"github.com/pandodb/pando/internal/root"
	"github.com/pandodb/pando/internal/segment"
	"github.com/pandodb/pando/internal/view"
	"github.com/pandodb/pando/internal/wal"
)

// Engine is one open database. Its fields stand by who may use them: what is set while the database opens and then only read,
// what belongs to the leader of the commit pipeline, what each lock guards, and what guards itself.
type Engine struct {
	o       Options
	sizes   sizes
	home    home
	lock    io.Closer
	epoch   *epoch.Domain
	cache   *cache.Cache
	store   *segment.Store
	root    *root.File
	log     *wal.Log // nil in the Bench profile and for readers
	reads   view.Environment
	env     layout.Environment
	layouts layouts

	unfinished bool            // it may bear the mark of a database that is not whole
	catalogue  *root.Catalogue // while opening

	// What commits go through. Plain numbers belong to the leader of the pipeline.
	pipeline *commit.Pipeline
	lastSeq  uint64        // of the last command carried out
	owed     int64         // nanoseconds of slow-down not yet slept
	logged   int64         // bytes of commands in the log behind what the memtables that are frozen have
	visible  atomic.Uint64 // highest sequence number that readers may see
	failure  atomic.Pointer[error]
	closed   atomic.Bool
	closing  closing
	stopped  view.Stop // stops iterators
	ahead    ahead     // the leader's
	sink     uint64    // keeps prefetches

	arenas     memtable.Pool  // memory of settled memtables for the next one
	overlays   memtable.Pool  // memory of a transaction's overlay for that of the next one
	gaps       gap.Set        // changed by who leads
	foreseeing atomic.Bool    // memory is asked for ahead
	foreseen   sync.WaitGroup // whoever asks, and whoever makes a segment of the log ready; the leader begins it
	running    sync.WaitGroup // calls that Close waits for
	clock      clockMark

	current   atomic.Pointer[view.View] // replaced under mu
	keyspaces *keyspaces

	// mu guards what follows, and the replacement of current.
	mu        sync.Mutex
	views     map[*view.View]struct{} // every view that is not released
	generated uint64                  // generation of the newest view
	drained   bool                    // the current view is given up
	changed   *sync.Cond              // a checkpoint ended, or the engine closes
	settles   uint64                  // rounds of settling that began, one after the other
	settled   uint64                  // those of them that ended, well or not
	lastErr   error                   // of the last one that ended
	doomed    []doomedSegment
	outdated  []doomedDictionary
	recent    []*view.Table       // settled tables kept for open optimistic transactions
	starts    map[*Start]struct{} // open optimistic transactions
	floor     uint64              // optimistic transactions that began before it cannot be checked any more
	loose     map[uint64]struct{} // numbers of the spill files that no commit has taken over
	released  bool                // resources are gone

	// heldMu guards the list of snapshots that may be moved.
	heldMu   sync.Mutex
	held     *Held // the first of the list
	heldOver bool  // no further one may be held

	// settling is for one checkpoint, round of a compaction or backup step at a time, and guards what follows.
	settling       sync.Mutex
	forgotten      []doomedKeyspace     // in the order in which they were dropped
	unlogged       bool                 // the log may not tell of all that lies between the root slots
	stuck          map[uint32]time.Time // until when the cleaner leaves a segment alone that it could not empty
	dictionaries   []dictionary
	lastDictionary uint16 // the highest number given in this run, or found by it

	compacting sync.Mutex    // one compaction at a time
	compacted  atomic.Uint32 // nodes in segments below it are being written anew by a compaction; 0: none is under way
	waiting    atomic.Int32  // how many wait for settling who hold up writers
	progress   atomic.Uint64 // of progressWhole: how far the checkpoint that runs is
	settledSeq atomic.Uint64 // everything up to it is in the roots

	privates  atomic.Int64 // views with roots of their own
	cacheSize atomic.Int64 // as it was last set
	exchanged atomic.Bool  // there was more than one memtable since the last pause
	fits      atomic.Int64 // bytes of the memtable in front from which on the cache has to be fitted anew
	counters  counters
	scratch   scratches
	space     diskSpace

	values        valueHolds
	valuesGivenUp atomic.Int64 // bytes that were given up since they were last reason for a sweep
	valuesWritten atomic.Int64 // bytes of values apart that were written, of all times
	valuesLogged  atomic.Int64 // bytes of those that commits in the log refer to
	valuesSynced  atomic.Int64 // and how many of those belong to commits that are known to be durable
	littered      atomic.Bool  // values were given up since the last sweep

	// The change feed.
	feed       notifier      // wakes those who follow the log
	spills     atomic.Uint64 // number of the newest spill file
	keptSpills keptSpills
	reach      reach
	earlier    earlierNames

	// The worker, and those beside it.
	kick     chan struct{}   // wakes the worker
	kickSync chan struct{}   // wakes keepSynced
	ctx      context.Context // ends when the engine closes
	cancel   context.CancelFunc
	worker   sync.WaitGroup
}

// path names a file of the database.
func (e *Engine) path(name string) string { return filepath.Join(e.o.Dir, name) }

// enter registers a call that Close has to wait for. Every call that succeeds is followed by leave.
func (e *Engine) enter() error {
	if e.closed.Load() {
		return ErrClosed
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed.Load() {
		return ErrClosed
	}
	e.running.Add(1)
	return nil
}

func (e *Engine) leave() { e.running.Done() }

// usable is what every write asks first.
func (e *Engine) usable() error {
	if e.closed.Load() {
		return ErrClosed
	}
	if e.o.ReadOnly {
		return ErrReadOnly
	}
	if err := e.failure.Load(); err != nil {
		return *err
	}
	return nil
}

// fail makes every later write answer with ErrFailed.
func (e *Engine) fail(cause error) error {
	err := cause
	if !errors.Is(err, ErrFailed) { // the log says so by itself
		err = fmt.Errorf("%w: %w", ErrFailed, cause)
	}
	if e.failure.CompareAndSwap(nil, &err) {
		if e.log != nil {
			e.log.Fail(cause) // Close must not sync records whose values may be lost
		}
		e.o.Logger.Error("database takes no more writes until it is opened again", "error", cause)
	}
	return *e.failure.Load()
}

// raise stores a number where that is lower; others may raise it at the same time.
func raise(v *atomic.Uint64, to uint64) {
	for old := v.Load(); old < to && !v.CompareAndSwap(old, to); old = v.Load() {
	}
}

// Threshold is the length above which a value lies apart.
func (e *Engine) Threshold() int { return e.o.ValueThreshold }

// Syncs reports whether a commit waits for stable storage.
func (e *Engine) Syncs() bool { return e.o.Profile == Durable }

// Writable says why nothing can be written, if it cannot.
func (e *Engine) Writable() error { return e.usable() }

// Stop makes the iterators that it is given to stop when the database closes.
func (e *Engine) Stop() *view.Stop { return &e.stopped }

// Lead waits until the caller is the only writer; Carry then commits for it, and Follow lets the others go on.
func (e *Engine) Lead(r *commit.Request) { e.pipeline.Acquire(r) }

// Carry commits for a caller who leads.
func (e *Engine) Carry(r *commit.Request) error {
	if err := e.usable(); err != nil {
		return err
	}
	return e.pipeline.Carry(r)
}

// Follow gives the lead up.
func (e *Engine) Follow() { e.pipeline.Release() }

// Sync returns when everything acknowledged before is on stable storage. Without a log that takes a checkpoint.
func (e *Engine) Sync() error {
	if err := e.usable(); err != nil {
		if err == ErrReadOnly {
			return nil
		}
		return err
	}
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	if e.log == nil {
		return e.Checkpoint(context.Background())
	}
	return e.syncCommits()
}

// request is one batch on its way to the pipeline.
type request = commit.Request

// valueCodec returns how the values apart of a keyspace are compressed: dictionaries are made for leaves.
func (e *Engine) valueCodec(ks *Keyspace) segment.Codec {
	if ks.OwnCodec {
		return ks.Codec
	}
	return e.o.Codec
}

// codecFor returns how a keyspace's settled data is compressed. That of a hash table is not.
func (e *Engine) codecFor(ks *Keyspace) (segment.Codec, uint16) {
	if ks.Layout == Hash {
		return segment.None, 0
	}
	codec := e.o.Codec
	if ks.OwnCodec {
		codec = ks.Codec
	}
	if d := ks.dictionary.Load(); d != 0 && codec == segment.Zstd {
		return segment.ZstdDictionary, uint16(d)
	}
	return codec, 0
}
