package document

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document/internal/mongoerror"
)

// A client that does not hear of the outcome of a write sends it again. To carry it out once, the store keeps with each such write,
// in the same commit, what it did: under the client's session, until its next numbered write. So it is with the commit of a transaction,
// of which there is nothing to keep but that it was.

// sessionKey begins the keys of sessions in the catalogue's keyspace.
const sessionKey = 's'

// Outcome is what a statement did.
type Outcome struct {
	N, Modified int64
	UpsertedID  bson.RawValue // Type 0: none
	Document    bson.Raw      // what FindAndModify returned; nil: none
}

// statements names the statements of one numbered write of a session.
type statements struct {
	session string
	number  int64
	ids     []int32
}

type statementsKey struct{}

// noStatement stands in the place of a statement's id for a document that is only a part of one.
const noStatement = -1

// WithStatements returns a context for a write that is to be carried out once, however often its caller sends it: number grows from
// write to write of a session, and ids are those of its statements, one for each document of InsertMany, one for any other call.
// Writes of one session come one after the other.
func WithStatements(ctx context.Context, session string, number int64, ids ...int32) context.Context {
	return context.WithValue(ctx, statementsKey{}, &statements{session, number, ids})
}

// retries is what the store remembers of sessions, as far as it has been asked.
type retries struct {
	mu        sync.Mutex
	bySession map[string]*sessionRecord
}

// sessionRecord is the newest numbered write of a session: docs/format/collections.md describes its bytes.
type sessionRecord struct {
	number  int64
	entries []byte
}

// Kinds of entries. They are on disk.
const (
	entryInserts     = 1 // a run of inserted documents: first id, last id
	entryOther       = 2 // id, N, modified, type and value of the upserted _id, document
	entryTransaction = 3 // nothing: the number is that of a transaction, which was committed
)

// record returns what is known of a session's newest write.
func (s *Store) record(session string) (*sessionRecord, error) {
	s.retries.mu.Lock()
	defer s.retries.mu.Unlock()
	if r := s.retries.bySession[session]; r != nil {
		return r, nil
	}
	r := &sessionRecord{number: -1}
	value, err := s.meta.Get(append([]byte{sessionKey}, session...))
	switch {
	case errors.Is(err, pando.ErrNotFound):
	case err != nil:
		return nil, err
	default:
		number, n := binary.Varint(value)
		if n <= 0 {
			return nil, fmt.Errorf("record of a session: %w", pando.ErrCorrupt)
		}
		r.number, r.entries = number, value[n:]
	}
	if s.retries.bySession == nil {
		s.retries.bySession = map[string]*sessionRecord{}
	}
	s.retries.bySession[session] = r
	return r, nil
}

// transaction reports whether the write was a transaction, which has no statements.
func (r *sessionRecord) transaction() bool {
	return len(r.entries) > 0 && r.entries[0] == entryTransaction
}

// NewestNumber returns the number of the newest numbered write that a session has committed, -1 if there is none, and whether it was a
// transaction.
func (s *Store) NewestNumber(session string) (number int64, transaction bool, err error) {
	r, err := s.record(session)
	if err != nil {
		return -1, false, err
	}
	return r.number, r.transaction(), nil
}

// Outcome returns what a statement did if it was carried out before, and nil otherwise. It fails with TransactionTooOld when the
// session has gone on to a higher number, and with IncompleteTransactionHistory when the number is that of a transaction.
func (s *Store) Outcome(session string, number int64, id int32) (*Outcome, error) {
	r, err := s.record(session)
	if err != nil || r.number < number {
		return nil, err
	}
	if r.number > number {
		return nil, NewError(Code(225), "Retryable write with txnNumber %d is prohibited on session because a newer retryable write with txnNumber %d has already started on this session.", number, r.number)
	}
	if r.transaction() {
		return nil, NewError(mongoerror.IncompleteTransactionHistory, "Cannot retry a retryable write that has been converted into a transaction")
	}
	return r.find(id)
}

// find looks for a statement.
func (r *sessionRecord) find(id int32) (*Outcome, error) {
	for rest := r.entries; len(rest) > 0; {
		d := entryReader{rest: rest[1:]}
		switch rest[0] {
		case entryInserts:
			if first, last := d.number(), d.number(); int64(id) >= first && int64(id) <= last && d.err == nil {
				return &Outcome{N: 1}, nil
			}
		case entryOther:
			at, o := d.number(), Outcome{N: d.number(), Modified: d.number()}
			if t := d.bytes(1); len(t) == 1 {
				o.UpsertedID.Type = bson.Type(t[0])
			}
			o.UpsertedID.Value = d.bytes(d.number())
			if doc := d.bytes(d.number()); len(doc) > 0 {
				o.Document = doc
			}
			if at == int64(id) && d.err == nil {
				return &o, nil
			}
		default:
			d.err = fmt.Errorf("record of a session: %w: entry of kind %d", pando.ErrCorrupt, rest[0])
		}
		if d.err != nil {
			return nil, d.err
		}
		rest = d.rest
	}
	return nil, nil
}

// entryReader takes an entry apart.
type entryReader struct {
	rest []byte
	err  error
}

func (d *entryReader) number() int64 {
	v, n := binary.Varint(d.rest)
	if n <= 0 {
		d.err = fmt.Errorf("record of a session: %w: a number that cannot be read", pando.ErrCorrupt)
		d.rest = nil
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *entryReader) bytes(n int64) []byte {
	if n < 0 || n > int64(len(d.rest)) {
		d.err = fmt.Errorf("record of a session: %w: cut short", pando.ErrCorrupt)
		d.rest = nil
		return nil
	}
	b := d.rest[:n:n]
	d.rest = d.rest[n:]
	return b
}

// did notes what statement i of the call did; it is stored with the commit.
func (w *writer) did(i int, o Outcome) {
	if w.statements == nil || i >= len(w.statements.ids) {
		return
	}
	id := int64(w.statements.ids[i])
	if id == noStatement {
		return
	}
	if o.N == 1 && o.Modified == 0 && o.UpsertedID.Type == 0 && o.Document == nil {
		if w.run && id == w.runLast+1 {
			w.runLast++
			return
		}
		w.endRun()
		w.run, w.runFirst, w.runLast = true, id, id
		return
	}
	w.endRun()
	e := append(w.entries, entryOther)
	e = binary.AppendVarint(e, id)
	e = binary.AppendVarint(e, o.N)
	e = binary.AppendVarint(e, o.Modified)
	e = append(e, byte(o.UpsertedID.Type))
	e = binary.AppendVarint(e, int64(len(o.UpsertedID.Value)))
	e = append(e, o.UpsertedID.Value...)
	e = binary.AppendVarint(e, int64(len(o.Document)))
	w.entries = append(e, o.Document...)
}

// endRun writes the run of inserts that has come to its end.
func (w *writer) endRun() {
	if w.run {
		w.entries = append(w.entries, entryInserts)
		w.entries = binary.AppendVarint(w.entries, w.runFirst)
		w.entries = binary.AppendVarint(w.entries, w.runLast)
		w.run = false
	}
}

// storeStatements puts what the statements did into the commit, and returns what is to be remembered when it has succeeded.
func (w *writer) storeStatements() (*sessionRecord, error) {
	w.endRun()
	if w.statements == nil || len(w.entries) == 0 {
		return nil, nil
	}
	before, err := w.store.record(w.statements.session)
	if err != nil {
		return nil, err
	}
	fresh := &sessionRecord{number: w.statements.number}
	if before.number == fresh.number && !before.transaction() {
		fresh.entries = append(fresh.entries, before.entries...)
	}
	fresh.entries = append(fresh.entries, w.entries...)
	return fresh, w.putRecord(fresh)
}

// storeTransaction puts into the commit that it is a transaction with its number, and returns what is to be remembered when it has
// succeeded. One that has written nothing is not worth a write: its client may run it again as well.
func (w *writer) storeTransaction(wrote bool) (*sessionRecord, error) {
	if w.statements == nil || !wrote {
		return nil, nil
	}
	fresh := &sessionRecord{number: w.statements.number, entries: []byte{entryTransaction}}
	return fresh, w.putRecord(fresh)
}

// putRecord writes the record of the writer's session.
func (w *writer) putRecord(r *sessionRecord) error {
	value := append(binary.AppendVarint(nil, r.number), r.entries...)
	return w.tx.In(w.store.meta).Put(append([]byte{sessionKey}, w.statements.session...), value)
}

// remember keeps a session's record in memory.
func (s *Store) remember(session string, r *sessionRecord) {
	s.retries.mu.Lock()
	defer s.retries.mu.Unlock()
	if s.retries.bySession == nil {
		s.retries.bySession = map[string]*sessionRecord{}
	}
	s.retries.bySession[session] = r
}

// ForgetSession removes what is kept for a session that has ended.
func (s *Store) ForgetSession(session string) error {
	s.retries.mu.Lock()
	r := s.retries.bySession[session]
	delete(s.retries.bySession, session)
	s.retries.mu.Unlock()
	if r != nil && r.number < 0 {
		return nil
	}
	return s.meta.Delete(append([]byte{sessionKey}, session...))
}

// sessionAge is how long what a session did is kept that nobody ends, and that is not used: as long as servers keep sessions.
const sessionAge = 30 * time.Minute

// forgetSessions removes what is kept for sessions that a restart has cut off: those that nobody has used in this run.
func (s *Store) forgetSessions() error {
	var gone []string
	for key := range s.meta.Prefix([]byte{sessionKey}) {
		gone = append(gone, string(key[1:]))
	}
	err := s.meta.Err()
	for _, session := range gone {
		err = errors.Join(err, s.forgetUnused(session))
	}
	return err
}

// forgetUnused removes what is kept for a session, unless somebody has used it.
func (s *Store) forgetUnused(session string) error {
	s.retries.mu.Lock()
	defer s.retries.mu.Unlock()
	if s.retries.bySession[session] != nil {
		return nil
	}
	return s.meta.Delete(append([]byte{sessionKey}, session...))
}
