package cache

import (
	"slices"

	"github.com/pandodb/pando/internal/offheap"
)

// state is what becomes of a frame.
type state uint8

const (
	free    state = iota // in its class's list, or waiting for its chunk to drain
	filling              // somebody writes a page into it
	live                 // holds a page
	leaving              // evicted: readers may still be there
	kept                 // evicted, no reader left, but pinned
	spent                // has used up its generations
)

// use is what becomes of a chunk.
type use uint8

const (
	cold     use = iota // no frames, no memory
	warm                // no frames, but memory that has been touched
	cut                 // frames of a class
	draining            // loses its frames
	worn                // has used up its generations: no frames, no memory, ever
)

// chunk is a piece of the cache's memory.
type chunk struct {
	use        use
	class      int // index in Cache.classes, where there are frames
	frames     []state
	idle       int    // frames that are free or spent
	moved      bool   // the huge page that begins here has come from the source at some time
	generation uint32 // with which frames begin when the chunk is cut; 0 before that: a cache that is opened touches no chunk
}

// attempts is how often Insert asks the epoch for frames before it says ErrBusy.
const attempts = 3

// larger is by how many classes a frame may be larger than needed when those that fit are all taken.
const larger = 3

// loanShare: a class that has no frames borrows this part of the frames of a chunk before it gets one.
const loanShare = 3

// dropBatch is how many dropped pages may wait before the epoch hears of them.
const dropBatch = 16

// take returns a free frame of at least size bytes for the caller to fill.
func (c *Cache) take(size int) (frame, error) {
	k := c.classOf(size)
	if k < 0 {
		return 0, ErrTooLarge
	}
	for range attempts {
		f, ok, short, err := c.tryTake(k)
		if err != nil {
			return 0, err
		}
		if short {
			c.epoch.Collect() // runs what gives frames back, which takes our lock
		}
		if ok {
			return f, nil
		}
	}
	c.mu.Lock()
	c.stats.Busy++
	c.mu.Unlock()
	return 0, ErrBusy
}

// tryTake takes a frame of class k, or of a somewhat larger one. short asks the caller to collect.
func (c *Cache) tryTake(k int) (f frame, ok, short bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.allocate(); err != nil {
		return 0, false, false, err
	}
	if f, ok := c.borrow(k); ok {
		return f, true, false, nil
	}
	c.stock(k)
	for i := k; i < min(k+1+larger, len(c.classes)) && !ok; i++ {
		f, ok = c.pop(i)
	}
	cl := &c.classes[k]
	return f, ok, len(cl.free) < cl.spare(), nil
}

// borrow takes a frame of a somewhat larger class for one that has none yet. A chunk costs as much memory, and as much time to be
// touched first, for a few pages as for many: a class gets one when it has had loans for a part of it. c.mu is held.
func (c *Cache) borrow(k int) (frame, bool) {
	cl := &c.classes[k]
	if len(cl.chunks) > 0 || cl.lent >= cl.count/loanShare {
		return 0, false
	}
	for i := k + 1; i < min(k+1+larger, len(c.classes)); i++ {
		if len(c.classes[i].free) <= c.classes[i].spare() {
			continue
		}
		cl.lent++
		return c.pop(i)
	}
	return 0, false
}

// pop takes a frame off the list of class k. c.mu is held.
func (c *Cache) pop(k int) (frame, bool) {
	cl := &c.classes[k]
	if len(cl.free) == 0 {
		return 0, false
	}
	f := cl.free[len(cl.free)-1]
	cl.free = cl.free[:len(cl.free)-1]
	ch := &c.chunks[f.chunk()]
	ch.frames[f.index()] = filling
	ch.idle--
	return f, true
}

// putBack frees a frame that nobody but its filler has seen.
func (c *Cache) putBack(f frame) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.setFree(f)
}

// publish makes a filled frame live. It is false, and the frame free again, when the chunk is being drained.
func (c *Cache) publish(f frame) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	ch := &c.chunks[f.chunk()]
	if ch.use == draining {
		c.setFree(f)
		c.stats.Busy++
		return false
	}
	ch.frames[f.index()] = live
	c.stats.Inserts++
	c.stats.Pages++
	c.stats.PageBytes += int64(c.classes[ch.class].size)
	return true
}

// setFree makes a frame free that nobody can see. c.mu is held.
func (c *Cache) setFree(f frame) {
	ch := &c.chunks[f.chunk()]
	cl := &c.classes[ch.class]
	ch.idle++
	ch.frames[f.index()] = free
	if c.header(f).Generation.Load() >= maxGeneration {
		ch.frames[f.index()] = spent
	} else if ch.use == cut {
		cl.free = append(cl.free, f)
	}
	if ch.use == draining && ch.idle == cl.count {
		c.uncut(f.chunk())
	}
}

// cut gives a chunk without frames to class k. It is false when the budget has none left. c.mu is held.
func (c *Cache) cut(k int) bool {
	n, ok := c.uncutChunk()
	if !ok {
		return false
	}
	ch, cl := &c.chunks[n], &c.classes[k]
	cl.chunks = append(cl.chunks, n)
	ch.use, ch.class, ch.idle = cut, k, cl.count
	ch.frames = slices.Grow(ch.frames[:0], cl.count)[:cl.count]
	clear(ch.frames)
	c.writeHeaders(n, cl)
	for i := range cl.count {
		cl.free = append(cl.free, frame(n<<indexBits|(cl.count-1-i)))
	}
	return true
}

// uncutChunk takes a warm chunk, or else the cold one at the lowest address: what is given back to the system some day then
// lies together at the end, as huge pages need. c.mu is held.
func (c *Cache) uncutChunk() (n int, ok bool) {
	if last := len(c.warm) - 1; last >= 0 {
		n = c.warm[last]
		c.warm = c.warm[:last]
		return n, true
	}
	if c.resident >= c.limit {
		return 0, false
	}
	for ; c.lowest < len(c.chunks); c.lowest++ {
		if c.chunks[c.lowest].use == cold {
			c.resident++
			c.provide(c.lowest)
			return c.lowest, true
		}
	}
	return 0, false
}

// mostMoved bounds how many huge pages the cache takes from its source: each makes another mapping, of which a process may have some
// ten thousand.
const mostMoved = 1 << 10

// provide asks the source for the memory of the huge page that begins with cold chunk n, unless another chunk in it has memory. Where pages
// are few the cache takes single ones: see firstPages. c.mu is held.
func (c *Cache) provide(n int) {
	end := n + offheap.HugePage>>c.shift
	if c.source == nil || n<<c.shift < firstPages || n<<c.shift&(offheap.HugePage-1) != 0 || end > len(c.chunks) {
		return
	}
	for i := range c.chunks[n:end] {
		if c.chunks[n+i].use != cold {
			return
		}
	}
	first := &c.chunks[n]
	if !first.moved && c.moved == mostMoved {
		return
	}
	if c.source(c.slab[n<<c.shift:end<<c.shift]) && !first.moved {
		first.moved = true
		c.moved++
	}
}

// writeHeaders begins the generations of the frames of a fresh chunk. Readers find them once the stride is known.
func (c *Cache) writeHeaders(n int, cl *class) {
	memory := c.slab[n<<c.shift : (n+1)<<c.shift]
	generation := max(c.chunks[n].generation, 1) // no handle is 0
	for i := range cl.count {
		head := headerAt(memory[i*cl.size:])
		head.Generation.Store(generation)
		head.Pins.Store(0)
		head.Referenced.Store(0)
	}
	c.strides[n].Store(uint32(cl.size))
}

// drain begins to take away the frames of a chunk. c.mu is held.
func (c *Cache) drain(n int) {
	ch := &c.chunks[n]
	cl := &c.classes[ch.class]
	ch.use = draining
	c.draining++
	cl.chunks = slices.DeleteFunc(cl.chunks, func(i int) bool { return i == n })
	cl.free = slices.DeleteFunc(cl.free, func(f frame) bool { return f.chunk() == n })
	cl.handFrame = 0
	for i, s := range ch.frames {
		switch s {
		case live:
			c.evict(frame(n<<indexBits | i))
		case leaving:
			cl.out-- // it comes back, but not to the class
		}
	}
	c.retireLeaving()
	if ch.idle == cl.count {
		c.uncut(n)
	}
}

// uncut takes a drained chunk from its class. Readers with old handles may have read its stride, so its memory stays as it is
// until they have left. c.mu is held.
func (c *Cache) uncut(n int) {
	ch := &c.chunks[n]
	for i := range ch.frames {
		generation := c.header(frame(n<<indexBits | i)).Generation.Load()
		ch.generation = max(ch.generation, generation+1)
	}
	c.strides[n].Store(noFrames)
	c.epoch.Retire(func() { c.setUncut(n) })
}

// setUncut makes a chunk that nobody can see available, or gives its memory back when the budget has shrunk.
func (c *Cache) setUncut(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	ch := &c.chunks[n]
	c.draining--
	switch {
	case ch.generation >= maxGeneration:
		c.release(n)
		ch.use = worn
	case c.resident > c.limit:
		c.release(n)
	default:
		ch.use = warm
		c.warm = append(c.warm, n)
	}
}

// release gives the memory of a chunk without frames back to the system. c.mu is held.
func (c *Cache) release(n int) {
	offheap.Release(c.slab[n<<c.shift : (n+1)<<c.shift])
	c.chunks[n].use = cold
	c.resident--
	c.lowest = min(c.lowest, n)
}
