package tree

import (
	"context"
	"errors"
	"fmt"
	"path"
	"testing"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/layout/layouttest"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/segment"
	"github.com/pandodb/pando/vfs"
)

func row(i int) []byte { return fmt.Appendf(nil, "row%06d", i) }

// rows puts rows from, from+step, ... before to.
func rows(from, to, step int) (changes []layout.Change) {
	for i := from; i < to; i += step {
		changes = append(changes, layout.Change{Key: row(i), Record: layouttest.Inline(fmt.Sprint("value of ", i))})
	}
	return changes
}

// spoil overwrites every leaf under the root, so that reading one is an error from now on.
func spoil(t *testing.T, w *layouttest.World) {
	t.Helper()
	err := w.Layout.Walk(context.Background(), w.Root, func(p segment.Pointer, kind segment.Kind) error {
		if kind != segment.KindLeaf {
			return nil
		}
		overwrite(t, w, p)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// overwrite makes a blob one that cannot be read.
func overwrite(t *testing.T, w *layouttest.World, p segment.Pointer) {
	t.Helper()
	f, err := w.FS.OpenReadWrite(path.Join("db", segment.FilePath(p.Segment)))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(make([]byte, p.Length), int64(p.Offset)); err != nil {
		t.Fatal(err)
	}
}

func TestColdLeavesAreNotRead(t *testing.T) {
	w := layouttest.NewWorld(t, config(), 1, 0, 0)
	w.Apply(nil, rows(0, 2000, 1), layout.ApplyOptions{LeafBytes: 1000, Fanout: 8})
	w.Root = w.Reload()
	spoil(t, w)

	// A few changes become deltas; removing what is not there becomes nothing.
	o := layout.ApplyOptions{LeafBytes: 1000, Fanout: 8}
	w.Apply(nil, []layout.Change{
		{Key: row(100), Record: layouttest.Inline("new")},
		{Key: row(900)},
		{Key: []byte("row000900-not-there"), Record: layouttest.Inline("x")},
	}, o)
	if s := w.Layout.Stats(w.Root); s.Deltas != 2 || s.RecordsExact || s.Records != 2002 {
		t.Errorf("after three changes to two leaves: %+v", s)
	}
	before := w.Root
	w.Apply(nil, []layout.Change{{Key: []byte("row000500-not-there")}}, o)
	if w.Root != before {
		t.Error("removing an absent key made a new root")
	}

	// Absent keys are answered by the filters.
	var s layout.Scratch
	denied := 0
	for i := range 200 {
		key := append(row(i*10), "absent"...)
		if _, ok, err := w.Root.GetRead(&s, record.Hash(layouttest.Keyspace, key), key); err == nil && !ok {
			denied++
		}
	}
	if denied < 190 {
		t.Errorf("filters deny %d of 200 absent keys", denied)
	}

	// Ranges of whole subtrees go unread.
	w.Apply([]layout.Range{{}}, nil, o)
	w.Audit()
}

// TestFirstReadKeepsNothing: the first record that is asked for through a node leaves the memory as it was; the second keeps the node with
// its filters, and brings its leaf into the cache.
func TestFirstReadKeepsNothing(t *testing.T) {
	w := layouttest.NewWorld(t, config(), 1, 1<<20, 0)
	w.Apply(nil, rows(0, 20, 1), layout.ApplyOptions{LeafBytes: 1000, Fanout: 8})
	root, s := w.Reload(), layout.Scratch{}
	before := w.Env.Cache.Stats().Inserts
	for reads, want := range []int64{0, 1, 1} {
		if _, ok, err := root.GetRead(&s, record.Hash(layouttest.Keyspace, row(5)), row(5)); !ok || err != nil {
			t.Fatalf("read %d: %v %v", reads, ok, err)
		}
		if got := w.Env.Cache.Stats().Inserts - before; got != want {
			t.Errorf("after read %d: %d pages were brought into the cache instead of %d", reads, got, want)
		}
		if kept := w.Layout.Stats(root).FilterBytes > 0; kept != (want > 0) {
			t.Errorf("after read %d: the node is in memory: %v", reads, kept)
		}
	}
}

func TestDamagedLeafIsAnError(t *testing.T) {
	w := layouttest.NewWorld(t, config(), 1, 0, 0)
	w.Apply(nil, rows(0, 300, 1), layout.ApplyOptions{LeafBytes: 1000, Fanout: 8})
	spoil(t, w)
	root, s := w.Reload(), layout.Scratch{}
	_, _, err := root.GetRead(&s, record.Hash(layouttest.Keyspace, row(5)), row(5))
	c := root.NewCursor()
	defer c.Close()
	first := c.First()
	_, count := root.Count(row(1), row(200), 0)
	_, _, nth := root.Nth(row(1), nil, 3, 0)
	for _, err := range []error{err, c.Err(), count, nth} {
		if !errors.Is(err, corrupt.Err) {
			t.Errorf("want damage, got %v", err)
		}
	}
	if first || c.Next() || c.Prev() {
		t.Error("a cursor moves on after damage")
	}
}

// TestLeavesDoNotPileUp removes nearly everything at random, and expects the rest in few leaves.
func TestLeavesDoNotPileUp(t *testing.T) {
	w := layouttest.NewWorld(t, config(), 1, 1<<20, 0)
	o := layout.ApplyOptions{LeafBytes: 1000, Fanout: 8}
	w.Apply(nil, rows(0, 4000, 1), o)
	loaded := w.Layout.Stats(w.Root)
	for round := range 8 {
		var changes []layout.Change
		for i := range 4000 {
			if i%40 != 0 && w.Rand.IntN(3) == 0 || round == 7 && i%40 != 0 {
				changes = append(changes, layout.Change{Key: row(i)})
			}
		}
		w.Apply(nil, changes, o)
	}
	s := w.Layout.Stats(w.Root)
	if s.Records != 100 || s.Leaves > loaded.Leaves*100/4000*4+1 || s.Height > loaded.Height {
		t.Errorf("loaded %+v, now %+v", loaded, s)
	}
	w.Verify(w.Root, w.Model, w.Now)
}

func TestRewriteFillsLeaves(t *testing.T) {
	w := layouttest.NewWorld(t, config(), 1, 1<<20, 0)
	o := layout.ApplyOptions{LeafBytes: 1000, Fanout: 8}
	for i := range 10 {
		w.Apply(nil, rows(i, 3000, 10), o)
	}
	before := w.Layout.Stats(w.Root)
	o.Rewrite = &layout.Stretch{}
	w.Apply(nil, nil, o)
	after := w.Layout.Stats(w.Root)
	if after.Deltas != 0 || after.Leaves > before.Leaves || after.LeafBytes < 900*(after.Leaves-1) {
		t.Errorf("before %+v, after %+v", before, after)
	}
	w.Check(w.Root)
	w.Audit()
}

// What shrinks to less than half is stored in leaves of twice the size, so in half as many.
func TestLeavesThatCompressAreLarger(t *testing.T) {
	leaves := func(codec segment.Codec) int64 {
		w := layouttest.NewWorld(t, config(), 1, 0, 0)
		w.Apply(nil, rows(0, 5000, 1), layout.ApplyOptions{LeafBytes: 2000, Codec: codec})
		w.Apply(nil, rows(0, 5000, 3), layout.ApplyOptions{LeafBytes: 2000, Codec: codec})
		w.Check(w.Root)
		return w.Layout.Stats(w.Root).Leaves
	}
	if plain, packed := leaves(segment.None), leaves(segment.S2); packed > plain*6/10 {
		t.Errorf("%d leaves that are compressed beside %d that are not", packed, plain)
	}
}

// TestSmallTreesHaveSmallLeaves: who reads the first record of a small tree decompresses little, the less the longer that takes, and large
// trees do not pay for that, nor those that are compacted.
func TestSmallTreesHaveSmallLeaves(t *testing.T) {
	const leafBytes = 32 << 10
	average := func(n int, codec segment.Codec, rewrite *layout.Stretch) int64 {
		w := layouttest.NewWorld(t, config(), 1, 0, 0)
		changes := rows(0, n, 1)
		for i := range changes {
			changes[i].Record = layouttest.Inline(fmt.Sprintf("a longer value, %064d", i*i))
		}
		w.Apply(nil, changes, layout.ApplyOptions{LeafBytes: leafBytes, Codec: codec, Rewrite: rewrite})
		w.Check(w.Root)
		return int64(n) * 90 / w.Layout.Stats(w.Root).Leaves
	}
	for _, c := range []struct {
		codec   segment.Codec
		rewrite *layout.Stretch
		small   int64
	}{{segment.S2, nil, smallLeaf}, {segment.Zstd, new(layout.Stretch), smallLeaf}, {segment.Zstd, nil, smallestLeaf}} {
		small, large := average(300, c.codec, c.rewrite), average(30_000, c.codec, c.rewrite)
		if small > c.small*5/4 || small < c.small*2/3 || large < leafBytes {
			t.Errorf("%+v: leaves of about %d bytes in a small tree and of %d in a large one", c, small, large)
		}
	}
}

func TestNoSpace(t *testing.T) {
	w := layouttest.NewWorld(t, config(), 1, 0, 0)
	o := layout.ApplyOptions{LeafBytes: 1000, Fanout: 8}
	w.Apply(nil, rows(0, 1000, 1), o)
	w.FS.SetCapacity(w.FS.Used() + 8<<10)
	writer := w.Env.Store.NewWriter(segment.Nodes, layouttest.Keyspace)
	_, err := w.Layout.Apply(context.Background(), w.Root, nil, &layout.SliceChanges{Changes: rows(0, 30_000, 1)}, writer, o)
	if !errors.Is(err, vfs.ErrNoSpace) {
		t.Errorf("want no space, got %v", err)
	}
	if err := writer.Abort(); err != nil {
		t.Fatal(err)
	}
	w.FS.SetCapacity(0)
	w.Verify(w.Root, w.Model, w.Now)
	w.Audit()
}

func TestInnerNodesAreEvicted(t *testing.T) {
	w := layouttest.NewWorld(t, config(), 1, 1<<20, 0)
	w.Env.InnerBytes = 20 << 10
	o := layout.ApplyOptions{LeafBytes: 300, Fanout: 8}
	w.Apply(nil, rows(0, 5000, 1), o)
	w.Verify(w.Root, w.Model, w.Now)
	if n := w.Env.Inner.Load(); n > w.Env.InnerBytes || n <= 0 {
		t.Errorf("%d bytes of inner nodes are resident, %d are allowed", n, w.Env.InnerBytes)
	}
	if !w.Layout.Stats(w.Root).Partial {
		t.Error("all nodes are resident")
	}
	w.Apply([]layout.Range{{}}, nil, o)
	w.Layout.Published(w.Root)
	if n := w.Env.Inner.Load(); n != 0 {
		t.Errorf("%d bytes of inner nodes are counted in an empty tree", n)
	}
}

func TestReadAhead(t *testing.T) {
	w := layouttest.NewWorld(t, config(), 1, 1<<20, 0)
	w.Apply(nil, rows(0, 3000, 1), layout.ApplyOptions{LeafBytes: 300})
	for range 20 {
		w.Env.Cache.Resize(0) // everything leaves
		w.Env.Epoch.Collect()
		w.Env.Cache.Resize(1 << 20)
		c := w.Reload().NewCursor().(*cursor)
		n, ran := 0, false
		back := w.Rand.IntN(2) == 0
		stop := 1 + w.Rand.IntN(4000)
		for n < stop && ((back && c.Prev()) || (!back && c.Next())) {
			n++
			ran = ran || c.ahead.active()
		}
		if c.Err() != nil || n != min(stop, 3000) || (n > 500 && !ran) {
			t.Errorf("%d of %d records, read ahead: %v, %v", n, stop, ran, c.Err())
		}
		if err := c.Close(); err != nil || c.Next() || c.First() {
			t.Error("a closed cursor moves")
		}
	}
}

// TestReadOnceKeepsNothing: a cursor that reads once shows what any other does, and leaves the cache as it was.
func TestReadOnceKeepsNothing(t *testing.T) {
	w := layouttest.NewWorld(t, config(), 1, 1<<20, 0)
	w.Apply(nil, rows(0, 3000, 1), layout.ApplyOptions{LeafBytes: 300})
	w.Apply(nil, rows(0, 3000, 500), layout.ApplyOptions{LeafBytes: 300}) // deltas
	for _, cached := range []bool{false, true} {
		w.Env.Cache.Resize(0) // everything leaves
		w.Env.Epoch.Collect()
		w.Env.Cache.Resize(1 << 20)
		root := w.Reload()
		if cached {
			c := root.NewCursor()
			for n := 0; n < 1500 && c.Next(); n++ {
			}
			_ = c.Close()
		}
		before := w.Env.Cache.Stats().Inserts
		for from := 0; from < 3000; from += 7 {
			c := root.NewCursor()
			c.ReadOnce()
			ok := c.SeekGE(row(from))
			for i := from; i < min(from+40, 3000); i++ {
				if !ok || string(c.Key()) != string(row(i)) || string(c.Record().Value) != fmt.Sprint("value of ", i) {
					t.Fatalf("record %d: %q, %v, %v", i, c.Key(), ok, c.Err())
				}
				ok = c.Next()
			}
			_ = c.Close()
		}
		c := root.NewCursor()
		c.ReadOnce()
		n := 0
		for ; c.Prev(); n++ {
		}
		if err := c.Err(); n != 3000 || err != nil {
			t.Errorf("%d records backward, %v", n, err)
		}
		_ = c.Close()
		if after := w.Env.Cache.Stats().Inserts; after != before {
			t.Errorf("cached %v: %d pages were brought into the cache", cached, after-before)
		}
	}
}

func TestReadsDoNotAllocate(t *testing.T) {
	w := layouttest.NewWorld(t, config(), 1, 4<<20, 0)
	w.Apply(nil, rows(0, 3000, 1), layout.ApplyOptions{})
	w.Verify(w.Root, w.Model, w.Now)
	var s layout.Scratch
	key := row(1234)
	hash := record.Hash(layouttest.Keyspace, key)
	c := w.Root.NewCursor()
	defer c.Close()
	c.First()
	_ = c.Key()
	for name, fn := range map[string]func(){
		"Get": func() {
			guard := w.Env.Epoch.Enter()
			if _, _, status := w.Root.Get(hash, key); status != layout.Found {
				t.Error(status)
			}
			guard.Exit()
		},
		"GetRead": func() { _, _, _ = w.Root.GetRead(&s, hash, key) },
		"Next":    func() { _ = c.Next() && c.Key() != nil },
		"SeekGE":  func() { c.SeekGE(key) },
	} {
		if n := testing.AllocsPerRun(200, fn); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// TestCheckFindsLies writes nodes whose checksums are right and whose content is not.
func TestCheckFindsLies(t *testing.T) {
	lies := map[string]func(b *body){
		"count":     func(b *body) { b.counts[1].Store(b.counts[1].Load() + 1) },
		"open":      func(b *body) { b.counts[0].Store(joinCount(0, false)) },
		"expiry":    func(b *body) { b.slots[b.len()-1].expiry = 0 },
		"apart":     func(b *body) { b.slots[b.len()-1].apart = false },
		"separator": func(b *body) { b.keys[b.ends[1]-1]++ },
		"filters": func(b *body) {
			for i := range b.slots {
				b.slots[i].filter = noFilter
			}
			b.slots[0].filter = 1
		},
		"delta":  func(b *body) { b.deltas = append(b.deltas, delta{Pointer: b.slots[0].ptr}) }, // of the last leaf
		"digest": func(b *body) { b.deltas[0].digest = 1 },
		"leaf":   func(b *body) { b.slots[0].ptr = b.slots[1].ptr },
		"filter": func(b *body) { b.filterPtr = b.slots[1].ptr },
	}
	for name, lie := range lies {
		t.Run(name, func(t *testing.T) {
			w := layouttest.NewWorld(t, config(), 1, 0, 0)
			changes := rows(0, 60, 1)
			changes[59].Record.Expiry = 5000
			changes[58].Record = w.Apart([]byte("far"))
			w.Apply(nil, changes, layout.ApplyOptions{LeafBytes: 400})
			w.Root = w.Reload()
			w.Apply(nil, rows(3, 4, 1), layout.ApplyOptions{LeafBytes: 400}) // a delta of the first leaf
			r := w.Reload().(*root)
			b, err := r.load(&layout.Scratch{}, r.node)
			if err != nil || b.len() < 3 {
				t.Fatal(b.len(), err)
			}
			lie(b)
			b.index()
			writer := w.Env.Store.NewWriter(segment.Nodes, layouttest.Keyspace)
			p, err := writer.Append(segment.KindInner, layouttest.Keyspace, segment.None, 0, appendNode(nil, b))
			if err != nil || writer.Flush() != nil {
				t.Fatal(err)
			}
			writer.Commit()
			liar, err := w.Layout.Load(w.Env, layouttest.Keyspace, appendRoot(nil, rootInfo{ptr: p, count: r.count.Load(), expiry: 5000, apart: true}))
			if err != nil {
				t.Fatal(err)
			}
			found := 0
			err = w.Layout.Check(context.Background(), liar, func(err error) {
				found++
				if !errors.Is(err, corrupt.Err) {
					t.Errorf("not a corruption: %v", err)
				}
			})
			if err != nil || found == 0 {
				t.Errorf("%d reports, %v", found, err)
			}
		})
	}
}
