package memtable

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"
	"unsafe"

	"github.com/pandodb/pando/internal/prefetch"
)

// newRun makes a run of entries, at least one, that say their nodes.
func newRun(a *arena, entries []entry) *run {
	prefix := sortFrom(a, entries, 0)
	return makeRun(entries, prefix)
}

// sortFrom sorts entries whose keys have their first from bytes in common, and are all at least that long. It sets their
// heads to what follows their common prefix, and returns the length of that.
//
// Heads decide nearly all of the order, and they are sorted as integers. Only keys with equal heads are looked at again:
// a few by comparing them, many in the same way, from the next 8 bytes on.
func sortFrom(a *arena, entries []entry, from int) (prefix int) {
	prefix = setHeads(a, entries, from)
	sortByHeads(a, entries, prefix)
	return prefix
}

// sortByHeads sorts entries whose heads say what follows the first prefix bytes of their keys, which they have in common.
func sortByHeads(a *arena, entries []entry, prefix int) {
	sortHeads(entries)
	eachEqual(entries, 0, func(equal []entry) { sortEqualHeads(a, equal, prefix) })
}

// eachEqual calls fn for the entries whose heads are equal from bit low on, where there are more than one. Entries are sorted by that part.
func eachEqual(entries []entry, low uint, fn func(equal []entry)) {
	last := entries[0].head >> (low & 63)
	for i := 1; i < len(entries); i++ {
		top := entries[i].head >> (low & 63)
		if top != last { // nearly always
			last = top
			continue
		}
		start := i - 1
		for i < len(entries) && entries[i].head>>(low&63) == last {
			i++
		}
		fn(entries[start:i])
		if i < len(entries) {
			last = entries[i].head >> (low & 63)
		}
	}
}

// aheadKeys is of how many keys setHeads asks for the beginning at a time.
const aheadKeys = 32

// setHeads sets the heads of entries whose keys have their first from bytes in common to what follows their common
// prefix, and returns its length. A prefix guessed from a few keys is nearly always right, so that each key is read once.
func setHeads(a *arena, entries []entry, from int) (prefix int) {
	first := a.key(entries[0].node)
	guess := len(first)
	step := max(1, len(entries)/16)
	for i := step; i < len(entries); i += step {
		guess = min(guess, from+commonPrefix(first[from:guess], a.key(entries[i].node)[from:]))
	}
	common := string(first[from:guess])
	prefix = guess
	for i := range entries {
		if i%aheadKeys == 0 {
			next := entries[min(i+aheadKeys, len(entries)):min(i+2*aheadKeys, len(entries))]
			if len(next) > 0 {
				prefetch.Gather(a.base, unsafe.Pointer(&next[0].node), len(next), entryBytes, nodeHeader+guess+8)
			}
		}
		key := a.key(entries[i].node)
		switch {
		case len(key) < guess || guess > from && string(key[from:guess]) != common:
			prefix = min(prefix, from+commonPrefix(first[from:prefix], key[from:]))
		case len(key) >= guess+8: // nearly always
			entries[i].head = binary.BigEndian.Uint64(key[guess:])
		default:
			entries[i].head = headAt(key, guess)
		}
	}
	if prefix < guess {
		for i := range entries {
			entries[i].head = headAt(a.key(entries[i].node), prefix)
		}
	}
	return prefix
}

// sortEqualHeads sorts entries whose keys are equal up to prefix, and whose heads there are equal.
func sortEqualHeads(a *arena, entries []entry, prefix int) {
	const few = 12
	if len(entries) <= few {
		slices.SortFunc(entries, func(x, y entry) int {
			return bytes.Compare(a.key(x.node)[prefix:], a.key(y.node)[prefix:])
		})
		return
	}
	// Keys that end within the head, of which there are at most eight, are prefixes of all longer ones.
	next := prefix + 8
	ended := 0
	for i, e := range entries {
		if a.keyLen(e.node) < next {
			entries[i], entries[ended] = entries[ended], e
			ended++
		}
	}
	slices.SortFunc(entries[:ended], func(x, y entry) int {
		return cmp.Compare(a.keyLen(x.node), a.keyLen(y.node))
	})
	rest := entries[ended:]
	head := rest[0].head
	sortFrom(a, rest, next)
	for i := range rest {
		rest[i].head = head
	}
}

// sorter sorts entries by their heads, without memory in proportion to them: fresh memory costs more than the sorting does. Many are
// dealt out in place, by the highest bits in which heads differ, and then each bucket by itself. A bucket that the processor's caches
// hold is sorted by counting, in two passes over as many of its highest bits as it takes to tell nearly all of its heads apart. What is
// equal in those is sorted again, by the bits that follow. (Least significant digit first within the two: unlike dealing out and going
// into each bucket, that has no branches which nobody can predict.)
type sorter struct {
	spare  []entry  // as long as what is sorted by counting
	counts []uint32 // of the values of two digits
}

const (
	fewEntries  = 32      // below this, counting costs more than it saves
	manyEntries = 4 << 10 // more are dealt out first
	splitBits   = 8       // by which many are at most: each bucket has a line of the innermost cache then
	bucketBits  = 9       // how many are to be in a bucket, give or take a half: fewer are not worth being counted twice
	digitMost   = 9       // bits of a digit: what manyEntries need
	digitMore   = 5       // bits beyond those that number the entries: how rare it is that two are equal in all of them
)

// sortHeads sorts entries by their heads.
func sortHeads(entries []entry) {
	if len(entries) <= fewEntries {
		insertionSort(entries)
		return
	}
	if differ, sorted := survey(entries); !sorted {
		most := min(len(entries), manyEntries)
		s := sorter{spare: make([]entry, most), counts: make([]uint32, 2<<digitFor(most))}
		s.sort(entries, differ)
	}
}

// digitFor is how many bits a digit has where n entries are sorted.
func digitFor(n int) uint { return uint(min(digitMost, (bits.Len(uint(n))+digitMore+1)/2)) }

// survey tells in which bits heads differ, and whether they are in order.
func survey(entries []entry) (differ uint64, sorted bool) {
	first, last := entries[0].head, entries[0].head
	sorted = true
	for i := range entries {
		head := entries[i].head
		differ |= head ^ first
		sorted = sorted && head >= last
		last = head
	}
	return differ, sorted
}

// sort sorts entries, more than a few, whose heads differ in some bits.
func (s *sorter) sort(entries []entry, differ uint64) {
	if len(entries) > manyEntries {
		digit := min(splitBits, bits.Len(uint(len(entries)))-bucketBits)
		s.split(entries, uint(max(0, bits.Len64(differ)-digit)))
		return
	}
	digit := digitFor(len(entries))
	low := uint(max(0, bits.Len64(differ)-2*int(digit)))
	s.pass(entries, low, digit)
	if low > 0 {
		eachEqual(entries, low, s.again)
	}
}

// split sorts many entries by dealing them out in place by the bits from low on, and sorting each bucket. An entry is swapped to where
// its bucket goes on, whoever is there takes its place, and that is repeated for those that have come to a wrong place: so no swap waits
// for the one before it.
func (s *sorter) split(entries []entry, low uint) {
	const buckets = 1 << splitBits
	var next, ends [buckets]uint32
	for i := range entries {
		ends[entries[i].head>>(low&63)&(buckets-1)]++
	}
	sum := uint32(0)
	for i, n := range ends {
		next[i] = sum
		sum += n
		ends[i] = sum
	}
	for unsettled := true; unsettled; {
		unsettled = false
		for b := range ends {
			from, to := next[b], ends[b]
			unsettled = unsettled || from < to
			for i := from; i < to; i++ {
				e := entries[i]
				place := &next[e.head>>(low&63)&(buckets-1)]
				entries[i] = entries[*place]
				entries[*place] = e
				*place++
			}
		}
	}
	start := uint32(0)
	for _, end := range ends {
		if end-start > 1 {
			s.again(entries[start:end])
		}
		start = end
	}
}

// again sorts entries that are equal in the bits looked at so far.
func (s *sorter) again(entries []entry) {
	if len(entries) <= fewEntries {
		insertionSort(entries)
	} else if differ, sorted := survey(entries); !sorted {
		s.sort(entries, differ)
	}
}

// pass sorts entries by two digits of their heads, the lower of which begins at bit low.
func (s *sorter) pass(entries []entry, low, digit uint) {
	size := 1 << digit
	mask := uint64(size - 1)
	lower, upper := s.counts[:size], s.counts[size:2*size]
	clear(s.counts[:2*size])
	for i := range entries {
		x := entries[i].head >> (low & 63)
		lower[x&mask]++
		upper[x>>(digit&63)&mask]++
	}
	starts(lower)
	starts(upper)
	spare := s.spare[:len(entries)]
	deal(spare, entries, lower, low)
	deal(entries, spare, upper, low+digit)
}

// starts makes the places at which buckets begin of how much is in each.
func starts(counts []uint32) {
	sum := uint32(0)
	for i, n := range counts {
		counts[i] = sum
		sum += n
	}
}

// deal puts each entry where the bucket of its digit, which begins at bit shift, goes on.
func deal(to, from []entry, places []uint32, shift uint) {
	mask := uint64(len(places) - 1)
	for i := range from {
		e := from[i]
		place := &places[e.head>>(shift&63)&mask]
		to[*place] = e
		*place++
	}
}

func insertionSort(entries []entry) {
	for i := 1; i < len(entries); i++ {
		e := entries[i]
		j := i
		for ; j > 0 && entries[j-1].head > e.head; j-- {
			entries[j] = entries[j-1]
		}
		entries[j] = e
	}
}
