// Package tree is the default layout: a copy-on-write B+tree whose leaves are blobs of a few KiB.
//
// Inner nodes stay in memory and are read when they are first touched. The lowest level of them can be given up again when
// memory is short, and stays from the second Get on: the first one of a node reads neither its filters nor keeps it. Each
// child slot of a node holds where the child lies, how many records are under it, the least expiry under it and whether any
// value under it lies apart; a slot of a leaf also holds its delta blobs, a filter over its keys and the handle of its page
// in the cache, so that a point read goes straight from the slot to the page.
//
// A delta blob is a few changes to a leaf, written without the leaf: the leaf is not even read, as long as none of its
// values lies apart. Such a slot has an open count (it is an upper bound until somebody reads the leaf). Deltas are folded
// into the leaf when there are too many of them or when they have grown too large.
//
// Nothing is ever changed in place: Apply writes new leaves and new inner nodes up to the root, and the old root stays as it
// was. What does change in a shared node is only what is the same for everybody: handles of cached pages, and open counts
// that somebody has closed by reading.
//
// What it costs: Get of a resident record is one cache miss or two a level in small hot arrays (heads of eight bytes, searched
// without branches, then the handle) and the two misses of page.Get; no lock, no allocation, no reference count. A key
// that is absent from a leaf that is not resident costs one line of the filter and reads nothing, in all but about 1 % of
// cases. A cold leaf is one read a blob; a point read of one that the cache does not want looks into its deltas and then into the
// leaf without folding, a cursor folds by copying what stays, and reads of the leaf in which SeekGE ends the parts that the walk comes
// to. Apply reads a leaf only where it must, and costs a merge, a compression and a checksum a leaf rewritten; its memory is bounded by
// a few leaves and two nodes a level.
//
// It fails with the errors of package segment. Damaged nodes, leaves and filters are errors that match corrupt.Err, except
// that a damaged filter is merely not used until Check finds it. Apply does not fail for damage, unless it is asked to write everything anew
// or to move what is damaged: changes go beside what cannot be read.
//
// The format is written down in docs/format/tree.md.
package tree
