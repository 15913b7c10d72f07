package tree

import (
	"github.com/pandodb/pando/internal/page"
	"github.com/pandodb/pando/internal/segment"
)

// most is the size that a leaf may have before it is split.
func (w *leafWriter) most() int { return w.limit + w.limit/4 }

// roomiest is how many times LeafBytes a leaf may be before compression.
const roomiest = 2

// largest is the size at which a leaf ends even where it was planned to be larger: plans do not foresee that keys come which do not
// begin like the others.
func (w *leafWriter) largest() int { return min(2*w.most(), maxLeafBytes/4*5) }

// full reports whether the leaf at hand ends before another record comes to it: it is as large as planned, or, where leaves are filled,
// nearly so, and would take a larger frame of the page cache for that record.
func (w *leafWriter) full() bool {
	size, end := w.b.Size(), min(w.cut, w.largest())
	if size >= end || !w.fills || size < end-end/snugShare {
		return size >= end
	}
	resident := w.b.ResidentSize()
	frame := framed(w.a.root.env, resident)
	return frame > 0 && resident+resident/w.b.Count() > frame
}

// snugShare is which part of its size a leaf may give up to fit into a frame. Frames lie about a fifth apart.
const snugShare = 8

// fit sets the size of leaves by how well the last one compressed: a reader of the disk pays by what is stored, and what is larger
// compresses better, in fewer blobs.
func (w *leafWriter) fit(raw int, stored segment.Pointer) {
	least, length := w.a.o.LeafBytes, int(stored.Length)-segment.HeaderSize
	if length <= 0 {
		return // an empty page says nothing
	}
	most := max(least, min(roomiest*least, maxLeafBytes))
	w.limitTo(min(max(int(int64(least)*int64(raw)/int64(length)), least), most))
}

const (
	// smallLeaf is how large leaves may be in any tree, and smallShare which part of its tree a larger one may be at most: where there are
	// few leaves most reads are the first of theirs, and decompress a whole leaf for a record. What that makes the tree larger is little
	// beside what it would be if all trees were small.
	smallLeaf  = 8 << 10
	smallShare = 8
	// smallestLeaf takes the place of smallLeaf where zstd is asked for, which takes several times as long to decompress as S2: collections
	// of a thousand documents, with their indexes, get 4 percent larger by it, and the first read of each an eighth quicker.
	smallestLeaf = 4 << 10
	// leastRecord is about how many bytes a record takes at least, to tell a small tree.
	leastRecord = 32
)

// limitTo sets the size to which leaves are filled, to less in a small tree.
func (w *leafWriter) limitTo(n int) {
	tree := int64(w.written) + leastRecord*w.before
	w.limit = int(min(int64(n), max(w.small(), tree/smallShare)))
}

// small is how large leaves may be in a tree of any size. Who has a tree compacted is after space.
func (w *leafWriter) small() int64 {
	if o := &w.a.o; o.Codec == segment.Zstd && o.Rewrite == nil {
		return smallestLeaf
	}
	return smallLeaf
}

// start prepares for the leaves of one Apply.
func (w *leafWriter) start(a *applier) {
	w.a = a
	w.before, _ = a.root.Records()
	w.limitTo(a.o.LeafBytes)
}

// stays reports whether the leaf at hand is to take no deltas, since with all that it may have it could outgrow a page: what its keys share
// would be written for each of them after a delta with another key, or it is that large as it is.
func (w *leafWriter) stays() bool {
	return w.b.Shared(0) > wholeFrom || w.b.Size() > page.MaxRaw-deltasMost*deltaMost-wholeFrom
}

// swells reports whether the keys at hand have so long a beginning in common, and key so little of it, that with key the leaf would grow
// by more than a whole leaf: what they share would have to be written for each of them.
func (w *leafWriter) swells(key []byte) bool {
	return w.b.Shared(0) > w.limit && w.b.Shared(w.b.SharedWith(key)) > w.limit
}
