package memtable

import (
	"bytes"
	"cmp"
	"slices"
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

// KeyRange is the keys of a keyspace from Lo (nil: from the start) to below Hi (nil: to the end).
type KeyRange struct {
	Keyspace uint32
	Lo, Hi   []byte
}

// empty reports whether no key can lie in the range.
func (r *KeyRange) empty() bool { return r.Hi != nil && bytes.Compare(r.Lo, r.Hi) >= 0 }

// Disjoint sorts ranges, in their place, as NewestInAny wants them: those that overlap or touch are joined, and those in which no key can lie
// are left out.
func Disjoint(ranges []KeyRange) []KeyRange {
	slices.SortFunc(ranges, func(x, y KeyRange) int {
		return cmp.Or(cmp.Compare(x.Keyspace, y.Keyspace), bytes.Compare(x.Lo, y.Lo))
	})
	out := ranges[:0]
	for _, r := range ranges {
		if r.empty() {
			continue
		}
		if n := len(out); n > 0 && out[n-1].Keyspace == r.Keyspace && (out[n-1].Hi == nil || bytes.Compare(out[n-1].Hi, r.Lo) >= 0) {
			if last := &out[n-1]; last.Hi != nil && (r.Hi == nil || bytes.Compare(r.Hi, last.Hi) > 0) {
				last.Hi = r.Hi
			}
			continue
		}
		out = append(out, r)
	}
	clear(ranges[len(out):]) // whose keys nobody asks for any more
	return out
}

// NewestIn is NewestInAny for one range.
func (t *Table) NewestIn(ks uint32, lo, hi []byte, after uint64) bool {
	r := [1]KeyRange{{ks, lo, hi}}
	return !r[0].empty() && t.NewestInAny(r[:], after)
}

// NewestInAny reports whether anything with a sequence number above after touches any of some ranges, which are as Disjoint returns them: a
// version of a key in it, or a range delete that overlaps. It looks at what was put since then, each time once, and not at the ranges, so that
// its cost depends little on their number, and not on their size, nor on any order.
func (t *Table) NewestInAny(ranges []KeyRange, after uint64) bool {
	if len(ranges) == 0 || t.MaxSeq() <= after {
		return false
	}
	a := &t.arena
	end := ref(t.state.Load() >> 32)
	for item := t.since(after); item < end; {
		next, touches := a.touches(item, ranges, after)
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

// touches reports whether an item has a sequence number above after and touches any of some ranges, and returns the item that follows.
func (a *arena) touches(item ref, ranges []KeyRange, after uint64) (next ref, touches bool) {
	switch word := *a.word(item, 1); {
	case word&itemNode != 0:
		version := item + ref(nodeSize(int(word&keyLength))/8)
		next = version + ref(a.writtenVersionSize(version)/8)
		touches = a.seq(version) > after && inAny(a.key(item), a.keyspace(item), ranges)
	case word&itemUpdate != 0:
		version, node := item+updateHeader/8, ref(*a.word(item, 0))
		next = version + ref(a.writtenVersionSize(version)/8)
		touches = a.seq(version) > after && inAny(a.key(node), a.keyspace(node), ranges)
	default:
		s := a.rangeSpan(item)
		next = item + rangeHeader/8 + ref((*a.word(item, 2)+7)/8) + ref((*a.word(item, 3)+7)/8)
		if s.seq > after {
			r := endingAbove(s.lo.key(a), *a.word(item, 0), ranges)
			touches = r != nil && s.hi.above(a, r.Lo)
		}
	}
	return next, touches
}

// inAny reports whether a key lies in one of some ranges.
func inAny(key []byte, ks uint32, ranges []KeyRange) bool {
	r := endingAbove(key, ks, ranges)
	return r != nil && bytes.Compare(r.Lo, key) <= 0
}

// endingAbove returns the first range of a keyspace that ends above key, or nil.
func endingAbove(key []byte, ks uint32, ranges []KeyRange) *KeyRange {
	i := sort.Search(len(ranges), func(i int) bool {
		r := &ranges[i]
		return r.Keyspace > ks || r.Keyspace == ks && (r.Hi == nil || bytes.Compare(r.Hi, key) > 0)
	})
	if i == len(ranges) || ranges[i].Keyspace != ks {
		return nil
	}
	return &ranges[i]
}
