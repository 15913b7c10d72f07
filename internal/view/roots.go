package view

import (
	"iter"
	"maps"
	"slices"

	"github.com/pandodb/pando/internal/layout"
)

// DefaultKeyspace is the number of the keyspace that is in every database. The others are numbered in a row, from wherever the database
// has begun to.
const DefaultKeyspace = 1

// Roots holds the settled root of each keyspace by its number. Look-ups take an index, not a search: every read makes one. But numbers do not
// come again, and where very many keyspaces have come and gone between those that are there, room for all of them would be without bounds:
// then only those have their places in a row that lie closest to each other, and the others are in a map. The zero value has none. A copy
// shares what it holds: see Clone.
type Roots struct {
	main  layout.Root
	first uint32 // number of the keyspace that rest begins with
	rest  []layout.Root
	apart map[uint32]layout.Root // of the keyspaces outside of rest
}

// A row has room for leastRoom keyspaces, and beyond that for roomForEach times as many as there are.
const (
	leastRoom   = 1024
	roomForEach = 16
)

// At returns the root of a keyspace, nil when there is none.
func (r *Roots) At(keyspace uint32) layout.Root {
	if keyspace == DefaultKeyspace {
		return r.main
	}
	// A number below the first one wraps around to one that is behind the last.
	if at := keyspace - r.first; uint64(at) < uint64(len(r.rest)) {
		return r.rest[at]
	}
	return r.apart[keyspace]
}

// Set makes root that of a keyspace.
func (r *Roots) Set(keyspace uint32, root layout.Root) {
	switch {
	case keyspace == DefaultKeyspace:
		r.main = root
	case r.reaches(keyspace):
		r.rest[keyspace-r.first] = root
	case root == nil:
		delete(r.apart, keyspace)
	default:
		if r.apart == nil {
			r.apart = map[uint32]layout.Root{}
		}
		r.apart[keyspace] = root
	}
}

// reaches reports whether a keyspace has its place in the row, which is made longer for one that is near.
func (r *Roots) reaches(keyspace uint32) bool {
	if len(r.rest) == 0 {
		r.first = keyspace
	}
	low, end := uint64(min(r.first, keyspace)), max(uint64(r.first)+uint64(len(r.rest)), uint64(keyspace)+1)
	added := int(end-low) - len(r.rest)
	switch {
	case added == 0:
		return true
	case end-low > leastRoom && added > roomForEach:
		return false
	}
	more, from := make([]layout.Root, added), r.first+uint32(len(r.rest))
	if keyspace < r.first {
		from = keyspace
	}
	for i := range more {
		more[i] = r.apart[from+uint32(i)]
		delete(r.apart, from+uint32(i))
	}
	if keyspace < r.first {
		r.first, r.rest = keyspace, append(more, r.rest...)
	} else {
		r.rest = append(r.rest, more...)
	}
	return true
}

// Clone returns roots that can be changed without changing r. It leaves out the room of keyspaces before the first one that has a root
// and behind the last, and puts those in a row of which there are the most.
func (r *Roots) Clone() Roots {
	from, to, there := 0, len(r.rest), 0
	for from < to && r.rest[from] == nil {
		from++
	}
	for to > from && r.rest[to-1] == nil {
		to--
	}
	for _, root := range r.rest[from:to] {
		if root != nil {
			there++
		}
	}
	if len(r.apart) > 0 || to-from > room(there) {
		return r.arranged()
	}
	return Roots{main: r.main, first: r.first + uint32(from), rest: append([]layout.Root(nil), r.rest[from:to]...)}
}

// room is how long a row of so many keyspaces may be.
func room(keyspaces int) int { return leastRoom + roomForEach*keyspaces }

// arranged is Clone where the row of r may not be the one to have.
func (r *Roots) arranged() Roots {
	numbers := slices.Collect(r.numbers())
	low, high := 0, 0 // the longest part of numbers that makes a row
	for from, to := 0, 1; to <= len(numbers); to++ {
		for int64(numbers[to-1])-int64(numbers[from]) >= int64(room(to-from)) {
			from++
		}
		if to-from > high-low {
			low, high = from, to
		}
	}
	fresh := Roots{main: r.main}
	if row := numbers[low:high]; len(row) > 0 {
		fresh.first = row[0]
		fresh.rest = make([]layout.Root, row[len(row)-1]-row[0]+1)
	}
	for _, keyspace := range numbers {
		fresh.Set(keyspace, r.At(keyspace))
	}
	return fresh
}

// All walks over the roots that there are, in the order of their keyspaces' numbers.
func (r *Roots) All() iter.Seq2[uint32, layout.Root] {
	return func(yield func(uint32, layout.Root) bool) {
		if r.main != nil && !yield(DefaultKeyspace, r.main) {
			return
		}
		for keyspace := range r.numbers() {
			if root := r.At(keyspace); root != nil && !yield(keyspace, root) {
				return
			}
		}
	}
}

// numbers walks over those of the keyspaces that have roots, but for the default one.
func (r *Roots) numbers() iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		apart := slices.Sorted(maps.Keys(r.apart))
		behind, _ := slices.BinarySearch(apart, r.first)
		for _, keyspace := range apart[:behind] {
			if !yield(keyspace) {
				return
			}
		}
		for i, root := range r.rest {
			if root != nil && !yield(r.first+uint32(i)) {
				return
			}
		}
		for _, keyspace := range apart[behind:] {
			if !yield(keyspace) {
				return
			}
		}
	}
}
