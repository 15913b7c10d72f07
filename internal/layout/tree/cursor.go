package tree

import (
	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/page"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/segment"
)

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

// place is where a cursor stands.
type place uint8

const (
	nowhere place = iota
	onRecord
	beforeFirst
	afterLast
)

// step is one level of the way from the root to the leaf under a cursor.
type step struct {
	b *body
	i int
}

// cursor implements layout.Cursor. It remembers the way down, so that moving to the neighbouring leaf asks the parent only.
type cursor struct {
	r      *root
	path   []step  // from the root; empty: no way yet
	short  [4]step // path, as long as there are few levels
	page   page.Page
	at     int
	place  place
	closed bool
	passed int    // leaves since the last move that did not lead to a neighbour
	pinned uint64 // handle of page when it lies in the cache
	key    []byte
	err    error
	part   partly
	memory *cursorMemory // nil: nothing was read from the disk yet
	ahead  prefetcher
}

// cursorMemory is what a cursor needs to read from the disk. Cursors that come and go hand it on.
type cursorMemory struct {
	s     layout.Scratch
	own   []byte          // a page that is not in the cache
	holds segment.Pointer // the leaf that own is the page of, if that is all there is of it; zero: it is not known
	ahead [2]layout.Scratch
	rooms [2]room // of the prefetcher

	excerpt segment.Excerpt // the leaf of which own has some parts
	resume  []byte          // key from which on, or with passed behind which, the walk over that leaf goes on
	passed  bool
}

// reading returns the cursor's memory for reads from the disk.
func (c *cursor) reading() *cursorMemory {
	if c.memory == nil {
		m, ok := c.r.tree.spare.Get().(*cursorMemory)
		if !ok {
			m = new(cursorMemory)
		}
		c.memory, c.ahead.memory = m, m
	}
	return c.memory
}

// First implements layout.Cursor.
func (c *cursor) First() bool { return c.end(afterLast, false) }

// Last implements layout.Cursor.
func (c *cursor) Last() bool { return c.end(beforeFirst, true) }

// end goes to one end of the tree; over is where the cursor stands when there is no record.
func (c *cursor) end(over place, last bool) bool {
	if !c.start() {
		return false
	}
	if !c.down(c.r.node, func(b *body) int {
		if last {
			return b.len() - 1
		}
		return 0
	}) {
		return false
	}
	return c.settle(over, last)
}

// settle enters the leaf under the path and stands on its first or last record; leaves without records are passed over.
func (c *cursor) settle(over place, last bool) bool {
	for {
		if !c.enter(nil) {
			return false
		}
		if n := c.page.Len(); n > 0 {
			c.at, c.place = 0, onRecord
			if last {
				c.at = n - 1
			}
			c.askNext(last)
			return true
		}
		if c.nextPartly() {
			return true
		}
		if c.err != nil {
			return false
		}
		if !c.sideways(over, last) {
			return false
		}
	}
}

// askAfter is after how many leaves in a row a walk is taken to go on: a page that is asked for in vain takes a tenth of the time of
// going over it. Until then it is asked for its beginning.
const askAfter = 2

// askNext asks the processor for the page of the next leaf, or with back of the previous one, if it is one of the same node. Where the one
// at hand is in the cache, that one most likely is; where it is not, and the walk is long, it is asked for the leaf as it lies on disk.
func (c *cursor) askNext(back bool) {
	s, i := &c.path[len(c.path)-1], 1
	if back {
		i = -1
	}
	if i += s.i; uint(i) >= uint(s.b.len()) {
		return
	}
	switch {
	case c.pinned != 0:
		askPage(c.r.env, s.b.handles[i].Load(), c.passed >= askAfter)
	case c.passed >= askAfter && !c.part.short():
		c.r.prefetchLeaf(s.b, i)
	}
}

// start prepares a move that does not depend on where the cursor stands.
func (c *cursor) start() bool {
	c.err = nil
	if c.path == nil {
		c.path = c.short[:0]
	}
	c.path = c.path[:0]
	c.place, c.passed = nowhere, 0
	c.part = partly{}
	c.ahead.inOrder = 0
	return !c.closed && c.r.node != nil
}

// fail ends a move with an error.
func (c *cursor) fail(err error) bool {
	c.err, c.place = err, nowhere
	c.path = c.path[:0]
	c.release()
	return false
}

// load returns the body of a node.
func (c *cursor) load(n *node) (*body, error) {
	if b := n.resident(); b != nil {
		return b, nil
	}
	return c.r.load(&c.reading().s, n)
}

// down goes from n to a leaf, choosing a child in each node.
func (c *cursor) down(n *node, choose func(b *body) int) bool {
	for {
		b, err := c.load(n)
		if err == nil {
			lo, hi := c.bounds()
			err = c.r.within(n, b, lo, hi)
		}
		if err != nil {
			return c.fail(err)
		}
		i := choose(b)
		c.path = append(c.path, step{b, i})
		if b.level == 0 {
			return true
		}
		n = b.children[i]
	}
}

// bounds returns between which keys those of the node must lie to which the path leads.
func (c *cursor) bounds() (lo, hi []byte) {
	for i := range c.path {
		lo, hi = c.path[i].b.bounds(c.path[i].i, lo, hi)
	}
	return lo, hi
}

// sideways moves the path to the next leaf, or with back to the previous one.
func (c *cursor) sideways(over place, back bool) bool {
	c.passed++
	depth := len(c.path) - 1
	for ; depth >= 0; depth-- {
		s := &c.path[depth]
		if back && s.i > 0 {
			s.i--
			break
		}
		if !back && s.i+1 < s.b.len() {
			s.i++
			break
		}
	}
	if depth < 0 {
		c.path, c.place = c.path[:0], over
		c.release()
		return false
	}
	s := c.path[depth]
	c.path = c.path[:depth+1]
	if s.b.level == 0 {
		return true
	}
	return c.down(s.b.children[s.i], func(b *body) int {
		if back {
			return b.len() - 1
		}
		return 0
	})
}

// enter makes the leaf under the path the cursor's page, or what a short walk from key on reads of it first.
func (c *cursor) enter(key []byte) bool {
	c.release()
	s := c.path[len(c.path)-1]
	if c.pin(s.b.handles[s.i].Load()) {
		if c.ahead.active() {
			c.ahead.reached(c.r, s)
		}
		return true
	}
	if c.ahead.active() {
		if memory, ok := c.ahead.take(s); memory != nil {
			c.page = page.At(memory)
			c.ahead.reached(c.r, s)
			return true
		} else if ok && c.pin(s.b.handles[s.i].Load()) {
			c.ahead.reached(c.r, s)
			return true
		}
	}
	if !c.read(s, key) {
		return false
	}
	c.ahead.missed(c.r, s)
	return true
}

// ReadOnce implements layout.Cursor.
func (c *cursor) ReadOnce() { c.ahead.once = true }

// read reads the leaf at s, into the cache if it is worth that and there is room, else into the cursor's own memory: there, what a short
// walk from key on reads of it.
func (c *cursor) read(s step, key []byte) bool {
	m := c.reading()
	if c.ahead.once {
		return c.readOnce(m, s)
	}
	m.holds = segment.Pointer{}
	read := c.r.readPage
	if c.part.short() {
		if !c.r.worthKeeping(s.b, s.i) {
			return c.readPartly(s, key)
		}
		read = c.r.keepPage
	}
	own, cached, err := read(&m.s, s.b, s.i, m.own)
	if cached {
		if c.pin(s.b.handles[s.i].Load()) {
			return true
		}
		own, err = c.r.loadLeaf(&m.s, s.b, s.i, own) // it has been evicted already
	}
	return c.hold(own, err)
}

// readOnce is read into the cursor's own memory. Somebody who walks over a little of a leaf, and then over what follows it with
// another cursor, finds the leaf there.
func (c *cursor) readOnce(m *cursorMemory, s step) bool {
	leaf, whole := s.b.slots[s.i].ptr, len(s.b.deltasOf(s.i)) == 0
	if whole && m.holds == leaf {
		return c.hold(m.own, nil)
	}
	m.holds = segment.Pointer{}
	own, err := c.r.loadLeaf(&m.s, s.b, s.i, m.own)
	if whole && err == nil {
		m.holds = leaf
	}
	return c.hold(own, err)
}

// pin makes the cached page of a handle the cursor's page.
func (c *cursor) pin(h uint64) bool {
	p, _, ok := pinPage(c.r.env, h)
	if ok {
		c.page, c.pinned = p, h
	}
	return ok
}

// hold makes the page in the cursor's own memory its page, unless there was an error.
func (c *cursor) hold(own []byte, err error) bool {
	c.memory.own = own
	if err != nil {
		return c.fail(err)
	}
	c.page = page.At(own)
	return true
}

// release gives up the cursor's page.
func (c *cursor) release() {
	if c.pinned != 0 {
		unpinPage(c.r.env, c.pinned)
		c.pinned = 0
	}
	c.page, c.part.parts = page.Page{}, 0
}

// Next implements layout.Cursor.
func (c *cursor) Next() bool {
	switch c.place {
	case onRecord:
		if c.at+1 < c.page.Len() {
			c.at++
			return true
		}
		return c.onward()
	case afterLast:
		return false
	}
	if c.err != nil {
		return false
	}
	return c.First()
}

// Prev implements layout.Cursor.
func (c *cursor) Prev() bool {
	switch c.place {
	case onRecord:
		if c.at == 0 && c.part.parts > 0 && !c.before() {
			return false
		}
		if c.at > 0 {
			c.at--
			return true
		}
		c.part = partly{}
		return c.sideways(beforeFirst, true) && c.settle(beforeFirst, true)
	case beforeFirst:
		return false
	}
	if c.err != nil {
		return false
	}
	return c.Last()
}

// SeekGE implements layout.Cursor.
func (c *cursor) SeekGE(key []byte) bool {
	if !c.seek(key) {
		return false
	}
	c.part.begin()
	if !c.enter(key) {
		return false
	}
	c.at = 0
	if c.part.parts == 0 {
		c.at, _ = c.page.Search(key)
	}
	if c.at < c.page.Len() {
		c.askNext(false)
		c.place = onRecord
		return true
	}
	return c.onward()
}

// onward moves to the first record behind the cursor's page.
func (c *cursor) onward() bool {
	if c.nextPartly() {
		return true
	}
	return c.err == nil && c.sideways(afterLast, false) && c.settle(afterLast, false)
}

// SeekLT implements layout.Cursor.
func (c *cursor) SeekLT(key []byte) bool {
	if !c.seek(key) || !c.enter(nil) {
		return false
	}
	c.at, _ = c.page.Search(key)
	if c.at > 0 {
		c.at, c.place = c.at-1, onRecord
		return true
	}
	return c.sideways(beforeFirst, true) && c.settle(beforeFirst, true)
}

// seek makes the path to the leaf in whose range key lies.
func (c *cursor) seek(key []byte) bool {
	if !c.start() {
		return false
	}
	n := c.r.node
	for {
		b, err := c.load(n)
		if err != nil {
			return c.fail(err)
		}
		i := b.find(key)
		c.path = append(c.path, step{b, i})
		if b.level == 0 {
			return true
		}
		n = b.children[i]
	}
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
func (c *cursor) MoveTo(i int) {
	if c.place == onRecord && i >= 0 && i < c.page.Len() {
		c.at = i
	}
}

// Err implements layout.Cursor.
func (c *cursor) Err() error { return c.err }

// Close implements layout.Cursor.
func (c *cursor) Close() error {
	c.closed, c.place = true, nowhere
	c.path = nil
	c.release()
	c.ahead.close()
	if m := c.memory; m != nil {
		c.memory = nil
		c.r.tree.spare.Put(m)
	}
	c.r, c.short, c.ahead = nil, [4]step{}, prefetcher{} // one that waits to be recycled keeps no tree in memory
	return nil
}
