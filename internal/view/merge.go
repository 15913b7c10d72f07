package view

import "bytes"

// The merged walk. Going forward, every source stands on its first key at or above the key shown; going backward, on its
// last key at or below it. The newest source wins among equal keys: the sources are in that order, the settled one last.

// findForward shows the lowest key that the sources stand on and that is not hidden.
func (it *Iterator) findForward() bool {
	if it.paired {
		it.front.choose(it.sources)
		return it.pairForward()
	}
	for {
		if it.settled.failed {
			return it.end(afterLast)
		}
		at := it.lowest()
		if at < 0 {
			return it.endForward()
		}
		key := it.keyOf(at)
		if it.o.Upper != nil && bytes.Compare(key, it.o.Upper) >= 0 {
			return it.endForward()
		}
		if it.consider(at, key) {
			it.noteForward(key)
			return true
		}
		it.hole.pass(key, 1)
		if it.hole.due() && it.leapForward(key) || at == len(it.sources) && it.skipForward(key) {
			continue
		}
		it.advance(key)
	}
}

// endForward ends a move forward, which has found nothing.
func (it *Iterator) endForward() bool {
	it.noteForward(nil)
	return it.end(afterLast)
}

// slowDown ends fast steps among merged sources: the settled source stands on the pair, and not on one before it in the batch.
func (it *Iterator) slowDown() {
	it.loadEntry()
	it.fast, it.plain = false, false
}

// findBackward shows the highest key that the sources stand on and that is not hidden.
func (it *Iterator) findBackward() bool {
	for {
		if it.settled.failed {
			return it.end(beforeFirst)
		}
		at := it.highest()
		if at < 0 {
			return it.endBackward()
		}
		key := it.keyOf(at)
		if it.o.Lower != nil && bytes.Compare(key, it.o.Lower) < 0 {
			return it.endBackward()
		}
		if it.consider(at, key) {
			it.noteBackward(key, true)
			return true
		}
		it.hole.passBack(key)
		if it.hole.due() && it.leapBackward(key) || at == len(it.sources) && it.skipBackward(key) {
			continue
		}
		it.retreat(key)
	}
}

// endBackward ends a move backward, which has found nothing.
func (it *Iterator) endBackward() bool {
	it.noteBackward(nil, false)
	return it.end(beforeFirst)
}

// consider shows the pair of source at, unless it is deleted, hidden or expired.
func (it *Iterator) consider(at int, key []byte) bool {
	if at == len(it.sources) {
		if s := &it.settled; s.expiry != 0 && it.expired(s.record()) || it.ranged && hidden(it.sources, at, key, 0) {
			return false
		}
		it.showSettled()
		return true
	}
	c := it.sources[at].cursor
	if c.Deleted() {
		return false
	}
	if value, ok := c.Inline(); ok && !it.ranged {
		return it.showInline(key, value)
	}
	r, seq := c.Record()
	if it.expired(r) || it.ranged && hidden(it.sources, at, key, seq) {
		return false
	}
	it.show(key, r)
	return true
}

// keyOf returns the key that a source stands on; len(sources) is the settled one.
func (it *Iterator) keyOf(at int) []byte {
	if at == len(it.sources) {
		return it.settled.key
	}
	return it.sources[at].key
}

func (it *Iterator) lowest() int {
	best := -1
	for i := range it.sources {
		s := &it.sources[i]
		if s.valid && (best < 0 || bytes.Compare(s.key, it.sources[best].key) < 0) {
			best = i
		}
	}
	if it.settled.valid && (best < 0 || bytes.Compare(it.settled.key, it.sources[best].key) < 0) {
		best = len(it.sources)
	}
	return best
}

func (it *Iterator) highest() int {
	best := -1
	for i := range it.sources {
		s := &it.sources[i]
		if s.valid && (best < 0 || bytes.Compare(s.key, it.sources[best].key) > 0) {
			best = i
		}
	}
	if it.settled.valid && (best < 0 || bytes.Compare(it.settled.key, it.sources[best].key) > 0) {
		best = len(it.sources)
	}
	return best
}

// advance moves every source that stands on a key past it. The settled source goes last: the key may lie in its buffer.
func (it *Iterator) advance(key []byte) {
	for i := range it.sources {
		if s := &it.sources[i]; s.valid && bytes.Equal(s.key, key) {
			s.set(s.cursor.Next())
		}
	}
	if s := &it.settled; s.valid && bytes.Equal(s.key, key) {
		s.next()
	}
}

// retreat is advance for the walk backward.
func (it *Iterator) retreat(key []byte) {
	for i := range it.sources {
		if s := &it.sources[i]; s.valid && bytes.Equal(s.key, key) {
			s.set(s.cursor.Prev())
		}
	}
	if s := &it.settled; s.valid && bytes.Equal(s.key, key) {
		s.prev()
	}
}

// skipForward jumps over the settled pairs that a range delete hides instead of stepping through them.
func (it *Iterator) skipForward(key []byte) bool {
	for i := range it.sources {
		r := it.sources[i].covering(key)
		if r == nil {
			continue
		}
		if r.Hi == nil {
			it.settled.valid = false
		} else {
			it.settled.seekGE(r.Hi)
		}
		return true
	}
	return false
}

func (it *Iterator) skipBackward(key []byte) bool {
	for i := range it.sources {
		r := it.sources[i].covering(key)
		if r == nil {
			continue
		}
		if len(r.Lo) == 0 {
			it.settled.valid = false
		} else {
			it.settled.seekLT(r.Lo)
		}
		return true
	}
	return false
}

// turnForward puts every source at or above the current key. It returns a copy of that, which may lie in the settled source's buffer.
func (it *Iterator) turnForward(key []byte) []byte {
	it.reverse, it.ahead, it.n, it.ready = false, false, 0, 0
	key = bytes.Clone(key)
	for i := range it.sources {
		if s := &it.sources[i]; s.cursor != nil {
			s.set(s.cursor.SeekGE(key))
		}
	}
	it.settled.seekGE(key)
	return key
}

// turnBackward puts every source below the current key.
func (it *Iterator) turnBackward(key []byte) {
	it.reverse, it.ahead, it.n, it.ready = true, false, 0, 0
	key = bytes.Clone(key)
	for i := range it.sources {
		if s := &it.sources[i]; s.cursor != nil {
			s.set(s.cursor.SeekLT(key))
		}
	}
	it.settled.seekLT(key)
}
