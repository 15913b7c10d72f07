package view

import (
	"iter"

	"github.com/pandodb/pando/internal/layout"
)

// DefaultKeyspace is the number of the keyspace that is in every database. The others are numbered in a row, from wherever the database
// has begun to.
const DefaultKeyspace = 1

// Roots holds the settled root of each keyspace by its number. Look-ups take an index, not a search: every read makes one. The zero value
// has none. A copy shares what it holds: see Clone.
type Roots struct {
	main  layout.Root
	first uint32 // number of the keyspace that rest begins with
	rest  []layout.Root
}

// At returns the root of a keyspace, nil when there is none.
func (r *Roots) At(keyspace uint32) layout.Root {
	if keyspace == DefaultKeyspace {
		return r.main
	}
	// A number below the first one wraps around to one that is behind the last.
	if at := keyspace - r.first; uint64(at) < uint64(len(r.rest)) {
		return r.rest[at]
	}
	return nil
}

// Set makes root that of a keyspace.
func (r *Roots) Set(keyspace uint32, root layout.Root) {
	if keyspace == DefaultKeyspace {
		r.main = root
		return
	}
	if len(r.rest) == 0 {
		r.first = keyspace
	}
	if keyspace < r.first {
		r.rest = append(make([]layout.Root, r.first-keyspace), r.rest...)
		r.first = keyspace
	}
	if missing := int(keyspace-r.first) + 1 - len(r.rest); missing > 0 {
		r.rest = append(r.rest, make([]layout.Root, missing)...)
	}
	r.rest[keyspace-r.first] = root
}

// Clone returns roots that can be changed without changing r. It leaves out the room of keyspaces before the first one that has a root
// and behind the last: where keyspaces come and go, numbers do not come again.
func (r *Roots) Clone() Roots {
	from, to := 0, len(r.rest)
	for from < to && r.rest[from] == nil {
		from++
	}
	for to > from && r.rest[to-1] == nil {
		to--
	}
	return Roots{main: r.main, first: r.first + uint32(from), rest: append([]layout.Root(nil), r.rest[from:to]...)}
}

// All walks over the roots that there are, in the order of their keyspaces' numbers.
func (r *Roots) All() iter.Seq2[uint32, layout.Root] {
	return func(yield func(uint32, layout.Root) bool) {
		if r.main != nil && !yield(DefaultKeyspace, r.main) {
			return
		}
		for i, root := range r.rest {
			if root != nil && !yield(r.first+uint32(i), root) {
				return
			}
		}
	}
}
