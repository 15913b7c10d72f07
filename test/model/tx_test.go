package model

import (
	"bytes"
	"errors"

	"github.com/pandodb/pando"
)

// heldTx is an open optimistic transaction beside its own picture of the database.
type heldTx struct {
	tx     *pando.Tx
	state  State
	since  int // events before it were there when it began
	reads  []event
	writes []event
	points []savepoint
}

type savepoint struct {
	at     pando.Savepoint
	state  State
	writes int
}

// conflict reports whether a change since the transaction began touches what it read or wrote.
func (h *heldTx) conflict(events []event) bool {
	for _, e := range events[h.since:] {
		for _, r := range h.reads {
			if r.touches(e) {
				return true
			}
		}
	}
	return false
}

func (r event) touches(e event) bool {
	switch {
	case r.ks != e.ks:
		return false
	case r.bounds == nil && e.bounds == nil:
		return r.key == e.key
	case r.bounds == nil:
		return e.bounds.Has(r.key)
	case e.bounds == nil:
		return r.bounds.Has(e.key)
	}
	a, b := r.bounds, e.bounds
	return nonEmpty(a) && nonEmpty(b) && (a.Hi == nil || bytes.Compare(b.Lo, a.Hi) < 0) && (b.Hi == nil || bytes.Compare(a.Lo, b.Hi) < 0)
}

func nonEmpty(b *Bounds) bool { return b.Hi == nil || bytes.Compare(b.Lo, b.Hi) < 0 }

func (w *world) opUpdate() {
	w.update(1+w.rng.IntN(15), nil)
}

func (w *world) opUpdateLarge() { w.update(400+w.rng.IntN(1500), nil) }

var errGiveUp = errors.New("give up")

func (w *world) opUpdateFails() { w.update(1+w.rng.IntN(40), errGiveUp) }

func (w *world) update(count int, end error) {
	mine := w.state.Clone()
	var events []event
	it := (*heldIter)(nil)
	err := w.db.Update(func(tx *pando.Tx) error {
		for range count {
			n := w.name()
			w.randomWrite(tx.In(w.ks[n]), n, note{mine, func(e event) { events = append(events, e) }})
			if w.rng.IntN(4) == 0 && count < 100 || w.rng.IntN(200) == 0 {
				r := w.name()
				w.checkReader(tx.In(w.ks[r]), mine, r)
			}
			if it == nil && w.rng.IntN(10) == 0 {
				it = w.openIter(tx.In(w.ks[n]), mine, n) // it sees what was written until now
			}
			if it != nil && w.rng.IntN(3) == 0 {
				w.moveIter(it)
			}
		}
		return end
	})
	if it != nil {
		if it.it.Next() || !errors.Is(it.it.Err(), pando.ErrTxDone) {
			w.fail("iterator behind the end of its transaction: %v", it.it.Err())
		}
		w.must(it.it.Close(), "close iterator")
	}
	if !errors.Is(err, end) {
		w.fail("update: %v", err)
	}
	if end == nil {
		w.state = mine
		w.events = append(w.events, events...)
	}
}

func (w *world) opUpdateSavepoints() {
	mine := w.state.Clone()
	var events []event
	err := w.db.Update(func(tx *pando.Tx) error {
		var points []savepoint
		for range 5 + w.rng.IntN(30) {
			n := w.name()
			switch w.rng.IntN(6) {
			case 0:
				points = append(points, savepoint{tx.Savepoint(), mine.Clone(), len(events)})
			case 1:
				if len(points) > 0 {
					i := w.rng.IntN(len(points))
					p := points[i]
					w.must(tx.RollbackTo(p.at), "roll back to a savepoint")
					mine, events, points = p.state.Clone(), events[:p.writes], points[:i+1]
				}
			case 2:
				w.checkReader(tx.In(w.ks[n]), mine, n)
			default:
				w.randomWrite(tx.In(w.ks[n]), n, note{mine, func(e event) { events = append(events, e) }})
			}
		}
		w.checkAll(tx, mine, "default")
		return nil
	})
	w.must(err, "update")
	w.state = mine
	w.events = append(w.events, events...)
}

func (w *world) opView() {
	err := w.db.View(func(tx *pando.Tx) error {
		for range 5 {
			n := w.name()
			w.checkReader(tx.In(w.ks[n]), w.state, n)
		}
		if err := tx.Put([]byte("a"), nil); !errors.Is(err, pando.ErrReadOnly) {
			w.fail("put in a view: %v", err)
		}
		return nil
	})
	w.must(err, "view")
}

func (w *world) opTxBegin() {
	if len(w.txs) >= 4 {
		return
	}
	tx, err := w.db.Begin(true)
	w.must(err, "begin")
	w.txs = append(w.txs, &heldTx{tx: tx, state: w.state.Clone(), since: len(w.events)})
}

func (w *world) someTx() (*heldTx, int) {
	if len(w.txs) == 0 {
		return nil, 0
	}
	i := w.rng.IntN(len(w.txs))
	return w.txs[i], i
}

// known picks a keyspace that a transaction has seen.
func (w *world) known(h *heldTx) string {
	names := h.state.Names()
	n := names[w.rng.IntN(len(names))]
	if w.ks[n] == nil {
		return "default"
	}
	return n
}

func (w *world) opTxRead() {
	h, _ := w.someTx()
	if h == nil {
		return
	}
	n := w.known(h)
	tx := h.tx.In(w.ks[n])
	if w.rng.IntN(3) > 0 {
		k := w.key()
		h.reads = append(h.reads, event{ks: n, key: string(k)})
		w.checkGet(tx, h.state, n, k)
		return
	}
	b := w.boundsIn(n)
	h.reads = append(h.reads, event{ks: n, bounds: &b})
	switch w.rng.IntN(4) {
	case 0:
		w.checkCount(tx, h.state, n, b)
	case 1:
		w.checkNth(tx, h.state, n, b)
	case 2:
		w.checkWalk(tx, h.state, n, b, true)
	case 3:
		w.checkWalk(tx, h.state, n, b, false)
	}
}

func (w *world) opTxWrite() {
	h, _ := w.someTx()
	if h == nil {
		return
	}
	for range 1 + w.rng.IntN(4) {
		n := w.known(h)
		w.randomWrite(h.tx.In(w.ks[n]), n, note{h.state, func(e event) {
			h.writes = append(h.writes, e)
			h.reads = append(h.reads, e)
		}})
	}
}

func (w *world) opTxSavepoint() {
	if h, _ := w.someTx(); h != nil {
		h.points = append(h.points, savepoint{h.tx.Savepoint(), h.state.Clone(), len(h.writes)})
	}
}

func (w *world) opTxRollbackTo() {
	h, _ := w.someTx()
	if h == nil || len(h.points) == 0 {
		return
	}
	i := w.rng.IntN(len(h.points))
	p := h.points[i]
	w.must(h.tx.RollbackTo(p.at), "roll back to a savepoint")
	h.state, h.writes, h.points = p.state.Clone(), h.writes[:p.writes], h.points[:i+1]
}

func (w *world) opTxCommit() {
	h, i := w.someTx()
	if h == nil {
		return
	}
	w.txs = append(w.txs[:i], w.txs[i+1:]...)
	err := h.tx.Commit()
	if err2 := h.tx.Commit(); !errors.Is(err2, pando.ErrTxDone) {
		w.fail("second commit: %v", err2)
	}
	if len(h.writes) == 0 {
		w.must(err, "commit of nothing")
		return
	}
	if h.conflict(w.events) {
		if !errors.Is(err, pando.ErrConflict) {
			w.fail("commit in spite of a conflict: %v", err)
		}
		return
	}
	if errors.Is(err, pando.ErrConflict) {
		w.conflicts++ // it may be too old to be checked
		return
	}
	w.must(err, "commit")
	for _, e := range h.writes {
		if w.state[e.ks] == nil {
			continue
		}
		if e.bounds == nil {
			v, ok := h.state[e.ks][e.key]
			if ok {
				w.state[e.ks][e.key] = v
			} else {
				delete(w.state[e.ks], e.key)
			}
			continue
		}
		w.state.DeleteRange(e.ks, *e.bounds)
		for k, v := range h.state[e.ks] {
			if e.bounds.Has(k) {
				w.state[e.ks][k] = v
			}
		}
	}
	w.events = append(w.events, h.writes...)
}

func (w *world) opTxRollback() {
	if h, i := w.someTx(); h != nil {
		w.must(h.tx.Rollback(), "roll back")
		w.must(h.tx.Rollback(), "roll back again")
		w.txs = append(w.txs[:i], w.txs[i+1:]...)
	}
}
