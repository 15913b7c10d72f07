package hash

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/layout/layouttest"
	"github.com/pandodb/pando/internal/segment"
)

// groupMemory is what the groups of the present root take, all of which are in memory.
func groupMemory(t *testing.T, r layout.Root) (n int64) {
	t.Helper()
	for i, g := range r.(*root).groups {
		b := g.body.Load()
		if b == nil {
			t.Fatalf("group %d is not in memory", i)
		}
		n += b.memory()
	}
	return n
}

// readAll asks for all keys of the model, twice, so that all pages come into the cache.
func readAll(t *testing.T, w *layouttest.World, r layout.Root) {
	t.Helper()
	for range 3 {
		for key := range w.Model {
			if _, ok, err := get(t, w, r, key); !ok || err != nil {
				t.Fatalf("%s: %v %v", key, ok, err)
			}
		}
	}
}

// TestGroupsAreCounted: the memory of groups is counted once each, whatever was applied, aborted or dropped.
func TestGroupsAreCounted(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and starts no goroutines: little for the race detector")
	}
	for seed := range uint64(usualPrograms) {
		c := config()
		c.New = func() layout.Layout { return &Hash{most: 4, least: 1} }
		w := layouttest.NewWorld(t, c, seed, 4<<20, 0)
		count := func(when string) {
			t.Helper()
			if got, want := w.Env.Inner.Load(), groupMemory(t, w.Root); got != want {
				t.Fatalf("seed %d, %s: %d bytes of groups are counted, there are %d", seed, when, got, want)
			}
		}
		for round := range 12 {
			keys := names(0, 1+w.Rand.IntN(4000))
			switch {
			case round%5 == 3:
				w.Apply(nil, remove(keys...), layout.ApplyOptions{})
			case round%5 == 4:
				w.Apply(nil, put(fmt.Sprint(round), keys[:min(len(keys), 7)]...), layout.ApplyOptions{})
			default:
				w.Apply(nil, put(fmt.Sprint(round), keys...), layout.ApplyOptions{})
			}
			if w.Rand.IntN(3) > 0 {
				w.Layout.Published(w.Root)
				count("published")
			}
			writer := w.Env.Store.NewWriter(segment.Nodes, layouttest.Keyspace)
			_, err := w.Layout.Apply(context.Background(), w.Root, nil, &layout.SliceChanges{Changes: put("lost", keys...)}, writer, layout.ApplyOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if err := writer.Abort(); err != nil {
				t.Fatal(err)
			}
			count("after an Apply that was aborted")
			readAll(t, w, w.Root)
			count("after reads")
		}
		writer := w.Env.Store.NewWriter(segment.Nodes, layouttest.Keyspace)
		if err := w.Layout.Free(context.Background(), w.Root, writer); err != nil {
			t.Fatal(err)
		}
		writer.Commit()
		if n := w.Env.Inner.Load(); n != 0 {
			t.Errorf("%d bytes of groups are counted when all are freed", n)
		}
	}
}

// TestGroupsThatAreFreedAgainAreCountedOnce: a table that is dropped is freed by each round of settling until one of them succeeds.
func TestGroupsThatAreFreedAgainAreCountedOnce(t *testing.T) {
	w := layouttest.NewWorld(t, config(), 1, 4<<20, 0)
	w.Apply(nil, put("old", names(0, 3000)...), layout.ApplyOptions{})
	w.Layout.Published(w.Root)
	w.Env.Inner.Add(1000) // of others
	for range 3 {
		writer := w.Env.Store.NewWriter(segment.Nodes, layouttest.Keyspace)
		if err := w.Layout.Free(context.Background(), w.Root, writer); err != nil {
			t.Fatal(err)
		}
		if err := writer.Abort(); err != nil {
			t.Fatal(err)
		}
		if n := w.Env.Inner.Load(); n != 1000 {
			t.Errorf("%d bytes are counted, 1000 are those of others", n)
		}
	}
}

// TestRoundsThatFailAreNotCounted: a bulk load makes one root after the other with one writer. When it fails none of them was ever there.
func TestRoundsThatFailAreNotCounted(t *testing.T) {
	c := config()
	c.New = func() layout.Layout { return &Hash{most: 4, least: 1} }
	w := layouttest.NewWorld(t, c, 1, 4<<20, 0)
	w.Apply(nil, put("old", names(0, 1000)...), layout.ApplyOptions{})
	w.Layout.Published(w.Root)
	readAll(t, w, w.Root)
	writer, root := w.Env.Store.NewWriter(segment.Nodes, layouttest.Keyspace), w.Root
	for i := range 5 {
		var err error
		changes := put("lost", names(i*1000, (i+2)*1000)...)
		if root, err = w.Layout.Apply(context.Background(), root, nil, &layout.SliceChanges{Changes: changes}, writer, layout.ApplyOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Abort(); err != nil {
		t.Fatal(err)
	}
	if got, want := w.Env.Inner.Load(), groupMemory(t, w.Root); got != want {
		t.Errorf("%d bytes of groups are counted, there are %d", got, want)
	}
}

// TestPagesComeIntoTheCacheAfterARoundThatFailed: while another root is made of one its readers bring nothing into the cache. When that comes to
// nothing they do again.
func TestPagesComeIntoTheCacheAfterARoundThatFailed(t *testing.T) {
	w := layouttest.NewWorld(t, config(), 1, 16<<20, 0)
	w.Apply(nil, put("old", names(0, 3000)...), layout.ApplyOptions{})
	w.Root = w.Reload()
	writer := w.Env.Store.NewWriter(segment.Nodes, layouttest.Keyspace)
	_, err := w.Layout.Apply(context.Background(), w.Root, nil, &layout.SliceChanges{Changes: put("lost", "a", "b")}, writer, layout.ApplyOptions{})
	if err := errors.Join(err, writer.Abort()); err != nil {
		t.Fatal(err)
	}
	before := w.Env.Cache.Stats().Inserts
	readAll(t, w, w.Root)
	if n := w.Env.Cache.Stats().Inserts - before; n != int64(1)<<w.Root.(*root).depth {
		t.Errorf("%d pages have come into the cache of 2^%d", n, w.Root.(*root).depth)
	}
}

// TestReplacedPagesLeaveTheCache: pages that a checkpoint has replaced are in the cache until it is published, for the readers of the old
// root, and gone then. Those that it left alone stay.
func TestReplacedPagesLeaveTheCache(t *testing.T) {
	c := config()
	c.New = func() layout.Layout { return &Hash{most: 64, least: 8} }
	w := layouttest.NewWorld(t, c, 1, 16<<20, 0)
	w.Apply(nil, put("old", names(0, 1500)...), layout.ApplyOptions{})
	w.Layout.Published(w.Root)
	readAll(t, w, w.Root)
	before, old := w.Env.Cache.Stats(), w.Root
	if pages := int64(1) << w.Root.(*root).depth; int64(before.Pages) != pages {
		t.Fatalf("%d pages in the cache of %d", before.Pages, pages)
	}
	for round := range 20 {
		w.Apply(nil, put(fmt.Sprint(round), names(round, 500+round)...), layout.ApplyOptions{})
		w.Layout.Published(w.Root)
		if after := w.Env.Cache.Stats(); after.Pages != before.Pages {
			t.Fatalf("round %d: %d pages when the new root is published, %d before", round, after.Pages, before.Pages)
		}
		inserts := w.Env.Cache.Stats().Inserts
		readAll(t, w, w.Root)
		if after := w.Env.Cache.Stats().Inserts; after != inserts {
			t.Fatalf("round %d: %d pages had to be read again", round, after-inserts)
		}
	}
	if value, ok, err := get(t, w, old, "name000200"); !ok || err != nil || !strings.HasPrefix(value, "old") {
		t.Errorf("the old root says %q, %v, %v", value, ok, err)
	}
	w.Apply([]layout.Range{{}}, nil, layout.ApplyOptions{})
	w.Layout.Published(w.Root)
	if n := w.Env.Cache.Stats().Pages; n > 1 { // one that the old root has read
		t.Errorf("%d pages are in the cache of nothing", n)
	}
}

func TestReadsDoNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	w := layouttest.NewWorld(t, config(), 1, 4<<20, 0)
	w.Apply(nil, put("old", names(0, 3000)...), layout.ApplyOptions{})
	readAll(t, w, w.Root)
	var s layout.Scratch
	key, absent := []byte("name001234"), []byte("name009999")
	hash, none := keyHash(string(key)), keyHash(string(absent))
	for name, fn := range map[string]func(){
		"Get and GetFrom": func() {
			guard := w.Env.Epoch.Enter()
			_, at, status := w.Root.Get(hash, key)
			guard.Exit()
			if status != layout.NotResident || at.Node == nil {
				t.Error(status, at)
			}
			if ok, err := w.Root.GetFrom(&s, at, hash, key); !ok || err != nil {
				t.Error(ok, err)
			}
		},
		"Get of an absent key": func() {
			guard := w.Env.Epoch.Enter()
			if _, _, status := w.Root.Get(none, absent); status != layout.Absent {
				t.Error(status)
			}
			guard.Exit()
		},
		"GetRead": func() {
			if _, ok, err := w.Root.GetRead(&s, hash, key); !ok || err != nil {
				t.Error(ok, err)
			}
		},
	} {
		fn()
		if n := testing.AllocsPerRun(200, fn); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// TestRecordsMoveInBoundedMemory: the records of one page that are written anew are not all gathered before they are written, and no blob of
// them is longer than a segment.
func TestRecordsMoveInBoundedMemory(t *testing.T) {
	const segmentBytes = 1 << 20
	c := config()
	c.New = func() layout.Layout { return &Hash{most: 1 << 20, least: 1} }
	w := layouttest.NewWorld(t, c, 1, 0, segmentBytes)
	w.Apply(nil, put(strings.Repeat("long", 4000), names(0, 200)...), layout.ApplyOptions{})
	w.Apply(nil, nil, layout.ApplyOptions{Rewrite: &layout.Stretch{}})
	holds(t, w)
	for _, s := range w.Env.Store.Segments() {
		if s.Size > segmentBytes {
			t.Errorf("segment %d has %d bytes, more than %d", s.ID, s.Size, segmentBytes)
		}
	}
}
