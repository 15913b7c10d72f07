package model

import (
	"bytes"
	"flag"
	"fmt"
	"hash/crc32"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs/memfs"
)

// To look for more: go test ./test/model -run TestWalks -walk.seed N -walks 5000.
var (
	walkSeed = flag.Uint64("walk.seed", 1, "the first seed of the programs of walks")
	walks    = flag.Int("walks", usualWalks, "how many programs of walks to run")
)

// TestWalks runs programs that hold many iterators at once, of all that can be read, while what they show is changed, settled, cleaned up and
// dropped. Each goes on at times, by a way of walking that it keeps to for a while; and what it has handed out stays as it is until then.
func TestWalks(t *testing.T) {
	for i := range uint64(*walks) {
		seed := *walkSeed + i
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				program(t, newWatched(memfs.New()), seed, func(w *world) { newHike(w).run() })
			})
		})
	}
}

// hike is such a program.
type hike struct {
	w    *world
	name string
	ks   *pando.Keyspace
	keys []string // of which pairs are made
	mix  []mixture
	walk []*walker
	snap []*heldSnap
}

// mixture makes the values of some keys in a row: lengths that are alike, or those of one kind among those of another.
type mixture func(rng *rand.Rand) int

func around(n int) mixture { return func(rng *rand.Rand) int { return max(0, n-3+rng.IntN(7)) } }

var mixtures = []mixture{
	around(0), around(20), around(300), around(1024), around(1024), around(4000), around(8 << 10), around(16 << 10), around(32 << 10),
	func(rng *rand.Rand) int { return rng.IntN(2) * 1500 },
	func(rng *rand.Rand) int { return rng.IntN(40) / 39 * 1500 },
	func(rng *rand.Rand) int { return 2000 - rng.IntN(40)/39*1990 },
	func(rng *rand.Rand) int { return 1 << rng.IntN(17) },
}

// walker is an iterator, and what it has to show.
type walker struct {
	it         *pando.Iterator
	pairs      []Pair
	at         int // -1: before the first; len: behind the last
	fresh      bool
	keysOnly   bool
	hashed     bool
	end        func() // what goes with it
	what       string
	key, value []byte // as handed out, and kept
	kept       bool   // value was asked for
}

func newHike(w *world) *hike {
	if w.rng.IntN(3) == 0 {
		w.opReopenOther()
	}
	h := &hike{w: w, name: pickFrom(w, []string{"default", "space2", "space1", "space2"})}
	if h.name != "default" {
		w.create(h.name, w.kindOf(h.name))
	}
	h.ks = w.ks[h.name]
	population, size := pickFrom(w, populations), 20<<w.rng.IntN(7)
	if population.most > 0 {
		size = min(size, population.most)
	}
	for i := range size {
		h.keys = append(h.keys, string(population.key(i)))
	}
	if w.rng.IntN(4) == 0 {
		h.keys = append(h.keys, "")
	}
	slices.Sort(h.keys)
	h.keys = slices.Compact(h.keys)
	for range 1 + w.rng.IntN(3) {
		h.mix = append(h.mix, pickFrom(w, mixtures))
	}
	w.shape = fmt.Sprintf("%s with %d keys %s", h.name, len(h.keys), population.name)
	return h
}

func (h *hike) run() {
	for h.w.step = range 15 + h.w.rng.IntN(25) {
		for range 1 + h.w.rng.IntN(3) {
			h.write(h.ks, h.w.state)
		}
		h.settle()
		for range h.w.rng.IntN(4) {
			h.open()
		}
		for _, x := range h.walk {
			h.move(x)
		}
		for h.w.rng.IntN(3) == 0 && len(h.walk) > 0 {
			h.end(h.w.rng.IntN(len(h.walk)))
		}
	}
	h.drop()
	for len(h.walk) > 0 {
		h.end(0)
	}
	for _, s := range h.snap {
		h.w.must(s.snap.Close(), "close snapshot")
	}
}

// value is one for the i-th key.
func (h *hike) value(i int) []byte {
	n := h.mix[i*len(h.mix)/(len(h.keys)+1)](h.w.rng)
	if h.w.rng.IntN(3000) == 0 {
		n = 1<<20 + h.w.rng.IntN(3<<20)
	}
	if h.w.rng.IntN(2) == 0 {
		return noise(h.w.rng.Uint64(), n)
	}
	return bytes.Repeat(fmt.Appendf(nil, "%d %d,", i, h.w.rng.IntN(1000)), n/4+1)[:n]
}

// write does to a sink, and to a state, what it takes to change a stretch of the keys or some of them at a distance from each other.
func (h *hike) write(to writer, state State) {
	w, size := h.w, len(h.keys)
	from := w.rng.IntN(size)
	end, by, kind := from+1+w.rng.IntN(size-from), pickFrom(w, []int{1, 1, 2, 3, 17, 60}), w.rng.IntN(10)
	if w.rng.IntN(3) == 0 {
		end = min(end, from+8)
	}
	if kind == 0 {
		h.cut(to, state, Bounds{Lo: []byte(h.keys[from]), Hi: []byte(h.keys[end-1])})
		return
	}
	for i, room := from, 3<<20; i < end && room > 0; i += by {
		key, value := h.keys[i], h.value(i)
		ks, direct := to.(*pando.Keyspace)
		room -= len(key) + len(value)
		switch {
		case kind <= 3 || kind == 9 && w.rng.IntN(2) == 0:
			w.must(to.Delete([]byte(key)), "delete")
			state.Delete(h.name, key)
		case kind == 4 && direct:
			at := time.Now().Add(time.Duration(1+w.rng.IntN(100)) * time.Minute)
			w.must(ks.PutExpiring([]byte(key), value, at), "put expiring")
			state.Put(h.name, key, string(value), at.UnixMilli())
		default:
			w.must(to.Put([]byte(key), value), "put")
			state.Put(h.name, key, string(value), 0)
		}
	}
}

// cut deletes a range; where there is no order all, and not often.
func (h *hike) cut(to writer, state State, b Bounds) {
	if hashed(h.name) {
		if b = (Bounds{}); h.w.rng.IntN(3) > 0 {
			return
		}
	} else if h.w.rng.IntN(8) == 0 {
		b.Hi = nil
	}
	h.w.must(to.DeleteRange(b.Lo, b.Hi), "delete range")
	state.DeleteRange(h.name, b)
}

// settle does what moves pairs to other places, or nothing.
func (h *hike) settle() {
	switch h.w.rng.IntN(8) {
	case 0, 1, 2:
		h.w.must(h.w.db.Checkpoint(ctx), "checkpoint")
	case 3:
		h.w.must(h.w.db.Compact(ctx, pando.CompactOptions{Compression: pando.Compression(h.w.rng.IntN(4))}), "compact")
	case 4:
		time.Sleep(time.Duration(h.w.rng.IntN(40)) * time.Minute) // in which it settles, cleans up, and pairs expire
	}
}

// bounds are nil, those of a stretch of the keys, or somewhere between keys.
func (h *hike) bounds() Bounds {
	if hashed(h.name) || h.w.rng.IntN(3) == 0 {
		return Bounds{}
	}
	b := Bounds{Lo: h.place(), Hi: h.place()}
	if bytes.Compare(b.Lo, b.Hi) > 0 {
		b.Lo, b.Hi = b.Hi, b.Lo
	}
	switch h.w.rng.IntN(6) {
	case 0:
		b.Lo = nil
	case 1:
		b.Hi = nil
	}
	return b
}

// place is a key, or something near one.
func (h *hike) place() []byte {
	key := []byte(pickFrom(h.w, h.keys))
	switch h.w.rng.IntN(6) {
	case 0:
		if len(key) < pando.MaxKeyBytes {
			key = append(key, 0)
		}
	case 1:
		if len(key) > 0 {
			key[len(key)-1]--
		}
	case 2:
		key = key[:h.w.rng.IntN(len(key)+1)]
	}
	return key
}

// open opens an iterator over something.
func (h *hike) open() {
	if len(h.walk) > 12 {
		return
	}
	w, b := h.w, h.bounds()
	x := &walker{at: -1, fresh: true, keysOnly: w.rng.IntN(5) == 0, hashed: hashed(h.name), end: func() {}}
	o := &pando.IterOptions{Lower: bytes.Clone(b.Lo), Upper: bytes.Clone(b.Hi), KeysOnly: x.keysOnly, Once: w.rng.IntN(3) == 0}
	state := w.state
	switch w.rng.IntN(5) {
	case 0:
		x.what, x.it = "keyspace", h.ks.Iter(o)
	case 1:
		if len(h.snap) < 5 {
			h.snap = append(h.snap, &heldSnap{w.db.Snapshot(), w.state.Clone()})
		}
		s := pickFrom(w, h.snap)
		x.what, state, x.it = "snapshot", s.state, s.snap.In(h.ks).Iter(o)
	case 2:
		x.what, x.keysOnly = "reader", false
		r := new(pando.Reader)
		w.must(r.Open(w.db, h.ks), "open reader")
		if w.rng.IntN(2) == 0 {
			s, err := r.Hold()
			w.must(err, "hold")
			w.must(r.OpenAt(s.In(h.ks)), "open at")
			w.must(s.Close(), "close")
		}
		x.it, x.end = r.Iter(h.ks, o.Lower, o.Upper), r.Close
	default:
		x.what = "transaction"
		state = h.inside(x, o)
	}
	scribble(o.Lower)
	scribble(o.Upper)
	x.pairs = state.Pairs(h.name, b)
	if x.hashed {
		h.learn(x)
	}
	h.walk = append(h.walk, x)
}

// inside opens an iterator in a transaction among writes, some of which are taken back, before and behind it. It returns what there is to see.
func (h *hike) inside(x *walker, o *pando.IterOptions) State {
	w := h.w
	tx, err := w.db.Begin(true)
	w.must(err, "begin")
	mine, in := State{h.name: maps.Clone(w.state[h.name])}, tx.In(h.ks)
	back := func(point pando.Savepoint) {
		h.write(in, mine.Clone())
		if w.rng.IntN(2) == 0 {
			w.must(in.Iter(nil).Close(), "close iterator") // which brings the transaction's overlay up to date
		}
		w.must(tx.RollbackTo(point), "roll back to")
	}
	for range w.rng.IntN(3) {
		h.write(in, mine)
	}
	point := tx.Savepoint()
	if w.rng.IntN(2) == 0 {
		back(point)
	}
	if w.rng.IntN(2) == 0 {
		h.write(in, mine)
	}
	x.it, x.end = in.Iter(o), func() { w.must(tx.Rollback(), "roll back") }
	if w.rng.IntN(2) == 0 {
		back(point) // with what the iterator shows
		h.write(in, mine.Clone())
	}
	return mine
}

// learn takes the order of an iterator over what has none.
func (h *hike) learn(x *walker) {
	values := map[string]string{}
	for _, p := range x.pairs {
		values[p.Key] = p.Value
	}
	for i := range x.pairs {
		if !x.it.Next() {
			h.fail(x, "ends after %d of %d: %v", i, len(x.pairs), x.it.Err())
		}
		key := string(x.it.Key())
		value, ok := values[key]
		if !ok {
			h.fail(x, "shows %q", short(key))
		}
		delete(values, key)
		x.pairs[i] = Pair{key, value}
	}
	x.at, x.fresh = len(x.pairs)-1, len(x.pairs) == 0
}

func (h *hike) fail(x *walker, format string, args ...any) {
	h.w.fail("%s iterator (keysOnly %v) at %d of %d: %s", x.what, x.keysOnly, x.at, len(x.pairs), fmt.Sprintf(format, args...))
}

// move lets an iterator go on in one way for a while.
func (h *hike) move(x *walker) {
	w := h.w
	for range 1 + w.rng.IntN(4) {
		look := pickFrom(w, []int{0, 1, 1, 1, 2, 3, 7, 40}) // at which values: none, each, some
		switch op := w.rng.IntN(9); op {
		case 0, 1, 2:
			for range w.rng.IntN(90) {
				h.step(x, true, look)
			}
		case 3, 4:
			for range w.rng.IntN(90) {
				h.step(x, false, look)
			}
		case 5:
			for range w.rng.IntN(12) { // about one place
				forward := w.rng.IntN(2) == 0
				for range w.rng.IntN(9) {
					h.step(x, forward, look)
				}
			}
		case 6:
			h.wanted(x, look)
		default:
			h.jump(x, look)
		}
	}
}

func (h *hike) step(x *walker, forward bool, look int) {
	h.unchanged(x)
	n := len(x.pairs)
	if forward {
		x.at = min(x.at+1, n)
		h.arrived(x, "next", x.it.Next(), look)
		return
	}
	if x.fresh {
		x.at = n
	}
	x.at = max(x.at-1, -1)
	h.arrived(x, "prev", x.it.Prev(), look)
}

// jump goes to an end or to a place, which may be given as what the iterator itself shows.
func (h *hike) jump(x *walker, look int) {
	h.unchanged(x)
	n, op := len(x.pairs), h.w.rng.IntN(6)
	if x.hashed {
		op %= 2
	}
	if op < 2 {
		if op == 0 {
			x.at = 0
			h.arrived(x, "first", x.it.First(), look)
		} else {
			x.at = n - 1
			h.arrived(x, "last", x.it.Last(), look)
		}
		return
	}
	key := h.place()
	if h.w.rng.IntN(2) == 0 && x.it.Valid() {
		key = x.it.Key()
		if h.w.rng.IntN(4) == 0 && !x.keysOnly {
			key = x.it.Value()
		}
		key = key[:min(len(key), pando.MaxKeyBytes)]
	}
	at, _ := slices.BinarySearchFunc(x.pairs, string(key), func(p Pair, key string) int { return bytes.Compare([]byte(p.Key), []byte(key)) })
	if op < 4 {
		x.at = at
		h.arrived(x, "seek", x.it.SeekGE(key), look)
	} else {
		x.at = at - 1
		h.arrived(x, "seek below", x.it.SeekLT(key), look)
	}
}

// wanted goes on by what is wanted of the values, a few times.
func (h *hike) wanted(x *walker, look int) {
	odd := uint32(pickFrom(h.w, []int{1, 2, 9, 50, 1 << 20}))
	want := func(value []byte) bool { return crc32.ChecksumIEEE(value)%odd == 0 }
	for range 1 + h.w.rng.IntN(8) {
		h.unchanged(x)
		ok := x.it.NextWanted(func(value []byte) bool {
			if x.at = min(x.at+1, len(x.pairs)); x.at == len(x.pairs) {
				h.fail(x, "is shown %q behind the end", short(string(value)))
			}
			expect := x.pairs[x.at].Value
			if x.keysOnly {
				expect = ""
			}
			if string(value) != expect {
				h.fail(x, "is asked about %q, not %q", short(string(value)), short(expect))
			}
			return want(value)
		})
		if !ok {
			x.at = min(x.at+1, len(x.pairs))
		}
		h.arrived(x, "next wanted", ok, look)
	}
}

// arrived checks where a move has led.
func (h *hike) arrived(x *walker, what string, ok bool, look int) {
	n := len(x.pairs)
	there := x.at >= 0 && x.at < n
	if x.fresh = n == 0; x.fresh {
		x.at = -1
	}
	x.key, x.value, x.kept = nil, nil, false
	if ok != there || x.it.Valid() != there || x.it.Err() != nil {
		h.fail(x, "%s answers %v (at %q, %v)", what, ok, short(string(x.it.Key())), x.it.Err())
	}
	if !there {
		if x.it.Key() != nil || x.it.Value() != nil {
			h.fail(x, "%s: shows %q where nothing is", what, x.it.Key())
		}
		return
	}
	x.kept = look > 0 && h.w.rng.IntN(look) == 0
	if x.kept {
		if h.w.rng.IntN(20) == 0 {
			x.it.Value()
			x.it.ReleaseValue()
		}
		x.value = x.it.Value()
	}
	if h.w.rng.IntN(8) > 0 {
		x.key = x.it.Key()
	}
	h.unchanged(x)
}

// unchanged checks what has been handed out since the last move.
func (h *hike) unchanged(x *walker) {
	if x.at < 0 || x.at >= len(x.pairs) {
		return
	}
	p := x.pairs[x.at]
	if x.key != nil && string(x.key) != p.Key {
		h.fail(x, "shows %q instead of %q", short(string(x.key)), short(p.Key))
	}
	switch {
	case !x.kept:
	case x.keysOnly && x.value == nil:
	case x.keysOnly || string(x.value) != p.Value:
		h.fail(x, "shows %d bytes %q instead of %d %q: %v", len(x.value), short(string(x.value)), len(p.Value), short(p.Value), x.it.Err())
	}
}

func (h *hike) end(i int) {
	x := h.walk[i]
	h.unchanged(x)
	h.w.must(x.it.Close(), "close iterator")
	x.end()
	h.walk = slices.Delete(h.walk, i, i+1)
}

// drop drops the keyspace, if it can be, under those that walk over it.
func (h *hike) drop() {
	if h.name == "default" {
		return
	}
	h.w.must(h.w.db.DropKeyspace(h.name), "drop")
	h.w.must(h.w.db.Checkpoint(ctx), "checkpoint")
	h.w.must(h.w.db.Compact(ctx, pando.CompactOptions{}), "compact")
	delete(h.w.state, h.name)
	delete(h.w.ks, h.name)
	for _, x := range h.walk {
		h.move(x)
	}
}
