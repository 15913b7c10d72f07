package layouttest

import (
	"context"
	"fmt"
	"testing"

	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/segment"
)

// Config says what is tested.
type Config struct {
	New     func() layout.Layout
	Ordered bool // the layout keeps keys in order: ranges, seeks, counts and positions are tested
	// Thorough makes more random programs, and looks at everything after each step where it else does after some.
	Thorough bool
	// Seed, when not 0, replaces the seeds of the random programs, to replay a failure.
	Seed uint64
}

// Run runs the suite.
func Run(t *testing.T, c Config) {
	t.Run("Empty", func(t *testing.T) { testEmpty(t, c) })
	t.Run("Random", func(t *testing.T) { testRandom(t, c) })
	t.Run("Bulk", func(t *testing.T) { testBulk(t, c) })
	t.Run("Large", func(t *testing.T) { testLarge(t, c) })
	t.Run("Stretches", func(t *testing.T) { testStretches(t, c) })
	t.Run("Stripes", func(t *testing.T) { testStripes(t, c) })
	t.Run("Abort", func(t *testing.T) { testAbort(t, c) })
	t.Run("Free", func(t *testing.T) { testFree(t, c) })
	t.Run("Cancel", func(t *testing.T) { testCancel(t, c) })
	t.Run("Damage", func(t *testing.T) { testDamage(t, c) })
	t.Run("Concurrent", func(t *testing.T) { testConcurrent(t, c) })
}

func testEmpty(t *testing.T, c Config) {
	w := NewWorld(t, c, 1, 1<<20, 0)
	w.Verify(w.Root, w.Model, w.Now)
	if got := w.Root.Encode(nil); len(got) != 0 {
		t.Errorf("an empty root encodes to %d bytes", len(got))
	}
	w.Apply([]layout.Range{{}}, nil, layout.ApplyOptions{})
	w.Apply(nil, []layout.Change{{Key: []byte("k")}}, layout.ApplyOptions{})
	w.Verify(w.Root, w.Model, w.Now)
	w.Apply(nil, []layout.Change{{Key: nil, Record: Inline("")}}, layout.ApplyOptions{})
	w.Verify(w.Root, w.Model, w.Now)
	w.Apply(nil, []layout.Change{{Key: []byte{}}}, layout.ApplyOptions{Rewrite: &layout.Stretch{}})
	w.Verify(w.Root, w.Model, w.Now)
	w.Audit()
}

// version is a root with what it must go on answering.
type version struct {
	root  layout.Root
	model Model
	now   uint64
}

// shape is one configuration of a random program.
type shape struct {
	name    string
	cache   int64
	options layout.ApplyOptions
	inner   int64
	changes int
	deletes int
}

func shapes() []shape {
	tiny := layout.ApplyOptions{LeafBytes: 200, Fanout: 4}
	return []shape{
		{"tiny", 1 << 20, tiny, 0, 30, 4},
		{"tinyCold", 0, tiny, 0, 6, 4},
		{"tinyEvicted", 0, tiny, 1, 6, 3},
		{"tinyFew", 1 << 20, layout.ApplyOptions{LeafBytes: 2000, Fanout: 4, MaxDeltas: 3}, 0, 3, 3},
		{"few", 0, layout.ApplyOptions{LeafBytes: 4000, Fanout: 5, MaxDeltas: 20}, 1, 4, 3},
		{"noDeltas", 1 << 20, layout.ApplyOptions{LeafBytes: 500, MaxDeltas: -1}, 0, 20, 2},
		{"compressed", 1 << 16, layout.ApplyOptions{LeafBytes: 1000, Fanout: 8, Codec: segment.S2}, 0, 10, 3},
		{"noFilters", 1 << 18, layout.ApplyOptions{LeafBytes: 500, Fanout: 6, NoFilters: true}, 1, 20, 3},
		{"sparing", 1 << 18, layout.ApplyOptions{LeafBytes: 2000, Fanout: 6, MaxDeltas: 3, Sparing: true, Room: 3000}, 1, 20, 3},
		{"sparingAll", 1 << 18, layout.ApplyOptions{LeafBytes: 2000, Fanout: 6, MaxDeltas: 3, Sparing: true}, 0, 10, 6},
		{"defaults", 1 << 20, layout.ApplyOptions{}, 0, 40, 3},
	}
}

// seeds are those of the random programs.
func (c Config) seeds() []uint64 {
	switch {
	case c.Seed != 0:
		return []uint64{c.Seed}
	case !c.Thorough || testing.Short():
		return []uint64{1}
	}
	return []uint64{1, 2, 3}
}

func testRandom(t *testing.T, c Config) {
	for _, s := range shapes() {
		for _, seed := range c.seeds() {
			t.Run(fmt.Sprintf("%s/%d", s.name, seed), func(t *testing.T) { random(t, c, s, seed) })
		}
	}
}

// random runs a random program. Every so often it keeps a root, and asks it again much later.
func random(t *testing.T, c Config, s shape, seed uint64) {
	w := NewWorld(t, c, seed, s.cache, 16<<10)
	w.Env.InnerBytes = s.inner
	var kept []version
	for i := range 60 {
		o := s.options
		var ranges []layout.Range
		number := 1 + w.Rand.IntN(2*s.changes)
		op := w.Rand.IntN(12)
		switch op {
		case 0:
			ranges = w.Ranges(1 + w.Rand.IntN(3))
		case 1:
			o.Rewrite = w.stretch()
		case 2:
			bit := w.Rand.Uint32() & 1
			o.Victims = w.Segments(func(id uint32) bool { return id&1 == bit })
		case 3:
			o.Victims = w.Segments(func(uint32) bool { return w.Rand.IntN(8) == 0 })
		case 4:
			w.Now += uint64(w.Rand.IntN(30))
			o.Now = w.Now
		case 5:
			ranges, number = w.Ranges(1), 0
		case 6:
			w.Root = w.Reload()
		case 7:
			number = 20 * s.changes
		}
		if !w.Root.MayLieIn(o.Victims) && w.LiesIn(w.Root, o.Victims) {
			t.Errorf("something lies where the root says that nothing may")
		}
		w.Apply(ranges, w.Changes(number, s.deletes), o)
		w.Audit()
		if !o.Sparing && w.LiesIn(w.Root, o.Victims) { // else they may stay
			t.Errorf("something still lies in segments that were to be emptied")
		}
		if i%4 == 0 {
			w.Verify(w.Root, w.Model, w.Now)
			w.Check(w.Root)
		}
		if i%7 == 0 {
			w.Verify(w.Reload(), w.Model, w.Now)
		}
		if i%10 == 0 {
			kept = append(kept, version{w.Root, w.Model.Clone(), w.Now})
		}
		if w.Rand.IntN(3) == 0 {
			w.Layout.Published(w.Root)
		}
		if t.Failed() {
			t.Fatalf("after step %d (kind %d) of seed %d", i, op, seed)
		}
	}
	for _, v := range kept {
		w.Verify(v.root, v.model, v.now)
	}
	w.Apply([]layout.Range{{}}, nil, s.options)
	w.Verify(w.Root, w.Model, w.Now)
	w.Audit()
}

// testBulk loads in order, in one go and in pieces, and empties from the front as a queue does.
func testBulk(t *testing.T, c Config) {
	w := NewWorld(t, c, 1, 1<<20, 0)
	o := layout.ApplyOptions{LeafBytes: 400, Fanout: 8}
	key := func(i int) []byte { return fmt.Appendf(nil, "row%06d", i) }
	put := func(from, to int) (changes []layout.Change) {
		for i := from; i < to; i++ {
			changes = append(changes, layout.Change{Key: key(i), Record: Inline(fmt.Sprint("value", i))})
		}
		return changes
	}
	w.Apply(nil, put(0, 5000), o)
	w.Check(w.Root)
	for i := 5000; i < 6000; i += 50 {
		w.Apply(nil, put(i, i+50), o)
	}
	w.Audit()
	w.Verify(w.Root, w.Model, w.Now)
	for i := 0; i < 5800; i += 400 {
		w.Apply([]layout.Range{{Lo: key(i), Hi: key(i + 400)}}, nil, o)
		w.Audit()
	}
	w.Check(w.Root)
	w.Verify(w.Root, w.Model, w.Now)
	var gone []layout.Change
	for k := range w.Model {
		gone = append(gone, layout.Change{Key: []byte(k)})
	}
	w.Apply(nil, gone, o)
	w.Verify(w.Root, w.Model, w.Now)
	w.Audit()
	if n, _ := w.Root.Records(); n != 0 {
		t.Errorf("%d records left", n)
	}
}

// testLarge uses keys and values of the largest sizes.
func testLarge(t *testing.T, c Config) {
	w := NewWorld(t, c, 1, 4<<20, 0)
	var changes []layout.Change
	for i := range 24 {
		key := w.bytes(1 + i*2849)
		if i%2 == 0 {
			key = append(make([]byte, 60000), key[:min(len(key), 5536)]...)
		}
		changes = append(changes, layout.Change{Key: key, Record: Inline(string(w.bytes((23 - i) * 2849)))})
	}
	w.Apply(nil, changes, layout.ApplyOptions{})
	w.Check(w.Root)
	w.Verify(w.Root, w.Model, w.Now)
	for i := range changes {
		if i%3 == 0 {
			changes[i].Record = Inline(string(w.bytes(65536)))
		}
	}
	w.Apply(nil, changes[:12], layout.ApplyOptions{})
	w.Verify(w.Reload(), w.Model, w.Now)
	w.Audit()
}

// testAbort aborts an Apply and goes on from the old root.
func testAbort(t *testing.T, c Config) {
	w := NewWorld(t, c, 1, 1<<20, 16<<10)
	o := layout.ApplyOptions{LeafBytes: 300, Fanout: 4}
	for range 20 {
		w.Apply(nil, w.Changes(40, 4), o)
		writer := w.Env.Store.NewWriter(segment.Nodes, Keyspace)
		lost := []layout.Change{}
		for range 50 {
			lost = append(lost, layout.Change{Key: w.Key(), Record: Inline("lost")})
		}
		_, err := w.Layout.Apply(context.Background(), w.Root, w.Ranges(1), &layout.SliceChanges{Changes: SortChanges(lost)}, writer, o)
		must(t, err)
		must(t, writer.Abort())
		w.Verify(w.Root, w.Model, w.Now)
		w.Audit()
	}
}

// testFree drops the whole keyspace.
func testFree(t *testing.T, c Config) {
	w := NewWorld(t, c, 1, 1<<20, 16<<10)
	for range 10 {
		w.Apply(nil, w.Changes(60, 5), layout.ApplyOptions{LeafBytes: 300, Fanout: 4})
	}
	root := w.Reload()
	writer := w.Env.Store.NewWriter(segment.Nodes, Keyspace)
	must(t, w.Layout.Free(context.Background(), root, writer))
	writer.Commit()
	for _, s := range w.Env.Store.Segments() {
		if s.Live != 0 {
			t.Errorf("segment %d has %d live bytes after Free", s.ID, s.Live)
		}
	}
}

func testCancel(t *testing.T, c Config) {
	w := NewWorld(t, c, 1, 0, 16<<10)
	o := layout.ApplyOptions{LeafBytes: 300, Fanout: 4}
	w.Apply(nil, w.Changes(200, 5), o)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	writer := w.Env.Store.NewWriter(segment.Nodes, Keyspace)
	if _, err := w.Layout.Apply(ctx, w.Root, nil, &layout.SliceChanges{Changes: SortChanges(w.Changes(50, 5))}, writer, o); err == nil {
		t.Error("Apply went on with a cancelled context")
	}
	must(t, writer.Abort())
	if err := w.Layout.Check(ctx, w.Root, func(error) {}); err == nil {
		t.Error("Check went on with a cancelled context")
	}
	if err := w.Layout.Walk(ctx, w.Root, func(segment.Pointer, segment.Kind) error { return nil }); err == nil {
		t.Error("Walk went on with a cancelled context")
	}
	w.Verify(w.Root, w.Model, w.Now)
}
