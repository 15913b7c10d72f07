package tree

import (
	"testing"

	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/layout/layouttest"
)

// Nodes that readers of an old tree bring into memory, after those who write have dropped them, do not count for the present one.
func TestNodesOfOldTreesAreNotKept(t *testing.T) {
	w := layouttest.NewWorld(t, config(), 1, 1<<20, 0)
	o := layout.ApplyOptions{LeafBytes: 300, Fanout: 64}
	w.Apply(nil, rows(0, 5000, 1), o)
	w.Layout.Published(w.Root)
	old, before := w.Reload(), w.Env.Inner.Load()
	if _, err := old.Count(row(1), row(2), w.Now); err != nil { // no more of it is in memory than that takes
		t.Fatal(err)
	}
	w.Root = old
	w.Apply([]layout.Range{{}}, nil, o)
	w.Layout.Published(w.Root)
	if n, err := old.Count(row(1), row(4999), w.Now); n != 4998 || err != nil {
		t.Fatalf("%d records, %v", n, err)
	}
	c := old.NewCursor()
	for ok := c.First(); ok; ok = c.Next() {
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if n := w.Env.Inner.Load(); n != before {
		t.Errorf("%d bytes of inner nodes are counted, %d were before there was an empty tree", n, before)
	}
}
