package tree

import (
	"fmt"
	"sync"

	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/segment"
)

// Tree is the layout. One serves all keyspaces of a database.
type Tree struct {
	ring   ring
	spare  sync.Pool // *cursorMemory
	bodies sync.Pool // *body: of nodes that were read for one question
}

// keptBody is how much memory a body may take that is kept for the next node.
const keptBody = 64 << 10

// reuse takes a body that nobody is going to look at any more.
func (t *Tree) reuse(b *body) {
	if b.memory() <= keptBody {
		t.bodies.Put(b)
	}
}

// New returns the layout.
func New() *Tree { return &Tree{} }

var _ layout.Layout = (*Tree)(nil)

// Load implements layout.Layout. It reads nothing.
func (t *Tree) Load(env *layout.Environment, keyspace uint32, encoded []byte) (layout.Root, error) {
	r := &root{tree: t, env: env, keyspace: keyspace}
	if len(encoded) == 0 {
		return r, nil
	}
	info, err := decodeRoot(encoded)
	if err != nil {
		return nil, fmt.Errorf("load tree of keyspace %d: %w", keyspace, err)
	}
	r.node = &node{ptr: info.ptr, level: info.level}
	r.count.Store(info.count)
	r.expiry, r.apart = info.expiry, info.apart
	return r, nil
}

// Published implements layout.Layout: pages and nodes that only the predecessor of root uses leave the cache.
func (t *Tree) Published(r layout.Root) {
	if tr, ok := r.(*root); ok {
		tr.retire()
	}
}

// Aborted implements layout.Layout. Pages leave the cache by themselves, as nobody asks for them.
func (t *Tree) Aborted(env *layout.Environment, w *segment.Writer) { t.ring.leaveMadeBy(env, w) }

// Stats implements layout.Layout.
func (t *Tree) Stats(r layout.Root) layout.Stats {
	var s layout.Stats
	tr := r.(*root)
	s.Records, s.RecordsExact = tr.Records()
	if tr.node == nil {
		return s
	}
	s.Height = tr.node.level + 1
	describe(tr.node, &s)
	return s
}

// describe adds what is known of n and of what lies below it.
func describe(n *node, s *layout.Stats) {
	s.InnerNodes++
	s.InnerBytes += int64(n.ptr.Length)
	b := n.body.Load()
	if b == nil {
		s.Partial = true
		return
	}
	s.ResidentBytes += b.memory()
	if b.level > 0 {
		for _, child := range b.children {
			describe(child, s)
		}
		return
	}
	s.FilterBytes += int64(b.filterPtr.Length)
	s.Leaves += int64(len(b.slots))
	for i := range b.slots {
		s.LeafBytes += int64(b.slots[i].ptr.Length)
	}
	s.Deltas += int64(len(b.deltas))
	s.DeltaBytes += lengths(b.deltas)
}

func lengths(deltas []delta) int64 {
	n := int64(0)
	for i := range deltas {
		n += int64(deltas[i].Length)
	}
	return n
}
