package pando

import (
	"fmt"
	"runtime"
	"slices"

	"github.com/pandodb/pando/internal/command"
	"github.com/pandodb/pando/internal/commit"
	"github.com/pandodb/pando/internal/engine"
	"github.com/pandodb/pando/internal/value"
)

// writes is a set of writes on its way to one commit: the common part of a Batch and a Tx. What it holds in memory is
// bounded: long values are written out at once, and the commands go to a spill file when they have become many.
type writes struct {
	db    *DB
	enc   command.Encoder // the commands that are not in spill
	spill *engine.Spill   // nil while all commands are in memory
	hold  *engine.ValueHold
	keep  *kept
	size  int64 // bytes of keys and values, those apart included
	count int   // commands
	fixed bool  // a savepoint was taken: its place must stay in memory
	used  []*engine.Keyspace
	req   commit.Request
}

// kept is what has to be given up when the owner of writes is dropped without a word. It is an object of its own, so that it
// does not keep its owner alive.
type kept struct {
	hold  *engine.ValueHold
	spill *engine.Spill
}

// guard sees to it that a set of writes that is dropped without a commit keeps neither the cleaner from its work nor a file.
func (w *writes) guard() {
	if w.keep == nil {
		w.keep = new(kept)
		runtime.AddCleanup(w, (*kept).release, w.keep)
	}
	w.keep.hold, w.keep.spill = w.hold, w.spill
}

func (k *kept) release() {
	if k.hold != nil {
		k.hold.GiveUp()
	}
	if k.spill != nil {
		_ = k.spill.Remove() // Open removes what cannot be removed now
	}
	k.hold, k.spill = nil, nil
}

// put adds one pair.
func (w *writes) put(k *Keyspace, key, val []byte, expiry uint64) error {
	if err := k.checkPair(key, val); err != nil {
		return err
	}
	if err := w.grow(k, len(key)+len(val)); err != nil {
		return err
	}
	if len(val) <= w.db.e.Threshold() {
		w.enc.Put(k.ks.ID, key, val, expiry)
		return nil
	}
	if w.hold == nil {
		w.hold = w.db.e.HoldValues()
		w.guard()
	}
	ref, err := w.hold.Store(k.ks, key, val)
	if err != nil {
		w.size -= int64(len(key) + len(val))
		w.count--
		return keyspaceError("put into", k.ks, err)
	}
	w.enc.PutApart(k.ks.ID, key, value.AppendRef(nil, ref), expiry)
	return nil
}

func (w *writes) delete(k *Keyspace, key []byte) error {
	if err := k.checkKey(key); err != nil {
		return err
	}
	if err := w.grow(k, len(key)); err != nil {
		return err
	}
	w.enc.Delete(k.ks.ID, key)
	return nil
}

func (w *writes) deleteRange(k *Keyspace, lo, hi []byte) error {
	if err := k.checkRange(lo, hi); err != nil {
		return err
	}
	if err := w.grow(k, len(lo)+len(hi)); err != nil {
		return err
	}
	w.enc.DeleteRange(k.ks.ID, lo, hi)
	return nil
}

// note adds a note for those who read the changes.
func (w *writes) note(k *Keyspace, data []byte) error {
	if len(data) > MaxKeyBytes {
		return fmt.Errorf("keyspace %q: note of %d bytes: %w", k.ks.Name, len(data), ErrKeyTooLarge)
	}
	if err := k.dropped(); err != nil {
		return err
	}
	if err := w.grow(k, len(data)); err != nil {
		return err
	}
	w.enc.Note(k.ks.ID, data)
	return nil
}

// grow makes room for one more command with n bytes of key and value, and refuses what would make the whole too large.
func (w *writes) grow(k *Keyspace, n int) error {
	if err := k.of(w.db); err != nil {
		return err
	}
	if last := len(w.used) - 1; (last < 0 || w.used[last] != k.ks) && !slices.Contains(w.used, k.ks) {
		w.used = append(w.used, k.ks)
	}
	if w.size+int64(n) > MaxBatchBytes {
		return ErrBatchTooLarge
	}
	if !w.fixed && len(w.enc.Payload()) >= w.db.e.SpillBytes() {
		if err := w.spillOut(); err != nil {
			return err
		}
	}
	w.enc.Room(n, int(w.db.payload.Load()))
	w.size += int64(n)
	w.count++
	return nil
}

// spillOut moves the commands in memory to the spill file.
func (w *writes) spillOut() error {
	if err := w.db.e.Writable(); err != nil {
		return err
	}
	if w.spill == nil {
		s, err := w.db.e.NewSpill()
		if err != nil {
			return err
		}
		w.spill = s
		w.guard()
	}
	if err := w.spill.Add(&w.enc); err != nil {
		return err
	}
	w.enc.Reset()
	return nil
}

// request returns the writes, which are all in memory, as a request for the pipeline.
func (w *writes) request(sync bool, validate func() error) *commit.Request {
	r := &w.req
	r.Commands, r.Count, r.Bytes = w.enc.Payload(), w.enc.Count(), w.enc.Data()
	r.Sync, r.Validate = sync, validate
	return r
}

// commit commits the writes. leading tells that the caller leads the pipeline, sync that he waits for a sync; validate may be nil.
func (w *writes) commit(leading, sync bool, validate func() error) error {
	err := w.carryOut(leading, sync, validate)
	if err == nil && w.hold != nil {
		w.hold.Committed()
	}
	return err
}

// undropped fails when a keyspace was dropped since it was written to.
func (w *writes) undropped() error {
	for _, ks := range w.used {
		if ks.Dropped.Load() {
			return keyspaceError("commit to", ks, ErrDropped)
		}
	}
	return nil
}

func (w *writes) carryOut(leading, sync bool, validate func() error) error {
	if err := w.undropped(); err != nil {
		return err
	}
	if w.spill == nil && len(w.enc.Payload()) > w.db.e.CommitBytes() {
		if err := w.spillOut(); err != nil { // a savepoint has kept too much in memory
			return err
		}
	}
	if w.spill == nil {
		w.db.payload.Store(int64(len(w.enc.Payload())))
		r := w.request(sync, validate)
		defer func() { r.Commands, r.Validate = nil, nil }()
		if leading {
			return w.db.e.Carry(r)
		}
		return w.db.e.Commit(r)
	}
	if w.enc.Count() > 0 {
		if err := w.spillOut(); err != nil {
			return err
		}
	}
	if leading {
		return w.db.e.CarrySpilled(w.spill, validate)
	}
	return w.db.e.CommitSpilled(w.spill, validate)
}

// release gives up what the writes hold outside of memory.
func (w *writes) release() error {
	if w.keep == nil {
		return nil
	}
	if w.hold != nil {
		w.hold.GiveUp()
	}
	var err error
	if w.spill != nil {
		err = w.spill.Remove()
	}
	w.hold, w.spill = nil, nil
	*w.keep = kept{}
	return err
}
