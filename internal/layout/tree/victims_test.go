package tree

import (
	"testing"

	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/layout/layouttest"
	"github.com/pandodb/pando/internal/segment"
)

// lowest returns the nodes of the lowest level, of which it reads none.
func lowest(t *testing.T, w *layouttest.World) []*node {
	t.Helper()
	r := w.Root.(*root)
	nodes := []*node{r.node}
	for nodes[0].level > 0 {
		var below []*node
		for _, n := range nodes {
			b, err := r.load(new(layout.Scratch), n)
			if err != nil {
				t.Fatal(err)
			}
			below = append(below, b.children...)
		}
		nodes = below
	}
	return nodes
}

// giveUp takes a node out of memory, as others do that need the room.
func giveUp(w *layouttest.World, n *node) {
	r := &w.Layout.(*Tree).ring
	r.mu.Lock()
	defer r.mu.Unlock()
	if n.seat > 0 {
		r.remove(w.Env, n)
	}
	n.body.Store(nil)
}

// A segment is emptied without reading the nodes that have nothing in it, once it is known of each of them where its blobs lie: those that
// were made since the tree was opened, and those that were read once for that.
func TestVictimsAreFoundWithoutReadingAllNodes(t *testing.T) {
	w := layouttest.NewWorld(t, config(), 1, 0, 0)
	o := layout.ApplyOptions{LeafBytes: 256, Fanout: 8}
	w.Apply(nil, rows(0, 4000, 1), o)
	inNewSegment := func() *segment.Set {
		id := w.Env.Store.NextID()
		w.Apply(nil, rows(1000, 1003, 1), o)
		return w.Segments(func(s uint32) bool { return s >= id })
	}
	empty := func(when string, victims *segment.Set, least, most int) {
		t.Helper()
		if !w.Root.MayLieIn(victims) {
			t.Errorf("%s: the root says that it does not lie in what was just written", when)
		}
		nodes := lowest(t, w)
		for _, n := range nodes {
			giveUp(w, n)
		}
		o := o
		o.Victims = victims
		w.Apply(nil, nil, o)
		read := 0
		for _, n := range nodes {
			if n.body.Load() != nil {
				read++
			}
		}
		if read < least || read > most || len(nodes) < 20 {
			t.Errorf("%s: %d of %d nodes were read, want %d to %d", when, read, len(nodes), least, most)
		}
		if w.LiesIn(w.Root, victims) {
			t.Errorf("%s: something still lies in segments that were to be emptied", when)
		}
		if w.Root.MayLieIn(victims) {
			t.Errorf("%s: the root does not know that there is nothing left", when)
		}
		w.Audit()
		w.Verify(w.Root, w.Model, w.Now)
	}
	empty("all made here", inNewSegment(), 1, 3)
	w.Root = w.Reload()
	if !w.Root.MayLieIn(segment.SetOf(1 << 20)) {
		t.Error("a root that was only loaded knows where all blobs lie")
	}
	all := len(lowest(t, w))
	empty("just opened", inNewSegment(), all-1, all)
	empty("read once", inNewSegment(), 1, 3)
}
