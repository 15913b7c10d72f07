package memtable

import (
	"bytes"
	"slices"
	"sort"
	"sync/atomic"
)

// Range says that the keys from Lo (included) to Hi (excluded; nil: to the end of the keyspace) were deleted at Seq: a
// record of such a key in this table or in anything older counts only if its sequence number is above. Both alias the
// arena.
type Range struct {
	Lo, Hi []byte
	Seq    uint64
}

// rangeSet is what is known of the range deletes of a keyspace; immutable. The spans answer readers who may see all of
// them, who are nearly all readers. The deletes answer those at older snapshots, at a cost in proportion to their number.
//
// Since a set is immutable each delete copies spans. So the newest ones have a short list of their own, which is laid over the next one when
// it has become long, and so on: a batch may have hundreds of thousands of deletes.
type rangeSet struct {
	deletes []ref // all of them, in the order of their sequence numbers
	// levels are the spans: those of the newest deletes, and then ever more of ever older ones. In each there are no overlaps, it is sorted,
	// each span has its highest sequence number, and none is newer than any of the level before.
	levels [rangeLevels][]span
	list   atomic.Pointer[[]Range]
}

// mostRecent is how many spans the first level has before they are laid over the next one, which may have that many times as many: what a
// delete copies, and what laying a level over the next one costs each of its spans, are about the same then. The last one has any number.
const (
	mostRecent  = 64
	rangeLevels = 4
)

// span is a range of keys with the highest sequence number at which it was deleted.
type span struct {
	lo, hi bound
	seq    uint64
}

// bound is a key in the arena.
type bound struct {
	at     ref
	length uint32 // boundEnd: beyond all keys
}

const (
	boundEnd  = 1 << 31
	spanBytes = 24
)

func (b bound) key(a *arena) []byte {
	if b.length == boundEnd {
		return nil
	}
	return a.bytes(b.at, 0, int(b.length))
}

// above reports whether the bound lies above key.
func (b bound) above(a *arena, key []byte) bool {
	return b.length == boundEnd || bytes.Compare(b.key(a), key) > 0
}

// compare orders two bounds.
func (b bound) compare(a *arena, other bound) int {
	switch {
	case b.length == boundEnd && other.length == boundEnd:
		return 0
	case b.length == boundEnd:
		return 1
	case other.length == boundEnd:
		return -1
	}
	return bytes.Compare(b.key(a), other.key(a))
}

// DeleteRange deletes the keys of ks from lo (nil: from the start) to below hi (nil: to the end) at seq, which must not be
// below that of any earlier record. The table copies lo and hi. An empty range leaves no trace.
func (t *Table) DeleteRange(ks uint32, lo, hi []byte, seq uint64) {
	if hi != nil && bytes.Compare(lo, hi) >= 0 {
		return
	}
	a := &t.arena
	size := rangeHeader + (len(lo)+7)&^7 + (len(hi)+7)&^7
	item := t.reserve(size, seq)
	flags := uint32(itemRange)
	if hi == nil {
		flags |= rangeOpen
	}
	*a.word(item, 0) = ks
	*a.word(item, 1) = flags
	*a.word(item, 2) = uint32(len(lo))
	*a.word(item, 3) = uint32(len(hi))
	*a.long(item, 2) = seq
	added := a.rangeSpan(item)
	copy(added.lo.key(a), lo)
	copy(added.hi.key(a), hi)
	t.publish(item + ref(size/8))

	k := t.keyspaceToWrite(ks)
	old := k.ranges.Load()
	if old == nil {
		old = new(rangeSet)
	}
	set := old.with(a, item, added)
	t.beside.Add(set.bytes() - old.bytes())
	k.ranges.Store(set)
	t.ranges.Add(1)
}

// with returns the set with one more delete, which is not older than any of the others.
func (s *rangeSet) with(a *arena, item ref, added span) *rangeSet {
	// Readers know how many deletes there were, so that the list may go on in the same array.
	set := &rangeSet{deletes: append(s.deletes, item), levels: s.levels}
	set.levels[0] = withSpan(a, s.levels[0], added)
	for i, most := 0, mostRecent; i+1 < rangeLevels && len(set.levels[i]) > most; i, most = i+1, most*mostRecent {
		set.levels[i+1], set.levels[i] = laidOver(a, set.levels[i+1], set.levels[i]), nil
	}
	return set
}

// bytes is what the set takes beside the arena. What Ranges makes of it is not counted: it goes with the next delete.
func (s *rangeSet) bytes() int64 {
	spans := 0
	for _, level := range s.levels {
		spans += len(level)
	}
	return int64(cap(s.deletes))*refBytes + int64(spans)*spanBytes
}

// rangeSpan returns the span that a range delete in the arena covers.
func (a *arena) rangeSpan(item ref) span {
	lo := bound{item + rangeHeader/8, *a.word(item, 2)}
	hi := bound{lo.at + ref((lo.length+7)/8), *a.word(item, 3)}
	if *a.word(item, 1)&rangeOpen != 0 {
		hi.length = boundEnd
	}
	return span{lo, hi, *a.long(item, 2)}
}

// withSpan returns the spans after a delete with a sequence number that is not below any of theirs.
func withSpan(a *arena, spans []span, added span) []span {
	// spans[from:to] overlap the new one.
	from := sort.Search(len(spans), func(i int) bool { return spans[i].hi.compare(a, added.lo) > 0 })
	to := sort.Search(len(spans), func(i int) bool { return spans[i].lo.compare(a, added.hi) >= 0 })
	out := make([]span, 0, len(spans)-(to-from)+3)
	out = append(out, spans[:from]...)
	if from < to && spans[from].lo.compare(a, added.lo) < 0 {
		out = append(out, span{spans[from].lo, added.lo, spans[from].seq})
	}
	out = appendJoined(a, out, added)
	if from < to && spans[to-1].hi.compare(a, added.hi) > 0 {
		out = appendJoined(a, out, span{added.hi, spans[to-1].hi, spans[to-1].seq})
	}
	if to < len(spans) {
		out = appendJoined(a, out, spans[to])
		out = append(out, spans[to+1:]...)
	}
	return out
}

// laidOver returns the spans of which those in front hide the others.
func laidOver(a *arena, spans, front []span) []span {
	if len(spans) == 0 {
		return front
	}
	out := make([]span, 0, len(spans)+2*len(front))
	i, rest := 0, spans[0] // what is left of spans[i]
	next := func() {
		if i++; i < len(spans) {
			rest = spans[i]
		}
	}
	for _, f := range front {
		for ; i < len(spans) && rest.hi.compare(a, f.lo) <= 0; next() {
			out = appendJoined(a, out, rest)
		}
		if i < len(spans) && rest.lo.compare(a, f.lo) < 0 {
			out = appendJoined(a, out, span{rest.lo, f.lo, rest.seq})
		}
		for i < len(spans) && rest.hi.compare(a, f.hi) <= 0 {
			next()
		}
		if i < len(spans) && rest.lo.compare(a, f.hi) < 0 {
			rest.lo = f.hi
		}
		out = appendJoined(a, out, f)
	}
	for ; i < len(spans); next() {
		out = appendJoined(a, out, rest)
	}
	return out
}

// covering returns the newest span that covers key.
func (s *rangeSet) covering(a *arena, key []byte) (newest span, ok bool) {
	for _, level := range s.levels {
		if newest, ok = covering(a, level, key); ok {
			return newest, true
		}
	}
	return span{}, false
}

// covering returns the one of some spans that covers key.
func covering(a *arena, spans []span, key []byte) (s span, ok bool) {
	i := sort.Search(len(spans), func(i int) bool { return spans[i].hi.above(a, key) })
	if i == len(spans) || spans[i].lo.above(a, key) {
		return span{}, false
	}
	return spans[i], true
}

// appendJoined appends a span, or extends the last one by it where both touch and have the same sequence number.
func appendJoined(a *arena, spans []span, s span) []span {
	if n := len(spans); n > 0 && spans[n-1].seq == s.seq && spans[n-1].hi.compare(a, s.lo) == 0 {
		spans[n-1].hi = s.hi
		return spans
	}
	return append(spans, s)
}

// visible returns the number of deletes that a reader at seq may see.
func (s *rangeSet) visible(a *arena, seq uint64) int {
	n := len(s.deletes)
	for n > 0 && *a.long(s.deletes[n-1], 2) > seq {
		n--
	}
	return n
}

// HasRanges reports whether there is any range delete, in any keyspace.
func (t *Table) HasRanges() bool { return t.ranges.Load() > 0 }

// rangesOf returns the range deletes of a keyspace, nil if there are none.
func (t *Table) rangesOf(ks uint32) *rangeSet {
	if !t.HasRanges() {
		return nil
	}
	k := t.keyspace(ks)
	if k == nil {
		return nil
	}
	return k.ranges.Load()
}

// Covered returns the highest sequence number, up to seq, of a range delete that covers key; 0 if there is none.
func (t *Table) Covered(ks uint32, key []byte, seq uint64) uint64 {
	set := t.rangesOf(ks)
	if set == nil {
		return 0
	}
	a := &t.arena
	newest, ok := set.covering(a, key)
	if !ok {
		return 0
	}
	if newest.seq <= seq {
		return newest.seq
	}
	for n := set.visible(a, seq); n > 0; n-- {
		s := a.rangeSpan(set.deletes[n-1])
		if !s.lo.above(a, key) && s.hi.above(a, key) {
			return s.seq
		}
	}
	return 0
}

// Ranges returns which ranges of a keyspace are deleted for a reader at seq, each with the highest sequence number up to
// seq at which it was: sorted, without overlaps, and as few as possible. They belong to the table.
func (t *Table) Ranges(ks uint32, seq uint64) []Range {
	set := t.rangesOf(ks)
	if set == nil {
		return nil
	}
	a := &t.arena
	if n := set.visible(a, seq); n < len(set.deletes) {
		set = t.pastRanges(t.keyspace(ks), set, n)
	}
	return set.ranges(a)
}

// ranges returns all spans as ranges. They are made when first asked for: each walk asks.
func (s *rangeSet) ranges(a *arena) []Range {
	if list := s.list.Load(); list != nil {
		return *list
	}
	var spans []span
	for _, level := range slices.Backward(s.levels[:]) {
		if len(level) > 0 {
			spans = laidOver(a, spans, level)
		}
	}
	list := make([]Range, len(spans))
	for i, s := range spans {
		list[i] = Range{Lo: slices.Clip(s.lo.key(a)), Hi: slices.Clip(s.hi.key(a)), Seq: s.seq}
	}
	s.list.Store(&list)
	return list
}

// pastRanges returns the set as it was after its first n deletes. It remembers the last answer, since whoever reads at an
// old snapshot usually asks again.
func (t *Table) pastRanges(k *keyspace, set *rangeSet, n int) *rangeSet {
	past := k.past.Load()
	if past != nil && len(past.deletes) == n {
		return past
	}
	past = new(rangeSet)
	for _, d := range set.deletes[:n] {
		past = past.with(&t.arena, d, t.arena.rangeSpan(d))
	}
	k.past.Store(past)
	return past
}
