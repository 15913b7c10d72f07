package cache

import (
	"unsafe"

	"github.com/pandodb/pando/internal/page"
)

// maxLooks bounds how many frames one Insert looks at for victims, each a cache miss.
const maxLooks = 256

// stock sees to it that class k has frames to spare: a new chunk while the budget allows, else evictions. c.mu is held.
func (c *Cache) stock(k int) {
	cl := &c.classes[k]
	want := cl.spare()
	if len(cl.free)+cl.out > want/2 && (len(cl.free) > 0 || cl.out >= want) {
		return
	}
	if c.openMore(k) {
		return
	}
	if len(c.warm) == 0 {
		c.recall(k)
		if len(c.warm) == 0 && c.surplus(k) {
			return
		}
	}
	if c.cut(k) {
		return
	}
	if cl.frames() == 0 {
		c.takeChunk(k, true)
		return
	}
	looks := min(2*cl.frames(), maxLooks)
	for ; looks > 0 && len(cl.free)+cl.out < want; looks-- {
		if f, ok := c.victim(cl); ok {
			c.crowd()
			c.evict(f)
			c.stats.Evictions++
			cl.pressure++
			c.evicted++
		}
	}
	c.retireLeaving()
	c.balance()
}

// surplus reports whether a somewhat larger class has more frames free than a fresh chunk brings, as after a checkpoint has replaced many
// pages by smaller ones. tryTake may use those: memory that nobody has touched yet would be waste. c.mu is held.
func (c *Cache) surplus(k int) bool {
	for i := k + 1; i < min(k+1+larger, len(c.classes)); i++ {
		if cl := &c.classes[i]; len(cl.free) > cl.count+cl.spare() {
			return true
		}
	}
	return false
}

// recall drains a chunk that is mostly free, of another class with free frames in plenty: when a checkpoint has replaced many pages
// the new ones may be of other sizes than the old ones. c.mu is held.
func (c *Cache) recall(k int) {
	if c.draining > c.limit/16 {
		return
	}
	for i := range c.classes {
		cl := &c.classes[i]
		if i == k || len(cl.free) < cl.count+cl.count/2+cl.spare() {
			continue
		}
		best := -1
		for _, n := range cl.chunks {
			if best < 0 || c.chunks[n].idle > c.chunks[best].idle {
				best = n
			}
		}
		if best >= 0 && 4*c.chunks[best].idle >= 3*cl.count && !c.holdsPins(best) {
			c.stats.Moves++
			c.drain(best)
			return
		}
	}
}

// holdsPins reports whether a pin would keep a chunk from being drained. c.mu is held.
func (c *Cache) holdsPins(n int) bool {
	for i, s := range c.chunks[n].frames {
		if s != free && s != spent && s != blank && c.header(frame(n<<indexBits|i)).Pins.Load() != 0 {
			return true
		}
	}
	return false
}

// victim moves the hand of the clock on by one frame, and returns that if it may go. c.mu is held.
func (c *Cache) victim(cl *class) (frame, bool) {
	if cl.handFrame >= cl.count {
		cl.handFrame = 0
		cl.handChunk++
	}
	if cl.handChunk >= len(cl.chunks) {
		cl.handChunk = 0
	}
	n := cl.chunks[cl.handChunk]
	f := frame(n<<indexBits | cl.handFrame)
	cl.handFrame++
	if c.chunks[n].frames[f.index()] != live {
		return 0, false
	}
	head := c.header(f)
	if head.Pins.Load() != 0 {
		return 0, false
	}
	if head.Referenced.Load() != 0 {
		head.Referenced.Store(0)
		return 0, false
	}
	return f, true
}

// evict makes all handles of a live page stale. The frame is free once retireLeaving has been called and readers have left.
// c.mu is held.
func (c *Cache) evict(f frame) {
	ch := &c.chunks[f.chunk()]
	cl := &c.classes[ch.class]
	c.header(f).Generation.Add(1)
	ch.frames[f.index()] = leaving
	if ch.use == cut {
		cl.out++
	}
	c.stats.Pages--
	c.stats.PageBytes -= int64(cl.size)
	c.leaving = append(c.leaving, f)
}

// retireLeaving hands the evicted frames to the epoch. c.mu is held, which the epoch's own locks allow.
func (c *Cache) retireLeaving() {
	if len(c.leaving) == 0 {
		return
	}
	frames := append([]frame(nil), c.leaving...)
	c.leaving = c.leaving[:0]
	c.epoch.Retire(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.reclaim(frames)
	})
}

// reclaim frees evicted frames that no section sees any more; pinned ones are kept for later. c.mu is held.
func (c *Cache) reclaim(frames []frame) {
	if c.closed {
		return
	}
	for _, f := range frames {
		ch := &c.chunks[f.chunk()]
		if ch.use == cut && ch.frames[f.index()] == leaving {
			c.classes[ch.class].out--
		}
		if c.stillPinned(f) {
			ch.frames[f.index()] = kept
			c.kept = append(c.kept, f)
			continue
		}
		c.setFree(f)
	}
}

// stillPinned reports whether an evicted frame must wait for its pins. c.mu is held.
func (c *Cache) stillPinned(f frame) bool {
	head := c.header(f)
	if head.Pins.Load() == 0 {
		return false
	}
	c.keeps.Add(1) // before the look that decides: see Unpin
	return head.Pins.Load() != 0
}

// reclaimKept looks again at the frames that were pinned.
func (c *Cache) reclaimKept() {
	c.mu.Lock()
	defer c.mu.Unlock()
	frames := append([]frame(nil), c.kept...)
	c.kept = c.kept[:0]
	c.reclaim(frames)
}

// balance moves a chunk between classes when one evicts far more of its frames than another, so that all pages have about
// the same chance to stay, whatever their size. c.mu is held.
func (c *Cache) balance() {
	total := 0
	for i := range c.classes {
		total += c.classes[i].frames()
	}
	if c.evicted < max(total/4, 16) {
		return
	}
	c.evicted = 0
	high, low := -1, -1
	for i := range c.classes {
		cl := &c.classes[i]
		if cl.frames() == 0 {
			continue
		}
		if high < 0 || cl.pressed(&c.classes[high], 1) {
			high = i
		}
		if low < 0 || c.classes[low].pressed(cl, 1) {
			low = i
		}
	}
	if high >= 0 && c.classes[high].pressed(&c.classes[low], 2) {
		c.takeChunk(high, false)
	}
	for i := range c.classes {
		c.classes[i].pressure /= 2
	}
}

// pressed reports whether cl evicts more than times as large a part of its frames as other.
func (cl *class) pressed(other *class, times int) bool {
	return cl.pressure*other.frames() > times*other.pressure*cl.frames()
}

// takeChunk drains a chunk of the class that evicts the least, for class k to take. A chunk whose pages are mostly in use gets
// a second chance, unless forced. c.mu is held.
func (c *Cache) takeChunk(k int, forced bool) {
	if c.draining > c.limit/16 {
		return // enough are on their way
	}
	low := -1
	for i := range c.classes {
		if i != k && c.classes[i].frames() > 0 && (low < 0 || c.classes[low].pressed(&c.classes[i], 1)) {
			low = i
		}
	}
	if low < 0 {
		return
	}
	cl := &c.classes[low]
	best, least := 0, 0
	for i := range min(len(cl.chunks), candidates) {
		n := cl.chunks[(cl.next+i)%len(cl.chunks)]
		if used := c.inUse(n); i == 0 || used < least {
			best, least = n, used
		}
	}
	cl.next += candidates
	if !forced && 2*least > cl.count {
		return
	}
	c.stats.Moves++
	c.drain(best)
}

// candidates is how many chunks of a class takeChunk looks at.
const candidates = 4

// inUse tells how much the pages of a chunk are in use, and takes their marks away. A pin outweighs all marks, as it keeps the
// chunk from being drained. c.mu is held.
func (c *Cache) inUse(n int) (used int) {
	for i, s := range c.chunks[n].frames {
		if s != live && s != leaving && s != kept {
			continue
		}
		head := c.header(frame(n<<indexBits | i))
		if head.Pins.Load() != 0 {
			used += framesPerChunk
		}
		if head.Referenced.Load() != 0 {
			head.Referenced.Store(0)
			used++
		}
	}
	return used
}

// Resize sets the budget, at most what New was told. A smaller budget gives memory back as soon as readers have left the pages
// in it; pinned pages delay that for their chunk.
func (c *Cache) Resize(bytes int64) {
	c.mu.Lock()
	c.crowded.Store(false)
	c.limit = int(min(max(bytes, 0)>>c.shift, int64(c.most)))
	excess := c.resident - c.limit
	for ; excess > 0 && len(c.warm) > 0; excess-- {
		c.release(c.warm[len(c.warm)-1])
		c.warm = c.warm[:len(c.warm)-1]
	}
	excess -= c.draining
	for n := len(c.chunks) - 1; n >= 0 && excess > 0; n-- {
		if c.chunks[n].use == cut {
			c.drain(n)
			excess--
		}
	}
	c.mu.Unlock()
	for range attempts {
		c.epoch.Collect() // frames, then the chunks that they free
	}
}

// headerAt is the page header at the beginning of memory.
func headerAt(memory []byte) *page.Header {
	return (*page.Header)(unsafe.Pointer(unsafe.SliceData(memory)))
}
