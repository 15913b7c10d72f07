package segment

import (
	"iter"
	"maps"
)

// Mask tells roughly in which segments something lies: bit i stands for all segments whose id is i modulo 64. Ids are given out one after
// the other, so what was written at about the same time has few bits. The zero Mask lies nowhere.
type Mask uint64

// MaskOf returns the mask of where a blob lies.
func MaskOf(p Pointer) Mask {
	if p.IsZero() {
		return 0
	}
	return maskOfID(p.Segment)
}

func maskOfID(id uint32) Mask { return 1 << (id % 64) }

// Meets reports whether two masks have a bit in common: else what they stand for has no segment in common either.
func (m Mask) Meets(other Mask) bool { return m&other != 0 }

// Set is a set of segments. A nil *Set is empty, as is the zero value; one that nobody adds to may be read by many.
type Set struct {
	ids  map[uint32]struct{}
	mask Mask
}

// SetOf returns a set of segments.
func SetOf(ids ...uint32) *Set {
	s := new(Set)
	for _, id := range ids {
		s.Add(id)
	}
	return s
}

// Add adds a segment.
func (s *Set) Add(id uint32) {
	if s.ids == nil {
		s.ids = map[uint32]struct{}{}
	}
	s.ids[id] = struct{}{}
	s.mask |= maskOfID(id)
}

// Has reports whether a segment is in the set.
func (s *Set) Has(id uint32) bool {
	if s == nil || !s.mask.Meets(maskOfID(id)) {
		return false
	}
	_, ok := s.ids[id]
	return ok
}

// Empty reports whether there is nothing in the set.
func (s *Set) Empty() bool { return s == nil || len(s.ids) == 0 }

// Mask returns the mask of all segments in the set.
func (s *Set) Mask() Mask {
	if s == nil {
		return 0
	}
	return s.mask
}

// All goes over the segments in no order.
func (s *Set) All() iter.Seq[uint32] {
	if s == nil {
		return func(func(uint32) bool) {}
	}
	return maps.Keys(s.ids)
}
