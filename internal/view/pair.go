package view

import "bytes"

// The walk forward over one memtable without range deletes, in front of what has settled. It is what most walks beside writes are, and two
// sources need one comparison a step: the one that showed its pair moves on, and the other one stands at what comes next in it.

// pairForward shows the lower one of the pairs that the two sources stand on, or the next one that can be shown.
func (it *Iterator) pairForward() bool {
	s, d := &it.sources[0], &it.settled
	for {
		order := 0
		switch {
		case s.valid && d.valid:
			order = bytes.Compare(s.key, d.key)
		case s.valid:
			order = -1
		case d.valid:
			order = 1
		default:
			return it.end(afterLast)
		}
		if order > 0 {
			if d.expiry == 0 || !it.expired(d.record()) {
				it.leads, it.alone, it.lead = true, false, 1
				it.showSettled()
				it.pairSpeedUp()
				return true
			}
			d.next()
			continue
		}
		if it.o.Upper != nil && bytes.Compare(s.key, it.o.Upper) >= 0 {
			return it.end(afterLast)
		}
		it.streak = 0
		if order == 0 {
			d.next() // an older record of the key
		}
		if value, ok := s.cursor.Inline(); ok {
			it.leads, it.alone, it.lead = true, !d.valid && it.o.Upper == nil, 0
			return it.showInline(s.key, value)
		}
		if !s.cursor.Deleted() {
			if r, _ := s.cursor.Record(); !it.expired(r) {
				it.leads, it.alone, it.lead = true, !d.valid && it.o.Upper == nil, 0
				it.show(s.key, r)
				return true
			}
		}
		s.set(s.cursor.Next())
	}
}

// pairNext moves the source on that the pair shown is of, and shows the next pair.
func (it *Iterator) pairNext() bool {
	if it.lead != 0 {
		it.settled.next()
		return it.pairForward()
	}
	s := &it.sources[0]
	if it.alone && it.decodeTable(s) {
		return true
	}
	s.set(s.cursor.Next())
	return it.pairForward()
}

// pairSpeedUp is speedUp for the two.
func (it *Iterator) pairSpeedUp() {
	it.bound = nil
	if it.sources[0].valid {
		it.bound = it.sources[0].key
	}
	it.speedUp()
}
