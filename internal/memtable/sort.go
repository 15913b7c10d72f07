package memtable

import (
	"bytes"
	"cmp"
	"slices"
)

// newRun sorts the keys of some nodes, at least one, into a run.
func newRun(a *arena, nodes []ref) *run {
	entries := make([]entry, len(nodes))
	for i, n := range nodes {
		entries[i].node = n
	}
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
	if !slices.IsSortedFunc(entries, func(x, y entry) int { return cmp.Compare(x.head, y.head) }) {
		radixSort(entries, 56)
	}
	for start := 0; start < len(entries); {
		end := start + 1
		for end < len(entries) && entries[end].head == entries[start].head {
			end++
		}
		if end-start > 1 {
			sortEqualHeads(a, entries[start:end], prefix)
		}
		start = end
	}
	return prefix
}

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
		key := a.key(entries[i].node)
		if len(key) >= guess && string(key[from:guess]) == common {
			entries[i].head = headAt(key, guess)
			continue
		}
		prefix = min(prefix, from+commonPrefix(first[from:prefix], key[from:]))
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

// radixSort sorts entries by their heads, given that the bits above the byte at shift are equal in all: most significant
// byte first and in place (P. McIlroy, K. Bostic, M. D. McIlroy, "Engineering Radix Sort", 1993).
func radixSort(entries []entry, shift uint) {
	const few = 48 // below this, clearing and summing the counts costs more than it saves
	if len(entries) <= few {
		insertionSort(entries)
		return
	}
	var ends, heads [256]uint32
	for _, e := range entries {
		ends[byte(e.head>>shift)]++
	}
	var sum uint32
	for i, n := range ends {
		heads[i] = sum
		sum += n
		ends[i] = sum
	}
	for b := range heads {
		for i := heads[b]; i < ends[b]; i = heads[b] {
			// Carry the entry that lies here to its place, and the one found there on to its own, until one belongs here.
			e := entries[i]
			for d := byte(e.head >> shift); int(d) != b; d = byte(e.head >> shift) {
				place := heads[d]
				heads[d]++
				entries[place], e = e, entries[place]
			}
			entries[i] = e
			heads[b]++
		}
	}
	if shift == 0 {
		return
	}
	var start uint32
	for _, end := range ends {
		if end-start > 1 {
			radixSort(entries[start:end], shift-8)
		}
		start = end
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
