package mongo

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document"
)

// operation is a command that runs, as currentOp shows it and killOp ends it.
type operation struct {
	id      int64
	request *request
	started time.Time
	session atomic.Pointer[session] // nil until the command has found it
}

// operationTable is the commands that run.
type operationTable struct {
	mu   sync.Mutex
	next int64
	byID map[int64]*operation
}

func (t *operationTable) init() { t.byID = map[int64]*operation{} }

// begin notes a command.
func (t *operationTable) begin(r *request) {
	r.op = &operation{request: r, started: r.start}
	t.mu.Lock()
	for t.next = t.next%math.MaxInt32 + 1; t.byID[t.next] != nil; t.next = t.next%math.MaxInt32 + 1 { // currentOp tells it in 32 bits
	}
	r.op.id = t.next
	t.byID[r.op.id] = r.op
	t.mu.Unlock()
}

// end notes that a command has ended. Nobody ends it any more when this returns.
func (t *operationTable) end(r *request) {
	t.mu.Lock()
	delete(t.byID, r.op.id)
	t.mu.Unlock()
}

// kill ends a command, and reports whether there was one.
func (t *operationTable) kill(id int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	op := t.byID[id]
	if op == nil {
		return false
	}
	op.request.cancel(errKilled)
	return true
}

// killSessions ends the commands of some sessions.
func (t *operationTable) killSessions(ids map[string]bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, op := range t.byID {
		if s := op.session.Load(); s != nil && ids[s.id] {
			op.request.cancel(errKilled)
		}
	}
}

// sessions returns the sessions of the commands that run.
func (t *operationTable) sessions() map[*session]bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	busy := map[*session]bool{}
	for _, op := range t.byID {
		if s := op.session.Load(); s != nil {
			busy[s] = true
		}
	}
	return busy
}

func operationCommands() []*command {
	return []*command{
		{name: "killOp", run: (*request).killOp, anyField: true, admin: true, help: "ends a command that runs"},
	}
}

func (r *request) killOp() (bsoncore.Document, error) {
	id, err := r.number("op")
	if err != nil {
		return nil, err
	}
	if v := r.args["op"]; v.Type == bsoncore.TypeDouble && v.Double() != float64(id) {
		return nil, document.NewError(document.BadValue, "Expected field \"op\" to have a value exactly representable as a 64-bit integer")
	}
	if !r.has("op") {
		return nil, document.NewError(document.Code(4), "Did not provide \"op\" field")
	}
	r.server.ops.kill(id)
	return done(bsoncore.NewDocumentBuilder().AppendString("info", "attempting to kill op")), nil
}
