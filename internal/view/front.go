package view

import (
	"bytes"
	"encoding/binary"
)

// front is the memtables of a walk forward as one source, without their range deletes: the one that leads stands on the lowest of their
// keys, and the older records of that key have been passed.
type front struct {
	lead  *source // not valid: there is no further key
	bound *source // of the others, the one with the lowest key; nil: they have none
}

// choose finds out who leads, after the sources, at least one, have been moved.
func (f *front) choose(sources []source) {
	for i := range sources {
		sources[i].measure()
	}
	f.elect(sources)
}

func (f *front) elect(sources []source) {
	lead := &sources[0]
	for i := 1; i < len(sources); i++ {
		if s := &sources[i]; s.valid && (!lead.valid || s.below(lead)) {
			lead = s
		}
	}
	f.lead, f.bound = lead, nil
	for i := range sources {
		s := &sources[i]
		if s == lead || !s.valid {
			continue
		}
		if s.head == lead.head && bytes.Equal(s.key, lead.key) { // the newest source counts, which comes first
			s.next()
		}
		if s.valid && (f.bound == nil || s.below(f.bound)) {
			f.bound = s
		}
	}
}

// next moves to the next key.
func (f *front) next(sources []source) {
	s := f.lead
	if f.bound == nil {
		s.set(s.cursor.Next())
		return
	}
	if s.next(); !s.valid || !s.below(f.bound) {
		f.elect(sources)
	}
}

// next moves the source to its next key, to be compared with others.
func (s *source) next() {
	s.set(s.cursor.Next())
	s.measure()
}

// measure notes the beginning of the key.
func (s *source) measure() {
	s.head = 0
	if len(s.key) >= 8 {
		s.head = binary.BigEndian.Uint64(s.key)
	}
}

// below reports whether the source's key is below that of another one. Where both have eight bytes these nearly always tell.
func (s *source) below(o *source) bool {
	if s.head != o.head && len(s.key) >= 8 && len(o.key) >= 8 {
		return s.head < o.head
	}
	return bytes.Compare(s.key, o.key) < 0
}
