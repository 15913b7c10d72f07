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
	blank                // of a chunk that never had frames: has no header yet, and is in no list
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
	opened     int    // frames, from the first on, that are not blank
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
		if len(c.classes[i].free) <= c.classes[i].spare() && !c.openMore(i) {
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
	n, unused, ok := c.uncutChunk()
	if !ok {
		return false
	}
	ch, cl := &c.chunks[n], &c.classes[k]
	cl.chunks = append(cl.chunks, n)
	ch.use, ch.class, ch.idle, ch.opened = cut, k, cl.count, 0
	ch.frames = slices.Grow(ch.frames[:0], cl.count)[:cl.count]
	for i := range ch.frames {
		ch.frames[i] = blank
	}
	if unused {
		c.open(n, openBytes/cl.size+1)
	} else {
		c.open(n, cl.count)
	}
	c.strides[n].Store(uint32(cl.size)) // from now on readers find the frames
	return true
}

// openBytes is about how much of the memory that nobody has used yet gets frames at a time: where few pages are kept most of a chunk is
// never asked for, and then the system need not provide it.
const openBytes = 64 << 10

// openMore opens more frames of the chunk that class k was given last. It is false where all are open. c.mu is held.
func (c *Cache) openMore(k int) bool {
	cl := &c.classes[k]
	if len(cl.chunks) == 0 {
		return false
	}
	n := cl.chunks[len(cl.chunks)-1]
	before := c.chunks[n].opened
	c.open(n, openBytes/cl.size+1)
	return c.chunks[n].opened > before
}

// open begins the generations of so many further frames of a chunk, as far as it has them, and makes them free. Handles tell an earlier
// page at the place of a frame by its generation, so those of all frames begin at once in a chunk that has had some. c.mu is held.
func (c *Cache) open(n, frames int) {
	ch := &c.chunks[n]
	cl := &c.classes[ch.class]
	from, to := ch.opened, min(ch.opened+frames, cl.count)
	generation := max(ch.generation, 1) // no handle is 0
	memory := c.slab[n<<c.shift : (n+1)<<c.shift]
	for i := from; i < to; i++ {
		head := headerAt(memory[i*cl.size:])
		head.Generation.Store(generation)
		head.Pins.Store(0)
		head.Referenced.Store(0)
	}
	for i := to - 1; i >= from; i-- {
		ch.frames[i] = free
		cl.free = append(cl.free, frame(n<<indexBits|i))
	}
	ch.opened = to
}

// uncutChunk takes a warm chunk, or else the cold one at the lowest address: what is given back to the system some day then
// lies together at the end, as huge pages need. It is unused if it has never had frames, and its memory is nothing but zeros.
// c.mu is held.
func (c *Cache) uncutChunk() (n int, unused, ok bool) {
	if last := len(c.warm) - 1; last >= 0 {
		n = c.warm[last]
		c.warm = c.warm[:last]
		return n, false, true
	}
	if c.resident >= c.limit {
		return 0, false, false
	}
	for ; c.lowest < len(c.chunks); c.lowest++ {
		if ch := &c.chunks[c.lowest]; ch.use == cold {
			c.resident++
			c.provide(c.lowest)
			return c.lowest, ch.generation == 0 && !c.chunks[c.lowest&^(offheap.HugePage>>c.shift-1)].moved, true
		}
	}
	return 0, false, false
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
