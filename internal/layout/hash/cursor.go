package hash

import (
	"fmt"

	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/page"
	"github.com/pandodb/pando/internal/record"
)

// place is where a cursor stands.
type place uint8

const (
	nowhere place = iota
	onRecord
	beforeFirst
	afterLast
)

// cursor implements layout.Cursor, in the order of windows.
type cursor struct {
	r      *root
	memory *cursorMemory // nil: nothing was read yet
	q      uint64        // the index page at hand
	window int           // in it
	part   int           // of it: the number of the page
	page   page.Page
	at     int
	place  place
	closed bool
	key    []byte
	err    error
}

// cursorMemory is what a cursor needs to read. Cursors that come and go hand it on.
type cursorMemory struct {
	windows
	own []byte // the page at hand
}

// NewCursor implements layout.Root.
func (r *root) NewCursor() layout.Cursor { return &cursor{r: r} }

// Recycle implements layout.Root.
func (r *root) Recycle(old layout.Cursor) layout.Cursor {
	c, ok := old.(*cursor)
	if !ok || !c.closed {
		return r.NewCursor()
	}
	*c = cursor{r: r, key: c.key[:0]}
	return c
}

// ReadOnce implements layout.Cursor. Records do not come into the cache in any case.
func (c *cursor) ReadOnce() {}

// First implements layout.Cursor.
func (c *cursor) First() bool { return c.start() && c.forward(0, 0) }

// Last implements layout.Cursor.
func (c *cursor) Last() bool { return c.start() && c.backward(c.pages()-1, -1) }

// SeekGE implements layout.Cursor.
func (c *cursor) SeekGE([]byte) bool { return c.noOrder() }

// SeekLT implements layout.Cursor.
func (c *cursor) SeekLT([]byte) bool { return c.noOrder() }

func (c *cursor) noOrder() bool {
	return c.fail(fmt.Errorf("seek in a hash table: %w", layout.ErrNoOrder))
}

func (c *cursor) fail(err error) bool {
	if c.err == nil {
		c.err = err
	}
	c.place = nowhere
	return false
}

// pages is how many index pages there are.
func (c *cursor) pages() int64 {
	if len(c.r.groups) == 0 {
		return 0
	}
	return 1 << c.r.depth
}

// start makes the cursor ready to move. It is false where it cannot.
func (c *cursor) start() bool {
	if c.closed || c.err != nil {
		return false
	}
	if c.memory == nil {
		m, ok := c.r.hash.cursors.Get().(*cursorMemory)
		if !ok {
			m = new(cursorMemory)
		}
		m.windows.r = c.r
		c.memory = m
	}
	return true
}

// forward goes to the first record from a window of page q on.
func (c *cursor) forward(q int64, window int) bool {
	for ; q < c.pages(); q, window = q+1, 0 {
		if !c.open(q) {
			return false
		}
		for ; window < len(c.memory.ends); window++ {
			if !c.enter(window) || !c.show(0) {
				return false
			}
			if c.page.Len() > 0 {
				c.at, c.place = 0, onRecord
				return true
			}
		}
	}
	c.place = afterLast
	return false
}

// backward goes to the last record of a window of page q, or of those before it; -1 is the last window of the page.
func (c *cursor) backward(q int64, window int) bool {
	for ; q >= 0; q, window = q-1, -1 {
		if !c.open(q) {
			return false
		}
		if window < 0 {
			window = len(c.memory.ends) - 1
		}
		for ; window >= 0; window-- {
			if !c.enter(window) || !c.show(len(c.memory.cuts)-1) {
				return false
			}
			if n := c.page.Len(); n > 0 {
				c.at, c.place = n-1, onRecord
				return true
			}
		}
	}
	c.place = beforeFirst
	return false
}

// open makes q the page at hand, if it is not.
func (c *cursor) open(q int64) bool {
	if c.place == onRecord && c.q == uint64(q) {
		return true
	}
	if err := c.memory.open(uint64(q)); err != nil {
		return c.fail(err)
	}
	c.q = uint64(q)
	return true
}

// enter reads a window.
func (c *cursor) enter(window int) bool {
	if err := c.memory.read(window); err != nil {
		return c.fail(err)
	}
	c.window = window
	return true
}

// show makes a page of the window at hand.
func (c *cursor) show(part int) (ok bool) {
	var err error
	if c.page, c.memory.own, err = c.memory.build(c.memory.own, part); err != nil {
		return c.fail(err)
	}
	c.part = part
	return true
}

// Next implements layout.Cursor.
func (c *cursor) Next() bool {
	switch {
	case c.place == onRecord && c.at+1 < c.page.Len():
		c.at++
		return true
	case c.place == nowhere || c.place == beforeFirst:
		return c.First()
	case c.place == afterLast || !c.start():
		return false
	case c.part+1 < len(c.memory.cuts):
		c.at = 0
		return c.show(c.part + 1)
	}
	return c.forward(int64(c.q), c.window+1)
}

// Prev implements layout.Cursor.
func (c *cursor) Prev() bool {
	switch {
	case c.place == onRecord && c.at > 0:
		c.at--
		return true
	case c.place == nowhere || c.place == afterLast:
		return c.Last()
	case c.place == beforeFirst || !c.start():
		return false
	case c.part > 0:
		ok := c.show(c.part - 1)
		c.at = c.page.Len() - 1
		return ok
	case c.window == 0:
		return c.backward(int64(c.q)-1, -1)
	}
	return c.backward(int64(c.q), c.window-1)
}

// Key implements layout.Cursor.
func (c *cursor) Key() []byte {
	if c.place != onRecord {
		return nil
	}
	c.key = c.page.AppendKey(c.key[:0], c.at)
	return c.key
}

// Record implements layout.Cursor.
func (c *cursor) Record() record.Record {
	if c.place != onRecord {
		return record.Record{}
	}
	return c.page.Record(c.at)
}

// Window implements layout.Cursor.
func (c *cursor) Window() (page.Page, int) { return c.page, c.at }

// MoveTo implements layout.Cursor.
func (c *cursor) MoveTo(i int) { c.at = i }

// Err implements layout.Cursor.
func (c *cursor) Err() error { return c.err }

// Close implements layout.Cursor.
func (c *cursor) Close() error {
	if c.closed {
		return nil
	}
	c.closed, c.place = true, nowhere
	if m := c.memory; m != nil && cap(m.arena) <= keptArena {
		m.windows.r = nil
		c.r.hash.cursors.Put(m)
	}
	c.memory, c.page = nil, page.Page{}
	return nil
}

// keptArena is how much memory a cursor hands on at most.
const keptArena = 1 << 20
