package mongo

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/server/wire"
)

// request is one command on its way.
type request struct {
	server  *Server
	conn    *conn
	ctx     context.Context
	cancel  context.CancelCauseFunc
	start   time.Time
	limited bool // a timer ends it, perhaps when it has just ended by itself

	name    string // as the client wrote it
	command *command
	body    bsoncore.Document
	target  bsoncore.Value // of the first element
	args    map[string]bsoncore.Value
	docs    map[string][]bsoncore.Document // of the message's sequences
	tooMany int                            // documents of theirs that are not in docs
	db      string
	legacy  bool // it came as OP_QUERY

	spareArgs     map[string]bsoncore.Value // an empty one, for args
	mistyped      *fieldType                // the first field that is of a wrong type
	versioned     bool                      // it has a field of the Stable API
	transactional bool                      // it has a field of a transaction

	session     *session
	txnNumber   int64
	retryable   bool // a retryable write
	failed      bool // a statement has: the answer tells of it
	tried       int  // statements that a write command has come to
	statement   statementNumbers
	refused     map[int]error // statements of an update or delete by their numbers, and why
	unheard     bool          // the client is not to hear of the outcome
	txn         *transaction
	at          *document.Snapshot // of readConcern snapshot outside of a transaction
	atTime      bson.Timestamp
	concern     writeConcern
	readConcern bsoncore.Document
	synced      bool // a commit of the command's has waited for a sync after it had seen all that it tells of
	lasting     bool // no power cut may undo what a read tells of
	op          *operation
	more        bool // exhaust: another answer follows
	stale       bool // the client has heard of another topology than this one
	roomy       bool // the answer is nobody else's, and has room behind it
	labels      []string
	concernErr  bsoncore.Document // writeConcernError
}

// newRequest takes a message apart. What is wrong with it is said by perform.
func (c *conn) newRequest(m *wire.Message) *request {
	r := &request{server: c.server, conn: c, body: m.Body, legacy: m.Op == wire.OpQuery, spareArgs: c.emptyArgs()}
	for _, s := range m.Sequences {
		if r.docs == nil {
			r.docs = make(map[string][]bsoncore.Document, 1)
		}
		if before := r.docs[s.Field]; before != nil {
			s.Documents = append(before, s.Documents...)
		}
		r.docs[s.Field] = s.Documents
		r.tooMany += s.More
	}
	if first, err := m.Body.IndexErr(0); err == nil {
		r.name, r.target = first.Key(), first.Value()
	}
	switch r.name {
	case "find", "aggregate", "listCollections", "listIndexes":
		// A cursor outlives the message, whose bytes are those of the next one then.
		r.body = bytes.Clone(m.Body)
		if first, err := r.body.IndexErr(0); err == nil {
			r.target = first.Value()
		}
	}
	if r.legacy && (r.name == "$query" || r.name == "query") {
		if inner, ok := r.target.DocumentOK(); ok {
			r.body = inner
			if first, err := inner.IndexErr(0); err == nil {
				r.name, r.target = first.Key(), first.Value()
			}
		}
	}
	if r.legacy {
		r.db, _, _ = strings.Cut(m.Collection, ".")
	}
	return r
}

// emptyArgs returns a map for the fields of the next command.
func (c *conn) emptyArgs() map[string]bsoncore.Value {
	const most = 4 * usualFields // others become garbage
	if len(c.args) > most || c.args == nil {
		c.args = make(map[string]bsoncore.Value, usualFields)
	}
	clear(c.args)
	return c.args
}

// again returns the message that an exhaust answer stands for: the same request once more, by who has read the answer.
func (r *request) again(m *wire.Message, id int32) *wire.Message {
	next := *m
	next.RequestID = id
	if r.stale {
		next.Body = r.withTopology()
	}
	return &next
}

// perform checks a request and carries it out.
func (r *request) perform() (bsoncore.Document, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	if err := r.parse(); err != nil {
		return nil, err
	}
	if r.command == nil {
		return nil, document.NewError(codeCommandNotFound, "no such command: '%s'", r.name)
	}
	if v, given := r.args["help"]; given && v.Type == bsoncore.TypeBoolean && v.Boolean() {
		text := "help for: " + r.name + " " + r.command.help
		return done(bsoncore.NewDocumentBuilder().AppendString("help", text)), nil
	}
	r.server.ops.begin(r)
	defer r.server.ops.end(r)
	if err := r.admit(); err != nil {
		return nil, err
	}
	if err := r.server.fails.apply(r); err != nil {
		return nil, err
	}
	stop, err := r.limitTime()
	if err != nil {
		return nil, err
	}
	defer stop()
	unused, err := r.useSnapshot()
	if err != nil {
		return nil, err
	}
	defer unused()
	reply, err := r.inTransaction(func() (bsoncore.Document, error) { return r.sendable(r.command.run(r)) })
	if failed := r.awaitSeen(); failed != nil {
		return nil, errors.Join(err, failed)
	}
	if err != nil {
		if !notBegun(err) {
			r.missConcern()
		}
		return nil, err
	}
	if err := r.awaitConcern(); err != nil {
		return nil, err
	}
	return r.sendable(r.finish(reply), nil)
}

// check refuses bytes that are no BSON. The statements of writes are checked one by one when their turn comes.
func (r *request) check() error {
	if err := document.CheckBSON(bson.Raw(r.body)); err != nil {
		return err
	}
	if r.tooMany > 0 {
		return wrongBatchSize(wire.MaxDocuments + r.tooMany)
	}
	if r.name == "insert" || r.name == "update" || r.name == "delete" {
		return nil
	}
	for _, docs := range r.docs {
		for _, doc := range docs {
			if err := document.CheckBSON(bson.Raw(doc)); err != nil {
				return err
			}
		}
	}
	return nil
}

// genericFields are the fields that every command may have.
func genericFields() []string {
	return []string{
		"$db", "lsid", "txnNumber", "autocommit", "startTransaction", "readConcern", "writeConcern", "$clusterTime", "$readPreference",
		"maxTimeMS", "comment", "apiVersion", "apiStrict", "apiDeprecationErrors", "$audit", "$client", "$configServerState", "$oplogQueryData",
		"$replData", "clientOperationKey", "databaseVersion", "help", "mayBypassWriteBlocking", "shardVersion", "tracking_info", "coordinator",
		"maxTimeMSOpOnly", "$configTime", "$topologyTime", "isClusterQueryWithoutShardKeyCmd", "readOnce", "allowReadOnClusterTime", "backpressure",
	}
}

// generic reports whether a field is one of those.
func generic(name string) bool { return slices.Contains(genericFields(), name) }

const (
	emptyDocument = 5 // bytes
	usualFields   = 8 // of a command

	// maxFields is how many fields a command may have. Those that take whatever comes would keep as many as a message holds, each of which takes
	// twenty times its bytes.
	maxFields = 10_000
)

// parse reads the fields of the command, and refuses those that it does not know.
func (r *request) parse() error {
	r.command = r.server.commands[r.name]
	if len(r.body) <= emptyDocument {
		return document.NewError(document.FailedToParse, "a command without a name")
	}
	if r.args, r.spareArgs = r.spareArgs, nil; r.args == nil {
		r.args = make(map[string]bsoncore.Value, usualFields)
	}
	r.mistyped, r.versioned, r.transactional = nil, false, false
	for rest := r.body[4 : len(r.body)-1]; len(rest) > 0; {
		name, v, after, ok := cutElement(rest)
		if !ok {
			return document.NewError(document.FailedToParse, "a command that cannot be read")
		}
		rest = after
		if err := r.take(name, v); err != nil {
			return err
		}
	}
	for field := range r.docs {
		if _, twice := r.args[field]; twice {
			return document.NewError(codeDuplicateField, "BSON field '%s.%s' is a duplicate field", r.name, field)
		}
		if r.command != nil && !r.command.anyField && field != r.command.sequence() {
			return document.NewError(codeUnknownField, "BSON field '%s.%s' is an unknown field.", r.name, field)
		}
	}
	if v, ok := r.args["$db"]; ok {
		if r.db, ok = v.StringValueOK(); !ok {
			return wrongType(r.name+".$db", v, "string")
		}
	} else if !r.legacy {
		return document.NewError(codeMissingField, "OP_MSG requests require a $db argument")
	}
	return nil
}

// cutElement returns the name and the value of the element that src begins with, and what is behind it.
func cutElement(src []byte) (name []byte, v bsoncore.Value, rest []byte, ok bool) {
	end := bytes.IndexByte(src, 0)
	if end < 1 || len(src) == 0 {
		return nil, v, nil, false
	}
	v, rest, ok = bsoncore.ReadValue(src[end+1:], bsoncore.Type(src[0]))
	return src[1:end], v, rest, ok
}

// take takes in a field of the command.
func (r *request) take(key []byte, v bsoncore.Value) error {
	var f *knownField
	if r.command != nil {
		f = r.command.known[string(key)]
	}
	var name string
	if f != nil {
		name = f.name // without a copy
	} else {
		name = string(key)
	}
	if _, twice := r.args[name]; twice {
		return document.NewError(codeDuplicateField, "BSON field '%s.%s' is a duplicate field", r.name, name)
	}
	if len(r.args) == maxFields {
		return document.NewError(document.FailedToParse, "a command has %d fields at most", maxFields)
	}
	r.args[name] = v
	if f == nil || !f.allowed {
		if len(r.args) > 1 && r.command != nil && !r.command.anyField {
			return document.NewError(codeUnknownField, "BSON field '%s.%s' is an unknown field.", r.name, name)
		}
		if f == nil {
			return nil
		}
	}
	r.versioned = r.versioned || f.api
	r.transactional = r.transactional || f.transaction
	if f.kind != nil && r.mistyped == nil && f.kind.refuses(v) {
		r.mistyped = f.kind
	}
	return nil
}

// collectionName returns the name in the command's first field. Cursors of a database go by one that no collection has.
func (r *request) collectionName() (string, error) {
	name, ok := r.target.StringValueOK()
	if !ok {
		return "", r.nameless()
	}
	if name == "" {
		return "", document.NewError(codeInvalidNamespace, "Invalid namespace specified '%s.'", r.db)
	}
	return name, nil
}

// collection returns the collection that the command's first field names, as its transaction sees it.
func (r *request) collection() (*document.Collection, error) {
	name, err := r.collectionName()
	if err != nil {
		return nil, err
	}
	c := r.lookup(name)
	return c, c.CheckName()
}

// nameless is the error of a command whose first field does not name a collection.
func (r *request) nameless() error {
	code := document.BadValue
	switch {
	case r.command.name == "aggregate" && r.target.IsNumber():
		return document.NewError(document.FailedToParse, "Invalid command format: the 'aggregate' field must specify a collection name or 1")
	case r.command.name == "aggregate":
		code = document.TypeMismatch
	case strings.HasPrefix(r.command.name, "planCache"):
		code = codeInvalidNamespace
	}
	switch r.command.name {
	case "count", "distinct", "collStats", "validate", "compact", "reIndex":
		code = codeInvalidNamespace // these are older
	}
	return document.NewError(code, "collection name has invalid type %s", document.TypeName(bson.Type(r.target.Type)))
}

func (r *request) lookup(name string) *document.Collection {
	c := r.server.store.Database(r.db).Lookup(name)
	switch {
	case r.txn != nil:
		return r.txn.tx.In(c)
	case r.at != nil:
		return r.at.In(c)
	}
	return c
}

// limitTime sets the time limit of the command.
func (r *request) limitTime() (func(), error) {
	ms, err := r.maxTime()
	if err != nil {
		return nil, err
	}
	if ms == 0 || r.name == "getMore" { // of a getMore it is how long to wait for more
		return func() {}, nil
	}
	return r.endAfter(time.Duration(ms) * time.Millisecond)
}

// maxTime returns the time limit in milliseconds; 0: there is none.
func (r *request) maxTime() (int64, error) {
	v, given := r.args["maxTimeMS"]
	if !given {
		return 0, nil
	}
	ms, isNumber := asInt64(v)
	switch {
	case !isNumber && r.command.name == "aggregate" && v.Type != bsoncore.TypeNull:
		return 0, wrongType("maxTimeMS", v, "long")
	case !isNumber:
		return 0, document.NewError(document.BadValue, "maxTimeMS must be a number")
	case v.Type == bsoncore.TypeDouble && v.Double() != float64(ms):
		return 0, document.NewError(document.BadValue, "maxTimeMS has non-integral value")
	case ms < 0 && r.command.name == "aggregate":
		return 0, document.NewError(document.Code(51024), "BSON field 'maxTimeMS' value must be >= 0, actual value '%d'", ms)
	case ms < 0 || ms > 1<<31-1:
		return 0, document.NewError(document.BadValue, "%d value for maxTimeMS is out of range [0, 2147483647]", ms)
	}
	return ms, nil
}

// endAfter ends a command that takes longer.
func (r *request) endAfter(limit time.Duration) (func(), error) {
	if limit <= 0 || r.server.fails.strike(r, failTimeName) != nil {
		return nil, document.NewError(document.Code(50), "%v", errTimeLimit)
	}
	r.limited = true
	timer := r.server.clock.AfterFunc(limit, func() { r.cancel(errTimeLimit) })
	return func() { timer.Stop() }, nil
}

var (
	errTimeLimit = errors.New("operation exceeded time limit")
	errKilled    = errors.New("operation was interrupted")
)

// explainError turns errors of the layers below into ones with a code.
func (r *request) explainError(err error) error {
	var e *document.Error
	if errors.As(err, &e) {
		return err
	}
	switch cause := context.Cause(r.ctx); {
	case r.ctx != nil && errors.Is(cause, errTimeLimit):
		return document.NewError(document.Code(50), "operation exceeded time limit")
	case r.ctx != nil && errors.Is(cause, errKilled):
		return document.NewError(codeInterrupted, "operation was interrupted")
	case errors.Is(err, context.Canceled), errors.Is(err, pando.ErrClosed):
		return r.explainEnd()
	case errors.Is(err, pando.ErrDiskFull):
		return document.NewError(codeOutOfDiskSpace, "%v", err)
	case errors.Is(err, pando.ErrConflict):
		return document.NewError(document.WriteConflict, "%v", err)
	}
	r.server.log.Error("command failed", "command", r.name, "error", err)
	return document.NewError(document.Code(1), "%v", err)
}

// explainEnd is the error of a command that found closed what it read from. It is only that of a server which shuts down when this one does:
// drivers close all connections when they hear of that.
func (r *request) explainEnd() error {
	switch {
	case r.server.accepting.Err() != nil:
		return r.shutsDown()
	case r.at != nil:
		return document.NewError(codeSnapshotTooOld, "Read timestamp %v is older than the oldest available timestamp.", r.atTime)
	}
	return document.NewError(codeInterrupted, "operation was interrupted")
}

// shutsDown is the error of a command that a shutdown has ended, with the label by which drivers know that it, or the transaction it is part of,
// may be sent again.
func (r *request) shutsDown() error {
	err := document.NewError(codeShutdown, "The server is in quiesce mode and will shut down")
	switch {
	case r.retriesWrite():
		return withLabel(err, retryableLabel)
	case r.has("autocommit"):
		return transient(err)
	}
	return err
}
