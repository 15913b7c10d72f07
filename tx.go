package pando

import (
	"fmt"

	"github.com/pandodb/pando/internal/command"
	"github.com/pandodb/pando/internal/commit"
	"github.com/pandodb/pando/internal/engine"
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
	*txWrites // nil for a transaction that only reads, and after the end
	db        *DB
	held      engine.Held
	err       error // of the newest failed loop
	handle    Tx    // the first one
	mode      mode
	done      bool
}

// txWrites is what a transaction needs that writes. After its end another transaction uses it.
type txWrites struct {
	writes
	start   *engine.Start
	reads   engine.Reads
	lead    commit.Request
	overlay *engine.Overlay // what the transaction has written, for its reads; nil until it reads behind a write
	shown   command.Mark    // the overlay holds the writes before it
	read    int64           // and the first bytes of the spill file
	points  int             // savepoints that were taken
	past    []int           // the numbers of those of them that can be gone back to, ascending
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
// Inside fn write through the transaction only: a write to the database itself would wait for the transaction to end, for ever, and so would
// what makes or drops a keyspace, Checkpoint, Compact, Backup, SyncCommits, Close and, in the Bench profile, Sync. Leave its end to Update:
// where fn has ended it, the answer is ErrTxDone, though what fn has committed is there.
func (db *DB) Update(fn func(tx *Tx) error) error {
	return db.updateIn(db.main, fn)
}

// updateIn is Update whose transaction works on a keyspace.
func (db *DB) updateIn(ks *Keyspace, fn func(tx *Tx) error) error {
	tx, err := db.beginExclusive(ks)
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
	if !writable {
		snap, err := db.e.Snapshot()
		if err != nil {
			return nil, err
		}
		return (&txState{db: db}).open(snap, db.main)
	}
	if err := db.e.Writable(); err != nil {
		return nil, err
	}
	start, snap, err := db.e.Begin()
	if err != nil {
		return nil, err
	}
	s := &txState{db: db, mode: optimistic, txWrites: db.takeWrites()}
	s.start = start
	return s.open(snap, db.main)
}

func (db *DB) beginExclusive(ks *Keyspace) (*Tx, error) {
	if err := db.e.Writable(); err != nil {
		return nil, err
	}
	w := db.takeWrites()
	db.e.Lead(&w.lead)
	snap, err := db.e.Snapshot()
	if err != nil {
		db.e.Follow()
		return nil, err
	}
	return (&txState{db: db, mode: exclusive, txWrites: w}).open(snap, ks)
}

// open makes the transaction read a snapshot, which it takes over, and work on a keyspace.
func (s *txState) open(snap engine.Snapshot, ks *Keyspace) (*Tx, error) {
	if err := s.db.e.Hold(&s.held, snap); err != nil {
		s.giveWritesUp()
		return nil, err
	}
	s.handle = Tx{state: s, ks: ks}
	return &s.handle, nil
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
	return s.held.Stop().Err()
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
func (tx *Tx) Commit() error { return tx.state.commitWith(tx.state.db.e.Syncs()) }

// CommitUnsynced is Commit without waiting for a sync, whatever the profile: others see the writes at once, and a power cut may undo
// them, but only together with every commit that follows. It is for several commits of which nobody is told before SyncCommits has
// returned. Not more than Options.SyncBytes of the log wait for a sync at any time, and what has gone to a spill file does not.
func (tx *Tx) CommitUnsynced() error { return tx.state.commitWith(false) }

// commitWith ends the transaction with a commit, which waits for a sync or not.
func (s *txState) commitWith(sync bool) error {
	if s.done {
		return ErrTxDone
	}
	defer s.end()
	if err := s.usable(); err != nil {
		return err
	}
	if s.mode == reading || s.count == 0 {
		return nil
	}
	var validate func() error
	if s.mode == optimistic {
		validate = func() error { return s.db.e.Validate(s.start, &s.reads) }
	}
	s.held.Release() // a commit may wait for a checkpoint, which would have to keep what the snapshot shows
	err := s.commit(s.mode == exclusive, sync, validate)
	if err != nil {
		return fmt.Errorf("commit: %w", err)
	}
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
	s.held.End(ErrTxDone)
	s.giveWritesUp()
}

// giveWritesUp gives up what belongs to the writes of the transaction, for another one to use.
func (s *txState) giveWritesUp() {
	w := s.txWrites
	if w == nil {
		return
	}
	_ = w.release() // a file that stays is removed by the next open
	if w.start != nil {
		s.db.e.End(w.start)
	}
	w.dropOverlay()
	if s.mode == exclusive {
		s.db.e.Follow()
	}
	s.txWrites = nil
	w.reset()
	s.db.writing.Put(w)
}

// takeWrites returns what a transaction needs that writes.
func (db *DB) takeWrites() *txWrites {
	if w, ok := db.writing.Get().(*txWrites); ok {
		return w
	}
	return &txWrites{writes: writes{db: db}}
}

const (
	// keptEncoder is how much memory of an encoder is kept for the next transaction: a batch of thousands of records fills it anew.
	keptEncoder = 4 << 20
	// keptReads is how many keys there may be in the list of what was read that is kept.
	keptReads = 4 << 10
)

// reset makes w what takeWrites returns. What it keeps is memory.
func (w *txWrites) reset() {
	w.enc.Release(keptEncoder)
	clear(w.used)
	w.spill, w.hold, w.size, w.count, w.fixed, w.used = nil, nil, 0, 0, false, w.used[:0]
	w.reads.Reset(keptReads)
	w.start, w.overlay, w.shown, w.read = nil, nil, command.Mark{}, 0
	w.points, w.past = 0, w.past[:0]
}
