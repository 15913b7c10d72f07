package memtable

import (
	"bytes"
	"sort"
)

// NewestOf returns the highest sequence number at which a key was put or deleted, also by a range delete; 0 if it never
// was in this table.
func (t *Table) NewestOf(ks uint32, hash uint64, key []byte) uint64 {
	const always = ^uint64(0)
	newest := t.Covered(ks, key, always)
	if _, seq, ok := t.Get(ks, hash, key, always); ok {
		newest = max(newest, seq)
	}
	return newest
}

// NewestIn reports whether anything with a sequence number above after touches the keys of ks from lo (nil: from the
// start) to below hi (nil: to the end): a version of such a key, or a range delete that overlaps. It looks at what was put
// since then, and not at the range, so that its cost does not depend on the size of the range, nor on any order.
func (t *Table) NewestIn(ks uint32, lo, hi []byte, after uint64) bool {
	if t.MaxSeq() <= after || hi != nil && bytes.Compare(lo, hi) >= 0 {
		return false
	}
	a := &t.arena
	end := ref(t.state.Load() >> 32)
	for item := t.since(after); item < end; {
		next, touches := a.touches(item, ks, lo, hi, after)
		if touches {
			return true
		}
		item = next
	}
	return false
}

// since returns an item, not far before the first one with a sequence number above seq.
func (t *Table) since(seq uint64) ref {
	n := int(t.marks.Load())
	i := sort.Search(n, func(i int) bool { return t.arena.mark(i).seq > seq })
	if i == 0 {
		return 1 // the first item
	}
	return t.arena.mark(i - 1).item
}

// touches reports whether an item of a keyspace has a sequence number above after and touches a range, and returns the
// item that follows.
func (a *arena) touches(item ref, ks uint32, lo, hi []byte, after uint64) (next ref, touches bool) {
	switch word := *a.word(item, 1); {
	case word&itemNode != 0:
		version := item + ref(nodeSize(int(word&keyLength))/8)
		next = version + ref(a.writtenVersionSize(version)/8)
		touches = a.seq(version) > after && a.keyspace(item) == ks && within(a.key(item), lo, hi)
	case word&itemUpdate != 0:
		version, node := item+updateHeader/8, ref(*a.word(item, 0))
		next = version + ref(a.writtenVersionSize(version)/8)
		touches = a.seq(version) > after && a.keyspace(node) == ks && within(a.key(node), lo, hi)
	default:
		s := a.rangeSpan(item)
		next = item + rangeHeader/8 + ref((*a.word(item, 2)+7)/8) + ref((*a.word(item, 3)+7)/8)
		touches = s.seq > after && *a.word(item, 0) == ks && s.hi.above(a, lo) &&
			(hi == nil || bytes.Compare(s.lo.key(a), hi) < 0)
	}
	return next, touches
}

// within reports whether key lies in [lo, hi), where a nil hi is the end.
func within(key, lo, hi []byte) bool {
	return bytes.Compare(key, lo) >= 0 && (hi == nil || bytes.Compare(key, hi) < 0)
}
