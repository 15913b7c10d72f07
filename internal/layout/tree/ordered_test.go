package tree

import (
	"testing"

	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/layout/layouttest"
	"github.com/pandodb/pando/internal/record"
)

// A leaf that a walk has brought into the cache has no room for hash slots; who asks it for a key gives it some, out of the cache.
func TestWalkedLeavesAreAskedForKeys(t *testing.T) {
	w := layouttest.NewWorld(t, config(), 1, 64<<20, 0)
	w.Apply(nil, rows(0, 500, 1), layout.ApplyOptions{LeafBytes: 1000, Fanout: 8})
	w.Root = w.Reload()
	c := w.Root.NewCursor()
	for ok := c.First(); ok; ok = c.Next() {
	}
	if err := c.Err(); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	spoil(t, w)

	key := row(123)
	hash := record.Hash(layouttest.Keyspace, key)
	get := func() layout.Status {
		guard := w.Env.Epoch.Enter()
		defer guard.Exit()
		_, _, status := w.Root.Get(hash, key)
		return status
	}
	if status := get(); status != layout.NotResident {
		t.Errorf("after the walk: %v", status)
	}
	var s layout.Scratch
	if r, ok, err := w.Root.GetRead(&s, hash, key); err != nil || !ok || string(r.Value) != "value of 123" {
		t.Errorf("GetRead: %v, %v, %v", r, ok, err)
	}
	if status := get(); status != layout.Found {
		t.Errorf("after GetRead: %v", status)
	}
}
