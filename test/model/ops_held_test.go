package model

import (
	"errors"
	"io"

	"github.com/pandodb/pando"
)

func (w *world) opIterOpen() {
	if len(w.iters) < 6 {
		n := w.name()
		w.iters = append(w.iters, w.openIter(w.ks[n], w.state, n))
	}
}

func (w *world) opIterMove() {
	if len(w.iters) > 0 {
		h := w.iters[w.rng.IntN(len(w.iters))]
		for range 1 + w.rng.IntN(10) {
			w.moveIter(h)
		}
	}
}

func (w *world) opIterClose() {
	if len(w.iters) > 0 {
		i := w.rng.IntN(len(w.iters))
		h := w.iters[i]
		w.must(h.it.Close(), "close iterator")
		if h.it.Next() || !errors.Is(h.it.Err(), pando.ErrClosed) {
			w.fail("a closed iterator answers %v", h.it.Err())
		}
		w.iters = append(w.iters[:i], w.iters[i+1:]...)
	}
}

func (w *world) opSnapOpen() {
	if len(w.snaps) < 5 {
		w.snaps = append(w.snaps, &heldSnap{w.db.Snapshot(), w.state.Clone()})
	}
}

// someSnap picks a held snapshot and a keyspace that it knows and that is still there to name it.
func (w *world) someSnap() (*heldSnap, string) {
	if len(w.snaps) == 0 {
		return nil, ""
	}
	h := w.snaps[w.rng.IntN(len(w.snaps))]
	names := h.state.Names()
	n := names[w.rng.IntN(len(names))]
	if w.ks[n] == nil {
		return nil, ""
	}
	return h, n
}

func (w *world) opSnapRead() {
	if h, n := w.someSnap(); h != nil {
		w.checkReader(h.snap.In(w.ks[n]), h.state, n)
	}
}

func (w *world) opSnapCheckAll() {
	if h, n := w.someSnap(); h != nil {
		w.checkAll(h.snap.In(w.ks[n]), h.state, n)
	}
}

func (w *world) opSnapIter() {
	if h, n := w.someSnap(); h != nil && len(w.iters) < 6 {
		// The iterator ends with its snapshot: keep it for one round only.
		it := w.openIter(h.snap.In(w.ks[n]), h.state, n)
		for range 30 {
			w.moveIter(it)
		}
		w.must(it.it.Close(), "close iterator")
	}
}

func (w *world) opSnapClose() {
	if len(w.snaps) > 0 {
		i := w.rng.IntN(len(w.snaps))
		s := w.snaps[i].snap
		w.must(s.Close(), "close snapshot")
		w.must(s.Close(), "close snapshot again")
		if _, err := s.Get([]byte("key001")); !errors.Is(err, pando.ErrClosed) {
			w.fail("a closed snapshot answers %v", err)
		}
		w.snaps = append(w.snaps[:i], w.snaps[i+1:]...)
	}
}

func (w *world) opValueOpen() {
	n := w.name()
	pairs := w.state.Pairs(n, Bounds{})
	if len(pairs) == 0 || len(w.values) > 4 {
		return
	}
	p := pairs[w.rng.IntN(len(pairs))]
	r, err := w.ks[n].OpenValue([]byte(p.Key))
	w.must(err, "open value")
	if r.Size() != int64(len(p.Value)) {
		w.fail("size of value: %d, want %d", r.Size(), len(p.Value))
	}
	w.values = append(w.values, &heldValue{r, p.Value})
}

func (w *world) opValueRead() {
	if len(w.values) == 0 {
		return
	}
	i := w.rng.IntN(len(w.values))
	h := w.values[i]
	if n := len(h.data); n > 0 {
		from := w.rng.IntN(n)
		b := make([]byte, 1+w.rng.IntN(n-from))
		if _, err := h.r.ReadAt(b, int64(from)); (err != nil && err != io.EOF) || string(b) != h.data[from:from+len(b)] {
			w.fail("read a value at %d: %v", from, err)
		}
	}
	if w.rng.IntN(2) == 0 {
		_, err := h.r.Seek(0, io.SeekStart)
		w.must(err, "seek")
		b, err := io.ReadAll(h.r)
		if err != nil || string(b) != h.data {
			w.fail("read a value: %d bytes, %v, want %d", len(b), err, len(h.data))
		}
		w.must(h.r.Close(), "close value")
		w.values = append(w.values[:i], w.values[i+1:]...)
	}
}
