package view

import (
	"bytes"
	"math"

	"github.com/pandodb/pando/internal/page"
	"github.com/pandodb/pando/internal/record"
)

// The walk forward over memtables without range deletes, in front of what has settled. It is what most walks beside writes are. What comes
// next in both is decoded several pairs at a time: the next key of the memtables is looked for among the heads of the settled page, once, and
// what lies before it needs no comparison. Where many of their keys in a row are tombstones, several are looked for at once. All sources
// stand behind what has been decoded, the settled one maybe behind all of its page.

// pairForward shows the pairs that come next in the memtables and the settled source.
func (it *Iterator) pairForward() bool {
	d := &it.settled
	it.at, it.ahead = onPair, true
	for {
		if d.catchUp(); d.failed {
			return it.end(afterLast)
		}
		if it.hole.due() && it.leapPairs() {
			continue
		}
		from := d.at
		if n, settled := it.merge(it.grow()); n > 0 {
			if settled == page.BatchMost && d.at == from+settled {
				it.speedUpFrom(from)
			}
			it.n = 0
			it.holds(n, record.Inline)
			it.noteForward(it.batch.Pairs[0].Key)
			return true
		}
		if it.hole.due() {
			continue
		}
		if it.showAlone() {
			it.n, it.ready = 0, 0
			it.noteForward(it.here().Key)
			return true
		}
		if !d.valid && !it.front.lead.valid {
			return it.endForward()
		}
	}
}

// leapPairs goes on behind the gap, if there is one, in which all lies that comes next.
func (it *Iterator) leapPairs() bool {
	s, d := it.front.lead, &it.settled
	if !s.valid {
		it.hole.look = math.MaxInt
		return false // what has settled is not passed over here
	}
	key := s.key
	if d.valid {
		if d.load(); bytes.Compare(d.key, key) < 0 {
			key = d.key
		}
	}
	if !it.leapForward(key) {
		return false
	}
	it.front.choose(it.sources)
	return true
}

// merge decodes what comes next, at most so many pairs: up to the end of the settled page, or to what is shown alone.
// It returns how many there are, and how many of them have settled.
func (it *Iterator) merge(most int) (n, settled int) {
	f, d := &it.front, &it.settled
	it.batch.Reset()
	for n < most {
		s, same := f.lead, false
		if it.deleted >= manyDeleted && d.valid && s.valid && f.bound == nil {
			added := it.passDeleted(n, most)
			if n, settled = n+added, settled+added; n == most || d.at == d.limit || it.waits(n) {
				return n, settled
			}
		}
		if d.valid {
			to := min(d.limit, d.at+most-n)
			next := to
			if s.valid {
				next, same = d.page.Before(s.key, d.at, to)
			}
			decoded := it.batch.Add(n, d.page, d.at, next)
			d.at, n, settled = d.at+decoded, n+decoded, settled+decoded
			if d.at < next || next == to {
				return n, settled
			}
		}
		if !it.inside(s) {
			return n, settled
		}
		if !d.valid && it.o.Upper == nil && f.bound == nil {
			first := s.key
			taken, passed := s.cursor.TakeInline(it.batch.Pairs[n:most])
			if n += taken; n == 0 && passed > 0 {
				it.hole.pass(first, passed)
			}
			if s.set(s.cursor.Valid()); n == most || !s.valid || it.waits(n) {
				return n, settled
			}
		}
		if value, ok := s.cursor.Inline(); ok {
			p := &it.batch.Pairs[n&(page.BatchMost-1)]
			p.Key, p.Value = s.key, value
			n, it.deleted = n+1, 0
		} else if !s.cursor.Deleted() {
			return n, settled
		} else {
			if it.deleted++; n == 0 {
				it.hole.pass(s.key, 1)
			}
		}
		if same {
			d.at++ // an older record of the key
			if d.at == d.limit {
				f.next(it.sources)
				return n, settled
			}
		}
		if f.next(it.sources); it.waits(n) {
			return n, settled
		}
	}
	return n, settled
}

// waits reports whether the merge, which has decoded n pairs, is to have a look at gaps before it goes on.
func (it *Iterator) waits(n int) bool { return n == 0 && it.hole.due() }

// manyDeleted is after how many tombstones in a row, with less than a batch of settled pairs between two, more are taken to follow.
const manyDeleted = 8

// passDeleted decodes settled pairs among the tombstones that come next, at most so many with the n that there are, and returns how many
// it has decoded. What it does not get past is left to the caller.
func (it *Iterator) passDeleted(n, most int) (added int) {
	s, d := it.front.lead, &it.settled
	var room [page.KeysMost][]byte
	keys := room[:min(2*it.passed+2, page.KeysMost)]
	keys = keys[:s.cursor.Tombstones(keys)]
	if len(keys) == 0 || it.o.Upper != nil && bytes.Compare(keys[len(keys)-1], it.o.Upper) >= 0 {
		return 0
	}
	if added, d.at, it.passed = it.batch.Without(n, most-n, d.page, d.at, d.limit, keys); it.passed > 0 {
		if n+added == 0 {
			it.hole.pass(keys[0], it.passed)
		}
		s.set(s.cursor.Skip(it.passed))
	}
	return added
}

// inside reports whether the memtables have a further key, before the upper bound.
func (it *Iterator) inside(s *source) bool {
	if s.valid && it.o.Upper != nil && bytes.Compare(s.key, it.o.Upper) >= 0 {
		s.valid = false
	}
	return s.valid
}

// showAlone shows what comes next, alone, since its value lies apart, or expires, or it does not fit into a batch. It may
// have to be passed over, too.
func (it *Iterator) showAlone() bool {
	s, d := it.front.lead, &it.settled
	if d.valid && d.at == d.limit {
		return false
	}
	order := 0
	switch in := it.inside(s); {
	case d.valid && in:
		d.load()
		order = bytes.Compare(s.key, d.key)
	case d.valid:
		d.load()
		order = 1
	case in:
		order = -1
	default:
		return false
	}
	if order >= 0 {
		d.at++
	}
	if order > 0 {
		if d.expiry != 0 && it.expired(d.record()) {
			return false
		}
		it.showSettled()
		return true
	}
	key := s.key
	r, _ := s.cursor.Record()
	it.front.next(it.sources)
	if r.Kind == record.Tombstone || it.expired(r) {
		return false
	}
	it.show(key, r)
	return true
}

// speedUpFrom lets the walk go on in the settled page, of which a whole batch has been decoded, without a look at the memtables up to their
// next key.
func (it *Iterator) speedUpFrom(from int) {
	s, d := it.front.lead, &it.settled
	it.begin, it.run, it.floor, it.fast = from, d.limit, math.MaxInt, true
	it.deleted = 0
	if s.valid {
		to, _ := d.page.Search(s.key)
		it.run = min(to, d.limit)
	}
}
