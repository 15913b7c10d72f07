// Package layout is the contract between the engine and the settled form of a keyspace. A Layout takes a sorted run of
// changes at a checkpoint and gives back an immutable Root; a Root answers point reads, cursors, counts and positions.
//
// What every layout promises: a Root never changes, so readers need no locks, and an old one stays readable for as long as
// the segment files that it refers to exist. A point read of resident data takes no lock, allocates nothing and does no I/O.
// Every byte that comes from the disk is verified before it is believed. Apply never touches what did not change, uses a
// bounded amount of memory whatever the number of changes, and frees everything that it replaces exactly once.
//
// What a layout never does: it knows nothing of logs, memtables, sequence numbers or documents, starts no goroutine that
// outlives the object that it belongs to, and never writes in place. It fails with the errors of package segment; damaged
// bytes are reported as errors that match corrupt.Err.
//
// The test suite that every layout must pass is package layouttest.
package layout

import (
	"context"
	"errors"

	"github.com/pandodb/pando/internal/page"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/segment"
)

// Errors of every layout.
var (
	// ErrNotFound says that a position lies behind the last record of a range.
	ErrNotFound = errors.New("no record at this position")
	// ErrNoOrder says that a layout keeps its keys in no order and cannot answer questions about ranges.
	ErrNoOrder = errors.New("layout keeps no order of keys")
)

// Change is what a checkpoint says about one key.
type Change struct {
	Key    []byte
	Record record.Record // a tombstone removes the key
}

// Changes is a run of changes, sorted by key, at most one a key.
type Changes interface {
	// Next moves to the next change; it must be called before the first one.
	Next() bool
	// Change is what lies under the cursor. It and its slices are valid until Next, and belong to the one who gives them out. It is not
	// copied from hand to hand: a Record that is copied right after it was written stalls the processor for longer than the rest takes.
	Change() *Change
}

// Range is the set of keys k with Lo <= k < Hi. A nil Lo is the start of the keyspace, a nil Hi its end; a Hi that is empty
// but not nil makes an empty range.
type Range struct{ Lo, Hi []byte }

// Status is the outcome of a read that may not do I/O.
type Status uint8

const (
	Absent      Status = iota // there is no such key
	Found                     // the record is there; it may be expired
	NotResident               // the answer lies on the disk: ask GetRead
)

// Place is where a Root has found, without I/O, that the answer to a Get lies on the disk. It is good for that Root and key alone. The
// zero Place says nothing.
type Place struct {
	Node any // what the layout knows it by
	Slot int
}

// Root is one immutable settled state of one keyspace. All methods are safe for concurrent use.
type Root interface {
	// Get finds a record without I/O, locks or allocation. The caller is inside an epoch section, and the record's value is
	// valid until it leaves it. hash is record.Hash(keyspace, key). With NotResident comes what GetFrom goes on from.
	Get(hash uint64, key []byte) (record.Record, Place, Status)
	// GetRead is Get for a caller outside of every epoch section. It may read from the disk, and leaves what it read in the
	// cache. The record's value is valid until s is used again.
	GetRead(s *Scratch, hash uint64, key []byte) (record.Record, bool, error)
	// GetFrom is GetRead for a caller whom Get has told, with a Place, that the answer lies on the disk: it does not search for that again.
	// The record is left in s: to hand it on would mean to copy it several times.
	GetFrom(s *Scratch, at Place, hash uint64, key []byte) (bool, error)
	// Leaf returns the page in memory in which key lies if it is there at all, without I/O, locks or allocation; false when there is
	// none, or the layout has no such pages: then Get answers. The caller is inside an epoch section, and the page is valid until it
	// leaves it.
	Leaf(key []byte) (page.Page, bool)
	// NewCursor returns a cursor that stands nowhere. A cursor belongs to one goroutine at a time.
	NewCursor() Cursor
	// Recycle is NewCursor in the memory of an old cursor, which has been closed and which nobody else uses; nil is none.
	Recycle(old Cursor) Cursor
	// Count returns the number of records in [lo, hi) that have not expired at the moment now. It is exact.
	Count(lo, hi []byte, now uint64) (int64, error)
	// Nth returns a copy of the n-th record (from 0) of those that Count counts; ErrNotFound when there are not so many.
	Nth(lo, hi []byte, n int64, now uint64) (key []byte, r record.Record, err error)
	// Records returns the number of records under the root, expired ones included, as far as it is known without reading:
	// an upper bound when exact is false.
	Records() (n int64, exact bool)
	// Encode appends what the catalogue keeps of the root, for Layout.Load. An empty root appends nothing.
	Encode(dst []byte) []byte
	// Empty reports whether there is certainly no record under the root.
	Empty() bool
	// MayHide reports whether a record under the root may have expired by the moment now.
	MayHide(now uint64) bool
	// MayLieIn reports whether a blob of the layout may lie in a segment of the set, those of values apart left out. False is certain, and
	// true is the answer where it is not known without reading.
	MayLieIn(segments *segment.Set) bool
}

// Layout is one way in which settled data lies on the disk. All methods are safe for concurrent use.
type Layout interface {
	// Load returns the root that Encode wrote. It reads as little as possible, nothing where it can. No bytes are an empty
	// root.
	Load(env *Environment, keyspace uint32, encoded []byte) (Root, error)
	// Apply removes ranges from root and then applies changes, and returns the new root. root stays as it is and readable.
	// Ranges are sorted and disjoint. Blobs go out through w, what they replace is freed through w, values apart that die
	// included; when Apply fails the caller aborts w. The new root is readable as soon as Apply has returned; it is durable
	// once w.Sync has returned.
	Apply(ctx context.Context, root Root, ranges []Range, changes Changes, w *segment.Writer, o ApplyOptions) (Root, error)
	// Published tells the layout that new readers see root instead of the one it was made from, so that memory held for the
	// old one may be given up. Readers of the old one still get right answers. Calling it is optional.
	Published(root Root)
	// Aborted tells the layout that w, with which it has made roots, is aborted, or about to be: nobody reads any of those now or later, and
	// memory held for them may be given up.
	Aborted(env *Environment, w *segment.Writer)
	// Check reads everything under root and verifies checksums, order, bounds, counts and flags. Each damage goes to report;
	// Check itself fails only where it cannot go on at all, as when ctx is cancelled.
	Check(ctx context.Context, root Root, report func(error)) error
	// Walk calls fn once for each blob reachable from root, blobs of values apart included.
	Walk(ctx context.Context, root Root, fn func(p segment.Pointer, kind segment.Kind) error) error
	// Stats describes what is under root as far as it is known without reading, and says so in Stats.Partial.
	Stats(root Root) Stats
	// Free frees every blob under root through w: the keyspace has been dropped.
	Free(ctx context.Context, root Root, w *segment.Writer) error
}

// Stats describes a root.
type Stats struct {
	Height        int   // levels of inner nodes
	InnerNodes    int64 // of all levels
	Leaves        int64
	Deltas        int64
	Records       int64
	RecordsExact  bool
	InnerBytes    int64 // stored bytes of inner nodes
	FilterBytes   int64
	LeafBytes     int64 // stored bytes of leaves
	DeltaBytes    int64
	ResidentBytes int64 // memory of inner nodes and filters
	Partial       bool  // some inner nodes are not resident: the counts of what lies below them are missing
}
