package model

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/test/entropy"
)

// world is a database beside its model.
type world struct {
	rng   *rand.Rand
	fs    disk
	opts  pando.Options
	db    *pando.DB
	ks    map[string]*pando.Keyspace
	state State

	snaps  []*heldSnap
	iters  []*heldIter
	txs    []*heldTx
	values []*heldValue
	events []event // every change so far

	keyOf   func() []byte // what key and value return, where it is there
	valueOf func() []byte

	feedSeq   uint64
	feedState State
	step      int
	shape     string       // what a shaped program is like
	beside    <-chan error // what goes on beside its next step
	trace     []string
	conflicts int
}

// event is one committed change, for the conflicts of optimistic transactions.
type event struct {
	ks     string
	key    string
	bounds *Bounds
}

type heldSnap struct {
	snap  *pando.Snapshot
	state State
}

type heldValue struct {
	r    *pando.ValueReader
	data string
}

// reader is what snapshots, transactions and keyspaces have in common.
type reader interface {
	Get(key []byte) ([]byte, error)
	GetTo(dst, key []byte) ([]byte, error)
	Has(key []byte) (bool, error)
	Iter(o *pando.IterOptions) *pando.Iterator
	Count(lo, hi []byte) (int64, error)
	Nth(lo, hi []byte, n int64) (key, value []byte, err error)
	Err() error
}

// failure ends a program; the driver prints it with the seed.
type failure struct{ msg string }

func (w *world) fail(format string, args ...any) {
	panic(failure{fmt.Sprintf(format, args...)})
}

func (w *world) must(err error, what string) {
	if err != nil {
		w.fail("%s: %v", what, err)
	}
}

func newWorld(seed uint64, fs disk) *world {
	w := &world{rng: rand.New(rand.NewPCG(seed, 1)), fs: fs, state: State{"default": {}}, ks: map[string]*pando.Keyspace{}}
	w.opts = pando.Options{
		FS: w.fs, Profile: pando.Profile(w.rng.IntN(3)), MemoryBytes: 1 << 20,
		ValueThreshold: []int{1, 16, 64, 200, 1024}[w.rng.IntN(5)],
		Compression:    pando.Compression(w.rng.IntN(4)),
		KeepChanges:    []int64{0, 0, 1 << 20, 64 << 20}[w.rng.IntN(4)],
		SyncInterval:   time.Duration(1+w.rng.IntN(20)) * time.Millisecond,
		SyncBytes:      []int64{0, 1, 4096}[w.rng.IntN(3)],
	}
	w.open()
	w.feedState = w.state.Clone()
	return w
}

func (w *world) open() {
	w.opts.FS = w.fs
	db, err := pando.Open("db", &w.opts)
	w.must(err, "open")
	w.db = db
	w.ks = map[string]*pando.Keyspace{"default": db.Default()}
	for name := range w.state {
		if name != "default" {
			ks, err := db.Keyspace(name, nil)
			w.must(err, "open keyspace")
			w.ks[name] = ks
		}
	}
	list, err := db.Keyspaces()
	w.must(err, "keyspaces")
	if len(list) != len(w.state) {
		w.fail("keyspaces: %d, want %d", len(list), len(w.state))
	}
}

func (w *world) name() string {
	names := w.state.Names()
	return names[w.rng.IntN(len(names))]
}

func (w *world) key() []byte {
	if w.keyOf != nil {
		return w.keyOf()
	}
	switch r := w.rng.IntN(100); {
	case r < 2:
		return []byte{}
	case r < 60:
		return fmt.Appendf(nil, "key%03d", w.rng.IntN(300))
	case r < 75:
		return fmt.Appendf(nil, "%c", 'a'+rune(w.rng.IntN(26)))
	case r < 90:
		return fmt.Appendf(nil, "prefix/of/some/length/%02d/%02d", w.rng.IntN(20), w.rng.IntN(10))
	case r < 95:
		return append(bytes.Repeat([]byte{0xff}, w.rng.IntN(4)), byte(w.rng.IntN(3)))
	case r < 99:
		return append(bytes.Repeat([]byte("long"), 60+w.rng.IntN(3)), byte(w.rng.IntN(256)))
	default:
		return append(bytes.Repeat([]byte("L"), pando.MaxKeyBytes-1), byte('a'+w.rng.IntN(2)))
	}
}

func (w *world) value() []byte {
	if w.valueOf != nil {
		return w.valueOf()
	}
	t := w.opts.ValueThreshold
	n := 0
	switch r := w.rng.IntN(1000); {
	case r < 50:
	case r < 600:
		n = w.rng.IntN(40)
	case r < 800:
		n = max(t+w.rng.IntN(3)-1, 0)
	case r < 960:
		n = w.rng.IntN(3000)
	case r < 995:
		n = w.rng.IntN(70000)
	default:
		n = 1<<20 + w.rng.IntN(1<<20)
	}
	if w.rng.IntN(2) == 0 {
		return bytes.Repeat([]byte{byte('a' + w.rng.IntN(26))}, n)
	}
	return entropy.Bytes(w.rng, n)
}

func (w *world) bounds() Bounds {
	var b Bounds
	switch w.rng.IntN(12) {
	case 0:
		return Bounds{}
	case 1:
		return Bounds{Lo: w.key(), Hi: []byte{}}
	case 2:
		return Bounds{Lo: w.key()}
	case 3:
		return Bounds{Hi: w.key()}
	}
	b.Lo, b.Hi = w.key(), w.key()
	if bytes.Compare(b.Lo, b.Hi) > 0 && w.rng.IntN(8) > 0 {
		b.Lo, b.Hi = b.Hi, b.Lo
	}
	return b
}

// narrow bounds delete a few keys only, so that there is something left to look at.
func (w *world) narrow() Bounds {
	if w.rng.IntN(20) == 0 {
		return w.bounds()
	}
	at := w.rng.IntN(300)
	return Bounds{Lo: fmt.Appendf(nil, "key%03d", at), Hi: fmt.Appendf(nil, "key%03d", at+w.rng.IntN(30))}
}

func (w *world) expiry() (time.Time, int64) {
	at := time.Now().Add(-time.Hour)
	if w.rng.IntN(2) == 0 {
		at = at.Add(10 * time.Hour)
	}
	return at, at.UnixMilli()
}

func (w *world) changed(ks, key string) { w.events = append(w.events, event{ks: ks, key: key}) }
func (w *world) changedRange(ks string, b Bounds) {
	w.events = append(w.events, event{ks: ks, bounds: &b})
}

// checkReader compares what a reader shows with a state.
func (w *world) checkReader(r reader, state State, ks string) {
	switch w.rng.IntN(6) {
	case 0:
		w.checkGet(r, state, ks, w.key())
	case 1:
		w.checkCount(r, state, ks, w.boundsIn(ks))
	case 2:
		w.checkNth(r, state, ks, w.boundsIn(ks))
	case 3:
		w.checkWalk(r, state, ks, w.boundsIn(ks), true)
	case 4:
		w.checkWalk(r, state, ks, w.boundsIn(ks), false)
	case 5:
		h := w.openIter(r, state, ks)
		for range 10 + w.rng.IntN(40) {
			w.moveIter(h)
		}
		w.must(h.it.Close(), "close iterator")
	}
}

func (w *world) checkAll(r reader, state State, ks string) {
	w.checkWalk(r, state, ks, Bounds{}, true)
	w.checkWalk(r, state, ks, Bounds{}, false)
	w.checkCount(r, state, ks, Bounds{})
	for k, v := range state[ks] {
		got, err := r.Get([]byte(k))
		if !v.live() {
			if !errors.Is(err, pando.ErrNotFound) {
				w.fail("get %q of %q: %q, %v, want not found: it has expired", short(k), ks, short(string(got)), err)
			}
			continue
		}
		if err != nil || string(got) != v.Data {
			w.fail("get %q of %q: %d bytes %q, %v, want %d bytes %q", short(k), ks, len(got), short(string(got)), err, len(v.Data), short(v.Data))
		}
	}
}

func (w *world) checkGet(r reader, state State, ks string, key []byte) {
	want, there := state.Get(ks, string(key))
	var got []byte
	var err error
	if w.rng.IntN(2) == 0 {
		got, err = r.Get(key)
	} else {
		got, err = r.GetTo([]byte("before"), key)
		if !bytes.HasPrefix(got, []byte("before")) {
			w.fail("GetTo does not append: %q", got)
		}
		got = got[len("before"):]
	}
	has, herr := r.Has(key)
	if herr != nil || has != there {
		w.fail("has %q of %q: %v, %v, want %v", short(string(key)), ks, has, herr, there)
	}
	if !there {
		if !errors.Is(err, pando.ErrNotFound) {
			w.fail("get %q of %q: %q, %v, want not found", short(string(key)), ks, short(string(got)), err)
		}
		return
	}
	if err != nil || string(got) != want {
		w.fail("get %q of %q: %d bytes %q, %v, want %d bytes %q", short(string(key)), ks, len(got), short(string(got)), err, len(want), short(want))
	}
}

func (w *world) checkCount(r reader, state State, ks string, b Bounds) {
	n, err := r.Count(b.Lo, b.Hi)
	if w.refused(ks, b, err) {
		return
	}
	if want := len(state.Pairs(ks, b)); err != nil || n != int64(want) {
		w.fail("count [%q, %q) of %q: %d, %v, want %d", short(string(b.Lo)), short(string(b.Hi)), ks, n, err, want)
	}
}

func (w *world) checkNth(r reader, state State, ks string, b Bounds) {
	pairs := state.Pairs(ks, b)
	n := w.rng.IntN(len(pairs)+3) - 1
	k, v, err := r.Nth(b.Lo, b.Hi, int64(n))
	if hashed(ks) {
		w.refused(ks, Bounds{Hi: []byte{}}, err)
		return
	}
	if n < 0 || n >= len(pairs) {
		if !errors.Is(err, pando.ErrNotFound) {
			w.fail("nth %d of %d: %q, %v", n, len(pairs), short(string(k)), err)
		}
		return
	}
	if err != nil || string(k) != pairs[n].Key || string(v) != pairs[n].Value {
		w.fail("nth %d of [%q, %q) of %q: %q %q, %v, want %q %q", n, short(string(b.Lo)), short(string(b.Hi)), ks, short(string(k)), short(string(v)), err, short(pairs[n].Key), short(pairs[n].Value))
	}
}

func (w *world) checkWalk(r reader, state State, ks string, b Bounds, forward bool) {
	pairs := state.Pairs(ks, b)
	it := r.Iter(&pando.IterOptions{Lower: b.Lo, Upper: b.Hi})
	defer it.Close()
	at, step := 0, 1
	if !forward {
		at, step = len(pairs)-1, -1
	}
	move := func() bool {
		if forward {
			return it.Next()
		}
		return it.Prev()
	}
	if hashed(ks) {
		w.walkUnordered(it, move, ks, b, pairs)
		return
	}
	for move() {
		if at < 0 || at >= len(pairs) {
			w.fail("walk over %q: extra key %q", ks, short(string(it.Key())))
		}
		w.checkPair(it, pairs[at], false)
		at += step
	}
	w.must(it.Err(), "walk")
	if at != -1 && at != len(pairs) || (forward && at != len(pairs)) || (!forward && at != -1) {
		w.fail("walk over %q [%q,%q) ended at %d of %d (forward %v): missing %q", ks, short(string(b.Lo)), short(string(b.Hi)), at, len(pairs), forward, short(pairs[at].Key))
	}
}

func (w *world) checkPair(it *pando.Iterator, p Pair, keysOnly bool) {
	if !it.Valid() || string(it.Key()) != p.Key {
		w.fail("iterator is at %q (valid %v), want %q", short(string(it.Key())), it.Valid(), short(p.Key))
	}
	if keysOnly {
		if it.Value() != nil {
			w.fail("a walk over keys only shows a value")
		}
		return
	}
	if v := it.Value(); string(v) != p.Value || it.Err() != nil {
		w.fail("iterator at %q: value %d bytes %q, %v, want %d bytes %q", short(p.Key), len(v), short(string(v)), it.Err(), len(p.Value), short(p.Value))
	}
}

// heldIter is an open iterator beside the pairs that it has to show.
type heldIter struct {
	it       *pando.Iterator
	pairs    []Pair
	at       int // -1: before the first; len: behind the last
	fresh    bool
	keysOnly bool
	hashed   bool // it cannot seek
}

func (w *world) openIter(r reader, state State, ks string) *heldIter {
	h := &heldIter{at: -1, fresh: true, keysOnly: w.rng.IntN(5) == 0}
	if w.rng.IntN(4) == 0 {
		h.keysOnly = false
		h.it, h.pairs = r.Iter(nil), state.Pairs(ks, Bounds{})
		return w.learn(h, ks)
	}
	var b Bounds
	if !hashed(ks) {
		b = w.bounds()
	}
	lo, hi := bytes.Clone(b.Lo), bytes.Clone(b.Hi)
	h.it = r.Iter(&pando.IterOptions{Lower: lo, Upper: hi, KeysOnly: h.keysOnly})
	scribble(lo)
	scribble(hi)
	h.pairs = state.Pairs(ks, b)
	return w.learn(h, ks)
}

// scribble changes what the caller may change as soon as a call has returned.
func scribble(b []byte) {
	for i := range b {
		b[i] ^= 0x55
	}
}

func (w *world) moveIter(h *heldIter) {
	n := len(h.pairs)
	var ok bool
	op := w.rng.IntN(12)
	if h.hashed {
		op %= 9
	}
	switch {
	case op < 4:
		ok = h.it.Next()
		h.at = min(h.at+1, n)
	case op < 7:
		ok = h.it.Prev()
		if h.fresh {
			h.at = n - 1
		} else {
			h.at = max(h.at-1, -1)
		}
	case op == 7:
		ok, h.at = h.it.First(), 0
	case op == 8:
		ok, h.at = h.it.Last(), n-1
	default:
		key := w.key()
		if w.rng.IntN(10) == 0 {
			key = nil
		}
		k := string(key)
		i := 0
		for i < n && h.pairs[i].Key < k {
			i++
		}
		if op < 11 {
			ok, h.at = h.it.SeekGE(key), i
		} else {
			ok, h.at = h.it.SeekLT(key), i-1
		}
		scribble(key)
	}
	h.fresh = false
	want := h.at >= 0 && h.at < n
	if ok != want || h.it.Valid() != want {
		w.fail("iterator move %d answers %v (valid %v, err %v), want %v at %d of %d; key %q", op, ok, h.it.Valid(), h.it.Err(), want, h.at, n, short(string(h.it.Key())))
	}
	if want {
		w.checkPair(h.it, h.pairs[h.at], h.keysOnly)
	} else if op == 7 && n == 0 {
		h.at = 0
	}
	if n == 0 && !want {
		// Where an empty walk stands does not matter.
		h.at, h.fresh = -1, true
	}
}

// dropHeld closes everything that is held.
func (w *world) dropHeld() {
	for _, h := range w.iters {
		w.must(h.it.Close(), "close iterator")
	}
	for _, s := range w.snaps {
		w.must(s.snap.Close(), "close snapshot")
	}
	for _, x := range w.txs {
		w.must(x.tx.Rollback(), "roll back")
	}
	for _, v := range w.values {
		w.must(v.r.Close(), "close value")
	}
	w.iters, w.snaps, w.txs, w.values = nil, nil, nil, nil
}

func (w *world) checkEverything() {
	for name := range w.state {
		w.checkAll(w.ks[name], w.state, name)
	}
	r, err := w.db.Check(context.Background())
	w.must(err, "check")
	w.must(r.Err(), "check found damage")
}

// run runs one random program.
func run(t *testing.T, fs disk, seed uint64, ops int) {
	t.Helper()
	program(t, fs, seed, func(w *world) {
		for w.step = range ops {
			o := w.pick()
			w.trace = append(w.trace, o.name)
			o.run(w)
		}
	})
}

// program does what body does in a world of its own, compares everything at its end, and reports how it failed.
func program(t *testing.T, fs disk, seed uint64, body func(*world)) {
	t.Helper()
	var w *world
	defer func() {
		x := recover()
		if x == nil {
			return
		}
		f, ok := x.(failure)
		if !ok {
			t.Logf("seed %d, step %d", seed, w.step)
			panic(x)
		}
		if w != nil {
			w.db.Close()
		}
		from := max(len(w.trace)-15, 0)
		t.Fatalf("seed %d (profile %v, threshold %d), step %d: %s\n%s\nlast operations: %s", seed, w.opts.Profile, w.opts.ValueThreshold, w.step, f.msg, w.shape, strings.Join(w.trace[from:], " "))
	}()
	w = newWorld(seed, fs)
	body(w)
	w.checkEverything()
	w.dropHeld()
	w.must(w.db.Close(), "close")
	w.open()
	w.checkEverything()
	w.must(w.db.Close(), "close")
}
