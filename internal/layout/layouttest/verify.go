package layouttest

import (
	"bytes"
	"errors"
	"slices"

	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/record"
)

// Verify compares everything that root answers with a model. now is the moment by which expired records may be gone.
func (w *World) Verify(root layout.Root, m Model, now uint64) {
	w.T.Helper()
	w.verifyGets(root, m, now)
	w.verifyScan(root, m, now)
	w.verifyRecords(root, m, now)
	if w.ordered {
		w.verifySeeks(root, m, now)
		w.verifyCounts(root, m, now)
	}
}

func same(a, b record.Record) bool {
	return a.Kind == b.Kind && a.Expiry == b.Expiry && bytes.Equal(a.Value, b.Value)
}

// verifyGet looks one key up in all ways.
func (w *World) verifyGet(root layout.Root, s *layout.Scratch, m Model, key []byte, now uint64) {
	want, there := m[string(key)]
	optional := there && want.Expired(now)
	hash := record.Hash(Keyspace, key)
	guard := w.Env.Epoch.Enter()
	r, at, status := root.Get(hash, key)
	ok := status == layout.NotResident || optional || (status == layout.Found) == there
	if status == layout.Found {
		ok = ok && there && same(r, want)
	}
	guard.Exit()
	if !ok {
		w.T.Helper() // not before, since it takes longer than the look
		w.T.Errorf("Get(%x): %v, want %v (there: %v)", key, status, want, there)
	}
	verify := func(name string, r record.Record, found bool, err error) {
		if err != nil {
			w.T.Helper()
			w.T.Errorf("%s(%x): %v", name, key, err)
		}
		if (found != there && !optional) || (found && !same(r, want)) {
			w.T.Helper()
			w.T.Errorf("%s(%x): %v %v, want %v %v", name, key, r, found, want, there)
		}
	}
	if status == layout.NotResident {
		found, err := root.GetFrom(s, at, hash, key)
		verify("GetFrom", s.Record, found, err)
	}
	r, found, err := root.GetRead(s, hash, key)
	verify("GetRead", r, found, err)
}

func (w *World) verifyGets(root layout.Root, m Model, now uint64) {
	w.T.Helper()
	var s layout.Scratch
	for k := range m {
		w.verifyGet(root, &s, m, []byte(k), now)
	}
	for range 50 {
		w.verifyGet(root, &s, m, w.Key(), now)
	}
}

// verifyScan reads everything forwards and backwards.
func (w *World) verifyScan(root layout.Root, m Model, now uint64) {
	w.T.Helper()
	c := root.NewCursor()
	defer c.Close()
	want := m.Keys(nil, nil, now)
	var forward, back []string
	for ok := c.Next(); ok; ok = c.Next() {
		forward = w.collect(forward, c, m, now)
	}
	if c.Err() != nil || (w.ordered && !equal(forward, want)) || len(forward) != len(want) {
		w.T.Errorf("forward: %d keys, want %d; %v", len(forward), len(want), c.Err())
	}
	// Having moved off the end, the cursor comes back.
	for ok := c.Prev(); ok; ok = c.Prev() {
		back = w.collect(back, c, m, now)
	}
	reverse(back)
	if c.Err() != nil || !equal(back, forward) {
		w.T.Errorf("backward: %d keys, forward %d; %v", len(back), len(forward), c.Err())
	}
	w.verifyWindows(c, forward, now)
}

// collect appends the key under the cursor unless it has expired, and compares its record.
func (w *World) collect(keys []string, c layout.Cursor, m Model, now uint64) []string {
	r := c.Record()
	if r.Expired(now) {
		return keys
	}
	if want, ok := m[string(c.Key())]; !ok || !same(r, want) {
		w.T.Helper()
		w.T.Errorf("cursor at %x: %v, want %v %v", c.Key(), r, want, ok)
	}
	return append(keys, string(c.Key()))
}

// verifyWindows reads everything page by page.
func (w *World) verifyWindows(c layout.Cursor, want []string, now uint64) {
	w.T.Helper()
	var got []string
	for ok := c.First(); ok; ok = c.Next() {
		p, i := c.Window()
		for ; i < p.Len(); i++ {
			if !p.Record(i).Expired(now) {
				got = append(got, string(p.AppendKey(nil, i)))
			}
		}
		c.MoveTo(p.Len() - 1)
		if string(c.Key()) != string(p.AppendKey(nil, p.Len()-1)) {
			w.T.Errorf("MoveTo: cursor at %x", c.Key())
		}
	}
	if !equal(got, want) {
		w.T.Errorf("windows: %d keys, want %d", len(got), len(want))
	}
}

func (w *World) verifyRecords(root layout.Root, m Model, now uint64) {
	w.T.Helper()
	n, exact := root.Records()
	least := int64(len(m.Keys(nil, nil, now)))
	most := int64(len(m))
	if n < least || (exact && n > most) {
		w.T.Errorf("Records: %d (exact: %v), want %d to %d", n, exact, least, most)
	}
	if root.Empty() && least > 0 {
		w.T.Errorf("Empty, want %d records", least)
	}
}

func (w *World) verifySeeks(root layout.Root, m Model, now uint64) {
	w.T.Helper()
	c := root.NewCursor()
	defer c.Close()
	all := m.Keys(nil, nil, now)
	for range 40 {
		key := w.Key()
		at, _ := slices.BinarySearch(all, string(key))
		from := all[at:]
		ok := c.SeekGE(key)
		for ok && c.Record().Expired(now) {
			ok = c.Next()
		}
		w.expect(c, ok, from, 0, "SeekGE", key)
		below := all[:at]
		ok = c.SeekLT(key)
		for ok && c.Record().Expired(now) {
			ok = c.Prev()
		}
		w.expect(c, ok, below, len(below)-1, "SeekLT", key)
	}
}

func (w *World) expect(c layout.Cursor, ok bool, keys []string, i int, what string, key []byte) {
	w.T.Helper()
	switch {
	case c.Err() != nil:
		w.T.Errorf("%s(%x): %v", what, key, c.Err())
	case ok != (len(keys) > 0):
		w.T.Errorf("%s(%x): %v, want %d keys", what, key, ok, len(keys))
	case ok && string(c.Key()) != keys[i]:
		w.T.Errorf("%s(%x): at %x, want %x", what, key, c.Key(), keys[i])
	}
}

func (w *World) verifyCounts(root layout.Root, m Model, now uint64) {
	w.T.Helper()
	for range 15 {
		lo, hi := w.Bounds()
		at := now + uint64(w.Rand.IntN(20))
		want := m.Keys(lo, hi, at)
		n, err := root.Count(lo, hi, at)
		if err != nil || n != int64(len(want)) {
			w.T.Errorf("Count(%x, %x, %d): %d %v, want %d", lo, hi, at, n, err, len(want))
		}
		i := w.Rand.IntN(len(want) + 2)
		key, r, err := root.Nth(lo, hi, int64(i), at)
		if i >= len(want) {
			if !errors.Is(err, layout.ErrNotFound) {
				w.T.Errorf("Nth(%x, %x, %d) of %d: %x %v", lo, hi, i, len(want), key, err)
			}
			continue
		}
		if err != nil || string(key) != want[i] || !same(r, m[want[i]]) {
			w.T.Errorf("Nth(%x, %x, %d): %x %v, want %x", lo, hi, i, key, err, want[i])
		}
	}
}

func equal(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func reverse(keys []string) {
	for i, j := 0, len(keys)-1; i < j; i, j = i+1, j-1 {
		keys[i], keys[j] = keys[j], keys[i]
	}
}
