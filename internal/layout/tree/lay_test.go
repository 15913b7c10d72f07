package tree

import (
	"slices"
	"testing"

	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/layout/layouttest"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/segment"
)

// absent returns the rows from first on, before end.
func absent(first, end int) (changes []layout.Change) {
	for i := first; i < end; i++ {
		changes = append(changes, layout.Change{Key: row(i)})
	}
	return changes
}

// A leaf that is written anew has what its deltas and the changes at hand say, also in the cache, and its filter stays where it is if the
// keys do.
func TestLaidLeaf(t *testing.T) {
	expiring := layout.Change{Key: row(7), Record: layouttest.Inline("for a while")}
	expiring.Record.Expiry = 1 << 40
	for _, test := range []struct {
		name        string
		delta, now  []layout.Change
		keepsFilter bool
	}{
		{"overwritten", rows(1, 300, 40), rows(0, 300, 35), true},
		{"the same key twice", rows(0, 1, 1), rows(0, 1, 1), true},
		{"more keys", rows(300, 303, 1), rows(303, 306, 1), false},
		{"fewer keys", absent(0, 3), absent(3, 6), false},
		{"removed, then overwritten", absent(0, 3), rows(10, 13, 1), false},
		{"removed and put again", absent(0, 3), rows(0, 3, 1), false},
		{"another beginning", rows(1, 2, 1), []layout.Change{{Key: []byte("a"), Record: layouttest.Inline("of another kind")}}, false},
		{"expiry", rows(1, 2, 1), []layout.Change{expiring}, true},
		{"value apart", rows(1, 2, 1), []layout.Change{{Key: row(2), Record: record.Record{Kind: record.Apart}}}, true},
	} {
		for _, cache := range []int64{0, 64 << 20} {
			t.Run(test.name, func(t *testing.T) {
				w := layouttest.NewWorld(t, config(), 1, cache, 0)
				o := layout.ApplyOptions{LeafBytes: 64 << 10, MaxDeltas: 1}
				w.Apply(nil, rows(0, 300, 1), o)
				now := slices.Clone(test.now)
				if now[0].Record.Kind == record.Apart {
					now[0].Record = w.Apart([]byte("a long one"))
				}
				filters, leaves := pointers(t, w, segment.KindFilter), pointers(t, w, segment.KindLeaf)
				w.Apply(nil, test.delta, o)
				old, model := w.Root, w.Model.Clone()
				if n := len(pointers(t, w, segment.KindDelta)); n != 1 {
					t.Fatalf("%d deltas", n)
				}
				w.Apply(nil, now, o)
				if got := pointers(t, w, segment.KindLeaf); len(got) != 1 || got[0] == leaves[0] {
					t.Errorf("leaves %v, were %v", got, leaves)
				}
				if n := len(pointers(t, w, segment.KindDelta)); n != 0 {
					t.Errorf("%d deltas", n)
				}
				if got := pointers(t, w, segment.KindFilter); cache == 0 && slices.Equal(got, filters) != test.keepsFilter {
					t.Errorf("filters %v, were %v", got, filters)
				}
				w.Audit()
				w.Verify(w.Root, w.Model, w.Now)
				w.Check(w.Root)
				w.Verify(w.Reload(), w.Model, w.Now)
				w.Verify(old, model, w.Now)
			})
		}
	}
}

// The filter of a leaf in which keys come and go does not fill up with those that went.
func TestLaidFilterForgets(t *testing.T) {
	w := layouttest.NewWorld(t, config(), 1, 0, 0)
	o := layout.ApplyOptions{LeafBytes: 64 << 10, MaxDeltas: 1}
	w.Apply(nil, rows(0, 300, 1), o)
	const step, rounds = 10, 60
	for i := range rounds {
		w.Apply(nil, slices.Concat(absent(i*step, (i+1)*step), rows(300+i*step, 300+(i+1)*step, 1)), o)
	}
	if n := len(pointers(t, w, segment.KindLeaf)); n != 1 {
		t.Fatalf("%d leaves", n)
	}
	through := 0
	for i := range rounds * step {
		if _, status := w.Root.Get(record.Hash(layouttest.Keyspace, row(i)), row(i)); status == layout.NotResident {
			through++
		}
	}
	if through > rounds*step/20 {
		t.Errorf("the filter lets %d of %d keys through that went", through, rounds*step)
	}
}
