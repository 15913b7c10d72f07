package mongo

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document"
)

// session is a client's logical session: where its retryable writes and its transaction live.
type session struct {
	id   string // the bytes of its UUID, and of its user
	doc  bsoncore.Document
	mu   turn      // held while a command of the session runs
	used time.Time // under sessionTable.mu

	ended   atomic.Bool // set under mu, when its transaction and records are gone: who has waited for it takes the next one of its id
	cursors int         // that are open; under cursorTable.mu

	asked  bool  // the store was, for the highest number: see recall
	number int64 // the highest transaction number seen
	txn    *transaction
}

// sessionTable is the sessions of all clients.
type sessionTable struct {
	server *Server
	mu     sync.Mutex
	byID   map[string]*session
}

func (t *sessionTable) init(s *Server) { t.server, t.byID = s, map[string]*session{} }

// get returns the session with an id, which is made when it is new.
func (t *sessionTable) get(id string, doc bsoncore.Document) (*session, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.byID[id]
	if s == nil || s.ended.Load() {
		if s == nil && len(t.byID) >= t.server.o.MaxSessions {
			return nil, document.NewError(document.Code(261), "cannot add session into the cache, too many sessions")
		}
		s = &session{id: id, doc: append(bsoncore.Document(nil), doc...), mu: newTurn(), number: -1}
		t.byID[id] = s
	}
	s.used = t.server.clock.Now()
	return s, nil
}

// expire ends sessions that were idle for too long, and transactions that take too long.
func (t *sessionTable) expire(now time.Time) {
	old, late := t.idle(now)
	for s, used := range old {
		t.endIdle(s, used)
	}
	for _, s := range late {
		if !s.mu.TryLock() {
			continue // a command runs; it is looked at next time
		}
		if x := s.txn; x != nil && x.state == txnRunning && now.Sub(x.started) > time.Duration(t.server.params.transactionTimeout.Load()) {
			x.abort()
		}
		s.mu.Unlock()
	}
}

// idle returns the sessions that were idle for too long, with their last use, and the others. A session is not idle while a command of its runs.
func (t *sessionTable) idle(now time.Time) (old map[*session]time.Time, others []*session) {
	busy := t.server.ops.sessions()
	t.mu.Lock()
	defer t.mu.Unlock()
	old = map[*session]time.Time{}
	for _, s := range t.byID {
		if busy[s] {
			s.used = now
		}
		if now.Sub(s.used) > sessionTimeout {
			old[s] = s.used
		} else {
			others = append(others, s)
		}
	}
	return old, others
}

// endIdle ends a session, unless it was used again: to end many takes time, and what it has written meanwhile may be sent again. One in which
// a command runs is not waited for: whoever ends idle ones has other things to look after.
func (t *sessionTable) endIdle(s *session, used time.Time) {
	if !s.mu.TryLock() {
		return
	}
	t.mu.Lock()
	again := !s.used.Equal(used)
	t.mu.Unlock()
	if again {
		s.mu.Unlock()
		return
	}
	t.endLocked(s, true)
}

// recall asks the store, once, what the session has committed last: its client may have begun it with a server that is gone. The session
// is locked.
func (s *session) recall(store *document.Store) error {
	if s.asked {
		return nil
	}
	number, transactional, err := store.NewestNumber(s.id)
	if err != nil {
		return err
	}
	if s.asked, s.number = true, number; transactional {
		s.txn = &transaction{number: number, state: txnCommitted}
	}
	return nil
}

// remove ends a session at its client's wish.
func (t *sessionTable) remove(ctx context.Context, id string) error {
	t.mu.Lock()
	s := t.byID[id]
	t.mu.Unlock()
	if s == nil {
		return nil
	}
	if err := s.mu.lockWithin(ctx); err != nil {
		return err
	}
	t.endLocked(s, true)
	return nil
}

// kill ends the transaction and the cursors of a session, and the session itself unless what it has written may be sent again.
func (t *sessionTable) kill(id string) {
	t.mu.Lock()
	s := t.byID[id]
	t.mu.Unlock()
	if s == nil {
		return
	}
	s.mu.Lock()
	keep := s.asked
	if s.txn != nil && s.txn.state == txnRunning {
		s.txn.abort()
	}
	s.mu.Unlock()
	if !keep {
		t.end(s, false)
		return
	}
	t.server.cursors.endSession(s)
}

// end ends a session: its transaction, its cursors, and, if nobody can send its writes again, what is kept of them. It stays in the table
// until its transaction and its records are gone, so that those of the next one of its id begin after them, and not beside them.
func (t *sessionTable) end(s *session, forget bool) {
	s.mu.Lock()
	t.endLocked(s, forget)
}

// endLocked is end of a session that is locked, which it unlocks.
func (t *sessionTable) endLocked(s *session, forget bool) {
	if !s.ended.Load() {
		if s.txn != nil && s.txn.state == txnRunning {
			s.txn.abort()
		}
		if forget && s.asked {
			if err := t.server.store.ForgetSession(s.id); err != nil {
				t.server.log.Warn("what an ended session has written could not be forgotten", "error", err)
			}
		}
		s.ended.Store(true)
	}
	s.mu.Unlock()
	t.server.cursors.endSession(s)
	t.mu.Lock()
	if t.byID[s.id] == s {
		delete(t.byID, s.id)
	}
	t.mu.Unlock()
}

func (t *sessionTable) closeAll() {
	t.mu.Lock()
	all := slices.Collect(maps.Values(t.byID))
	t.mu.Unlock()
	for _, s := range all {
		t.end(s, false)
	}
}

// sessionID reads a session's id: {id: UUID, uid: hash of the user}.
func (r *request) sessionID(field string, doc bsoncore.Document) (string, error) {
	const most = 128 // bytes: the session keeps them
	if len(doc) > most {
		return "", document.NewError(document.FailedToParse, "%s has %d bytes, which is more than %d", field, len(doc), most)
	}
	uuid, err := readUUID(field, doc)
	return uuid + r.conn.auth.userDigest(), err
}

// enterSession finds the session with an id, for the command, and for those who end all commands of a session.
func (r *request) enterSession(id string, doc bsoncore.Document) (err error) {
	if r.session, err = r.server.sessions.get(id, doc); err == nil {
		r.op.session.Store(r.session)
	}
	return err
}

// lockSession waits until no other command of the session runs, or the command that waits is to end. One that has ended meanwhile is begun anew: what would begin in it, nobody
// would end.
func (r *request) lockSession() (*session, error) {
	for {
		s := r.session
		if err := s.mu.lockWithin(r.ctx); err != nil {
			return nil, err
		}
		if !s.ended.Load() {
			return s, nil
		}
		s.mu.Unlock()
		if err := r.enterSession(s.id, s.doc); err != nil {
			return nil, err
		}
	}
}

// joinSession finds the session, and the transaction, in which the command runs.
func (r *request) joinSession() error {
	lsid, err := r.document("lsid")
	if err != nil {
		return err
	}
	number, err := r.number("txnNumber")
	if err != nil {
		return err
	}
	if lsid != nil && r.server.o.Auth && !r.conn.auth.loggedIn() {
		return nil // a stranger's session is not kept
	}
	if err := r.checkTransactionFields(); err != nil {
		return err
	}
	if lsid == nil {
		if r.has("txnNumber") {
			return document.NewError(codeInvalidOptions, "Transaction number requires a session ID to be specified")
		}
		return nil
	}
	id, err := r.sessionID("lsid", lsid)
	if err != nil {
		return err
	}
	if err := r.enterSession(id, lsid); err != nil {
		return err
	}
	if !r.has("txnNumber") {
		return nil
	}
	if r.server.o.Standalone {
		return document.NewError(codeIllegalOperation, "Transaction numbers are only allowed on a replica set member or mongos")
	}
	if number < 0 {
		return document.NewError(codeInvalidOptions, "Transaction number cannot be negative: %d", number)
	}
	r.txnNumber = number
	if r.has("autocommit") {
		return nil // see inTransaction
	}
	r.retryable = true
	return nil
}

// checkTransactionFields refuses fields of a transaction that do not fit together, with a session or without: what looks as if it were part
// of a transaction must not be carried out alone.
func (r *request) checkTransactionFields() error {
	if !r.transactional {
		return nil
	}
	auto, some := r.args["autocommit"].BooleanOK()
	start, begins := r.args["startTransaction"].BooleanOK()
	switch {
	case some && !r.has("txnNumber"):
		return document.NewError(codeInvalidOptions, "'autocommit' field requires a transaction number to also be specified")
	case begins && !some:
		return document.NewError(codeInvalidOptions, "'startTransaction' field requires 'autocommit' field to also be specified")
	case some && auto:
		return document.NewError(codeInvalidOptions, "Specifying autocommit=true is not allowed.")
	case begins && !start:
		return document.NewError(codeInvalidOptions, "Specifying startTransaction=false is not allowed.")
	}
	return nil
}

func sessionCommands() []*command {
	return []*command{
		{name: "startSession", run: (*request).startSession, anyField: true, stable: false, help: "starts a session"},
		{name: "endSessions", run: (*request).endSessions, stable: true, open: true, help: "ends sessions"},
		{name: "refreshSessions", run: (*request).refreshSessions, stable: false, help: "keeps sessions from ending"},
		{name: "killSessions", run: (*request).killSessions, anyField: true, help: "ends sessions"},
		{name: "killAllSessions", run: (*request).killAllSessions, anyField: true, help: "ends all sessions, or those of users"},
		{name: "killAllSessionsByPattern", run: (*request).killAllSessionsByPattern, anyField: true, help: "ends all sessions, or those that patterns name"},
		{name: "commitTransaction", run: (*request).commitTransaction, fields: []string{"recoveryToken"}, admin: true, write: true, inTxn: true, stable: true, help: "commits a transaction"},
		{name: "abortTransaction", run: (*request).abortTransaction, fields: []string{"recoveryToken"}, admin: true, inTxn: true, stable: true, help: "aborts a transaction"},
	}
}

func (r *request) startSession() (bsoncore.Document, error) {
	id := bson.NewObjectID()
	data := append(append([]byte{}, id[:]...), r.server.id[8:]...)
	doc := bsoncore.NewDocumentBuilder().AppendBinary("id", bson.TypeBinaryUUID, data).Build()
	if _, err := r.server.sessions.get(string(data)+r.conn.auth.userDigest(), doc); err != nil {
		return nil, err
	}
	return done(bsoncore.NewDocumentBuilder().AppendDocument("id", doc).AppendInt32("timeoutMinutes", int32(sessionTimeout/time.Minute))), nil
}

// eachSession calls fn with the sessions that the command's first field lists.
func (r *request) eachSession(fn func(id string, doc bsoncore.Document) error) error {
	docs, err := r.documents(r.name)
	if err != nil {
		return err
	}
	for _, doc := range docs {
		id, err := r.sessionID(r.name, doc)
		if err != nil {
			return err
		}
		if err := fn(id, doc); err != nil {
			return err
		}
	}
	return nil
}

func (r *request) endSessions() (bsoncore.Document, error) {
	return ok(), r.eachSession(func(id string, _ bsoncore.Document) error {
		return r.server.sessions.remove(r.ctx, id)
	})
}

func (r *request) refreshSessions() (bsoncore.Document, error) {
	return ok(), r.eachSession(func(id string, doc bsoncore.Document) error {
		_, err := r.server.sessions.get(id, doc)
		return err
	})
}
