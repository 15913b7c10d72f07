package tree

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/layout/layouttest"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/segment"
)

// pointers returns the blobs of one kind under the root.
func pointers(t *testing.T, w *layouttest.World, kind segment.Kind) (list []segment.Pointer) {
	t.Helper()
	err := w.Layout.Walk(context.Background(), w.Root, func(p segment.Pointer, k segment.Kind) error {
		if k == kind {
			list = append(list, p)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// A segment that holds deltas of a leaf, and not the leaf, is emptied without writing the leaf: its deltas become one.
func TestDeltasOfVictimsAreJoined(t *testing.T) {
	for _, test := range []struct {
		name  string
		apart bool // some value under the leaf lies apart
		cache int64
		now   []layout.Change // the changes of the round in which the segment is emptied
	}{
		{"alone", false, 0, nil},
		{"with changes", false, 0, []layout.Change{{Key: row(1), Record: layouttest.Inline("newest")}, {Key: row(7)}}},
		{"in the cache", false, 64 << 20, []layout.Change{{Key: row(1), Record: layouttest.Inline("newest")}, {Key: row(4)}, {Key: row(5000)}}},
		{"with values apart", true, 0, []layout.Change{{Key: row(2), Record: layouttest.Inline("newest")}}},
		{"with values apart, alone", true, 0, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := layouttest.NewWorld(t, config(), 1, test.cache, 0)
			o := layout.ApplyOptions{LeafBytes: 64 << 10}
			w.Apply(nil, rows(0, 300, 1), o)
			put := func(i int, value string) layout.Change {
				c := layout.Change{Key: row(i), Record: layouttest.Inline(value)}
				if test.apart && i == 2 {
					c.Record = w.Apart([]byte(value))
				}
				return c
			}
			w.Apply(nil, []layout.Change{put(1, "a"), put(2, "a"), {Key: row(3)}, {Key: row(4)}}, o)
			w.Apply(nil, []layout.Change{put(2, "b"), put(3, "b")}, o)
			w.Apply(nil, []layout.Change{put(2, "c"), {Key: row(1)}, put(4, "c")}, o)
			leaves, deltas := pointers(t, w, segment.KindLeaf), pointers(t, w, segment.KindDelta)
			if len(leaves) != 1 || len(deltas) != 3 {
				t.Fatalf("%d leaves, %d deltas", len(leaves), len(deltas))
			}
			old, model := w.Root, w.Model.Clone()

			o.Victims = segment.SetOf(deltas[1].Segment)
			w.Apply(nil, test.now, o)
			if got := pointers(t, w, segment.KindLeaf); len(got) != 1 || got[0] != leaves[0] {
				t.Errorf("the leaf was written anew: %v", got)
			}
			if got := pointers(t, w, segment.KindDelta); len(got) != 1 || got[0].Segment <= deltas[2].Segment {
				t.Errorf("deltas %v", got)
			}
			w.Audit()
			w.Verify(w.Root, w.Model, w.Now)
			w.Check(w.Root)
			w.Verify(w.Reload(), w.Model, w.Now)
			w.Verify(old, model, w.Now)
		})
	}
}

// Deltas are folded into their leaf when one of them has to move and that would be before long in any case.
func TestDeltasOfVictimsAreFolded(t *testing.T) {
	for _, test := range []struct {
		name   string
		most   int // MaxDeltas
		deltas [][]layout.Change
		now    []layout.Change // the changes of the round in which the segment is emptied
	}{
		{"half of the leaf", 0, [][]layout.Change{rows(0, 300, 8), rows(1, 300, 8)}, rows(2, 300, 3)},
		{"half as many as there may be", 4, [][]layout.Change{rows(0, 1, 1), rows(1, 2, 1), rows(2, 3, 1)}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := layouttest.NewWorld(t, config(), 1, 0, 0)
			o := layout.ApplyOptions{LeafBytes: 64 << 10, MaxDeltas: test.most}
			w.Apply(nil, rows(0, 300, 1), o)
			for _, changes := range test.deltas {
				w.Apply(nil, changes, o)
			}
			deltas := pointers(t, w, segment.KindDelta)
			if len(deltas) != len(test.deltas) {
				t.Fatalf("%d deltas", len(deltas))
			}
			o.Victims = segment.SetOf(deltas[0].Segment)
			w.Apply(nil, test.now, o)
			if n := len(pointers(t, w, segment.KindDelta)); n != 0 {
				t.Errorf("%d deltas", n)
			}
			w.Audit()
			w.Verify(w.Root, w.Model, w.Now)
		})
	}
}

// A delta that has to move and cannot be read is told to who asks for it to be moved, and nothing is lost that can be read.
func TestDamagedDeltaOfAVictim(t *testing.T) {
	w := layouttest.NewWorld(t, config(), 1, 0, 0)
	o := layout.ApplyOptions{LeafBytes: 64 << 10}
	w.Apply(nil, rows(0, 300, 1), o)
	w.Apply(nil, rows(0, 3, 1), o)
	w.Apply(nil, rows(3, 6, 1), o)
	deltas := pointers(t, w, segment.KindDelta)
	overwrite(t, w, deltas[0])
	writer := w.Env.Store.NewWriter(segment.Nodes, layouttest.Keyspace)
	o.Victims = segment.SetOf(deltas[0].Segment)
	_, err := w.Layout.Apply(context.Background(), w.Root, nil, &layout.SliceChanges{}, writer, o)
	if err == nil {
		t.Error("no error")
	}
	if err := writer.Abort(); err != nil {
		t.Fatal(err)
	}
	var s layout.Scratch
	if r, ok, err := w.Root.GetRead(&s, record.Hash(layouttest.Keyspace, row(4)), row(4)); err != nil || !ok || string(r.Value) != "value of 4" {
		t.Errorf("%q %v %v", r.Value, ok, err)
	}
}

// Deltas whose keys have much in common are joined again and again. In their leaf, whose keys do not share that, they take a multiple of the
// space; it can be read all the same.
func TestJoinedDeltasDoNotOutgrowTheirLeaf(t *testing.T) {
	w := layouttest.NewWorld(t, config(), 1, 0, 0)
	o := layout.ApplyOptions{LeafBytes: 64 << 10, Codec: segment.S2}
	var first []layout.Change
	for i := range 1500 {
		value := make([]byte, 1000)
		for j := range value {
			value[j] = byte(w.Rand.Uint32())
		}
		first = append(first, layout.Change{Key: fmt.Appendf(nil, "b%04d", i), Record: record.Record{Kind: record.Inline, Value: value}})
	}
	w.Apply(nil, first, o)
	w.Apply(nil, first[1400:1401], layout.ApplyOptions{LeafBytes: 64 << 10, Codec: segment.S2, Rewrite: &layout.Stretch{}})
	long := append([]byte("c"), bytes.Repeat([]byte("x"), 4000)...)
	for i := range 100 {
		var some []layout.Change
		for j := range 4 {
			some = append(some, layout.Change{Key: fmt.Appendf(bytes.Clone(long), "%05d", 4*i+j), Record: layouttest.Inline("")})
		}
		w.Apply(nil, some, o)
		if deltas := pointers(t, w, segment.KindDelta); len(deltas) == 3 {
			o.Victims = segment.SetOf(deltas[0].Segment)
			w.Apply(nil, nil, o)
			o.Victims = nil
		}
		var s layout.Scratch
		if _, ok, err := w.Root.GetRead(&s, record.Hash(layouttest.Keyspace, []byte("b1499")), []byte("b1499")); err != nil || !ok {
			t.Fatalf("after %d keys in deltas, a Get: %v %v", 4*(i+1), ok, err)
		}
		c := w.Root.NewCursor()
		n := 0
		for ok := c.First(); ok; ok = c.Next() {
			n++
		}
		if c.Err() != nil || n != len(w.Model) {
			t.Errorf("after %d keys in deltas, a walk meets %d of %d records: %v", 4*(i+1), n, len(w.Model), c.Err())
		}
		_ = c.Close()
		if t.Failed() {
			return
		}
	}
	w.Check(w.Root)
	w.Apply(nil, nil, layout.ApplyOptions{Rewrite: &layout.Stretch{}})
}
