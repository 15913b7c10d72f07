package tree

import (
	"sync"

	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/segment"
)

// ring is the clock over the evictable nodes: those of the lowest level. A node that has not been used since the hand last
// came by gives up its body, which the garbage collector takes when the last reader has left it.
type ring struct {
	mu    sync.Mutex
	nodes []*node
	hand  int
}

// enter makes a node evictable, and makes room for it where the environment sets a bound.
func (r *ring) enter(env *layout.Environment, n *node, b *body) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n.seat != 0 || n.level != 0 || n.left.Load() {
		return
	}
	r.nodes = append(r.nodes, n)
	n.seat = len(r.nodes)
	n.used.Store(true)
	env.Inner.Add(b.memory())
	if env.InnerBytes <= 0 {
		return
	}
	// Two turns at most: the first may only find used nodes.
	for turns := 2 * len(r.nodes); turns > 0 && env.Inner.Load() > env.InnerBytes && len(r.nodes) > 1; turns-- {
		r.hand %= len(r.nodes)
		victim := r.nodes[r.hand]
		if victim == n || victim.used.Swap(false) {
			r.hand++
			continue
		}
		r.remove(env, victim)
		victim.body.Store(nil)
	}
}

// leave takes a node out that no current root contains. It keeps its body: old roots may still be read.
func (r *ring) leave(env *layout.Environment, n *node) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n.seat > 0 {
		r.remove(env, n)
	}
	n.left.Store(true)
}

// leaveMadeBy takes the nodes out that w has made, in which nobody is or will be.
func (r *ring) leaveMadeBy(env *layout.Environment, w *segment.Writer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := len(r.nodes) - 1; i >= 0; i-- { // the last node, which gets the seat of one that leaves, has been looked at
		if n := r.nodes[i]; n.maker == w {
			r.remove(env, n)
		}
	}
}

// remove no longer counts what n takes, and gives its seat to the last node. The caller holds the mutex.
func (r *ring) remove(env *layout.Environment, n *node) {
	env.Inner.Add(-n.body.Load().memory())
	last := len(r.nodes) - 1
	r.nodes[n.seat-1] = r.nodes[last]
	r.nodes[n.seat-1].seat = n.seat
	r.nodes[last] = nil
	r.nodes = r.nodes[:last]
	n.seat = 0
}
