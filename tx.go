package pando

import (
	"fmt"

	"github.com/pandodb/pando/internal/command"
	"github.com/pandodb/pando/internal/commit"
	"github.com/pandodb/pando/internal/engine"
	"github.com/pandodb/pando/internal/view"
)

// Tx is a transaction: it reads one state of the database, with its own writes in front, and commits all of its writes or
// none. It is used by one goroutine at a time.
type Tx struct {
	state     *txState
	ks        *Keyspace
	unchecked bool // what is read through it is not noted
}

// mode says what kind of transaction it is.
type mode uint8

const (
	reading    mode = iota
	exclusive       // Update: it holds the commit pipeline's lead
	optimistic      // Begin(true): it is checked when it commits
)

type txState struct {
	writes
	mode      mode
	held      *engine.Held
	stop      view.Stop
	start     *engine.Start
	reads     engine.Reads
	lead      commit.Request
	overlay   *engine.Overlay // what the transaction has written, for its reads; nil until it reads behind a write
	shown     command.Mark    // the overlay holds the writes before it
	read      int64           // and the first bytes of the spill file
	stale     []*engine.Overlay
	err       error // of the newest failed loop
	done      bool
	committed bool
}

// View runs fn with a transaction that only reads. It returns fn's error, or the one that ended a Range loop in it early.
func (db *DB) View(fn func(tx *Tx) error) error {
	tx, err := db.Begin(false)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := fn(tx); err != nil {
		return err
	}
	return tx.state.err
}

// Update runs fn with a transaction that has the database's writing to itself, and commits it when fn returns nil. It is
// serialisable: other writers wait until it is done, readers do not. When fn fails or panics nothing of it remains. A Range
// loop in fn that ended early fails it too.
//
// Inside fn write through the transaction only: a write to the database itself would wait for the transaction to end.
func (db *DB) Update(fn func(tx *Tx) error) error {
	tx, err := db.beginExclusive()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := fn(tx); err != nil {
		return err
	}
	if tx.state.err != nil {
		return tx.state.err
	}
	return tx.Commit()
}

// Begin starts a transaction, which must be ended with Commit or Rollback. A writable one is optimistic: it waits for nobody,
// and Commit returns ErrConflict when another commit has changed anything that it read or wrote since it began. Run it again
// then. It is serialisable.
func (db *DB) Begin(writable bool) (*Tx, error) {
	s := &txState{writes: writes{db: db}}
	var snap engine.Snapshot
	var err error
	if !writable {
		snap, err = db.e.Snapshot()
	} else if err = db.e.Writable(); err == nil {
		s.mode = optimistic
		s.start, snap, err = db.e.Begin()
	}
	if err != nil {
		return nil, err
	}
	return s.open(snap)
}

func (db *DB) beginExclusive() (*Tx, error) {
	if err := db.e.Writable(); err != nil {
		return nil, err
	}
	s := &txState{writes: writes{db: db}, mode: exclusive}
	db.e.Lead(&s.lead)
	snap, err := db.e.Snapshot()
	if err != nil {
		db.e.Follow()
		return nil, err
	}
	return s.open(snap)
}

func (s *txState) open(snap engine.Snapshot) (*Tx, error) {
	s.held = s.db.e.Hold(snap)
	if s.mode != reading {
		s.takeEncoder()
	}
	if err := s.db.hold(&s.stop); err != nil {
		s.end()
		return nil, err
	}
	return &Tx{state: s, ks: s.db.main}, nil
}

// In returns the same transaction, reading from and writing to another keyspace.
func (tx *Tx) In(ks *Keyspace) *Tx { return &Tx{state: tx.state, ks: ks, unchecked: tx.unchecked} }

// Unchecked returns the transaction as seen by those whose reads may be out of date when it commits: an optimistic one does not depend
// on what is read through it, only on the rest of what it reads, and on what it writes. With all reads unchecked it has snapshot
// isolation: it fails when somebody else has written what it writes, and does not prevent write skew.
func (tx *Tx) Unchecked() *Tx { return &Tx{state: tx.state, ks: tx.ks, unchecked: true} }

// usable says why the transaction cannot be used, if it cannot.
func (s *txState) usable() error {
	if s.done {
		return ErrTxDone
	}
	return s.stop.Err()
}

// writable says why nothing can be written, if it cannot.
func (s *txState) writable() error {
	if err := s.usable(); err != nil {
		return err
	}
	if s.mode == reading {
		return fmt.Errorf("write in a transaction that only reads: %w", ErrReadOnly)
	}
	return nil
}

// Put stores value under key. A nil value is stored as an empty one. What is too long is ErrKeyTooLarge or ErrValueTooLarge; what makes
// the transaction larger than MaxBatchBytes is ErrBatchTooLarge.
func (tx *Tx) Put(key, value []byte) error {
	if err := tx.state.writable(); err != nil {
		return err
	}
	tx.state.readPoint(tx.ks, key)
	return tx.state.put(tx.ks, key, value, 0)
}

// Delete removes key. Deleting what is not there is no error.
func (tx *Tx) Delete(key []byte) error {
	if err := tx.state.writable(); err != nil {
		return err
	}
	tx.state.readPoint(tx.ks, key)
	return tx.state.delete(tx.ks, key)
}

// DeleteRange removes every key in [lo, hi); a nil bound is open.
func (tx *Tx) DeleteRange(lo, hi []byte) error {
	if err := tx.state.writable(); err != nil {
		return err
	}
	tx.state.readRange(tx.ks, lo, hi)
	return tx.state.deleteRange(tx.ks, lo, hi)
}

// Note adds data, of at most MaxKeyBytes, for those who read Changes: it comes there as a ChangeNote among the changes of this
// transaction, in the order in which they were made. It is kept in the log only, as long as that is.
func (tx *Tx) Note(data []byte) error {
	if err := tx.state.writable(); err != nil {
		return err
	}
	return tx.state.note(tx.ks, data)
}

// Commit ends the transaction and makes its writes visible and, as the profile says, durable. An optimistic one fails with
// ErrConflict when somebody else was first; then nothing of it remains. Committing one that only read is its end.
func (tx *Tx) Commit() error {
	s := tx.state
	if err := s.usable(); err != nil {
		return err
	}
	defer s.end()
	if s.mode == reading || s.count == 0 {
		return nil
	}
	var validate func() error
	if s.mode == optimistic {
		validate = func() error { return s.db.e.Validate(s.start, &s.reads) }
	}
	s.releaseSnapshot() // a commit may wait for a checkpoint, which would have to keep what the snapshot shows
	err := s.commit(s.mode == exclusive, validate)
	if err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	s.committed = true
	return nil
}

// Rollback ends the transaction and forgets its writes. On one that has ended it does nothing, so that it can be deferred.
func (tx *Tx) Rollback() error {
	if !tx.state.done {
		tx.state.end()
	}
	return nil
}

// end gives everything up that the transaction holds.
func (s *txState) end() {
	s.done = true
	s.stop.Set(ErrTxDone)
	s.db.letGo(&s.stop)
	_ = s.release(s.committed) // a file that stays is removed by the next open
	if s.start != nil {
		s.db.e.End(s.start)
	}
	s.dropOverlay()
	for _, o := range s.stale {
		o.Free()
	}
	s.stale = nil
	s.releaseSnapshot()
	s.spareEncoder()
	if s.mode == exclusive {
		s.db.e.Follow()
	}
}

// keptEncoder is how much memory of an encoder is kept for the next transaction: a batch of thousands of records fills it anew.
const keptEncoder = 4 << 20

// takeEncoder takes over the memory of an earlier transaction's commands.
func (s *txState) takeEncoder() {
	if e, ok := s.db.encoders.Get().(*command.Encoder); ok {
		s.enc = *e
	}
}

// spareEncoder gives the memory of the commands to later transactions.
func (s *txState) spareEncoder() {
	if s.mode == reading {
		return
	}
	e := s.enc
	s.enc = command.Encoder{}
	e.Release(keptEncoder)
	s.db.encoders.Put(&e)
}

// releaseSnapshot gives the snapshot up, once.
func (s *txState) releaseSnapshot() {
	if s.held != nil {
		s.held.Release()
		s.held = nil
	}
}
