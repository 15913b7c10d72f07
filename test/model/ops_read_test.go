package model

import (
	"bytes"
	"context"
	"errors"
	"maps"

	"github.com/pandodb/pando"
)

func (w *world) opRange() {
	n, b := w.name(), w.bounds()
	pairs := w.state.Pairs(n, b)
	if hashed(n) {
		w.loop(n, w.ks[n].Range(nil, nil), w.rng.IntN(len(w.state[n])+1))
		return
	}
	i, stop := 0, w.rng.IntN(len(pairs)+1)
	for k, v := range w.ks[n].Range(b.Lo, b.Hi) {
		if i >= len(pairs) || string(k) != pairs[i].Key || string(v) != pairs[i].Value {
			w.fail("range step %d of %d: %q", i, len(pairs), short(string(k)))
		}
		if i++; i == stop {
			return
		}
	}
	if i != len(pairs) || w.ks[n].Err() != nil {
		w.fail("range ended at %d of %d: %v", i, len(pairs), w.ks[n].Err())
	}
}

func (w *world) opRangeReverse() {
	n, b := w.name(), w.bounds()
	pairs := w.state.Pairs(n, b)
	if hashed(n) {
		w.loop(n, w.ks[n].RangeReverse(nil, nil), 0)
		return
	}
	i := len(pairs)
	for k, v := range w.ks[n].RangeReverse(b.Lo, b.Hi) {
		i--
		if i < 0 || string(k) != pairs[i].Key || string(v) != pairs[i].Value {
			w.fail("reverse range step %d of %d: %q", i, len(pairs), short(string(k)))
		}
	}
	if i != 0 || w.ks[n].Err() != nil {
		w.fail("reverse range ended at %d of %d: %v", i, len(pairs), w.ks[n].Err())
	}
}

func (w *world) opPrefix() {
	n, p := w.name(), w.key()
	p = p[:w.rng.IntN(len(p)+1)]
	if hashed(n) {
		w.loop(n, w.ks[n].Prefix(p[:0]), 0)
		return
	}
	var pairs []Pair
	for _, x := range w.state.Pairs(n, Bounds{}) {
		if bytes.HasPrefix([]byte(x.Key), p) {
			pairs = append(pairs, x)
		}
	}
	i := 0
	for k, v := range w.ks[n].Prefix(p) {
		if i >= len(pairs) || string(k) != pairs[i].Key || string(v) != pairs[i].Value {
			w.fail("prefix %q step %d of %d: %q", p, i, len(pairs), short(string(k)))
		}
		i++
	}
	if i != len(pairs) {
		w.fail("prefix %q ended at %d of %d: %v", p, i, len(pairs), w.ks[n].Err())
	}
}

func (w *world) opExpiry() {
	n, k := w.name(), w.key()
	at, err := w.ks[n].Expiry(k)
	v, ok := w.state[n][string(k)]
	switch {
	case !ok || !v.live():
		if !errors.Is(err, pando.ErrNotFound) {
			w.fail("expiry of %q: %v, %v", short(string(k)), at, err)
		}
	case err != nil || (v.Expiry == 0) != at.IsZero() || (v.Expiry != 0 && at.UnixMilli() != v.Expiry):
		w.fail("expiry of %q: %v, %v, want %d", short(string(k)), at, err, v.Expiry)
	}
}

func (w *world) opChanges() {
	seq, err := w.feedSeq, error(nil)
	state := w.feedState
	for c, e := range w.db.Changes(context.Background(), pando.ChangesOptions{From: seq + 1}) {
		if e != nil {
			err = e
			break
		}
		if c.Seq <= seq {
			w.fail("change %d comes after %d", c.Seq, seq)
		}
		seq = c.Seq
		switch c.Kind {
		case pando.ChangePut:
			expiry := int64(0)
			if !c.Expires.IsZero() {
				expiry = c.Expires.UnixMilli()
			}
			state.Put(c.Keyspace, string(c.Key), string(c.Value), expiry)
		case pando.ChangeDelete:
			state.Delete(c.Keyspace, string(c.Key))
		case pando.ChangeDeleteRange:
			state.DeleteRange(c.Keyspace, Bounds{bytes.Clone(c.Key), bytes.Clone(c.End)})
		case pando.ChangeCreate:
			state[c.Keyspace] = map[string]Value{}
		case pando.ChangeDrop:
			delete(state, c.Keyspace)
		}
	}
	switch {
	case errors.Is(err, pando.ErrChangesGone):
		if w.opts.Profile != pando.Bench && w.opts.KeepChanges >= 64<<20 {
			w.fail("changes from %d are gone in spite of KeepChanges: %v", w.feedSeq+1, err)
		}
	case err != nil:
		w.fail("changes: %v", err)
	default:
		for name := range w.state {
			if !maps.Equal(state[name], w.state[name]) {
				w.fail("the changes from %d to %d of %q do not lead to what is there", w.feedSeq+1, seq, name)
			}
		}
	}
	w.feedSeq, w.feedState = w.db.LastSeq(), w.state.Clone()
}

func (w *world) opMetrics() {
	m := w.db.Metrics()
	if m.LastSeq != w.db.LastSeq() || m.Profile != w.opts.Profile {
		w.fail("metrics: %+v", m)
	}
	if m.LiveBytes > m.SegmentBytes {
		w.fail("more live bytes than there are: %+v", m)
	}
}
