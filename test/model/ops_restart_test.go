package model

import (
	"context"
	"errors"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs/memfs"
)

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
func (w *world) restart(image disk) {
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
	w.restart(w.fs.afterKill())
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
	w.restart(w.fs.afterPowerCut(p))
}

func (w *world) opReadOnly() {
	if _, ok := w.fs.(system); ok {
		return // it is locked
	}
	o := w.opts
	o.ReadOnly = true
	if w.opts.Profile == pando.Bench {
		w.must(w.db.Checkpoint(context.Background()), "checkpoint")
	}
	o.FS = w.fs.afterKill()
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
