package model

import (
	"errors"

	"github.com/pandodb/pando"
)

// Some keyspaces are hash tables, which show the same pairs in no order that the model would know.

// hashed reports whether the keyspace of a name is one, whenever it is created.
func hashed(ks string) bool { return ks == "space1" || ks == "space4" || ks == "space7" }

// whole reports whether bounds leave nothing out.
func (b Bounds) whole() bool { return len(b.Lo) == 0 && b.Hi == nil }

// refused reports whether bounds are refused in a keyspace, after it has checked that err says so.
func (w *world) refused(ks string, b Bounds, err error) bool {
	if !hashed(ks) || b.whole() {
		return false
	}
	if !errors.Is(err, pando.ErrNoOrder) {
		w.fail("[%q, %q) of %q, which keeps no order: %v", short(string(b.Lo)), short(string(b.Hi)), ks, err)
	}
	return true
}

// boundsIn are bounds that make sense in a keyspace, most of the time.
func (w *world) boundsIn(ks string) Bounds {
	if hashed(ks) && w.rng.IntN(4) > 0 {
		return Bounds{}
	}
	return w.bounds()
}

// unordered checks that pairs, as they came out of a hash table, are those that are wanted, and returns them in the order in which they came.
func (w *world) unordered(ks string, got, want []Pair) []Pair {
	left := map[string]string{}
	for _, p := range want {
		left[p.Key] = p.Value
	}
	for _, p := range got {
		if v, ok := left[p.Key]; !ok || v != p.Value {
			w.fail("walk over %q: %q is extra, or came before, or has %d bytes %q instead of %q", ks, short(p.Key), len(p.Value), short(p.Value), short(v))
		}
		delete(left, p.Key)
	}
	for key := range left {
		w.fail("walk over %q: %d pairs are missing, such as %q", ks, len(left), short(key))
	}
	return got
}

// walkUnordered is what checkWalk does in a hash table.
func (w *world) walkUnordered(it *pando.Iterator, move func() bool, ks string, b Bounds, want []Pair) {
	var got []Pair
	for move() {
		got = append(got, Pair{string(it.Key()), string(it.Value())})
	}
	if !w.refused(ks, b, it.Err()) {
		w.must(it.Err(), "walk")
		w.unordered(ks, got, want)
	}
}

// learn walks an iterator over a hash table to its end to find out in which order it shows the pairs, and leaves it there.
func (w *world) learn(h *heldIter, ks string) *heldIter {
	if h.hashed = hashed(ks); !h.hashed {
		return h
	}
	var got []Pair
	for h.it.Next() {
		p := Pair{Key: string(h.it.Key()), Value: string(h.it.Value())}
		if h.keysOnly {
			for _, x := range h.pairs {
				if x.Key == p.Key {
					p.Value = x.Value
				}
			}
		}
		got = append(got, p)
	}
	w.must(h.it.Err(), "walk")
	h.pairs = w.unordered(ks, got, h.pairs)
	if len(got) > 0 {
		h.at, h.fresh = len(got), false
	}
	return h
}

// loop checks a loop over a hash table that ends by itself, or after so many pairs.
func (w *world) loop(ks string, pairs func(func(k, v []byte) bool), stop int) {
	var got []Pair
	for k, v := range pairs {
		if got = append(got, Pair{string(k), string(v)}); len(got) == stop {
			break
		}
	}
	want := w.state.Pairs(ks, Bounds{})
	if len(got) == stop && stop > 0 { // the rest is not looked at
		var some []Pair
		for _, g := range got {
			if v, ok := w.state.Get(ks, g.Key); ok {
				some = append(some, Pair{g.Key, v})
			}
		}
		want = some
	}
	w.unordered(ks, got, want)
}
