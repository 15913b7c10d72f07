package model

import (
	"errors"

	"github.com/pandodb/pando"
)

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
