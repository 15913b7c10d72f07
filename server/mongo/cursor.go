package mongo

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"strings"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document"
)

// cursor is a cursor that a client goes on reading from with getMore.
type cursor struct {
	id        int64
	ns        string
	src       *document.Cursor
	owner     *session // the session that it ends with; nil without one
	user      string
	txnNumber int64 // -1 outside of a transaction
	noTimeout bool
	tailable  bool
	await     bool
	changes   bool   // a change stream
	lasting   bool   // no power cut may undo what is read
	rest      int64  // how many documents its limit leaves; 0: it has none
	unhold    func() // gives back the moment that src reads at; under mu
	cancel    context.CancelCauseFunc
	ctx       context.Context

	limited bool          // the command that opened it has said how long it may take
	left    time.Duration // of that; only the command that has it pinned looks

	command int64   // bytes of what opened it that are not free: see keptCommands
	opening opening // where clients log in

	mu      sync.Mutex // held while it is read from
	held    bson.Raw   // a document that did not fit into the last batch
	waiting *budget    // of documents like that one
	used    time.Time  // under cursorTable.mu
	pinned  bool       // under cursorTable.mu: a command reads from it
	created time.Time
	opener  *opener
}

// opener is what is to be known of the connection through which cursors were opened. It is of its own, as they live longer. It is under
// cursorTable.mu.
type opener struct {
	open int // cursors
	gone bool
}

// cursorTable is the open cursors of all clients.
type cursorTable struct {
	server *Server
	mu     sync.Mutex
	byID   map[int64]*cursor
	opened int64
	timed  int64

	commands budget // of the bytes of large commands that have opened the cursors
}

// A cursor keeps the command that has opened it, and what was made of that: a list of a hundred thousand values becomes twenty times as large
// as it came. So large commands have only so much room together, and a cursor that does not find it is not opened.
const (
	freeCommand  = 4 << 10 // bytes of a command that need no room
	keptCommands = 4       // what part of MaxMessageBytes is for the others
)

func (t *cursorTable) init(s *Server) {
	t.server, t.byID = s, map[int64]*cursor{}
	t.commands.init(s.o.MaxMessageBytes / keptCommands)
}

// add takes a cursor and gives it an id.
func (t *cursorTable) add(c *cursor) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.byID) >= t.server.o.MaxCursors {
		return document.NewError(document.Code(261), "too many open cursors: %d", len(t.byID))
	}
	if n := c.opener.open; n >= t.server.o.MaxConnectionCursors {
		return document.NewError(document.Code(261), "too many open cursors of one connection: %d", n)
	}
	if c.owner != nil && c.owner.ended.Load() { // and nobody would look for it there any more
		return document.NewError(codeInterrupted, "the session of the cursor has ended")
	}
	for c.id == 0 || t.byID[c.id] != nil {
		var b [8]byte
		if _, err := rand.Read(b[:]); err != nil {
			return document.NewError(document.Code(1), "random bytes for a cursor id: %v", err)
		}
		c.id = int64(binary.LittleEndian.Uint64(b[:]) >> 1)
	}
	if c.command > 0 && !t.commands.tryTake(c.command) {
		return document.NewError(document.Code(261), "too many open cursors: the large commands that have opened them take too much memory")
	}
	c.used = t.server.clock.Now()
	c.created = c.used
	t.byID[c.id] = c
	c.opener.open++
	if c.owner != nil {
		c.owner.cursors++
	}
	t.opened++
	return nil
}

// forget takes a cursor out of the table, which is locked, and reports whether it was there.
func (t *cursorTable) forget(id int64) bool {
	c := t.byID[id]
	if c == nil {
		return false
	}
	delete(t.byID, id)
	t.commands.give(c.command)
	c.opener.open--
	if c.owner != nil {
		c.owner.cursors--
	}
	return true
}

// pin takes a cursor for reading; nobody else may read from it meanwhile.
func (t *cursorTable) pin(id int64) (*cursor, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.byID[id]
	if c == nil {
		return nil, document.NewError(codeCursorNotFound, "cursor id %d not found", id)
	}
	if c.pinned {
		return nil, document.NewError(document.Code(12051), "cursor id %d is already in use", id)
	}
	c.pinned = true
	return c, nil
}

// unpin gives a cursor back; one that is at its end is closed.
func (t *cursorTable) unpin(c *cursor, end bool) error {
	t.mu.Lock()
	c.pinned, c.used = false, t.server.clock.Now()
	killed := t.byID[c.id] == nil
	if end {
		t.forget(c.id)
	}
	t.mu.Unlock()
	if end || killed {
		return c.close()
	}
	return nil
}

// close gives up what the cursor reads from.
func (c *cursor) close() error {
	c.cancel(errKilled)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop()
	err := c.src.Close()
	if c.unhold != nil {
		c.unhold()
		c.unhold = nil
	}
	return err
}

// kill closes a cursor, also while a command reads from it, and reports whether there was one.
func (t *cursorTable) kill(id int64) bool {
	t.mu.Lock()
	c := t.byID[id]
	there := t.forget(id)
	t.mu.Unlock()
	if !there {
		return false
	}
	t.end(c)
	return true
}

// foreign returns what those of some cursors read that are another user's.
func (t *cursorTable) foreign(ids []bsoncore.Value, user string) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []string
	for _, v := range ids {
		id, _ := v.Int64OK()
		if c := t.byID[id]; c != nil && c.user != user {
			list = append(list, c.ns)
		}
	}
	return list
}

// end closes a cursor that has left the table.
func (t *cursorTable) end(c *cursor) {
	if err := c.close(); err != nil && !errors.Is(err, context.Canceled) {
		t.server.log.Error("cursor could not be closed", "namespace", c.ns, "error", err)
	}
}

// endAll closes the cursors for which which says so.
func (t *cursorTable) endAll(which func(c *cursor) bool) int {
	t.mu.Lock()
	var gone []*cursor
	for id, c := range t.byID {
		if which(c) {
			t.forget(id)
			gone = append(gone, c)
		}
	}
	t.mu.Unlock()
	for _, c := range gone {
		t.end(c)
	}
	return len(gone)
}

// connectionEnded is told that a connection is gone.
func (t *cursorTable) connectionEnded(o *opener) {
	t.mu.Lock()
	o.gone = true
	t.mu.Unlock()
}

// waits reports whether a cursor waits for its client for as long as that takes. One without a session, which nobody would end, does so
// while the connection is there that has opened it: else a client could take all cursors that there may be, and leave. The table is locked.
func (c *cursor) waits() bool {
	return c.noTimeout && (c.owner != nil || !c.opener.gone)
}

// expire closes cursors that nobody read from for too long.
func (t *cursorTable) expire(now time.Time) {
	n := t.endAll(func(c *cursor) bool {
		return !c.pinned && !c.waits() && now.Sub(c.used) > time.Duration(t.server.params.cursorTimeout.Load())
	})
	t.mu.Lock()
	t.timed += int64(n)
	t.mu.Unlock()
}

// endDropped closes the cursors on a collection that was dropped, "" for all of a database: they would read on what is gone. Those that wait
// for more find out by themselves, and for a transaction it is there as it was.
func (t *cursorTable) endDropped(database, collection string) {
	t.endAll(func(c *cursor) bool {
		db, name, _ := strings.Cut(c.ns, ".")
		of := name == collection || collection == "" && !strings.HasPrefix(name, "$cmd.")
		return db == database && of && !c.changes && !c.tailable && c.txnNumber < 0
	})
}

// endSession closes the cursors of a session.
func (t *cursorTable) endSession(s *session) {
	if t.anyOf(s) {
		t.endAll(func(c *cursor) bool { return c.owner == s })
	}
}

// endTransaction closes the cursors of a session's transaction.
func (t *cursorTable) endTransaction(s *session, number int64) {
	if t.anyOf(s) {
		t.endAll(func(c *cursor) bool { return c.owner == s && c.txnNumber == number })
	}
}

// anyOf reports whether a session has cursors: most have none when they end, and all cursors need not be looked at.
func (t *cursorTable) anyOf(s *session) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return s.cursors > 0
}

func (t *cursorTable) closeAll() { t.endAll(func(*cursor) bool { return true }) }

// kinds returns how many of the open cursors do not time out by themselves, and from how many a command reads.
func (t *cursorTable) kinds() (noTimeout, pinned int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.byID {
		if c.waits() {
			noTimeout++
		}
		if c.pinned {
			pinned++
		}
	}
	return noTimeout, pinned
}

// counts returns how many cursors are open, were ever opened, and timed out.
func (t *cursorTable) counts() (open int, opened, timed int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.byID), t.opened, t.timed
}
