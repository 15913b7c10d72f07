package layouttest

import (
	"bytes"
	"testing"

	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/segment"
)

// Renew writes everything anew in stretches of at least so many bytes, and calls between from one to the next. It returns how many there were.
func (w *World) Renew(o layout.ApplyOptions, least int64, between func()) (stretches int) {
	w.T.Helper()
	var from []byte
	for {
		replaced := int64(0)
		s := &layout.Stretch{From: from, Enough: func(bytes int64) bool {
			replaced += bytes
			return replaced >= least
		}}
		o.Rewrite = s
		w.Apply(nil, nil, o)
		w.Audit()
		stretches++
		if s.Next == nil {
			return stretches
		}
		if bytes.Compare(s.Next, from) <= 0 {
			w.T.Fatalf("after the stretch from %x comes the one from %x", from, s.Next)
		}
		from = s.Next
		between()
	}
}

// stretch returns everything, or a random part of it.
func (w *World) stretch() *layout.Stretch {
	s := new(layout.Stretch)
	if w.Rand.IntN(2) == 0 {
		s.Enough = func(int64) bool { return w.Rand.IntN(3) == 0 }
	}
	if w.ordered && w.Rand.IntN(2) == 0 {
		s.From = w.Key()
	}
	return s
}

// live returns the live bytes of all segments of nodes.
func (w *World) live() (n int64) {
	for _, s := range w.Env.Store.Segments() {
		if s.Class == segment.Nodes {
			n += s.Live
		}
	}
	return n
}

// testStretches writes everything anew in stretches: what comes of it is as small as if it had been done at once, and nothing stays where it
// lay before, whatever has changed in between.
func testStretches(t *testing.T, c Config) {
	o := layout.ApplyOptions{LeafBytes: 400, Fanout: 8}
	filled := func(seed uint64) *World {
		w := NewWorld(t, c, seed, 0, 16<<10)
		for range 30 {
			w.Apply(nil, w.Changes(100, 4), o)
		}
		return w
	}
	for _, least := range []int64{1, 1000, 20_000} {
		whole, parts := filled(uint64(least)), filled(uint64(least))
		at := o
		at.Rewrite = new(layout.Stretch)
		whole.Apply(nil, nil, at)
		before := parts.Segments(func(uint32) bool { return true })
		stretches := parts.Renew(o, least, func() {
			if c.Thorough || parts.Rand.IntN(4) == 0 {
				parts.Verify(parts.Root, parts.Model, parts.Now)
			}
		})
		if s := parts.Layout.Stats(parts.Root); s.Deltas != 0 || parts.LiesIn(parts.Root, before) {
			t.Errorf("%d stretches leave %+v, some of it where it was: %v", stretches, s, parts.LiesIn(parts.Root, before))
		}
		if at, inParts := whole.live(), parts.live(); inParts > at+at/50 {
			t.Errorf("%d bytes after %d stretches, %d after one", inParts, stretches, at)
		}
		if stretches == 1 && c.Ordered {
			t.Errorf("%d bytes were written anew at once", whole.live())
		}
		parts.Check(parts.Root)
		parts.Verify(parts.Reload(), parts.Model, parts.Now)

		busy := filled(uint64(least) + 1)
		before = busy.Segments(func(uint32) bool { return true })
		busy.Renew(o, least, func() {
			busy.Apply(busy.Ranges(busy.Rand.IntN(2)), busy.Changes(busy.Rand.IntN(40), 3), o)
			busy.Audit()
			if busy.Rand.IntN(4) == 0 {
				busy.Root = busy.Reload()
			}
		})
		if busy.LiesIn(busy.Root, before) {
			t.Error("something was left where it was, as there were changes in between")
		}
		busy.Check(busy.Root)
		busy.Verify(busy.Root, busy.Model, busy.Now)
	}
}
