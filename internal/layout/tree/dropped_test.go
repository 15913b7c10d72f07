package tree

import (
	"runtime"
	"testing"
	"weak"

	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/layout/layouttest"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/segment"
)

// Nodes that were dropped are counted no more, also where they, and those above them, were not in memory, and somebody who reads the tree of
// before brings them there afterwards: nobody would take them out.
func TestDroppedNodesThatAreReadLaterAreNotCounted(t *testing.T) {
	for _, c := range []struct {
		name string
		drop func(t *testing.T, w *layouttest.World)
	}{
		{"a range", func(t *testing.T, w *layouttest.World) {
			w.Apply([]layout.Range{{}}, nil, layout.ApplyOptions{})
			w.Layout.Published(w.Root)
		}},
		{"the keyspace", func(t *testing.T, w *layouttest.World) {
			writer := w.Env.Store.NewWriter(segment.Nodes, layouttest.Keyspace)
			if err := w.Layout.Free(t.Context(), w.Root, writer); err != nil {
				t.Fatal(err)
			}
			writer.Commit()
		}},
	} {
		w := layouttest.NewWorld(t, config(), 1, 1<<20, 0)
		w.Apply(nil, rows(0, 3000, 1), layout.ApplyOptions{LeafBytes: 300, Fanout: 4})
		w.Layout.Published(w.Root)
		before := w.Env.Inner.Load()
		w.Root = w.Reload() // nothing of it is in memory
		old, model := w.Root, w.Model.Clone()
		c.drop(t, w)
		counted := w.Env.Inner.Load()
		var s layout.Scratch
		for range 2 { // a node is kept from the second question on
			for key := range model {
				if _, ok, err := old.GetRead(&s, record.Hash(layouttest.Keyspace, []byte(key)), []byte(key)); !ok || err != nil {
					t.Fatalf("%s: %v, %v", c.name, ok, err)
				}
			}
		}
		if now := w.Env.Inner.Load(); now != counted {
			t.Errorf("%s: %d bytes of nodes are counted behind reads of what was dropped, %d before (%d in the first tree)", c.name, now, counted, before)
		}
	}
}

// To drop what is not in memory takes little memory, however much that is: none for its leaves, whose pages nobody can have in the cache.
func TestLeavesThatAreNotInMemoryAreDroppedWithoutANote(t *testing.T) {
	w := layouttest.NewWorld(t, config(), 1, 1<<20, 0)
	o := layout.ApplyOptions{LeafBytes: 300, Fanout: 8}
	w.Apply(nil, rows(0, 5000, 1), o)
	w.Layout.Published(w.Root)
	leaves := w.Layout.Stats(w.Root).Leaves
	w.Root = w.Reload()
	w.Apply([]layout.Range{{}}, nil, o)
	if noted := len(w.Root.(*root).replaced.Load().leaves); leaves < 100 || noted > 0 {
		t.Errorf("%d of %d leaves are noted", noted, leaves)
	}
	w.Audit()
}

// What a checkpoint replaces is remembered until it is published, but takes the memory of no nodes that have been given up meanwhile: who
// changes a little everywhere, or drops a large tree, would have all of its nodes in memory, whatever they may take.
func TestReplacedLeavesKeepNoNodesInMemory(t *testing.T) {
	o := layout.ApplyOptions{LeafBytes: 300, Fanout: 8, MaxDeltas: -1}
	for _, c := range []struct {
		name    string
		ranges  []layout.Range
		changes []layout.Change
	}{
		{"changes all over", nil, rows(0, 5000, 7)},
		{"a range", []layout.Range{{Lo: row(10)}}, nil},
	} {
		w := layouttest.NewWorld(t, config(), 1, 0, 0)
		w.Apply(nil, rows(0, 5000, 1), o)
		w.Layout.Published(w.Root)
		var bodies []weak.Pointer[body]
		for _, n := range lowest(t, w) {
			bodies = append(bodies, weak.Make(n.body.Load()))
		}
		w.Apply(c.ranges, c.changes, o)
		w.Env.InnerBytes = 1 // so whoever comes in next takes the place of all others
		if _, _, err := w.Reload().GetRead(new(layout.Scratch), record.Hash(layouttest.Keyspace, row(0)), row(0)); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Reload().Count(row(0), row(1), 0); err != nil {
			t.Fatal(err)
		}
		runtime.GC()
		kept := 0
		for _, b := range bodies {
			if b.Value() != nil {
				kept++
			}
		}
		if kept > 0 {
			t.Errorf("%s: %d of %d nodes that were given up are still in memory", c.name, kept, len(bodies))
		}
		runtime.KeepAlive(w.Root)
	}
}

// A reader of an old tree, of a snapshot that is held for long, say, does not bring all of its nodes into memory for good: they are counted no
// more, so that nothing would bound them.
func TestReadersOfAnOldTreeKeepNoNodesInMemory(t *testing.T) {
	w := layouttest.NewWorld(t, config(), 1, 1<<20, 0)
	w.Env.InnerBytes = 20 << 10
	o := layout.ApplyOptions{LeafBytes: 300, Fanout: 8}
	w.Apply(nil, rows(0, 5000, 1), o)
	w.Layout.Published(w.Root)
	old, model, nodes := w.Root, w.Model.Clone(), lowest(t, w)
	w.Apply([]layout.Range{{}}, nil, o)
	w.Layout.Published(w.Root)
	resident := func() (bytes int64) {
		for _, n := range nodes {
			if b := n.body.Load(); b != nil {
				bytes += b.memory()
			}
		}
		return bytes
	}
	before := resident()
	if before > w.Env.InnerBytes {
		t.Fatalf("%d bytes of nodes were in memory, %d are allowed", before, w.Env.InnerBytes)
	}
	for range 2 {
		w.Verify(old, model, w.Now)
	}
	if now := resident(); now > before {
		t.Errorf("%d bytes of old nodes are in memory behind reads, %d before, of which none can be given up", now, before)
	}
}
