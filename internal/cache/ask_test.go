package cache

import (
	"math/rand/v2"
	"testing"

	"github.com/pandodb/pando/internal/epoch"
)

// TestAsk: any handle may be asked for, those that never were included, and nothing changes by it.
func TestAsk(t *testing.T) {
	c := New(4<<20, epoch.New())
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	c.Ask(0)
	c.Ask(^Handle(0)) // before there is any memory
	c.AskBegin(^Handle(0))
	h, err := c.Insert(content(1, 8000), 1)
	if err != nil {
		t.Fatal(err)
	}
	before := c.Stats()
	rng := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		c.Ask(Handle(rng.Uint64()))
		c.AskBegin(Handle(rng.Uint64()))
		c.Ask(h ^ Handle(rng.Uint64()&(1<<frameBits-1)))
	}
	c.Ask(h)
	c.AskBegin(h)
	if got := c.Stats(); got != before {
		t.Errorf("%+v, want %+v", got, before)
	}
	guard := c.epoch.Enter()
	defer guard.Exit()
	p, ok := c.Get(h)
	if !ok {
		t.Fatal("the page is gone")
	}
	if err := verify(p, 1); err != nil {
		t.Error(err)
	}
}
