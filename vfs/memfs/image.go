package memfs

import (
	"maps"
	"math"
	"slices"
)

// image is the durable content that a crash leaves of c. It shares the pages that it does not change.
func (d *fate) image(c *content) content {
	if d.policy.Unsynced == None || !c.changed() {
		return content{durable: slices.Clone(c.durable), durableSize: c.durableSize}
	}
	size := d.size(c)
	left := content{durable: slices.Clone(c.durable), durableSize: size}
	left.durable = resizePages(left.durable, c.durableSize, size)
	keeps := d.sectors(c)
	for _, i := range c.dirtyPages() {
		if i >= len(left.durable) {
			break
		}
		if c.differs(i) {
			left.durable[i] = d.mix(c, i, left.durable[i], keeps)
		}
	}
	left.durable = resizePages(left.durable, size+1, size) // bytes that were kept behind the end
	return left
}

// size decides how long the file is. A file that grew by many writes may be caught at any length.
func (d *fate) size(c *content) int64 {
	now, old := int64(len(c.data)), c.durableSize
	if now == old || d.policy.Unsynced == All {
		return now
	}
	if d.policy.Reordered {
		switch d.rng.IntN(3) {
		case 0:
			return old
		case 1:
			return now
		}
		return min(old, now) + d.rng.Int64N(max(old, now)-min(old, now)+1)
	}
	if c.sized <= d.cut {
		return now
	}
	size := old
	for _, e := range c.dirty {
		if e.stamp <= d.cut {
			size = max(size, min(e.end, now))
		}
	}
	return size
}

// sectors returns the decision over the piece of c at an offset.
func (d *fate) sectors(c *content) func(off int64) bool {
	if d.policy.Unsynced == All {
		return func(int64) bool { return true }
	}
	if d.policy.Reordered {
		share := d.content
		if d.apart {
			share = d.fileShare()
		}
		return func(int64) bool { return d.rng.Float64() < share }
	}
	newest := make([]uint64, blocks(int64(len(c.data)))/d.sector) // whole pages, as mix goes through them
	for _, e := range c.dirty {
		for s := e.off / d.sector; s <= (e.end-1)/d.sector && s < int64(len(newest)); s++ {
			newest[s] = e.stamp
		}
	}
	stores := int64(math.MaxInt64)
	if c.stored {
		stores = d.rng.Int64N(int64(len(c.data)) + 1)
	}
	return func(off int64) bool { return newest[off/d.sector] <= d.cut && off < stores }
}

// mix puts page i together from what is on the device, of which base is what is left, and what programs see.
func (d *fate) mix(c *content, i int, base *page, keeps func(off int64) bool) *page {
	var mixed page
	if base != nil {
		mixed = *base
	}
	now := c.seen(i)
	for at := int64(0); at < pageSize; at += d.sector {
		off := int64(i)*pageSize + at
		from, to := now[at:at+d.sector], mixed[at:at+d.sector]
		if sameBytes(from, to) {
			continue
		}
		if keeps(off) {
			copy(to, from)
		} else if d.policy.Stale && off >= c.durableSize {
			for j := range to {
				to[j] = byte(d.rng.Uint32())
			}
		}
	}
	return &mixed
}

// KillImage returns what the next process would find if this one were killed now, as a file system of its own: everything
// that was written or stored, with nothing open or locked. What was not synced is still not synced in it: a power cut after
// the restart may take it yet, so an engine that trusts what it found must sync it.
func (f *FS) KillImage() *FS {
	f.mu.RLock()
	defer f.mu.RUnlock()
	c := survivors{nodes: map[*node]*node{}, dirs: map[*directory]*directory{}}
	g := f.imageOf(c.node(f.root), f.pid+1)
	for _, op := range f.pending {
		effects := make([]effect, len(op.effects))
		for i, e := range op.effects {
			effects[i] = effect{dir: c.directory(e.dir), name: e.name, node: c.node(e.node)}
		}
		g.pending = append(g.pending, &operation{stamp: op.stamp, effects: effects})
	}
	return g
}

// survivors copies both sides of everything: what programs see and what is durable.
type survivors struct {
	nodes map[*node]*node
	dirs  map[*directory]*directory
}

func (c survivors) node(n *node) *node {
	if n == nil {
		return nil
	}
	made := c.nodes[n]
	if made == nil {
		made = &node{}
		c.nodes[n] = made
		if n.dir != nil {
			made.dir = c.directory(n.dir)
		} else {
			made.content = n.content.survive()
		}
	}
	return made
}

func (c survivors) directory(d *directory) *directory {
	made := c.dirs[d]
	if made == nil {
		made = &directory{now: map[string]*node{}, durable: map[string]*node{}}
		c.dirs[d] = made
		for name, n := range d.now {
			made.now[name] = c.node(n)
		}
		for name, n := range d.durable {
			made.durable[name] = c.node(n)
		}
	}
	return made
}

// survive is the content without its mappings.
func (c *content) survive() content {
	left := content{durable: slices.Clone(c.durable), durableSize: c.durableSize}
	if c.changed() || len(c.forgotten) > 0 {
		left.forgotten = maps.Clone(c.forgotten)
		left.data, left.loaded = make([]byte, len(c.data)), true
		copyBytes(left.data, c.data)
		left.dirty, left.sized, left.stored = slices.Clone(c.dirty), c.sized, c.stored
	}
	return left
}
