package memfs

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// Unsynced says what a crash does with changes that were not synced.
type Unsynced uint8

const (
	None   Unsynced = iota // all lost
	All                    // all kept, and durable
	Random                 // some, drawn from Policy.Seed
)

// Policy says what a power cut leaves. The zero value loses everything that was not synced.
type Policy struct {
	Unsynced Unsynced
	Seed     uint64 // of Random; the same seed and history give the same image

	// Torn is the number of bytes that a device writes whole, 512 or 4096; 0 means 4096. A write of more, or across its
	// boundaries, may arrive in part.
	Torn int
	// Reordered keeps or loses each unsynced piece and each directory operation on its own, with half of the seeds more of one file than
	// of another, as a kernel does that writes back file by file. Otherwise a prefix of
	// history is kept: changes up to a random one. (A piece that was overwritten after that is lost, not taken back to
	// its version of then. WriteBack makes such versions.) What was stored through a mapping has no order; there, pieces
	// are kept up to a random offset.
	Reordered bool
	// Stale fills lost pieces behind a file's former end with random bytes, as a file system does that reuses blocks
	// without clearing them. Otherwise they read as zero.
	Stale bool
}

// CrashImage returns what the device would hold if power failed now, as a file system of its own in which everything is
// durable and nothing is open or locked. It does not disturb f, and is atomic to all calls on it.
func (f *FS) CrashImage(policy Policy) *FS {
	f.mu.RLock()
	defer f.mu.RUnlock()
	fate := f.newFate(policy)
	fate.cutNames(f.pending)
	c := copier{fate: fate, files: map[*node]*node{}, taken: map[*node]bool{}}
	return f.imageOf(c.directory(f.root), f.pid+1)
}

// WriteBack makes some unsynced changes durable now, as a kernel does that writes back when it likes. It gives later crash
// images older versions of what is changed again. Directory operations become durable in order, whatever the policy.
func (f *FS) WriteBack(policy Policy) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fate := f.newFate(policy)
	seen := map[*node]bool{}
	f.walk(f.root, func(n *node) {
		if !seen[n] {
			seen[n] = true
			next := fate.image(&n.content)
			n.durable, n.durableSize = next.durable, next.durableSize
		}
	})
	upTo := fate.namesUpTo(f.pending)
	f.settle(func(op *operation, _ effect) bool { return op.stamp <= upTo })
}

// walk visits the files below a directory in a fixed order.
func (f *FS) walk(n *node, visit func(*node)) {
	if n.dir == nil {
		if n.changed() {
			visit(n)
		}
		return
	}
	for _, name := range slices.Sorted(maps.Keys(n.dir.now)) {
		f.walk(n.dir.now[name], visit)
	}
}

// imageOf finishes a file system around a copied tree.
func (f *FS) imageOf(root *node, pid int) *FS {
	g := &FS{root: root, stamp: f.stamp, locks: map[string]*lockState{}, capacity: f.capacity, tells: f.tells, pid: pid}
	counted := map[*node]bool{}
	var count func(d *directory)
	count = func(d *directory) {
		for _, n := range d.now {
			n.links++
			if n.dir != nil {
				count(n.dir)
			} else if !counted[n] {
				counted[n] = true
				g.used += blocks(n.size())
			}
		}
	}
	count(root.dir)
	return g
}

// copier copies what a crash leaves.
type copier struct {
	fate  *fate
	files map[*node]*node
	taken map[*node]bool
}

// directory copies n and what is below it. A mixture of directory moves can leave a directory in two places, or inside of
// itself; a repair of the file system would leave one of them, and so does this.
func (c *copier) directory(n *node) *node {
	c.taken[n] = true
	made := newDirectory()
	entries := c.fate.entries[n.dir]
	if entries == nil {
		entries = n.dir.durable
	}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		below := entries[name]
		if below.dir == nil {
			made.dir.now[name] = c.file(below)
		} else if !c.taken[below] {
			made.dir.now[name] = c.directory(below)
		}
	}
	maps.Copy(made.dir.durable, made.dir.now)
	return made
}

// file copies n once, whatever the number of its names.
func (c *copier) file(n *node) *node {
	made := c.files[n]
	if made == nil {
		made = &node{content: c.fate.image(&n.content)}
		c.files[n] = made
	}
	return made
}

// A fate decides what one crash keeps.
type fate struct {
	policy  Policy
	rng     *rand.Rand
	sector  int64
	cut     uint64  // in order: what is newer is lost
	content float64 // reordered: the share of pieces kept
	apart   bool    // reordered: each file has a share of its own, as when a kernel writes back file by file
	names   float64 // reordered: the share of directory operations kept
	entries map[*directory]map[string]*node
}

// The shares of what is kept: crashes that lose nearly all or nearly nothing find other mistakes than even ones.
var shares = [...]float64{0.05, 0.3, 0.5, 0.7, 0.95}

// fileShare draws the share of one file among others.
func (d *fate) fileShare() float64 {
	all := [...]float64{0, 0, 0.1, 0.5, 0.9, 1, 1}
	return all[d.rng.IntN(len(all))]
}

func (f *FS) newFate(policy Policy) *fate {
	d := &fate{policy: policy, sector: int64(policy.Torn), entries: map[*directory]map[string]*node{}}
	if policy.Torn != 512 {
		d.sector = pageSize
	}
	if policy.Unsynced != Random {
		return d
	}
	d.rng = rand.New(rand.NewPCG(policy.Seed, 0x70616e646f))
	d.content = shares[d.rng.IntN(len(shares))]
	d.names = shares[d.rng.IntN(len(shares))]
	d.apart = policy.Reordered && d.rng.IntN(2) == 0
	oldest := f.oldest()
	d.cut = oldest - 1 + d.rng.Uint64N(f.stamp-oldest+2)
	return d
}

// oldest is the stamp of the first change that is not durable, or one that is still to come.
func (f *FS) oldest() uint64 {
	oldest := f.stamp + 1
	if len(f.pending) > 0 {
		oldest = f.pending[0].stamp
	}
	f.walk(f.root, func(n *node) {
		if len(n.dirty) > 0 {
			oldest = min(oldest, n.dirty[0].stamp)
		}
		if n.size() != n.durableSize {
			oldest = min(oldest, n.sized)
		}
	})
	return oldest
}

// cutNames works out the entries of every directory that has pending operations.
func (d *fate) cutNames(pending []*operation) {
	for _, op := range pending {
		if !d.keepsOperation(op) {
			continue
		}
		for _, e := range op.effects {
			if d.entries[e.dir] == nil {
				d.entries[e.dir] = maps.Clone(e.dir.durable)
			}
			put(d.entries[e.dir], e)
		}
	}
}

func (d *fate) keepsOperation(op *operation) bool {
	switch {
	case d.policy.Unsynced != Random:
		return d.policy.Unsynced == All
	case d.policy.Reordered:
		return d.rng.Float64() < d.names
	}
	return op.stamp <= d.cut
}

// namesUpTo is the stamp up to which a write-back takes directory operations.
func (d *fate) namesUpTo(pending []*operation) uint64 {
	switch {
	case len(pending) == 0 || d.policy.Unsynced == None:
		return 0
	case d.policy.Unsynced == All:
		return pending[len(pending)-1].stamp
	case d.policy.Reordered:
		return pending[d.rng.IntN(len(pending))].stamp
	}
	return d.cut
}
