package tree

import (
	"fmt"
	"testing"

	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/layout/layouttest"
)

// TestMostDeltas changes one record a time of a cold leaf, and looks at how many deltas gather before it is written anew.
func TestMostDeltas(t *testing.T) {
	overwrite := func(i int) []byte { return row(i * 3) }
	tests := []struct {
		name string
		key  func(i int) []byte
		read bool
		most int
	}{
		{"overwritten", overwrite, false, 6},
		{"overwritten and read", overwrite, true, 4},
		{"growing", func(i int) []byte { return fmt.Appendf(row(i), "-new-%d", i) }, false, 4},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := layouttest.NewWorld(t, config(), 1, 0, 0)
			o := layout.ApplyOptions{LeafBytes: 64 << 10, MaxDeltas: 4}
			w.Apply(nil, rows(0, 1000, 1), o)
			w.Root = w.Reload()
			most := 0
			for i := range 20 {
				w.Apply(nil, []layout.Change{{Key: test.key(i), Record: layouttest.Inline("changed")}}, o)
				most = max(most, int(w.Layout.Stats(w.Root).Deltas))
				if test.read {
					c := w.Root.NewCursor()
					if !c.First() {
						t.Fatal("no record:", c.Err())
					}
					if err := c.Close(); err != nil {
						t.Fatal(err)
					}
				}
			}
			if most != test.most {
				t.Errorf("the leaf had %d deltas at most, want %d", most, test.most)
			}
			w.Audit()
		})
	}
}
