package model

import (
	"bytes"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs/memfs"
)

// To look for more: go test ./test/model -run TestShapes -shape.seed N -shapes 5000.
var (
	shapeSeed = flag.Uint64("shape.seed", 1, "the first seed of the shaped programs")
	onlyShape = flag.String("shape.change", "", "the name of a pattern of change, to run no other")
	shapes    = flag.Int("shapes", 0, "how many shaped programs to run; 0 picks a number that takes seconds, or minutes with the tag slow")
)

// TestShapes runs programs of which not each step is random, but the shape of the whole: what keys look like, how long values are and what is
// in them, how what is there changes over time, how the changes are committed, and what happens between them. Its clock is that of a
// synctest, so that pauses, in which the database settles and cleans up, cost nothing.
func TestShapes(t *testing.T) {
	n := *shapes
	switch {
	case n > 0:
	case testing.Short():
		n = 8
	default:
		n = usualShapes
	}
	for i := range uint64(n) {
		seed := *shapeSeed + i
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { runShape(t, seed) })
		})
	}
}

// plot is a keyspace with the shape of what grows in it.
type plot struct {
	w      *world
	ks     string
	name   string
	size   int      // rows
	keys   [][]byte // of each row
	sorted [][]byte
	value  func() []byte
	fill   func(n int) []byte
	way    way
	grow   pattern
	odd    int // from 0 to 59, whatever a pattern makes of it
	front  int // of a queue
	back   int
	todo   []write // what the present step does
}

func (p *plot) key(i int) []byte { return p.keys[(i%p.size+p.size)%p.size] }

func (p *plot) put(i int) { p.putValue(i, p.value()) }

func (p *plot) putValue(i int, value []byte) {
	p.todo = append(p.todo, write{key: p.key(i), value: append([]byte{}, value...)})
}

func (p *plot) del(i int) { p.todo = append(p.todo, write{key: p.key(i)}) }

func (p *plot) each(from, to int, do func(int)) {
	for i := from; i < to; i++ {
		do(i)
	}
}

// every does something to one row in so many.
func (p *plot) every(width, from int, do func(int)) {
	for i := from; i < p.size; i += max(width, 1) {
		do(i)
	}
}

// cut deletes the range between two rows, in the order of their keys.
func (p *plot) cut(from, to int) {
	b := Bounds{Lo: p.key(from), Hi: p.key(to)}
	if bytes.Compare(b.Lo, b.Hi) > 0 {
		b.Lo, b.Hi = b.Hi, b.Lo
	}
	p.remove(b)
}

// remove deletes a range; where there is no order, each key of it.
func (p *plot) remove(b Bounds) {
	if !hashed(p.ks) || b.whole() {
		p.todo = append(p.todo, write{bounds: &b})
		return
	}
	for i, k := range p.keys {
		if b.Has(string(k)) {
			p.del(i)
		}
	}
}

func pickFrom[T any](w *world, list []T) T { return list[w.rng.IntN(len(list))] }

// plot makes a keyspace with a shape of its own.
func (w *world) plot(ks string) *plot {
	keys, long, fill, change := pickFrom(w, populations), pickFrom(w, measures), pickFrom(w, textures), pickFrom(w, patterns)
	for _, only := range patterns {
		if only.name == *onlyShape {
			change = only
		}
	}
	if ks != "default" {
		w.create(ks, w.kindOf(ks))
	}
	p := &plot{w: w, ks: ks, way: pickFrom(w, ways), odd: w.rng.IntN(60)}
	room := pickFrom(w, []int{30_000, 100_000, 300_000, 1_000_000}) // bytes of values
	p.size = min(max(room/long.mean, 3), 20<<w.rng.IntN(8))
	if keys.most > 0 {
		p.size = min(p.size, keys.most)
	}
	for i := range p.size {
		p.keys = append(p.keys, keys.key(i))
	}
	p.sorted = slices.SortedFunc(slices.Values(p.keys), bytes.Compare)
	order := w.rng.IntN(4)
	switch order {
	case 1, 2:
		p.keys = slices.Clone(p.sorted)
		if order == 2 {
			slices.Reverse(p.keys)
		}
	case 3:
		w.rng.Shuffle(p.size, func(i, j int) { p.keys[i], p.keys[j] = p.keys[j], p.keys[i] })
	}
	p.fill = func(n int) []byte { return fill.fill(w, n) }
	p.value = func() []byte { return p.fill(long.length(w)) }
	if p.grow = change; change.name == "passing" {
		p.way = ways[0] // the only one that knows of expiries
	}
	p.name = fmt.Sprintf("%s: %d rows with %s keys (order %d) and %s values of %s, %s by %s", ks, p.size, keys.name, order, long.name, fill.name, change.name, p.way.name)
	return p
}

// kindOf says how a keyspace is created.
func (w *world) kindOf(ks string) *pando.KeyspaceOptions {
	c := pando.Compression(w.rng.IntN(4))
	if hashed(ks) {
		return &pando.KeyspaceOptions{Layout: pando.Hash, Compression: &c}
	}
	return &pando.KeyspaceOptions{Compression: &c, LeafBytes: pickFrom(w, []int{0, 256, 1000, 4096, 64 << 10, 256 << 10}), NoBloomFilters: w.rng.IntN(2) == 0}
}

// runShape runs the program of one seed.
func runShape(t *testing.T, seed uint64) {
	program(t, newWatched(memfs.New()), seed, func(w *world) {
		if w.rng.IntN(3) == 0 {
			w.opReopenOther() // with values of up to 64 KiB beside their keys, for instance
		}
		var plots []*plot
		for _, ks := range pickFrom(w, [][]string{{"default"}, {"space2"}, {"space1"}, {"default", "space2"}, {"space1", "space2"}}) {
			plots = append(plots, w.plot(ks))
		}
		w.keyOf = func() []byte { return bytes.Clone(pickFrom(w, pickFrom(w, plots).sorted)) }
		w.valueOf = func() []byte { return pickFrom(w, plots).value() }
		always, often := pickFrom(w, usual), []string{pickFrom(w, moments), pickFrom(w, moments), pickFrom(w, moments)}
		var names []string
		for _, p := range plots {
			names = append(names, p.name)
		}
		w.shape = strings.Join(names, "; ") + "; always " + always + ", often " + strings.Join(often, ", ")
		for w.step = range 8 + w.rng.IntN(24) {
			for _, p := range plots {
				p.change(w.step)
				w.look(p)
			}
			w.endBeside()
			w.moment(always)
			if w.rng.IntN(2) == 0 {
				w.moment(pickFrom(w, often))
			}
			w.look(pickFrom(w, plots))
		}
		w.endBeside()
		w.nothingStays()
	})
}

// change carries one step of the pattern out.
func (p *plot) change(step int) {
	p.todo = nil
	if step == 0 && p.grow.full {
		p.each(0, p.size, p.put)
	} else if p.grow.full {
		p.grow.step(p, step-1)
	} else {
		p.grow.step(p, step)
	}
	todo := p.todo
	if len(todo) == 0 {
		return
	}
	p.way.commit(p, todo)
	p.apply(p.w.direct(), todo)
}

// apply does to the model what writes do.
func (p *plot) apply(n note, writes []write) {
	for _, c := range writes {
		expiry := int64(0)
		if !c.expires.IsZero() {
			expiry = c.expires.UnixMilli()
		}
		switch {
		case c.bounds != nil:
			n.state.DeleteRange(p.ks, *c.bounds)
		case c.value == nil:
			n.state.Delete(p.ks, string(c.key))
		default:
			n.state.Put(p.ks, string(c.key), string(c.value), expiry)
		}
		n.event(event{ks: p.ks, key: string(c.key), bounds: c.bounds})
	}
}

// look compares a part of a plot with the model, or all of it.
func (w *world) look(p *plot) {
	ks := w.ks[p.ks]
	if w.rng.IntN(4) == 0 {
		w.checkAll(ks, w.state, p.ks)
		return
	}
	key := pickFrom(w, p.keys)
	w.checkGet(ks, w.state, p.ks, key)
	w.checkGet(ks, w.state, p.ks, append(bytes.Clone(key[:min(len(key), pando.MaxKeyBytes-1)]), 0))
	b := Bounds{Lo: pickFrom(w, p.keys), Hi: pickFrom(w, p.keys)}
	if hashed(p.ks) {
		b = Bounds{}
	}
	if w.rng.IntN(3) == 0 {
		w.together(p)
	}
	w.checkCount(ks, w.state, p.ks, b)
	w.checkNth(ks, w.state, p.ks, b)
	w.checkWalk(ks, w.state, p.ks, b, w.rng.IntN(2) == 0)
}

// nothingStays deletes everything: then it takes no room, however it came. (A keyspace keeps its compression dictionary.)
func (w *world) nothingStays() {
	w.checkEverything()
	w.dropHeld()
	for name, ks := range w.ks {
		w.must(ks.DeleteRange(nil, nil), "delete everything")
		w.state.DeleteRange(name, Bounds{})
	}
	w.must(w.db.Compact(ctx, pando.CompactOptions{}), "compact")
	if m := w.db.Metrics(); w.opts.KeepChanges == 0 && (m.LiveBytes > int64(len(w.ks))*72<<10 || m.Segments > 1) {
		w.fail("when all is deleted %d bytes of %d are live in %d segments", m.LiveBytes, m.SegmentBytes, m.Segments)
	}
}
