package tree

import (
	"testing"

	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/layout/layouttest"
)

// TestHollowedLeavesGo: a leaf that loses most of its records in one go is written anew, whatever else changes in it; as a delta the
// tombstones would leave what they remove on the disk. Tombstones of keys that were never there
// remove nothing.
func TestHollowedLeavesGo(t *testing.T) {
	const records = 4000
	o := layout.ApplyOptions{LeafBytes: 4000, Fanout: 8}
	churn := func(key func(i int) []byte) (changes []layout.Change) {
		for i := range records {
			switch {
			case i%10 < 6:
				changes = append(changes, layout.Change{Key: key(i)})
			case i%10 == 9:
				changes = append(changes, layout.Change{Key: row(i), Record: layouttest.Inline("new")})
			}
		}
		return changes
	}
	w := layouttest.NewWorld(t, config(), 1, 0, 0)
	w.Apply(nil, rows(0, records, 1), o)
	w.Apply(nil, churn(row), o)
	if s := w.Layout.Stats(w.Root); s.Deltas > 0 || s.Records != records*4/10 {
		t.Errorf("after most was removed: %+v", s)
	}
	w.Audit()

	w = layouttest.NewWorld(t, config(), 1, 0, 0)
	w.Apply(nil, rows(0, records, 1), o)
	absent := func(i int) []byte { return append(row(i-i%10+8), byte('0'+i%10)) }
	w.Apply(nil, churn(absent), o)
	if s := w.Layout.Stats(w.Root); s.Deltas == 0 || s.Records != records*11/10 {
		t.Errorf("after nothing was removed: %+v", s)
	}
	w.Audit()
}
