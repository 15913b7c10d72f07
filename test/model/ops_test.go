package model

import (
	"bytes"
	"context"
)

// op is one kind of operation; weight says how often it comes.
type op struct {
	name   string
	weight int
	run    func(*world)
}

var ops = []op{
	{"put", 60, (*world).opPut},
	{"putMany", 10, (*world).opPutMany},
	{"putExpiring", 8, (*world).opPutExpiring},
	{"putReader", 6, (*world).opPutReader},
	{"overwriteSame", 6, (*world).opOverwriteSame},
	{"delete", 15, (*world).opDelete},
	{"deleteRange", 6, (*world).opDeleteRange},
	{"deleteRangeThenPut", 4, (*world).opDeleteRangeThenPut},
	{"deleteAll", 1, (*world).opDeleteAll},
	{"batch", 12, (*world).opBatch},
	{"batchLarge", 3, (*world).opBatchLarge},
	{"batchEmpty", 1, (*world).opBatchEmpty},
	{"batchReset", 2, (*world).opBatchReset},
	{"batchTwice", 2, (*world).opBatchTwice},
	{"batchFails", 2, (*world).opBatchFails},
	{"get", 20, func(w *world) { n := w.name(); w.checkGet(w.ks[n], w.state, n, w.key()) }},
	{"count", 8, func(w *world) { n := w.name(); w.checkCount(w.ks[n], w.state, n, w.boundsIn(n)) }},
	{"nth", 8, func(w *world) { n := w.name(); w.checkNth(w.ks[n], w.state, n, w.boundsIn(n)) }},
	{"walk", 6, func(w *world) { n := w.name(); w.checkWalk(w.ks[n], w.state, n, w.boundsIn(n), true) }},
	{"walkBack", 6, func(w *world) { n := w.name(); w.checkWalk(w.ks[n], w.state, n, w.boundsIn(n), false) }},
	{"range", 3, (*world).opRange},
	{"rangeReverse", 3, (*world).opRangeReverse},
	{"prefix", 3, (*world).opPrefix},
	{"expiryOf", 3, (*world).opExpiry},
	{"checkAll", 1, func(w *world) { n := w.name(); w.checkAll(w.ks[n], w.state, n) }},
	{"iterOpen", 8, (*world).opIterOpen},
	{"iterMove", 20, (*world).opIterMove},
	{"iterClose", 4, (*world).opIterClose},
	{"snapOpen", 6, (*world).opSnapOpen},
	{"snapRead", 15, (*world).opSnapRead},
	{"snapCheckAll", 2, (*world).opSnapCheckAll},
	{"snapIter", 4, (*world).opSnapIter},
	{"snapClose", 4, (*world).opSnapClose},
	{"valueOpen", 3, (*world).opValueOpen},
	{"valueRead", 3, (*world).opValueRead},
	{"update", 10, (*world).opUpdate},
	{"updateFails", 3, (*world).opUpdateFails},
	{"updateSavepoints", 4, (*world).opUpdateSavepoints},
	{"updateLarge", 1, (*world).opUpdateLarge},
	{"view", 4, (*world).opView},
	{"txBegin", 6, (*world).opTxBegin},
	{"txRead", 10, (*world).opTxRead},
	{"txWrite", 14, (*world).opTxWrite},
	{"txSavepoint", 4, (*world).opTxSavepoint},
	{"txRollbackTo", 3, (*world).opTxRollbackTo},
	{"txCommit", 6, (*world).opTxCommit},
	{"txRollback", 2, (*world).opTxRollback},
	{"modify", 5, (*world).opModify},
	{"compareAndSet", 5, (*world).opCompareAndSet},
	{"changes", 3, (*world).opChanges},
	{"sync", 3, func(w *world) { w.must(w.db.Sync(), "sync") }},
	{"checkpoint", 5, func(w *world) { w.must(w.db.Checkpoint(context.Background()), "checkpoint") }},
	{"compact", 1, (*world).opCompact},
	{"check", 1, (*world).opCheck},
	{"backup", 1, (*world).opBackup},
	{"reopen", 1, (*world).opReopen},
	{"reopenOther", 1, (*world).opReopenOther},
	{"kill", 1, (*world).opKill},
	{"powerCut", 1, (*world).opPowerCut},
	{"readOnly", 1, (*world).opReadOnly},
	{"createKeyspace", 3, (*world).opCreateKeyspace},
	{"dropKeyspace", 1, (*world).opDropKeyspace},
	{"dropAndCreate", 1, (*world).opDropAndCreate},
	{"metrics", 1, (*world).opMetrics},
}

func (w *world) pick() op {
	total := 0
	for _, o := range ops {
		total += o.weight
	}
	n := w.rng.IntN(total)
	for _, o := range ops {
		if n -= o.weight; n < 0 {
			return o
		}
	}
	panic("unreachable")
}

// writer is what batches, transactions and keyspaces have in common.
type writer interface {
	Put(key, value []byte) error
	Delete(key []byte) error
	DeleteRange(lo, hi []byte) error
}

// note is told each write; transactions keep them for later.
type note struct {
	state State
	event func(event)
}

// randomWrite does one write and the same to the model. The slices are spoiled afterwards.
func (w *world) randomWrite(to writer, ks string, n note) {
	what := w.rng.IntN(10)
	if what == 2 && hashed(ks) && w.rng.IntN(30) > 0 {
		what = 0 // or there would be hardly ever anything left
	}
	switch what {
	case 0, 1:
		k := w.key()
		n.state.Delete(ks, string(k))
		n.event(event{ks: ks, key: string(k)})
		w.must(to.Delete(k), "delete")
		scribble(k)
	case 2:
		b := w.narrow()
		if hashed(ks) {
			b = Bounds{}
		}
		n.state.DeleteRange(ks, b)
		n.event(event{ks: ks, bounds: &Bounds{bytes.Clone(b.Lo), bytes.Clone(b.Hi)}})
		w.must(to.DeleteRange(b.Lo, b.Hi), "delete range")
		scribble(b.Lo)
		scribble(b.Hi)
	default:
		k, v := w.key(), w.value()
		n.state.Put(ks, string(k), string(v), 0)
		n.event(event{ks: ks, key: string(k)})
		w.must(to.Put(k, v), "put")
		scribble(k)
		scribble(v)
	}
}

// direct makes writes count in the model at once.
func (w *world) direct() note {
	return note{w.state, func(e event) { w.events = append(w.events, e) }}
}
