package tree

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"sync/atomic"

	"github.com/pandodb/pando/internal/segment"
)

// node stands for one inner node, in memory or not. All roots that contain the node share it, so that what one reader loads
// serves all of them, and so that a body can be given up in one place.
type node struct {
	ptr   segment.Pointer
	level int // 0: its children are leaves
	used  atomic.Bool
	asked atomic.Bool // for a record, while it was not in memory
	body  atomic.Pointer[body]
	maker *segment.Writer // of a node that has not been read from the disk
	seat  int             // position in the ring of evictable nodes, from 1; 0: none; guarded by the ring's mutex
	// left: no current root has the node any more. A reader of an old root that has it read, as it is not in memory, keeps it to himself: in
	// the ring nobody would take it out, and beside it nobody would give it up.
	left atomic.Bool
	// segments is the segment.Mask of the node and of all blobs below it; 0: not known. It stays when the body goes.
	segments atomic.Uint64
}

// mayLieIn reports whether the node or a blob below it may lie in one of the segments.
func (n *node) mayLieIn(segments *segment.Set) bool {
	mask := segment.Mask(n.segments.Load())
	return !segments.Empty() && (mask == 0 || mask.Meets(segments.Mask()))
}

// resident returns the body of a node, nil when it is not in memory.
func (n *node) resident() *body {
	b := n.body.Load()
	if b != nil && n.level == 0 && !n.used.Load() {
		n.used.Store(true)
	}
	return b
}

// openCount marks a count that is only an upper bound.
const openCount = 1 << 63

// noFilter marks a leaf whose filter is not in the node's filter blob.
const noFilter = math.MaxUint32

// slot is what a node knows of one child, apart from what is kept in arrays of its own for the sake of the cache.
type slot struct {
	ptr    segment.Pointer
	expiry uint64 // least expiry under the child, 0: nothing expires
	deltas uint32 // where its deltas begin in body.deltas
	filter uint32 // number of its filter in the filter blob, or noFilter
	apart  bool   // some value under the child may lie apart
	whole  bool   // the leaf takes no deltas: see wholeFrom
}

// body is the content of an inner node. Only handles and counts change once it is published.
type body struct {
	level  int
	own    bool     // of one reader: nobody else finds it, or what its handles lead to
	skip   int      // length of the prefix that all separators share
	prefix uint64   // its head
	heads  []uint64 // of separators 1 and on: the eight bytes after the prefix
	spread spread   // of heads
	ends   []uint32 // where each separator ends in keys; separator 0 is empty
	keys   []byte
	slots  []slot
	counts []atomic.Uint64 // records under each child, with openCount

	children []*node // level > 0

	handles    []atomic.Uint64 // level 0: pages in the cache
	deltas     []delta
	filterPtr  segment.Pointer
	filterEnds []uint32 // where each leaf's filter ends in filters; an empty filter knows nothing
	filters    []byte
}

// memory is what the body takes, for the bound on resident nodes.
func (b *body) memory() int64 {
	const perSlot = 8 + 4 + 48 + 8 + 8 + 4
	return int64(256 + len(b.slots)*perSlot + len(b.keys) + len(b.filters) + len(b.deltas)*32)
}

func (b *body) len() int { return len(b.slots) }

// remember makes the node, whose body is b, know in which segments it lies, unless one of its children does not.
func (n *node) remember(b *body) {
	if n.segments.Load() != 0 {
		return
	}
	mask := segment.MaskOf(n.ptr) | segment.MaskOf(b.filterPtr)
	for _, child := range b.children {
		under := segment.Mask(child.segments.Load())
		if under == 0 {
			return
		}
		mask |= under
	}
	if n.level == 0 {
		for i := range b.slots {
			mask |= segment.MaskOf(b.slots[i].ptr)
		}
		for i := range b.deltas {
			mask |= segment.MaskOf(b.deltas[i].Pointer)
		}
	}
	n.segments.Store(uint64(mask))
}

// separator returns the lower bound of child i; nil for child 0, whose lower bound is its parent's business.
func (b *body) separator(i int) []byte {
	if i == 0 {
		return nil
	}
	return b.keys[b.ends[i-1]:b.ends[i]:b.ends[i]]
}

// within reports whether the keys of the body lie in [lo, hi).
func (b *body) within(lo, hi []byte) bool {
	n := b.len()
	return n == 1 || bytes.Compare(b.separator(1), lo) > 0 && (hi == nil || bytes.Compare(b.separator(n-1), hi) < 0)
}

// deltasOf returns the deltas of child i, oldest first.
func (b *body) deltasOf(i int) []delta {
	from, to := b.slots[i].deltas, uint32(len(b.deltas))
	if i+1 < len(b.slots) {
		to = b.slots[i+1].deltas
	}
	return b.deltas[from:to:to]
}

// filterOf returns the filter of leaf i, empty when nothing is known of its keys.
func (b *body) filterOf(i int) []byte {
	from := uint32(0)
	if i > 0 {
		from = b.filterEnds[i-1]
	}
	return b.filters[from:b.filterEnds[i]:b.filterEnds[i]]
}

// count returns the records under child i.
func (b *body) count(i int) (n int64, exact bool) { return splitCount(b.counts[i].Load()) }

func splitCount(c uint64) (n int64, exact bool) { return int64(c &^ openCount), c&openCount == 0 }

func joinCount(n int64, exact bool) uint64 {
	if exact {
		return uint64(n)
	}
	return uint64(n) | openCount
}

// total adds the counts of all children.
func (b *body) total() uint64 {
	var sum, open uint64
	for i := range b.counts {
		c := b.counts[i].Load()
		sum += c &^ openCount
		open |= c & openCount
	}
	return sum | open
}

// head returns the first eight bytes of key as a number that sorts like them.
func head(key []byte) uint64 {
	if len(key) >= 8 {
		return binary.BigEndian.Uint64(key)
	}
	var h uint64
	for i, c := range key {
		h |= uint64(c) << (56 - 8*i)
	}
	return h
}

// find returns the child whose keys include key.
func (b *body) find(key []byte) int {
	if len(b.heads) == 0 {
		return 0
	}
	if b.skip > 0 {
		// All separators share a prefix: a key without it lies before or behind all of them.
		switch c := b.comparePrefix(key); {
		case c < 0:
			return 0
		case c > 0:
			return len(b.heads)
		}
	}
	x := head(key[b.skip:])
	i := b.spread.lowerBound(b.heads, x)
	if i == len(b.heads) || b.heads[i] != x {
		return i
	}
	return b.resolve(i, x, key)
}

// comparePrefix compares the beginning of key with the prefix that all separators share. A short one is looked up without a look at keys,
// which would have to come from memory for that.
func (b *body) comparePrefix(key []byte) int {
	if b.skip <= 8 && len(key) >= b.skip {
		unused := uint(64-8*b.skip) & 63
		return cmp.Compare(head(key)>>unused, b.prefix>>unused)
	}
	n := min(len(key), b.skip)
	return bytes.Compare(key[:n], b.keys[:b.skip])
}

// lowerBound returns the number of heads below x. The loop compiles to conditional moves: a wrongly predicted branch costs
// more than the comparison that it would save.
func lowerBound(heads []uint64, x uint64) int {
	base, n := 0, len(heads)
	for n > 1 {
		half := n >> 1
		next := base
		if heads[base+half-1] < x {
			next = base + half
		}
		base = next
		n -= half
	}
	if n == 1 && heads[base] < x {
		base++
	}
	return base
}

// resolve finds the child among separators whose heads equal x, the first of which is separator i+1.
func (b *body) resolve(i int, x uint64, key []byte) int {
	end := i + 1
	for end < len(b.heads) && b.heads[end] == x {
		end++
	}
	for i < end {
		mid := int(uint(i+end) >> 1)
		if bytes.Compare(b.separator(mid+1), key) <= 0 {
			i = mid + 1
		} else {
			end = mid
		}
	}
	return i
}

// index builds heads out of keys.
func (b *body) index() {
	n := len(b.ends)
	b.skip = 0
	if n < 2 {
		b.heads = b.heads[:0]
		return
	}
	first, last := b.separator(1), b.separator(n-1)
	b.skip = commonPrefix(first, last)
	b.prefix = head(first[:b.skip])
	b.heads = cleared(b.heads, n-1)
	for i := range b.heads {
		b.heads[i] = head(b.separator(i + 1)[b.skip:])
	}
	b.spread = spreadOf(b.heads)
}

func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// separate returns the length of the shortest prefix of next that is greater than prev, where prev < next.
func separate(prev, next []byte) int { return commonPrefix(prev, next) + 1 }
