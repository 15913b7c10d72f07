// Package gap remembers where in a keyspace nothing lives, so that walks need not step over what was deleted there.
//
// What has been deleted stays in the memtable, as a tombstone a key, until a checkpoint. A queue, whose readers look for its first key again
// and again and delete it, would step over all tombstones before that each time. So a walk that has passed over many says where, and
// those that come later begin behind them.
//
// A Gap says that from its sequence number on none of its keys was there. It ends with the first of them that is put: whoever writes tells the
// Set so before the write can be seen. A reader takes its gaps from the Set after its sequence number; then each of them whose number is
// not above that holds for it, for as long as it reads.
//
// A Set is changed by one goroutine at a time, which writes; readers take what there is without a lock, and what they have taken never
// changes. It keeps few gaps, with short keys, and forgets rather than to grow: all that it costs is time. It does no I/O and does not fail.
package gap

import (
	"bytes"
	"maps"
	"slices"
	"sort"
	"sync/atomic"
)

const (
	mostKeyspaces = 64  // that have any
	mostGaps      = 64  // of a keyspace
	mostBytes     = 512 // of a bound
)

// Gap is the keys of a keyspace from Low, included, to High, excluded, of which none has been there since Seq. A High of nil is behind all keys.
type Gap struct {
	Low, High []byte
	Seq       uint64
}

// Gaps are those of a keyspace: in order, and apart.
type Gaps []Gap

// After returns the end of the gap that key lies in, for a reader at seq. What it returns belongs to the gap; nil is behind all keys.
func (g Gaps) After(key []byte, seq uint64) (high []byte, ok bool) {
	i := g.endingAbove(key)
	if i == len(g) || g[i].Seq > seq || bytes.Compare(g[i].Low, key) > 0 {
		return nil, false
	}
	return g[i].High, true
}

// Before returns the beginning of the gap that the keys right below key lie in, for a reader at seq. A key of nil is behind all keys.
func (g Gaps) Before(key []byte, seq uint64) (low []byte, ok bool) {
	i := sort.Search(len(g), func(i int) bool { return key != nil && bytes.Compare(g[i].Low, key) >= 0 }) - 1 // the last that begins below key
	if i < 0 || g[i].Seq > seq || !reaches(g[i].High, key) {
		return nil, false
	}
	return g[i].Low, true
}

// Covers reports whether all keys from low to high lie in one gap, for a reader at seq.
func (g Gaps) Covers(low, high []byte, seq uint64) bool {
	end, ok := g.After(low, seq)
	return ok && reaches(end, high)
}

// reaches reports whether a bound is not below another one; nil is behind all keys.
func reaches(high, key []byte) bool {
	return high == nil || key != nil && bytes.Compare(high, key) >= 0
}

// endingAbove is the number of the first gap that ends above key.
func (g Gaps) endingAbove(key []byte) int {
	return sort.Search(len(g), func(i int) bool { return g[i].High == nil || bytes.Compare(g[i].High, key) > 0 })
}

// Set is the gaps of all keyspaces. The zero value has none and is ready for use.
type Set struct {
	all atomic.Pointer[map[uint32]Gaps]
}

// Of returns the gaps of a keyspace.
func (s *Set) Of(keyspace uint32) Gaps {
	all := s.all.Load()
	if all == nil {
		return nil
	}
	return (*all)[keyspace]
}

// Empty reports whether there is no gap: then nothing needs to be told of what is put.
func (s *Set) Empty() bool { return s.all.Load() == nil }

// Clear forgets all gaps.
func (s *Set) Clear() { s.all.Store(nil) }

// Drop forgets the gaps of a keyspace.
func (s *Set) Drop(keyspace uint32) {
	if len(s.Of(keyspace)) > 0 {
		s.set(keyspace, nil)
	}
}

// Add notes a gap, of which it keeps copies. Whoever calls it has made sure that none of its keys has been put since its sequence number.
func (s *Set) Add(keyspace uint32, g Gap) {
	if len(g.Low) > mostBytes || len(g.High) > mostBytes || g.High != nil && bytes.Compare(g.Low, g.High) >= 0 {
		return
	}
	g.Low, g.High = append([]byte{}, g.Low...), bytes.Clone(g.High) // a Low of nil would be behind all keys
	old := s.Of(keyspace)
	// Those in old[from:to] overlap the new one, or touch it.
	from := sort.Search(len(old), func(i int) bool { return reaches(old[i].High, g.Low) })
	to := from
	for ; to < len(old) && reaches(g.High, old[to].Low); to++ {
		if bytes.Compare(old[to].Low, g.Low) < 0 {
			g.Low = old[to].Low
		}
		if reaches(old[to].High, g.High) {
			g.High = old[to].High
		}
		g.Seq = max(g.Seq, old[to].Seq)
	}
	list := slices.Concat(old[:from], Gaps{g}, old[to:])
	if len(list) > mostGaps {
		oldest := 0
		for i := range list {
			if list[i].Seq < list[oldest].Seq {
				oldest = i
			}
		}
		list = slices.Delete(list, oldest, oldest+1)
	}
	s.set(keyspace, list)
}

// Put tells that a key will be put: it lies in no gap any more.
func (s *Set) Put(keyspace uint32, key []byte) {
	old := s.Of(keyspace)
	i := old.endingAbove(key)
	if i == len(old) || bytes.Compare(old[i].Low, key) > 0 {
		return
	}
	g := old[i]
	list := slices.Clone(old[:i])
	if len(old) < mostGaps {
		if bytes.Compare(g.Low, key) < 0 {
			list = append(list, Gap{g.Low, bytes.Clone(key), g.Seq})
		}
		// What is put behind all that lives will be followed by more.
		if next := append(bytes.Clone(key), 0); g.High != nil && bytes.Compare(next, g.High) < 0 {
			list = append(list, Gap{next, g.High, g.Seq})
		}
	}
	s.set(keyspace, append(list, old[i+1:]...))
}

// set makes list the gaps of a keyspace.
func (s *Set) set(keyspace uint32, list Gaps) {
	fresh := map[uint32]Gaps{}
	if all := s.all.Load(); all != nil && (len(*all) < mostKeyspaces || (*all)[keyspace] != nil) {
		maps.Copy(fresh, *all)
	}
	if fresh[keyspace] = list; len(list) == 0 {
		delete(fresh, keyspace)
	}
	if len(fresh) == 0 {
		s.Clear()
		return
	}
	s.all.Store(&fresh)
}
