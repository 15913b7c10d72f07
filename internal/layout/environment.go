package layout

import (
	"sync/atomic"

	"github.com/pandodb/pando/internal/cache"
	"github.com/pandodb/pando/internal/epoch"
	"github.com/pandodb/pando/internal/page"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/segment"
)

// Defaults of ApplyOptions.
const (
	DefaultLeafBytes = 8 << 10
	DefaultMaxDeltas = 8
	DefaultFanout    = 128
)

// Environment is what a layout is built on. The engine makes one and shares it between all keyspaces. Its exported fields do
// not change once it is in use.
type Environment struct {
	Store *segment.Store
	Cache *cache.Cache
	Epoch *epoch.Domain
	// FreeValue frees the blobs of a value apart through w, given its encoded reference. It may have to read the index blob
	// of a large value.
	FreeValue func(w *segment.Writer, ref []byte) error
	// WalkValue calls fn for each blob of a value apart, given its encoded reference.
	WalkValue func(ref []byte, fn func(p segment.Pointer, kind segment.Kind) error) error
	// CheckValue reads all of a value apart, given its encoded reference, and returns what is wrong with it. It may be nil.
	CheckValue func(ref []byte) error
	// Dropped is told of damage in what is dropped, parts of which go on taking room. It may be nil.
	Dropped func(err error)
	// Damaged is told of damage beside which changes have settled. It may be nil.
	Damaged func(err error)
	// InnerBytes bounds the memory of evictable inner nodes (the lowest level, with the filters); 0: no bound.
	InnerBytes int64

	// Inner counts the memory of resident inner nodes over all keyspaces. Layouts keep it.
	Inner atomic.Int64
}

// ApplyOptions says how Apply writes. The zero value is good.
type ApplyOptions struct {
	// Now is the moment, in Unix milliseconds, by which expired records are dropped when they are met; 0 drops none.
	Now uint64
	// Codec and Dictionary compress what is written.
	Codec      segment.Codec
	Dictionary uint16
	// LeafBytes is the size to which leaves are filled, before compression; 0: DefaultLeafBytes.
	LeafBytes int
	// NoFilters leaves out the filters that say of most absent keys that they are absent. It is the same for every Apply to a
	// keyspace.
	NoFilters bool
	// MaxDeltas is the number of delta blobs a leaf may have, or half as many more where nobody reads it; 0: DefaultMaxDeltas, negative:
	// none.
	MaxDeltas int
	// Sparing tells that the disk has little room, and Room how many bytes the writer may have written before no more is than has to be: what
	// can be put beside what is there is, though it be more than there should be, and victims may stay where they are. Not every layout has
	// what can.
	Sparing bool
	Room    int64
	// Fanout is the number of children an inner node may have; 0: DefaultFanout.
	Fanout int
	// Victims are the segments that are being emptied: every blob of the layout that lies in one is written anew. Values
	// apart are not moved.
	Victims *segment.Set
	// Rewrite is the part of the keyspace of which all deltas are folded, all leaves filled, and everything is written anew; nil: none.
	Rewrite *Stretch
}

// Spares reports whether no more is written from now on than has to be: there is little room, and the writer has used up its share.
func (o *ApplyOptions) Spares(w *segment.Writer) bool { return o.Sparing && w.Written() >= o.Room }

// Stretch is a part of a keyspace that an Apply writes anew. What is large is so written in several Applies, between which others settle.
type Stretch struct {
	// From is where it begins: what the stretch before it had for Next, nil for the start of the keyspace. Only the layout knows what the
	// bytes mean. There may have been other Applies since.
	From []byte
	// Enough is told, leaf by leaf or page by page, how many stored bytes have been replaced since it was last asked. Where it answers true
	// the stretch ends as soon as that is sensible. It may be nil: then it goes on to the end of the keyspace.
	Enough func(bytes int64) bool
	// Next is filled in by an Apply that succeeds: where the next stretch begins, always behind From, or nil at the end of the keyspace.
	Next []byte
}

// Scratch holds the buffers of reads outside of the cache, so that they allocate nothing once they have grown. The zero
// value is ready. One goroutine at a time uses it.
type Scratch struct {
	Blob    segment.Buffer    // the blob read last
	Delta   segment.Buffer    // a second one, read beside it
	Blobs   []segment.Request // a leaf and its deltas, read together
	Merged  []byte            // a leaf with its deltas folded in
	Value   []byte
	Record  record.Record // what GetFrom has found
	Base    page.Iterator
	Change  page.Iterator
	Builder page.Builder
	Overlay page.Overlay
}
