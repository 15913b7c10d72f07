package model

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/memfs"
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
	{"count", 8, func(w *world) { n := w.name(); w.checkCount(w.ks[n], w.state, n, w.bounds()) }},
	{"nth", 8, func(w *world) { n := w.name(); w.checkNth(w.ks[n], w.state, n, w.bounds()) }},
	{"walk", 6, func(w *world) { n := w.name(); w.checkWalk(w.ks[n], w.state, n, w.bounds(), true) }},
	{"walkBack", 6, func(w *world) { n := w.name(); w.checkWalk(w.ks[n], w.state, n, w.bounds(), false) }},
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
	switch w.rng.IntN(10) {
	case 0, 1:
		k := w.key()
		n.state.Delete(ks, string(k))
		n.event(event{ks: ks, key: string(k)})
		w.must(to.Delete(k), "delete")
		scribble(k)
	case 2:
		b := w.narrow()
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

func (w *world) opPut() {
	n := w.name()
	k, v := w.key(), w.value()
	w.state.Put(n, string(k), string(v), 0)
	w.changed(n, string(k))
	if len(v) == 0 && w.rng.IntN(2) == 0 {
		v = nil
	}
	w.must(w.ks[n].Put(k, v), "put")
	scribble(k)
	scribble(v)
}

func (w *world) opPutMany() {
	n := w.name()
	for range w.rng.IntN(300) {
		w.randomWrite(w.ks[n], n, w.direct())
	}
}

func (w *world) opPutExpiring() {
	n := w.name()
	k, v := w.key(), w.value()
	at, ms := w.expiry()
	w.state.Put(n, string(k), string(v), ms)
	w.changed(n, string(k))
	w.must(w.ks[n].PutExpiring(k, v, at), "put expiring")
}

func (w *world) opPutReader() {
	n := w.name()
	k, v := w.key(), w.value()
	w.state.Put(n, string(k), string(v), 0)
	w.changed(n, string(k))
	w.must(w.ks[n].PutReader(k, io.LimitReader(bytes.NewReader(v), int64(len(v)))), "put reader")
}

func (w *world) opOverwriteSame() {
	n := w.name()
	k := w.key()
	for i := range 20 + w.rng.IntN(200) {
		v := fmt.Sprintf("version %d of it", i)
		w.state.Put(n, string(k), v, 0)
		w.must(w.ks[n].Put(k, []byte(v)), "put")
	}
	w.changed(n, string(k))
}

func (w *world) opDelete() {
	n, k := w.name(), w.key()
	w.state.Delete(n, string(k))
	w.changed(n, string(k))
	w.must(w.ks[n].Delete(k), "delete")
}

func (w *world) opDeleteRange() {
	n, b := w.name(), w.narrow()
	w.state.DeleteRange(n, b)
	w.changedRange(n, b)
	w.must(w.ks[n].DeleteRange(b.Lo, b.Hi), "delete range")
}

func (w *world) opDeleteRangeThenPut() {
	w.opDeleteRange()
	n, b := w.name(), w.narrow()
	w.state.DeleteRange(n, b)
	w.changedRange(n, b)
	w.must(w.ks[n].DeleteRange(b.Lo, b.Hi), "delete range")
	if b.Lo != nil {
		w.state.Put(n, string(b.Lo), "again", 0)
		w.must(w.ks[n].Put(b.Lo, []byte("again")), "put")
		w.changed(n, string(b.Lo))
	}
}

func (w *world) opDeleteAll() {
	n := w.name()
	w.state.DeleteRange(n, Bounds{})
	w.changedRange(n, Bounds{})
	w.must(w.ks[n].DeleteRange(nil, nil), "delete range")
}

func (w *world) fillBatch(b *pando.Batch, count int) {
	for range count {
		n := w.name()
		w.randomWrite(b.In(w.ks[n]), n, w.direct())
	}
}

func (w *world) opBatch() {
	b := w.db.NewBatch()
	w.fillBatch(b, w.rng.IntN(20))
	w.must(w.db.Write(b), "write batch")
	b.Reset()
}

func (w *world) opBatchLarge() {
	b := w.db.NewBatch()
	w.fillBatch(b, 300+w.rng.IntN(1500))
	w.must(w.db.Write(b), "write batch")
	b.Reset()
}

func (w *world) opBatchEmpty() { w.must(w.db.Write(w.db.NewBatch()), "write empty batch") }

func (w *world) opBatchReset() {
	b := w.db.NewBatch()
	for range w.rng.IntN(50) {
		w.must(b.Put(w.key(), w.value()), "batch put")
	}
	b.Reset()
	if b.Len() != 0 || b.Size() != 0 {
		w.fail("a batch that was reset has %d writes, %d bytes", b.Len(), b.Size())
	}
	w.fillBatch(b, w.rng.IntN(10))
	w.must(w.db.Write(b), "write batch")
	b.Reset()
}

func (w *world) opBatchTwice() {
	if w.opts.ValueThreshold < 64 {
		return // a batch whose values lie apart can be written once
	}
	b := w.db.NewBatch()
	k := w.key()
	w.must(b.Put(k, []byte("from a batch")), "batch put")
	w.must(w.db.Write(b), "write batch")
	w.must(w.db.Put(k, []byte("between")), "put")
	w.must(w.db.Write(b), "write the same batch again")
	w.state.Put("default", string(k), "from a batch", 0)
	w.changed("default", string(k))
}

func (w *world) opBatchFails() {
	b := w.db.NewBatch()
	w.must(b.Put(w.key(), w.value()), "batch put")
	if err := b.Put(make([]byte, pando.MaxKeyBytes+1), nil); !errors.Is(err, pando.ErrKeyTooLarge) {
		w.fail("too large a key: %v", err)
	}
	if err := w.db.Write(b); !errors.Is(err, pando.ErrKeyTooLarge) {
		w.fail("a batch with too large a key: %v", err)
	}
	b.Reset()
}

func (w *world) opRange() {
	n, b := w.name(), w.bounds()
	pairs := w.state.Pairs(n, b)
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

func (w *world) opModify() {
	n, k := w.name(), w.key()
	old, there := w.state.Get(n, string(k))
	v := w.value()
	del := w.rng.IntN(4) == 0
	err := w.ks[n].Modify(k, func(got []byte, found bool) ([]byte, error) {
		if found != there || there && string(got) != old {
			w.fail("modify %q: %q %v, want %q %v", short(string(k)), short(string(got)), found, short(old), there)
		}
		if del {
			return nil, nil
		}
		return append([]byte{}, v...), nil
	})
	w.must(err, "modify")
	w.changed(n, string(k))
	if del {
		w.state.Delete(n, string(k))
		return
	}
	w.state.Put(n, string(k), string(v), 0)
}

func (w *world) opCompareAndSet() {
	n, k := w.name(), w.key()
	old, there := w.state.Get(n, string(k))
	want := []byte(old)
	if !there {
		want = nil
	} else if want == nil {
		want = []byte{}
	}
	match := w.rng.IntN(2) == 0
	if !match {
		want = []byte("never this value")
	}
	done, err := w.ks[n].CompareAndSet(k, want, []byte("set"))
	if err != nil || done != match {
		w.fail("compare and set %q: %v, %v, want %v", short(string(k)), done, err, match)
	}
	if done {
		w.state.Put(n, string(k), "set", 0)
		w.changed(n, string(k))
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

func (w *world) opCompact() {
	o := pando.CompactOptions{Progress: func(done, total int64) {
		if done > total || done < 0 {
			w.fail("progress %d of %d", done, total)
		}
	}}
	if w.rng.IntN(3) == 0 {
		o.Compression = pando.Zstd
	}
	w.must(w.db.Compact(context.Background(), o), "compact")
}

func (w *world) opCheck() {
	r, err := w.db.Check(context.Background())
	w.must(err, "check")
	w.must(r.Err(), "check found damage")
}

func (w *world) opBackup() {
	dir := "backup"
	if w.rng.IntN(2) == 0 {
		dir = fmt.Sprintf("backup%d", w.step)
	}
	w.must(w.db.Backup(context.Background(), dir), "backup")
	o := w.opts
	o.ReadOnly = w.rng.IntN(3) == 0
	db, err := pando.Open(dir, &o)
	w.must(err, "open the backup")
	for _, name := range w.state.Names() {
		ks, err := db.Keyspace(name, nil)
		w.must(err, "open a keyspace of the backup")
		w.checkAll(ks, w.state, name)
	}
	r, err := db.Check(context.Background())
	w.must(err, "check the backup")
	w.must(r.Err(), "damage in the backup")
	w.must(db.Close(), "close the backup")
	if dir != "backup" || !o.ReadOnly {
		w.must(vfs.RemoveAll(w.fs, dir), "remove the backup")
	}
}

func (w *world) opReopen() {
	if w.rng.IntN(2) == 0 {
		w.dropHeld()
	}
	w.must(w.db.Close(), "close")
	w.must(w.db.Close(), "close again")
	for _, h := range w.iters {
		if h.it.Next() || !errors.Is(h.it.Err(), pando.ErrClosed) {
			w.fail("iterator behind Close: %v", h.it.Err())
		}
	}
	for _, h := range w.snaps {
		if _, err := h.snap.Get([]byte("a")); !errors.Is(err, pando.ErrClosed) {
			w.fail("snapshot behind Close: %v", err)
		}
	}
	for _, h := range w.txs {
		if _, err := h.tx.Get([]byte("a")); !errors.Is(err, pando.ErrClosed) {
			w.fail("transaction behind Close: %v", err)
		}
	}
	if _, err := w.db.Get([]byte("a")); !errors.Is(err, pando.ErrClosed) {
		w.fail("get behind Close: %v", err)
	}
	w.dropHeld()
	w.open()
	if w.rng.IntN(2) == 0 {
		w.checkEverything()
	}
}

func (w *world) opReopenOther() {
	w.dropHeld()
	w.must(w.db.Close(), "close")
	w.opts.Profile = pando.Profile(w.rng.IntN(3))
	w.opts.ValueThreshold = []int{1, 16, 64, 1024, 65536}[w.rng.IntN(5)]
	w.opts.Compression = pando.Compression(w.rng.IntN(4))
	w.opts.MemoryBytes = 1 << (20 + w.rng.IntN(4))
	w.open()
	w.checkEverything()
	w.feedSeq, w.feedState = w.db.LastSeq(), w.state.Clone()
}

// restart goes on with an image of the file system.
func (w *world) restart(image *memfs.FS) {
	old := w.db
	w.dropHeld()
	w.must(old.Close(), "close")
	w.fs = image
	w.open()
	w.checkEverything()
	if w.opts.Profile == pando.Bench {
		w.feedSeq, w.feedState = w.db.LastSeq(), w.state.Clone()
	}
}

func (w *world) opKill() {
	if w.opts.Profile == pando.Bench {
		w.must(w.db.Checkpoint(context.Background()), "checkpoint")
	}
	w.restart(w.fs.KillImage())
}

func (w *world) opPowerCut() {
	switch w.opts.Profile {
	case pando.Relaxed:
		w.must(w.db.Sync(), "sync")
	case pando.Bench:
		w.must(w.db.Checkpoint(context.Background()), "checkpoint")
	}
	p := memfs.Policy{
		Unsynced: memfs.Unsynced(w.rng.IntN(3)), Seed: w.rng.Uint64(), Torn: []int{512, 4096}[w.rng.IntN(2)],
		Reordered: w.rng.IntN(2) == 0, Stale: w.rng.IntN(2) == 0,
	}
	w.restart(w.fs.CrashImage(p))
}

func (w *world) opReadOnly() {
	o := w.opts
	o.ReadOnly = true
	if w.opts.Profile == pando.Bench {
		w.must(w.db.Checkpoint(context.Background()), "checkpoint")
	}
	o.FS = w.fs.KillImage()
	db, err := pando.Open("db", &o)
	w.must(err, "open for reading")
	for _, name := range w.state.Names() {
		ks, err := db.Keyspace(name, nil)
		w.must(err, "open a keyspace for reading")
		w.checkAll(ks, w.state, name)
	}
	if err := db.Put([]byte("a"), nil); !errors.Is(err, pando.ErrReadOnly) {
		w.fail("put into a database open for reading: %v", err)
	}
	w.must(db.Close(), "close")
}

func (w *world) opCreateKeyspace() {
	if len(w.state) > 5 {
		return
	}
	name := fmt.Sprintf("space%d", w.rng.IntN(8))
	c := pando.Compression(w.rng.IntN(4))
	o := &pando.KeyspaceOptions{LeafBytes: []int{0, 256, 512, 4096}[w.rng.IntN(4)], Compression: &c}
	if w.rng.IntN(4) == 0 {
		o = nil
	}
	ks, err := w.db.Keyspace(name, o)
	w.must(err, "open keyspace")
	w.ks[name] = ks
	if w.state[name] == nil {
		w.state[name] = map[string]Value{}
	}
}

func (w *world) opDropKeyspace() {
	if len(w.txs) > 0 {
		return
	}
	n := w.name()
	if n == "default" {
		return
	}
	ks := w.ks[n]
	w.must(w.db.DropKeyspace(n), "drop keyspace")
	delete(w.state, n)
	delete(w.ks, n)
	for what, err := range map[string]error{"put": ks.Put(w.key(), w.value()), "delete": ks.Delete(w.key())} {
		if !errors.Is(err, pando.ErrDropped) {
			w.fail("%s in a dropped keyspace: %v", what, err)
		}
	}
	if _, err := ks.Get(w.key()); !errors.Is(err, pando.ErrDropped) {
		w.fail("get in a dropped keyspace: %v", err)
	}
	for _, s := range w.snaps { // snapshots still read it
		if s.state[n] != nil && w.rng.IntN(2) == 0 {
			w.checkAll(s.snap.In(ks), s.state, n)
		}
		delete(s.state, n)
	}
}

func (w *world) opDropAndCreate() {
	w.opDropKeyspace()
	w.opCreateKeyspace()
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
