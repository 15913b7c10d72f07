package pando

import (
	"runtime"

	"github.com/pandodb/pando/internal/command"
	"github.com/pandodb/pando/internal/commit"
	"github.com/pandodb/pando/internal/engine"
	"github.com/pandodb/pando/internal/value"
)

// putter is what a single write needs: pooled, so that it allocates nothing.
type putter struct {
	enc command.Encoder
	req commit.Request
}

// keptBuffer is how large a buffer may be to be kept for the next write.
const keptBuffer = 256 << 10

// putter takes an empty one from the pool. commit gives it back.
func (db *DB) putter() *putter { return db.puts.Get().(*putter) }

// commit commits what was encoded.
func (db *DB) commit(p *putter) error {
	p.req.Commands, p.req.Count, p.req.Bytes = p.enc.Payload(), p.enc.Count(), p.enc.Data()
	p.req.Sync, p.req.Validate = db.e.Syncs(), nil
	err := db.e.Commit(&p.req)
	p.req.Commands = nil
	p.enc.Release(keptBuffer)
	db.puts.Put(p)
	return err
}

// putApart stores a value apart and commits the reference.
func (db *DB) putApart(p *putter, k *Keyspace, key, val []byte, expiry uint64) error {
	hold := db.e.HoldValues()
	defer hold.Release()
	ref, err := db.e.StoreValue(k.ks, key, val)
	if err != nil {
		db.puts.Put(p)
		return openError("put into", k.ks, err)
	}
	p.enc.PutApart(k.ks.ID, key, value.AppendRef(nil, ref), expiry)
	return db.commit(p)
}

// writes is a set of writes on its way to one commit: the common part of a Batch and a Tx.
type writes struct {
	db   *DB
	enc  command.Encoder
	hold *engine.ValueHold // nil while every value lies beside its key
	size int64             // bytes of keys and values, those apart included
}

// put adds one pair.
func (w *writes) put(k *Keyspace, key, val []byte, expiry uint64) error {
	if err := k.checkPair(key, val); err != nil {
		return err
	}
	if err := w.grow(len(key) + len(val)); err != nil {
		return err
	}
	if len(val) <= w.db.e.Threshold() {
		w.enc.Put(k.ks.ID, key, val, expiry)
		return nil
	}
	w.holdValues()
	ref, err := w.db.e.StoreValue(k.ks, key, val)
	if err != nil {
		return openError("put into", k.ks, err)
	}
	w.enc.PutApart(k.ks.ID, key, value.AppendRef(nil, ref), expiry)
	return nil
}

func (w *writes) delete(k *Keyspace, key []byte) error {
	if err := k.checkKey(key); err != nil {
		return err
	}
	if err := w.grow(len(key)); err != nil {
		return err
	}
	w.enc.Delete(k.ks.ID, key)
	return nil
}

func (w *writes) deleteRange(k *Keyspace, lo, hi []byte) error {
	if err := k.checkRange(lo, hi); err != nil {
		return err
	}
	if err := w.grow(len(lo) + len(hi)); err != nil {
		return err
	}
	w.enc.DeleteRange(k.ks.ID, lo, hi)
	return nil
}

// grow refuses what would make the whole too large.
func (w *writes) grow(n int) error {
	if w.size+int64(n) > MaxBatchBytes {
		return ErrBatchTooLarge
	}
	w.size += int64(n)
	return nil
}

// request returns the writes as a request for the pipeline.
func (w *writes) request() commit.Request {
	return commit.Request{
		Commands: w.enc.Payload(), Count: w.enc.Count(), Bytes: w.enc.Data(), Sync: w.db.e.Syncs(),
	}
}

// holdValues protects the values apart that the writes refer to until settle.
func (w *writes) holdValues() {
	if w.hold != nil {
		return
	}
	w.hold = w.db.e.HoldValues()
	// Writes that are dropped without a commit must not keep the cleaner from its work for ever.
	runtime.AddCleanup(w, (*engine.ValueHold).Release, w.hold)
}

// settle tells that the values apart have been committed or given up.
func (w *writes) settle() {
	if w.hold != nil {
		w.hold.Release()
		w.hold = nil
	}
}
