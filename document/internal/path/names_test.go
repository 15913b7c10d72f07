package path

import (
	"strconv"
	"testing"
)

// TestNames: few or many, each name is found where it was added, in a copy too, and no other is.
func TestNames(t *testing.T) {
	var n Names
	for i := range 3 * few {
		n.Add(strconv.Itoa(i))
		copied := n.Clone()
		copied.Add("more")
		for k, name := range copied.List {
			if at := copied.Find([]byte(name)); at != k {
				t.Errorf("%d names: %q is at %d, found at %d", len(copied.List), name, k, at)
			}
		}
		if at := n.Find([]byte("more")); at >= 0 {
			t.Errorf("%d names: one that was added to a copy is found at %d", len(n.List), at)
		}
	}
}
