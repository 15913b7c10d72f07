package tree

import (
	"bytes"
	"context"
	"errors"
	"path"
	"testing"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/layout/layouttest"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/segment"
	"github.com/pandodb/pando/vfs/faultfs"
)

// spoilSome damages some blobs under the root, and returns how to undo that.
func spoilSome(t *testing.T, w *layouttest.World, choose func(kind segment.Kind) bool) (undo func()) {
	t.Helper()
	var chosen []segment.Pointer
	err := w.Layout.Walk(context.Background(), w.Root, func(p segment.Pointer, kind segment.Kind) error {
		if choose(kind) {
			chosen = append(chosen, p)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var all []func()
	for _, p := range chosen {
		f, err := w.FS.OpenReadWrite(path.Join("db", segment.FilePath(p.Segment)))
		if err != nil {
			t.Fatal(err)
		}
		was, at := make([]byte, 1), int64(p.Offset)+w.Rand.Int64N(int64(p.Length))
		_, failed := f.ReadAt(was, at)
		_, err = f.WriteAt([]byte{was[0] ^ 0x10}, at)
		if err := errors.Join(failed, err); err != nil {
			t.Fatal(err)
		}
		all = append(all, func() {
			_, err := f.WriteAt(was, at)
			if err := errors.Join(err, f.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	return func() {
		for _, fn := range all {
			fn()
		}
	}
}

// truthful expects that all answers under a root are right or tell of damage, and that what was changed since is there.
func truthful(t *testing.T, w *layouttest.World, r layout.Root, since map[string]bool) {
	t.Helper()
	var s layout.Scratch
	keys := w.Model.Keys(nil, nil, 0)
	for range 200 {
		keys = append(keys, string(w.Key()))
	}
	for _, key := range keys {
		want, there := w.Model[key]
		got, ok, err := r.GetRead(&s, record.Hash(layouttest.Keyspace, []byte(key)), []byte(key))
		switch {
		case errors.Is(err, corrupt.Err) && !(since[key] && there):
		case err != nil:
			t.Fatalf("key %x, written since: %v: %v", key, since[key], err)
		case ok != there || ok && (got.Kind != want.Kind || !bytes.Equal(got.Value, want.Value)):
			t.Fatalf("key %x: %v %v, want %v %v", key, ok, got, there, want)
		}
	}
	for _, forward := range []bool{true, false} {
		c := r.NewCursor()
		sorted := w.Model.Keys(nil, nil, 0)
		step, i, by := c.Next, 0, 1
		first := c.First
		if !forward {
			step, first, i, by = c.Prev, c.Last, len(sorted)-1, -1
		}
		for ok := first(); ok; ok = step() {
			if i < 0 || i == len(sorted) || string(c.Key()) != sorted[i] {
				t.Fatalf("a walk comes to %x, record %d of the model", c.Key(), i)
			}
			i += by
		}
		if err := c.Err(); err == nil && i != -1 && i != len(sorted) || err != nil && !errors.Is(err, corrupt.Err) {
			t.Fatalf("a walk ends at %d of %d: %v", i, len(sorted), err)
		}
		c.Close()
	}
	if n, err := r.Count(nil, nil, 0); err == nil && n != int64(len(w.Model)) || err != nil && !errors.Is(err, corrupt.Err) {
		t.Fatalf("%d records, %v; the model has %d", n, err, len(w.Model))
	}
	if r.Empty() && len(w.Model) > 0 {
		t.Fatal("a tree with records calls itself empty")
	}
}

// TestFilterThatCouldNotBeRead: keys that came into a leaf while its filter could not be read were once absent as soon as it could.
func TestFilterThatCouldNotBeRead(t *testing.T) {
	w := layouttest.NewWorld(t, config(), 1, 0, 0)
	o := layout.ApplyOptions{LeafBytes: 1000, Fanout: 8}
	w.Apply(nil, rows(0, 100, 1), o)
	w.Root = w.Reload()
	undo := spoilSome(t, w, func(kind segment.Kind) bool { return kind == segment.KindFilter })
	w.Apply(nil, []layout.Change{{Key: append(row(50), 'x'), Record: layouttest.Inline("new")}}, o)
	if s := w.Layout.Stats(w.Root); s.Deltas != 1 {
		t.Errorf("after one change: %+v", s)
	}
	undo()
	w.Verify(w.Reload(), w.Model, w.Now)
}

// TestChangesBesideDamage applies random changes to trees of which blobs are damaged: nothing keeps them from settling, and no answer is
// wrong, nor is any when it turns out later that the damage was one of reading.
func TestChangesBesideDamage(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and starts no goroutines: little for the race detector")
	}
	told := 0
	for seed := range uint64(usualDamages) {
		w := layouttest.NewWorld(t, config(), seed, int64(seed%2)<<16, 0)
		w.Env.Damaged = func(error) { told++ }
		w.Env.Dropped = func(error) {}
		o := layout.ApplyOptions{LeafBytes: 64 << w.Rand.IntN(5), Fanout: 4 + w.Rand.IntN(4), NoFilters: w.Rand.IntN(2) == 0}
		for range 1 + w.Rand.IntN(3) {
			w.Apply(nil, w.Changes(400>>w.Rand.IntN(6), 3), o)
		}
		w.Root = w.Reload()
		oneIn := 1 + w.Rand.IntN(10)
		undo := spoilSome(t, w, func(kind segment.Kind) bool { return kind != segment.KindValue && w.Rand.IntN(oneIn) == 0 })
		since := map[string]bool{}
		for range 1 + w.Rand.IntN(12) {
			var ranges []layout.Range
			if w.Rand.IntN(3) == 0 {
				ranges = w.Ranges(2)
			}
			changes := w.Changes(1+200>>w.Rand.IntN(8), 2+w.Rand.IntN(3))
			for _, c := range changes {
				since[string(c.Key)] = true
			}
			w.Apply(ranges, changes, o)
			truthful(t, w, w.Reload(), since)
			if w.Rand.IntN(2) == 0 {
				w.Root = w.Reload()
			}
		}
		undo()
		truthful(t, w, w.Reload(), since)
		w.Apply([]layout.Range{{}}, []layout.Change{{Key: []byte("new"), Record: layouttest.Inline("new")}}, o)
		w.Check(w.Reload())
		truthful(t, w, w.Reload(), since)
		for _, s := range w.Env.Store.Segments() {
			if s.Live < 0 {
				t.Errorf("seed %d: segment %d has %d live bytes", seed, s.ID, s.Live)
			}
		}
	}
	if told == 0 {
		t.Error("nobody was told of damage")
	}
}

// TestNodeThatIsReadWronglyOnceIsDropped: what lies below a node is freed with it, though it was read wrongly once, as on a faulty way from the
// disk. Nobody would find it again, and it would keep its segments for ever.
func TestNodeThatIsReadWronglyOnceIsDropped(t *testing.T) {
	w := layouttest.NewWorld(t, config(), 1, 0, 0)
	ffs := faultfs.New(w.FS)
	store, err := segment.Open(segment.Options{FS: ffs, Dir: "db"}, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	w.Env.Store, w.Env.Dropped = store, func(error) {}
	w.Apply(nil, rows(0, 400, 1), layout.ApplyOptions{LeafBytes: 300})
	ffs.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpReadAt), Fault: faultfs.FlipBit, Bit: 300})
	writer := store.NewWriter(segment.Nodes, layouttest.Keyspace)
	if err := w.Layout.Free(t.Context(), w.Reload(), writer); err != nil || ffs.Triggered() == 0 {
		t.Fatalf("%v, %d reads were wrong", err, ffs.Triggered())
	}
	writer.Commit()
	for _, s := range store.Segments() {
		if s.Live != 0 {
			t.Errorf("segment %d has %d live bytes", s.ID, s.Live)
		}
	}
}
