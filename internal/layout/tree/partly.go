package tree

import (
	"errors"

	"github.com/pandodb/pando/internal/page"
	"github.com/pandodb/pando/internal/segment"
)

// partly is how a cursor reads leaves of which it may need a little: SeekGE reads the part in which its key lies, and moves forward read
// what follows, ever more at a time, until the walk has become long. Then leaves are read as a whole. The cursor's page has the
// entries of some parts then, those below the key left out, with the changes of the deltas up to the last of them.
type partly struct {
	on     bool // the walk is short yet
	next   int  // the part behind those in the cursor's page
	parts  int  // of the leaf; 0: the cursor's page is a whole leaf
	walked int  // parts read since SeekGE
}

const (
	// partlyMost is how many parts are read at a time at most: half a leaf, so that what was read in vain at the end is less.
	partlyMost = 5
	// partlyLong is after how many parts a walk is long: to read a leaf part by part takes longer than as a whole.
	partlyLong = 24
)

// begin says that a walk begins whose length is not known.
func (w *partly) begin() { *w = partly{on: true} }

// short reports whether leaves are read by parts yet.
func (w *partly) short() bool { return w.on && w.walked < partlyLong }

// more is how many parts are read next.
func (w *partly) more() int { return min(max(w.walked, 1), partlyMost) }

// readPartly reads the leaf at s from key on, or from its beginning where key is nil, into the cursor's memory.
func (c *cursor) readPartly(s step, key []byte) bool {
	m := c.memory
	m.resume, m.passed = append(m.resume[:0], key...), false
	if key != nil {
		c.r.env.Store.PrefetchExcerpt(s.b.slots[s.i].ptr, s.b.share(s.i, key))
	}
	raw, deltas, err := c.r.readUnfolded(&m.s, s.b, s.i, &m.excerpt)
	if err != nil {
		return c.fail(err)
	}
	if raw == nil {
		var done bool
		if done, err = c.openPartly(m, deltas, key); done {
			return true
		} else if err != nil {
			return c.fail(c.r.badLeaf(s.b, s.i, err))
		}
		return c.readWhole(s)
	}
	m.own, err = c.r.loadUnfolded(&m.s, s.b, s.i, raw, deltas, m.own)
	return c.hold(m.own, err)
}

// readWhole reads all of the leaf at s, of which parts will not do.
func (c *cursor) readWhole(s step) bool {
	c.part.parts = 0
	m := c.memory
	own, err := c.r.loadLeaf(&m.s, s.b, s.i, m.own)
	return c.hold(own, err)
}

// openPartly makes the first page of a leaf whose table and deltas have been read. It is not done where that takes the whole leaf.
func (c *cursor) openPartly(m *cursorMemory, deltas []segment.Request, key []byte) (done bool, err error) {
	first, end, ok := 0, 0, true
	if key != nil {
		first, end, ok = m.excerpt.Find(key)
	}
	if !ok {
		return false, nil
	}
	n := m.excerpt.Parts()
	end = min(max(first+c.part.more(), end), n)
	raw, ok, err := c.r.env.Store.ReadParts(&m.excerpt, first, end)
	if !ok || err != nil {
		return false, err
	}
	if ok, err := putOver(&m.s, raw, deltas); !ok || err != nil {
		return false, err
	}
	if key != nil && !m.s.Overlay.From(key) {
		return false, nil
	}
	return c.loadPartly(m, first, end, n)
}

// loadPartly makes the cursor's page of the parts from one on, before another, of n.
func (c *cursor) loadPartly(m *cursorMemory, from, end, n int) (done bool, err error) {
	m.own = roomFor(m.own, m.s.Overlay.OrderedSize())
	if err := m.s.Overlay.LoadPart(m.own, end == n); err != nil {
		if errors.Is(err, page.ErrFull) {
			return false, nil
		}
		return false, err
	}
	c.page = page.At(m.own)
	c.part.next, c.part.parts = end, n
	c.part.walked += end - from
	return true, nil
}

// nextPartly makes the page of the parts that follow the cursor's one in the same leaf. It is false where there are none, or there was an
// error.
func (c *cursor) nextPartly() bool {
	s, m := c.path[len(c.path)-1], c.memory
	for c.part.next < c.part.parts {
		if n := c.page.Len(); n > 0 {
			m.resume, m.passed = c.page.AppendKey(m.resume[:0], n-1), true
		}
		from, n := c.part.next, c.part.parts
		end := min(from+c.part.more(), n)
		raw, done, err := c.r.env.Store.ReadParts(&m.excerpt, from, end)
		if done && err == nil {
			if err = m.s.Overlay.Continue(raw); err == nil {
				done, err = c.loadPartly(m, from, end, n)
			}
		}
		if err != nil {
			return c.fail(c.r.badLeaf(s.b, s.i, err))
		}
		if !done {
			return c.resumeWhole(s)
		}
		if c.page.Len() > 0 {
			c.at, c.place = 0, onRecord
			return true
		}
	}
	return false
}

// resumeWhole reads all of the leaf at s and goes on behind what the cursor has been at. It is false where nothing follows.
func (c *cursor) resumeWhole(s step) bool {
	if !c.readWhole(s) {
		return false
	}
	at, exact := c.page.Search(c.memory.resume)
	if exact && c.memory.passed {
		at++
	}
	if at == c.page.Len() {
		return false
	}
	c.at, c.place = at, onRecord
	return true
}

// before makes the cursor's page, which begins with the current record, the whole leaf: what comes before it is asked for.
func (c *cursor) before() bool {
	m := c.memory
	m.resume = c.page.AppendKey(m.resume[:0], 0)
	if !c.readWhole(c.path[len(c.path)-1]) {
		return false
	}
	c.at, _ = c.page.Search(m.resume)
	c.part = partly{}
	return true
}
