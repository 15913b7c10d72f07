package document

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sort"
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
// Writes of one session come one after the other. The write keeps what it did in its own commit; it does not look whether it was carried
// out before: before a caller sends it again it asks Outcome.
func WithStatements(ctx context.Context, session string, number int64, ids ...int32) context.Context {
	return context.WithValue(ctx, statementsKey{}, &statements{session, number, ids})
}

// retries is what the store remembers of sessions, as far as it has been asked. There may be very many, and a document with each.
type retries struct {
	mu        sync.Mutex
	bySession map[string]*sessionRecord
	bytes     int64          // of the entries in bySession
	last      *sessionRecord // the newest one of which bySession has no entries
	lastOf    string         // its session
}

// What of the entries is kept in memory: so many bytes over all, and besides those of sessions that take little each.
const (
	keptEntries  = 32 << 20
	smallEntries = 256
)

// sessionRecord is the newest numbered write of a session: docs/format/collections.md describes its bytes.
type sessionRecord struct {
	number  int64
	entries []byte
	apart   bool // the entries are in the store only
	run     run  // the last entry, where it is known to be one

	sought sync.Once
	places []entryPlace // of the entries, by their statements: made when there are many, and one is sought
	broken error        // why that could not be
}

// run is an entry of inserts that others may go on with.
type run struct {
	at          int // in the entries
	first, last int64
	known       bool
}

// entryPlace is where the entry of a run of statements is.
type entryPlace struct {
	first, last int64
	at          int
}

// Kinds of entries. They are on disk.
const (
	entryInserts     = 1 // a run of inserted documents: first id, last id
	entryOther       = 2 // id, N, modified, type and value of the upserted _id, document
	entryTransaction = 3 // nothing: the number is that of a transaction, which was committed
)

// record returns what is known of a session's newest write. A batch that keeps other writers out asks for it, so nobody may wait for a commit
// while he keeps others from the table.
func (s *Store) record(session string) (*sessionRecord, error) {
	for {
		known := s.retries.inMemory(session)
		if known != nil && !known.apart {
			return known, nil
		}
		r, err := s.readRecord(session)
		if err != nil {
			return nil, err
		}
		if s.retries.replace(session, known, r) {
			return r, nil
		}
	}
}

// readRecord reads what the store has of a session's newest write.
func (s *Store) readRecord(session string) (*sessionRecord, error) {
	r := &sessionRecord{number: -1}
	value, err := s.meta.Get(recordKey(session))
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
	return r, nil
}

// recordKey is the key of a session's record in the catalogue's keyspace.
func recordKey(session string) []byte { return append([]byte{sessionKey}, session...) }

// inMemory returns what is in memory of a session's newest write; nil: nothing.
func (t *retries) inMemory(session string) *sessionRecord {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.known(session)
}

// replace keeps what has been read of a session in the place of what was known before, unless somebody was quicker, whose write may be newer.
func (t *retries) replace(session string, before, r *sessionRecord) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known(session) != before {
		return false
	}
	t.keep(session, r)
	return true
}

// known is inMemory for a caller who holds the lock.
func (t *retries) known(session string) *sessionRecord {
	if t.last != nil && t.lastOf == session {
		return t.last
	}
	return t.bySession[session]
}

// keep keeps a session's record in memory, but for the entries when there are too many of others. The caller holds the lock.
func (t *retries) keep(session string, r *sessionRecord) {
	t.forget(session)
	if t.bySession == nil {
		t.bySession = map[string]*sessionRecord{}
	}
	if n := len(r.entries); n > smallEntries && t.bytes+int64(n) > keptEntries {
		t.last, t.lastOf = r, session
		r = &sessionRecord{number: r.number, apart: true}
	}
	t.bytes += int64(len(r.entries))
	t.bySession[session] = r
}

// forget forgets a session's record. The caller holds the lock.
func (t *retries) forget(session string) {
	if r := t.bySession[session]; r != nil {
		t.bytes -= int64(len(r.entries))
		delete(t.bySession, session)
	}
	if t.lastOf == session {
		t.last, t.lastOf = nil, ""
	}
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
	if s.retries.isNew(session, number) {
		return nil, nil
	}
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

// isNew reports whether a session is known not to have come to a number yet: what it did before need not be read then.
func (t *retries) isNew(session string, number int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.bySession[session]
	return r != nil && r.number < number
}

// manyEntries is from how many bytes of entries on they are not gone over for each statement that is sought, and not written anew for each
// statement that could share a commit.
const manyEntries = 4 << 10

// isLong reports whether the entries of the numbered write that a context names have become many.
func (t *retries) isLong(ctx context.Context) bool {
	s, ok := ctx.Value(statementsKey{}).(*statements)
	if !ok {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.known(s.session)
	return r != nil && r.number == s.number && (r.apart || len(r.entries) > manyEntries)
}

// find looks for a statement.
func (r *sessionRecord) find(id int32) (*Outcome, error) {
	from := r.entries
	if len(from) > manyEntries {
		r.sought.Do(r.place)
		if r.broken != nil {
			return nil, r.broken
		}
		if len(r.places) > 0 {
			i := sort.Search(len(r.places), func(i int) bool { return r.places[i].last >= int64(id) })
			if i == len(r.places) || r.places[i].first > int64(id) {
				return nil, nil
			}
			from = from[r.places[i].at:]
		}
	}
	for len(from) > 0 {
		first, last, o, rest, err := readEntry(from)
		if err != nil {
			return nil, err
		}
		if int64(id) >= first && int64(id) <= last {
			return o, nil
		}
		from = rest
	}
	return nil, nil
}

// place finds out where the entries are. There are no places when two are of the same statement, as only a client can make them that gives
// a number twice.
func (r *sessionRecord) place() {
	for rest := r.entries; len(rest) > 0; {
		at := len(r.entries) - len(rest)
		first, last, _, behind, err := readEntry(rest)
		if err != nil {
			r.broken = err
			return
		}
		r.places = append(r.places, entryPlace{first, last, at})
		rest = behind
	}
	slices.SortFunc(r.places, func(a, b entryPlace) int { return cmp.Compare(a.first, b.first) })
	for i := 1; i < len(r.places); i++ {
		if r.places[i].first <= r.places[i-1].last {
			r.places = nil
		}
	}
}

// readEntry reads the entry of a run of statements, or of one, and what each of them did.
func readEntry(src []byte) (first, last int64, o *Outcome, rest []byte, err error) {
	d := entryReader{rest: src[1:]}
	o = &Outcome{N: 1}
	switch src[0] {
	case entryInserts:
		first, last = d.number(), d.number()
	case entryOther:
		first = d.number()
		last = first
		o.N, o.Modified = d.number(), d.number()
		if t := d.bytes(1); len(t) == 1 {
			o.UpsertedID.Type = bson.Type(t[0])
		}
		o.UpsertedID.Value = d.bytes(d.number())
		if doc := d.bytes(d.number()); len(doc) > 0 {
			o.Document = doc
		}
	default:
		d.err = fmt.Errorf("record of a session: %w: entry of kind %d", pando.ErrCorrupt, src[0])
	}
	return first, last, o, d.rest, d.err
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
		w.entries = appendRun(w.entries, w.runFirst, w.runLast)
		w.run = false
	}
}

// appendRun appends the entry of a run of inserts.
func appendRun(dst []byte, first, last int64) []byte {
	return binary.AppendVarint(binary.AppendVarint(append(dst, entryInserts), first), last)
}

// storeStatements puts what the statements did into the commit, and returns what is to be remembered when it has succeeded.
func (w *writer) storeStatements() (*sessionRecord, error) {
	alone := w.run && len(w.entries) == 0
	w.endRun()
	if w.statements == nil || len(w.entries) == 0 {
		return nil, nil
	}
	before, err := w.store.record(w.statements.session)
	if err != nil {
		return nil, err
	}
	fresh := &sessionRecord{number: w.statements.number}
	if before.number != fresh.number || before.transaction() {
		before = &sessionRecord{}
	}
	fresh.run = run{at: len(before.entries), first: w.runFirst, last: w.runLast, known: alone}
	if r := before.run; alone && r.known && r.last+1 == w.runFirst { // a commit for each insert would make many runs of one
		fresh.run.at, fresh.run.first = r.at, r.first
		fresh.entries = appendRun(append(fresh.entries, before.entries[:r.at]...), r.first, w.runLast)
	} else {
		fresh.entries = append(append(fresh.entries, before.entries...), w.entries...)
	}
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
	return w.tx.In(w.store.meta).Put(recordKey(w.statements.session), value)
}

// remember keeps a session's record in memory.
func (s *Store) remember(session string, r *sessionRecord) {
	s.retries.mu.Lock()
	defer s.retries.mu.Unlock()
	s.retries.keep(session, r)
}

// ForgetSession removes what is kept for a session that has ended. It waits for no sync: what a power cut brings back is removed later on.
func (s *Store) ForgetSession(session string) error {
	s.retries.mu.Lock()
	r := s.retries.known(session)
	s.retries.forget(session)
	s.retries.mu.Unlock()
	if r != nil && r.number < 0 {
		return nil
	}
	tx, err := s.db.Begin(true)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	return s.dropRecord(tx, session)
}

// dropRecord removes the record of a session from the store, and commits that.
func (s *Store) dropRecord(tx *pando.Tx, session string) error {
	if err := tx.In(s.meta).Delete(recordKey(session)); err != nil {
		return err
	}
	return tx.CommitUnsynced()
}

// sessionAge is how long what a session did is kept that nobody ends, and that is not used: as long as servers keep sessions.
const sessionAge = 30 * time.Minute

// forgetSessions removes what is kept for sessions that a restart has cut off: those that nobody has used in this run.
func (s *Store) forgetSessions() error {
	var gone []string
	err := s.eachOfKind(sessionKey, func(key, _ []byte) error {
		gone = append(gone, string(key[1:]))
		return nil
	})
	for _, session := range gone {
		err = errors.Join(err, s.forgetUnused(session))
	}
	return err
}

// forgetUnused removes what is kept for a session, unless somebody has used it, be it meanwhile.
func (s *Store) forgetUnused(session string) error {
	tx, err := s.db.Begin(true)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	there, err := tx.In(s.meta).Has(recordKey(session)) // what it has looked at nobody else may have written when it commits
	if err != nil || !there || s.retries.inMemory(session) != nil {
		return err
	}
	if err := s.dropRecord(tx, session); !errors.Is(err, pando.ErrConflict) {
		return err
	}
	return nil
}
