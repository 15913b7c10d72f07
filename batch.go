package pando

import "fmt"

// Batch collects writes that are committed as one by DB.Write. Later writes of a batch win over earlier ones. Values above
// Options.ValueThreshold are written out at once; the rest is held in memory up to a twentieth of Options.MemoryBytes (64 KiB to 32 MiB),
// and in a file beyond. A batch of which any part has left memory can be written once, and is ErrBatchWritten from then on; any other can
// be written again. NewBatch makes one: the zero value cannot be used. A Batch is used by one goroutine at a time.
type Batch struct {
	state *batchState
	ks    *Keyspace
}

type batchState struct {
	writes
	err   error        // the first one; Write returns it
	gone  bool         // it was written, and parts of it are not in memory any more
	there func() error // whether its keyspaces are still there
}

// NewBatch returns an empty batch whose methods write into the default keyspace.
func (db *DB) NewBatch() *Batch {
	s := &batchState{writes: writes{db: db}}
	s.there = s.undropped
	return &Batch{state: s, ks: db.main}
}

// In returns the same batch, writing into another keyspace.
func (b *Batch) In(ks *Keyspace) *Batch { return &Batch{state: b.state, ks: ks} }

// Put adds the storing of value under key. An error is returned by Write too.
func (b *Batch) Put(key, value []byte) error {
	return b.state.did(b.state.put(b.ks, key, value, 0))
}

// Delete adds the removal of key.
func (b *Batch) Delete(key []byte) error { return b.state.did(b.state.delete(b.ks, key)) }

// DeleteRange adds the removal of every key in [lo, hi); a nil bound is open. Bounds in a keyspace without order are ErrNoOrder, and so is
// the Write of the batch.
func (b *Batch) DeleteRange(lo, hi []byte) error {
	return b.state.did(b.state.deleteRange(b.ks, lo, hi))
}

// Note adds data, of at most MaxKeyBytes, for those who read Changes: it comes there as a ChangeNote among the changes of this
// batch, in the order in which they were added. It is kept in the log only, as long as that is.
func (b *Batch) Note(data []byte) error { return b.state.did(b.state.writes.note(b.ks, data)) }

// Len returns the number of writes in the batch, notes included.
func (b *Batch) Len() int { return b.state.count }

// Size returns the bytes of keys, values and notes in the batch.
func (b *Batch) Size() int64 { return b.state.size }

// Reset empties the batch for reuse.
func (b *Batch) Reset() {
	s := b.state
	_ = s.release() // a file that stays is removed by the next open
	s.enc.Release(keptBuffer * 16)
	s.size, s.count, s.used, s.err, s.gone = 0, 0, s.used[:0], nil, false
}

// did notes the outcome of a write.
func (s *batchState) did(err error) error {
	if err != nil && s.err == nil {
		s.err = err
	}
	return err
}

// Write commits the batch: all of it or nothing. A batch of which a part went to a file, as Batch says, has the database's writing to itself
// while it is carried out; readers go on. A batch whose Write has failed may be added to and written again, when there is space again for
// instance; what may have been lost of it meanwhile is ErrBatchLost. With ErrFailed it is not known whether it is written: who opens the
// database again sees all of it or nothing.
func (db *DB) Write(b *Batch) error {
	s := b.state
	if s.db != db {
		return fmt.Errorf("batch: %w", ErrOtherDatabase)
	}
	if s.err != nil {
		return s.err
	}
	if s.gone {
		return ErrBatchWritten
	}
	if err := s.commit(false, s.db.e.Syncs(), s.there); err != nil {
		return err
	}
	s.gone = s.hold != nil || s.spill != nil // the commit may have moved the batch to a file
	return s.release()
}
