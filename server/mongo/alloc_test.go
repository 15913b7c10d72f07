//go:build !race

package mongo

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// TestAllocations keeps watch over what commands allocate: time is too unsteady for a test.
func TestAllocations(t *testing.T) {
	s := speedServer(t)
	for _, x := range speedCases() {
		c := overTCP(t, s, x.command, x.field, x.doc)
		c.call()
		if got := testing.AllocsPerRun(100, func() { c.call() }); got > x.allocs {
			t.Errorf("%s allocates %.0f times, more than %.0f", x.name, got, x.allocs)
		}
		if reply := c.call(); okOf(bson.Raw(reply)) != 1 {
			t.Errorf("%s: %v", x.name, reply)
		}
	}
}
