package tree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/layout/layouttest"
	"github.com/pandodb/pando/internal/page"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/segment"
)

// What verifies and makes no sense was written by a faulty program, or on purpose. It has to be what damage is to a checkpoint: an error with
// a place where nothing can be done without it, and else something beside which the rest settles.

// forgeNode makes the present root one with a changed copy of its node.
func forgeNode(t *testing.T, w *layouttest.World, change func(b *body)) {
	t.Helper()
	r := w.Reload().(*root)
	b, err := r.load(&layout.Scratch{}, r.node)
	if err != nil {
		t.Fatal(err)
	}
	change(b)
	b.index()
	p := w.Forge(segment.KindInner, appendNode(nil, b))
	w.Root, err = w.Layout.Load(w.Env, layouttest.Keyspace, appendRoot(nil, rootInfo{ptr: p, level: r.node.level, count: r.count.Load(), expiry: r.expiry, apart: r.apart}))
	if err != nil {
		t.Fatal(err)
	}
}

// forged is a tree of one node in which something makes no sense.
type forged struct {
	*layouttest.World
	told   int
	at     segment.Pointer // of the leaf that cannot be read, or whose delta cannot
	lo, hi int             // the rows in it
}

// newForged makes a tree whose second leaf has a delta, and changes that in its node. raw gives out leaves as they are.
func newForged(t *testing.T, cached int64, change func(f *forged, b *body, raw func(i int) []byte)) *forged {
	t.Helper()
	f := &forged{World: layouttest.NewWorld(t, config(), 1, cached, 0)}
	f.Env.Damaged = func(err error) {
		if f.told++; !errors.Is(err, corrupt.Err) {
			t.Error(err)
		}
	}
	f.Env.Dropped = func(error) {}
	o := layout.ApplyOptions{LeafBytes: 1000, NoFilters: true}
	f.Apply(nil, rows(0, 400, 1), o)
	f.Root = f.Reload()
	b, err := f.Root.(*root).load(&layout.Scratch{}, f.Root.(*root).node)
	if err != nil || b.len() < 4 {
		t.Fatal(b.len(), err)
	}
	for ; string(row(f.lo)) < string(b.separator(1)); f.lo++ {
	}
	for f.hi = f.lo; string(row(f.hi)) < string(b.separator(2)); f.hi++ {
	}
	f.Apply(nil, rows(f.lo+2, f.lo+3, 1), o) // a delta of the second leaf
	forgeNode(t, f.World, func(b *body) {
		if len(b.deltasOf(1)) != 1 {
			t.Fatalf("%d deltas", len(b.deltasOf(1)))
		}
		change(f, b, func(i int) []byte {
			raw, err := f.Root.(*root).readBlob(new(segment.Buffer), b.slots[i].ptr, segment.KindLeaf)
			if err != nil {
				t.Fatal(err)
			}
			return bytes.Clone(raw)
		})
		f.at = b.slots[1].ptr
	})
	if c := f.Root.NewCursor(); cached > 0 { // which brings into the cache what makes sense by itself
		for ok := c.First(); ok; ok = c.Next() {
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// isCached tells whether the forged leaf is in the cache.
func (f *forged) isCached() bool {
	b := f.Root.(*root).node.body.Load()
	return b != nil && b.handles[1].Load() != 0
}

// place is what errors have to name.
func (f *forged) place() string {
	return fmt.Sprintf("%s: damaged at offset %d", segment.FilePath(f.at.Segment), f.at.Offset)
}

// refuses expects an Apply to end with an error that names the place.
func (f *forged) refuses(t *testing.T, ranges []layout.Range, o layout.ApplyOptions) {
	t.Helper()
	o.NoFilters = true
	writer := f.Env.Store.NewWriter(segment.Nodes, layouttest.Keyspace)
	_, err := f.Layout.Apply(context.Background(), f.Root, ranges, nil, writer, o)
	if named := (*corrupt.Error)(nil); !errors.As(err, &named) || !strings.Contains(err.Error(), f.place()) {
		t.Errorf("ranges %v, %+v: %v, want damage at %s", ranges, o, err, f.place())
	}
	if err := writer.Abort(); err != nil {
		t.Fatal(err)
	}
}

// settled expects what was written since to be there, and all else but what lies in the forged leaf.
func (f *forged) settled(t *testing.T, since map[string]bool) {
	t.Helper()
	var s layout.Scratch
	for _, r := range []layout.Root{f.Root, f.Reload()} {
		for i := range 450 {
			key := string(row(i))
			want, there := f.Model[key]
			got, ok, err := r.GetRead(&s, record.Hash(layouttest.Keyspace, []byte(key)), []byte(key))
			lost := i >= f.lo && i < f.hi && !since[key]
			switch {
			case !lost && (err != nil || ok != there || ok && !bytes.Equal(got.Value, want.Value)):
				t.Fatalf("key %s: %q, %v, %v", key, got.Value, ok, err)
			case lost && err != nil && !errors.Is(err, corrupt.Err) || lost && ok && !(there && bytes.Equal(got.Value, want.Value)):
				t.Fatalf("key %s of the leaf: %q, %v, %v", key, got.Value, ok, err)
			}
		}
	}
}

// leavesOfNoSense are what a leaf may be turned into: raw are those of leaves as they are.
func leavesOfNoSense() map[string]func(raw func(i int) []byte) []byte {
	return map[string]func(raw func(i int) []byte) []byte{
		"no count of entries":                func(func(int) []byte) []byte { return bytes.Repeat([]byte{0xff}, 20) },
		"nothing":                            func(func(int) []byte) []byte { return nil },
		"an entry that does not end":         func(raw func(int) []byte) []byte { return raw(1)[:len(raw(1))-3] },
		"bytes behind the last entry":        func(raw func(int) []byte) []byte { return append(raw(1), 1, 2, 3) },
		"the keys of the leaf before it":     func(raw func(int) []byte) []byte { return raw(0) },
		"the keys of the leaf behind it":     func(raw func(int) []byte) []byte { return raw(2) },
		"keys in the wrong order at its end": func(raw func(int) []byte) []byte { return disorder(raw(1)) },
	}
}

// disorder makes the last key of a raw page of rows one that is less than those before it.
func disorder(raw []byte) []byte {
	i := bytes.LastIndex(raw, []byte("value of "))
	raw[i-2] = '!' // the second but last digit
	return raw
}

// acts are what a checkpoint may have to do with a leaf that makes no sense, by what they write since.
func (f *forged) acts() map[string]func(o layout.ApplyOptions) []layout.Change {
	put := func(from, to int) (changes []layout.Change) {
		for i := from; i < to; i++ {
			changes = append(changes, layout.Change{Key: row(i), Record: layouttest.Inline(fmt.Sprint("new ", i))})
		}
		return changes
	}
	return map[string]func(o layout.ApplyOptions) []layout.Change{
		"one is changed": func(o layout.ApplyOptions) []layout.Change {
			changes := put(f.lo+5, f.lo+6)
			f.Apply(nil, changes, o)
			return changes
		},
		"one is deleted": func(o layout.ApplyOptions) []layout.Change {
			changes := []layout.Change{{Key: row(f.lo + 5)}}
			f.Apply(nil, changes, o)
			return changes
		},
		"all are changed": func(o layout.ApplyOptions) []layout.Change {
			changes := put(0, 400)
			f.Apply(nil, changes, o)
			return changes
		},
		"nearly all are deleted": func(o layout.ApplyOptions) (changes []layout.Change) {
			for i := f.lo + 1; i < f.hi; i++ {
				changes = append(changes, layout.Change{Key: row(i)})
			}
			f.Apply(nil, changes, o)
			return changes
		},
		"a range that begins in it": func(o layout.ApplyOptions) []layout.Change {
			f.Apply([]layout.Range{{Lo: row(f.lo + 3), Hi: row(f.hi + 3)}}, put(f.lo+4, f.lo+5), o)
			return put(f.lo+4, f.lo+5)
		},
		"a neighbour that is nearly emptied": func(o layout.ApplyOptions) (changes []layout.Change) {
			for i := range f.lo - 2 {
				changes = append(changes, layout.Change{Key: row(i)})
			}
			f.Apply(nil, append(changes, put(f.lo+5, f.lo+6)...), o)
			return append(changes, put(f.lo+5, f.lo+6)...)
		},
	}
}

// TestLeafThatMakesNoSense settles changes beside a leaf that verifies and cannot be: they once made every checkpoint fail that had to write
// the leaf anew, or went into leaves with the keys of others.
func TestLeafThatMakesNoSense(t *testing.T) {
	leaves := leavesOfNoSense()
	for _, name := range slices.Sorted(maps.Keys(leaves)) {
		for _, act := range slices.Sorted(maps.Keys(new(forged).acts())) {
			for i := range 4 {
				deltas, cached := i&1 > 0, int64(i&2)<<19 // whether the leaf has any beside it, and may be in the cache
				t.Run(fmt.Sprintf("%s/%s/%v/%d", name, act, deltas, cached), func(t *testing.T) {
					f := newForged(t, cached, func(f *forged, b *body, raw func(i int) []byte) {
						b.slots[1].ptr = f.Forge(segment.KindLeaf, leaves[name](raw))
						if !deltas {
							b.deltas = nil
							for i := range b.slots {
								b.slots[i].deltas = 0
							}
						}
					})
					if strings.HasPrefix(name, "the keys of") && f.isCached() != (cached > 0) {
						t.Errorf("it is in the cache: %v", f.isCached())
					}
					f.examine(t, act)
				})
			}
		}
	}
}

// examine does something to a forged leaf and looks at what becomes of it.
func (f *forged) examine(t *testing.T, act string) {
	t.Helper()
	found := 0
	err := f.Layout.Check(context.Background(), f.Root, func(err error) {
		if found++; !errors.Is(err, corrupt.Err) {
			t.Error(err)
		}
	})
	if err != nil || found == 0 {
		t.Errorf("%d reports, %v", found, err)
	}
	f.refuses(t, nil, layout.ApplyOptions{LeafBytes: 1000, Rewrite: &layout.Stretch{}})
	f.refuses(t, nil, layout.ApplyOptions{LeafBytes: 1000, Victims: segment.SetOf(f.at.Segment)})
	since := map[string]bool{}
	for _, c := range f.acts()[act](layout.ApplyOptions{LeafBytes: 1000, NoFilters: true}) {
		since[string(c.Key)] = true
	}
	if f.told == 0 && !strings.HasPrefix(act, "one ") { // which makes a delta without a look at the leaf
		t.Error("nobody was told of damage")
	}
	f.settled(t, since)
	f.Apply([]layout.Range{{}}, []layout.Change{{Key: []byte("new"), Record: layouttest.Inline("new")}}, layout.ApplyOptions{})
	f.Check(f.Reload())
	f.Verify(f.Reload(), f.Model, f.Now)
}

// TestDeltaThatMakesNoSense is the same for a delta.
func TestDeltaThatMakesNoSense(t *testing.T) {
	inside := func(f *forged) []byte { return rawPage(t, rows(f.lo+8, f.lo+20, 1)...) } // so many that two digits of them differ
	for name, raw := range map[string]func(f *forged) []byte{
		"no count of entries":      func(*forged) []byte { return bytes.Repeat([]byte{0xff}, 20) },
		"nothing":                  func(*forged) []byte { return nil },
		"keys in the wrong order":  func(f *forged) []byte { return disorder(inside(f)) },
		"the key of another leaf":  func(f *forged) []byte { return rawPage(t, rows(399, 400, 1)...) },
		"an entry without an end":  func(f *forged) []byte { return inside(f)[:40] },
		"bytes behind its entries": func(f *forged) []byte { return append(inside(f), 7) },
	} {
		for _, act := range slices.Sorted(maps.Keys(new(forged).acts())) {
			t.Run(name+"/"+act, func(t *testing.T) {
				f := newForged(t, 0, func(f *forged, b *body, _ func(i int) []byte) {
					b.deltas[0] = delta{Pointer: f.Forge(segment.KindDelta, raw(f))}
				})
				f.examine(t, act)
			})
		}
	}
}

// TestNodeThatMakesNoSense is the same for an inner node, in place of the second one under the root.
func TestNodeThatMakesNoSense(t *testing.T) {
	o := layout.ApplyOptions{LeafBytes: 300, Fanout: 8, NoFilters: true}
	for name, forgery := range map[string]func(f *forged, b *body) segment.Pointer{
		"nothing":           func(f *forged, _ *body) segment.Pointer { return f.Forge(segment.KindInner, nil) },
		"a later version":   func(f *forged, _ *body) segment.Pointer { return f.Forge(segment.KindInner, []byte{9, 9, 9}) },
		"the one before it": func(_ *forged, b *body) segment.Pointer { return b.slots[0].ptr },
		"the one behind it": func(_ *forged, b *body) segment.Pointer { return b.slots[2].ptr },
		"the root":          func(f *forged, _ *body) segment.Pointer { return f.Root.(*root).node.ptr },
	} {
		for _, act := range slices.Sorted(maps.Keys(new(forged).acts())) {
			t.Run(name+"/"+act, func(t *testing.T) {
				f := &forged{World: layouttest.NewWorld(t, config(), 1, 0, 0)}
				f.Env.Damaged = func(error) { f.told++ }
				f.Env.Dropped = func(error) {}
				f.Apply(nil, rows(0, 400, 1), o)
				forgeNode(t, f.World, func(b *body) {
					if b.level == 0 || b.len() < 3 {
						t.Fatal(b.level, b.len())
					}
					for ; string(row(f.lo)) < string(b.separator(1)); f.lo++ {
					}
					for f.hi = f.lo; string(row(f.hi)) < string(b.separator(2)); f.hi++ {
					}
					b.slots[1].ptr = forgery(f, b)
					f.at = b.slots[1].ptr
				})
				f.examine(t, act)
			})
		}
	}
}

// Nodes whose children are one and the same would be gone over two to the power of their number times. Keys cannot lie in both halves of a
// range, so that the second child is refused.
func TestNodesThatShareChildrenAreRefused(t *testing.T) {
	w := layouttest.NewWorld(t, config(), 1, 1<<20, 0)
	r := sharedChildren(t, w, 30)
	found := 0
	if err := w.Layout.Check(t.Context(), r, func(error) { found++ }); err != nil || found == 0 {
		t.Errorf("Check reports %d damages, and returns %v", found, err)
	}
	writer := w.Env.Store.NewWriter(segment.Nodes, layouttest.Keyspace)
	if _, err := w.Layout.Apply(t.Context(), r, nil, nil, writer, layout.ApplyOptions{Rewrite: &layout.Stretch{}}); !errors.Is(err, corrupt.Err) {
		t.Errorf("Apply: %v", err)
	}
	if err := writer.Abort(); err != nil {
		t.Error(err)
	}
	if err := w.Layout.Walk(t.Context(), r, func(segment.Pointer, segment.Kind) error { return nil }); !errors.Is(err, corrupt.Err) {
		t.Errorf("Walk: %v", err)
	}
	if _, err := r.Count(nil, nil, 0); !errors.Is(err, corrupt.Err) {
		t.Errorf("Count: %v", err)
	}
}

// sharedChildren is a root over so many levels of nodes, both children of each of which are the same.
func sharedChildren(t *testing.T, w *layouttest.World, levels int) layout.Root {
	t.Helper()
	var none page.Builder
	child := w.Forge(segment.KindLeaf, none.Append(nil))
	for level := range levels {
		b := &body{level: level, keys: []byte("m")}
		b.allot(2)
		b.ends[1] = 1
		for i := range b.slots {
			b.slots[i] = slot{ptr: child, filter: noFilter}
			b.counts[i].Store(1 | openCount)
		}
		b.index()
		child = w.Forge(segment.KindInner, appendNode(nil, b))
	}
	r, err := w.Layout.Load(w.Env, layouttest.Keyspace, appendRoot(nil, rootInfo{ptr: child, level: levels - 1, count: 1 | openCount}))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Who drops such nodes, or walks over them, refuses them too. There are few enough levels for this test to end where they are not.
func TestNodesThatShareChildrenAreNotDroppedAgainAndAgain(t *testing.T) {
	w := layouttest.NewWorld(t, config(), 1, 1<<20, 0)
	told := 0
	w.Env.Dropped = func(err error) {
		if told++; !errors.Is(err, corrupt.Err) {
			t.Error(err)
		}
	}
	const levels = 12
	r := sharedChildren(t, w, levels)
	for name, drop := range map[string]func(writer *segment.Writer) error{
		"Free": func(writer *segment.Writer) error { return w.Layout.Free(t.Context(), r, writer) },
		"a range": func(writer *segment.Writer) error {
			_, err := w.Layout.Apply(t.Context(), r, []layout.Range{{}}, nil, writer, layout.ApplyOptions{})
			return err
		},
	} {
		told = 0
		writer := w.Env.Store.NewWriter(segment.Nodes, layouttest.Keyspace)
		if err := errors.Join(drop(writer), writer.Abort()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if told == 0 || told > 2*levels {
			t.Errorf("%s: somebody was told of damage %d times", name, told)
		}
	}
	c := r.NewCursor()
	defer c.Close()
	for what, move := range map[string]func() bool{"First": c.First, "Last": c.Last, "SeekGE": func() bool { return c.SeekGE([]byte("a")) }} {
		if move() || !errors.Is(c.Err(), corrupt.Err) {
			t.Errorf("%s: %v", what, c.Err())
		}
	}
}
