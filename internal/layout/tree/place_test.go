package tree

import (
	"testing"

	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/layout/layouttest"
	"github.com/pandodb/pando/internal/record"
)

// GetFrom goes on from where Get has stopped: at a node that is not in memory, at a leaf that is not, and at one that another reader has
// brought in meanwhile.
func TestGetFrom(t *testing.T) {
	w := layouttest.NewWorld(t, config(), 1, 64<<20, 0)
	w.Apply(nil, rows(0, 500, 1), layout.ApplyOptions{LeafBytes: 1000, Fanout: 8})
	w.Root = w.Reload()
	var s layout.Scratch
	read := func(what string, at layout.Place, key []byte, want string) {
		t.Helper()
		s.Record = record.Record{}
		ok, err := w.Root.GetFrom(&s, at, record.Hash(layouttest.Keyspace, key), key)
		if err != nil || ok != (want != "") || (ok && string(s.Record.Value) != want) {
			t.Errorf("%s: %v, %v, %q", what, ok, err, s.Record.Value)
		}
	}
	place := func(key []byte) layout.Place {
		t.Helper()
		guard := w.Env.Epoch.Enter()
		defer guard.Exit()
		_, at, status := w.Root.Get(record.Hash(layouttest.Keyspace, key), key)
		if status != layout.NotResident {
			t.Fatalf("key %s: %v", key, status)
		}
		return at
	}

	at := place(row(3))
	if at != (layout.Place{}) {
		t.Errorf("a place in a tree of which nothing is in memory: %+v", at)
	}
	read("no node", at, row(3), "value of 3")

	c := w.Root.NewCursor()
	for ok := c.First(); ok; ok = c.Next() {
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	b, i := w.Root.(*root).resident(row(200))
	dropPage(w.Env, b.handles[i].Swap(0))
	at = place(row(200))
	if at.Node != any(b) || at.Slot != i {
		t.Fatalf("the place is %+v instead of slot %d", at, i)
	}
	read("a leaf that is not in the cache", at, row(200), "value of 200")
	if b.handles[i].Load() == 0 {
		t.Error("the leaf did not come into the cache, which has room")
	}
	read("a leaf that came in since", at, row(200), "value of 200")
	read("another key of that leaf", at, append(row(200), 0), "")
}
