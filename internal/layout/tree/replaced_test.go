package tree

import (
	"strings"
	"testing"

	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/layout/layouttest"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/segment"
)

// A checkpoint that touches every leaf of large records keeps their pages in the cache, not those of the old tree beside them. The old
// tree answers as before, and what its readers bring in again meanwhile is gone when the new one is published.
func TestPagesOfLargeRecordsAreReplaced(t *testing.T) {
	const records = 4000
	large := func(i, version int) string { return strings.Repeat(string(row(i)), 100) + string(rune('0'+version)) }
	changes := func(step, version int) (list []layout.Change) {
		for i := 0; i < records; i += step {
			list = append(list, layout.Change{Key: row(i), Record: layouttest.Inline(large(i, version))})
		}
		return list
	}
	w := layouttest.NewWorld(t, config(), 1, 64<<20, 0)
	w.Apply(nil, changes(1, 0), layout.ApplyOptions{})
	var s layout.Scratch
	read := func(r layout.Root, i, version int) {
		t.Helper()
		got, ok, err := r.GetRead(&s, record.Hash(layouttest.Keyspace, row(i)), row(i))
		if err != nil || !ok || string(got.Value) != large(i, version) {
			t.Fatalf("record %d: %d bytes, %v, %v", i, len(got.Value), ok, err)
		}
	}
	for i := range records {
		read(w.Root, i, 0)
	}
	before := w.Env.Cache.Stats()

	old := w.Root
	w.Apply(nil, changes(10, 1), layout.ApplyOptions{})
	after := w.Env.Cache.Stats()
	if after.Bytes > before.Bytes+before.Bytes/4 {
		t.Errorf("the cache takes %d bytes, %d before", after.Bytes, before.Bytes)
	}
	if stats := w.Layout.Stats(w.Root); stats.Deltas < 100 || after.Pages != before.Pages {
		t.Errorf("%d pages instead of %d; %+v", after.Pages, before.Pages, stats)
	}
	for i := range records {
		version := 0
		if i%10 == 0 {
			version = 1
		}
		read(old, i, 0)
		guard := w.Env.Epoch.Enter()
		got, _, status := w.Root.Get(record.Hash(layouttest.Keyspace, row(i)), row(i))
		if status != layout.Found || string(got.Value) != large(i, version) {
			t.Errorf("record %d after the checkpoint: %d bytes, %v", i, len(got.Value), status)
		}
		guard.Exit()
	}
	w.Layout.Published(w.Root)
	if pages := w.Env.Cache.Stats().Pages; pages != before.Pages {
		t.Errorf("%d pages when the new tree is published, %d before", pages, before.Pages)
	}
}

// A checkpoint that touches every leaf brings no second copy into the cache of pages that nobody has asked for since the last one has left
// them there. Of those that are read the old tree keeps its own until the new one is published.
func TestPagesThatNobodyReadsAreReplaced(t *testing.T) {
	const records = 20000
	changes := func(step int, value string) (list []layout.Change) {
		for i := 0; i < records; i += step {
			list = append(list, layout.Change{Key: row(i), Record: layouttest.Inline(value)})
		}
		return list
	}
	for _, read := range []bool{false, true} {
		w := layouttest.NewWorld(t, config(), 1, 64<<20, 0)
		w.Apply(nil, changes(1, "first"), layout.ApplyOptions{})
		var s layout.Scratch
		check := func(r layout.Root, i int, want string) {
			t.Helper()
			got, ok, err := r.GetRead(&s, record.Hash(layouttest.Keyspace, row(i)), row(i))
			if err != nil || !ok || string(got.Value) != want {
				t.Fatalf("record %d: %q, %v, %v", i, got.Value, ok, err)
			}
		}
		ask := func() {
			guard := w.Env.Epoch.Enter()
			defer guard.Exit()
			for i := range records {
				if _, _, status := w.Root.Get(record.Hash(layouttest.Keyspace, row(i)), row(i)); status != layout.Found {
					t.Fatalf("record %d: %v, want its page in the cache", i, status)
				}
			}
		}
		if read {
			ask()
		}
		before, old := w.Env.Cache.Stats(), w.Root
		w.Apply(nil, changes(10, "other"), layout.ApplyOptions{})
		want := before.Pages
		if read {
			want *= 2
		}
		if after := w.Env.Cache.Stats(); after.Pages != want {
			t.Errorf("read %v: %d pages, want %d", read, after.Pages, want)
		}
		ask() // the pages of the new tree
		for i := range records {
			check(old, i, "first")
			if i%10 == 0 {
				check(w.Root, i, "other")
			} else {
				check(w.Root, i, "first")
			}
		}
		w.Layout.Published(w.Root)
		if after := w.Env.Cache.Stats(); after.Pages != before.Pages {
			t.Errorf("read %v: %d pages when the new tree is published, %d before", read, after.Pages, before.Pages)
		}
	}
}

// A bulk load makes one root after the other with one writer. When it fails none of them was ever there, and the nodes of the one that stays
// give way to others as before.
func TestNodesStayEvictableWhenALoadFails(t *testing.T) {
	w := layouttest.NewWorld(t, config(), 1, 1<<20, 0)
	o := layout.ApplyOptions{LeafBytes: 300, Fanout: 8}
	w.Apply(nil, rows(0, 3000, 1), o)
	w.Layout.Published(w.Root)
	writer, r := w.Env.Store.NewWriter(segment.Nodes, layouttest.Keyspace), w.Root
	for i := range 4 {
		var err error
		changes := &layout.SliceChanges{Changes: rows(i*500, 3000, 7)}
		if r, err = w.Layout.Apply(t.Context(), r, nil, changes, writer, o); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Abort(); err != nil {
		t.Fatal(err)
	}
	var look func(n *node) (resident, seats int)
	look = func(n *node) (resident, seats int) {
		b := n.body.Load()
		if n.level == 0 && b != nil {
			return 1, min(n.seat, 1)
		}
		for _, child := range b.children {
			r, s := look(child)
			resident, seats = resident+r, seats+s
		}
		return resident, seats
	}
	if resident, seats := look(w.Root.(*root).node); resident < 10 || seats != resident {
		t.Errorf("of %d nodes in memory %d can be evicted", resident, seats)
	}
}
