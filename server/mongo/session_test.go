package mongo

import (
	"errors"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// inSession returns a command of a session, which a letter tells apart from others.
func inSession(letter byte, command bson.D, more ...any) bson.D {
	id := bson.Binary{Subtype: bson.TypeBinaryUUID, Data: []byte{15: letter}}
	return with(command, append([]any{"lsid", cmd("id", id)}, more...)...)
}

// inTransaction returns a command of a session's transaction.
func inTransaction(letter byte, number int64, command bson.D, more ...any) bson.D {
	return inSession(letter, command, append([]any{"txnNumber", number, "autocommit", false}, more...)...)
}

// TestACommitIsSentAgainAfterARestart: the answer to a commit may be lost with the server. Whoever sends it again has to hear that all went
// well, or the transaction is run once more; and its number is taken, as it is on a server that has not ended. A later number, of a
// transaction or of a retryable write, takes its place.
func TestACommitIsSentAgainAfterARestart(t *testing.T) {
	fs := memfs.New()
	open := func() (*testClient, func()) {
		t.Helper()
		store, err := document.Open("db", &document.Options{Storage: pando.Options{FS: fs, MemoryBytes: 8 << 20}, TTLInterval: -1})
		if err != nil {
			t.Fatal(err)
		}
		s, err := New(store, nil)
		if err != nil {
			t.Fatal(err)
		}
		return dial(t, s), func() {
			if err := errors.Join(s.Close(), store.Close()); err != nil {
				t.Error(err)
			}
		}
	}
	insert, commit, abort := cmd("insert", "c", "documents", bson.A{bson.D{}}), cmd("commitTransaction", 1), cmd("abortTransaction", 1)
	c, end := open()
	c.must("d", cmd("create", "c"))
	for _, letter := range []byte("tuw") {
		c.must("d", inTransaction(letter, 5, insert, "startTransaction", true))
		c.must("admin", inTransaction(letter, 5, commit))
	}
	c.must("d", inTransaction('u', 6, insert, "startTransaction", true))
	c.must("admin", inTransaction('u', 6, commit))
	c.must("d", inSession('w', insert, "txnNumber", int64(6)))
	end()
	for _, run := range []string{"after the restart", "after another one"} {
		c, end = open()
		for range 2 {
			c.must("admin", inTransaction('t', 5, commit))
		}
		c.must("d", inSession('w', insert, "txnNumber", int64(6)))
		for _, refused := range []struct {
			command bson.D
			code    int32
		}{
			{inTransaction('t', 5, abort), 256},
			{inTransaction('t', 5, cmd("find", "c")), 256},
			{inTransaction('t', 5, insert, "startTransaction", true), 117},
			{inTransaction('t', 4, insert, "startTransaction", true), 225},
			{inTransaction('t', 4, commit), 225},
			{inTransaction('t', 6, commit), 251},
			{inSession('t', insert, "txnNumber", int64(5)), 217},
			{inSession('t', insert, "txnNumber", int64(4)), 225},
			{inTransaction('u', 5, commit), 225},
			{inTransaction('w', 5, commit), 225},
			{inTransaction('w', 6, commit), 251},
			{inTransaction('w', 6, insert, "startTransaction", true), 117},
			{inTransaction('n', 5, commit), 251},
		} {
			db := "d"
			if name := refused.command[0].Key; name == "commitTransaction" || name == "abortTransaction" {
				db = "admin"
			}
			c.refused(db, refused.command, refused.code)
		}
		if n := c.must("d", cmd("count", "c")).Lookup("n").AsInt64(); n != 5 {
			t.Errorf("%s there are %d documents", run, n)
		}
		end()
	}
}

// The number of a transaction is taken when that has been aborted, too.
func TestAbortedTransactionsAreNotStartedAgain(t *testing.T) {
	c := dial(t, newServer(t, nil))
	insert := cmd("insert", "c", "documents", bson.A{bson.D{}})
	c.must("d", inTransaction('t', 1, insert, "startTransaction", true))
	c.must("admin", inTransaction('t', 1, cmd("abortTransaction", 1)))
	if name := textIn(c.refused("d", inTransaction('t', 1, insert, "startTransaction", true), 117), "codeName"); name != "ConflictingOperationInProgress" {
		t.Errorf("the code has the name %q", name)
	}
	if name := textIn(c.refused("d", inSession('t', insert, "txnNumber", int64(1)), 217), "codeName"); name != "IncompleteTransactionHistory" {
		t.Errorf("the code has the name %q", name)
	}
	c.must("d", inTransaction('t', 2, insert, "startTransaction", true))
}

// What a session's writes did is kept for those who send them again, and no longer than the session.
func TestEndedSessionsAreForgotten(t *testing.T) {
	s := newServer(t, nil)
	c := dial(t, s)
	id := bson.Binary{Subtype: bson.TypeBinaryUUID, Data: []byte("0123456789abcdef")}
	lsid := bson.D{{Key: "id", Value: id}}
	insert := cmd("insert", "c", "documents", bson.A{bson.D{{Key: "_id", Value: 1}}}, "lsid", lsid, "txnNumber", int64(1))
	for range 2 { // sent again, it is not carried out again
		if n := c.must("d", insert).Lookup("n").Int32(); n != 1 {
			t.Errorf("%d inserted", n)
		}
	}
	if o, err := s.store.Outcome(string(id.Data), 1, 0); o == nil || err != nil {
		t.Fatalf("before the end of the session: %v, %v", o, err)
	}
	c.must("d", cmd("endSessions", bson.A{lsid}))
	if o, err := s.store.Outcome(string(id.Data), 1, 0); o != nil || err != nil {
		t.Errorf("after the end of the session: %v, %v", o, err)
	}
}

// A fail point holds a command back before it takes its session: a commit that is sent again, as its client did not want to wait any
// longer, is answered while the first one is still held back.
func TestACommitIsSentAgainWhileTheFirstIsHeldBack(t *testing.T) {
	s := newServer(t, &Options{TestCommands: true})
	first, again := dial(t, s), dial(t, s)
	txn := []any{"lsid", cmd("id", bson.Binary{Subtype: bson.TypeBinaryUUID, Data: []byte("0123456789abcdef")}), "txnNumber", int64(1), "autocommit", false}
	first.must("d", cmd("create", "c"))
	first.must("d", with(cmd("insert", "c", "documents", bson.A{bson.D{}}, "startTransaction", true), txn...))
	first.must("admin", cmd("configureFailPoint", "failCommand", "mode", cmd("times", 1),
		"data", cmd("failCommands", bson.A{"commitTransaction"}, "blockConnection", true, "blockTimeMS", 3_600_000)))
	commit := with(cmd("commitTransaction", 1, "writeConcern", cmd("w", "majority")), txn...)
	body, err := bson.Marshal(append(commit, bson.E{Key: "$db", Value: "admin"}))
	if err != nil {
		t.Fatal(err)
	}
	first.send(0, body)
	held := int64(0)
	for held == 0 {
		again.must("admin", cmd("ping", 1))
		s.fails.mu.Lock()
		struck := s.fails.used > 0
		s.fails.mu.Unlock()
		s.ops.mu.Lock()
		for id, op := range s.ops.byID {
			if struck && op.request.name == "commitTransaction" {
				held = id
			}
		}
		s.ops.mu.Unlock()
	}
	again.must("admin", commit)
	if n := again.must("d", cmd("count", "c")).Lookup("n").AsInt64(); n != 1 {
		t.Errorf("%d documents after the commit", n)
	}
	s.ops.mu.Lock()
	_, still := s.ops.byID[held]
	s.ops.mu.Unlock()
	if !still {
		t.Error("the first commit was not held back for as long as the other took")
	}
	again.must("admin", cmd("killOp", 1, "op", held))
	if reply := first.receive(); codeIn(reply) != 11601 {
		t.Errorf("the first commit, killed: %s", reply)
	}
	first.must("d", cmd("count", "c")) // what ended that command does not end the next one of the connection
}

// TestFailedStatementsEndTransactions: the answer tells of the statement that failed as it does without a transaction, so that drivers make
// the same error of it; only what is worth another try is the error of the command.
func TestFailedStatementsEndTransactions(t *testing.T) {
	s := newServer(t, nil)
	c := dial(t, s)
	c.must("d", cmd("insert", "c", "documents", bson.A{cmd("_id", 1), cmd("_id", 2)}))
	c.must("d", cmd("create", "v", "viewOn", "c"))
	number := int64(0)
	within := func(command bson.D, more ...any) bson.D {
		lsid := cmd("id", bson.Binary{Subtype: bson.TypeBinaryUUID, Data: []byte("0123456789abcdef")})
		return with(command, append(more, "lsid", lsid, "txnNumber", number, "autocommit", false)...)
	}
	statement := cmd("q", cmd("_id", 1), "u", cmd("$set", cmd("_id", 9)))
	for _, test := range []struct {
		command bson.D
		index   int32
		code    int32
	}{
		{cmd("insert", "c", "documents", bson.A{cmd("_id", 3), cmd("_id", 1), cmd("_id", 4), cmd("_id", 2)}), 1, 11000},
		{cmd("insert", "c", "documents", bson.A{cmd("_id", 3), cmd("_id", 1), cmd("_id", 4), cmd("_id", 2)}, "ordered", false), 1, 11000},
		{cmd("update", "c", "updates", bson.A{statement, statement}, "ordered", false), 0, 66},
		{cmd("update", "c", "updates", bson.A{cmd("q", bson.D{}, "u", bson.D{}, "c", bson.D{})}), 0, 51198},
		{cmd("delete", "c", "deletes", bson.A{cmd("q", cmd("_id", 1), "limit", 1), cmd("q", cmd("$unheard", 1), "limit", 1)}), 1, 2},
		{cmd("insert", "v", "documents", bson.A{cmd("_id", 3)}), 0, 166},
	} {
		number++
		reply := c.must("d", within(test.command, "startTransaction", true))
		errs, _ := reply.Lookup("writeErrors").Array().Values()
		if len(errs) != 1 || errs[0].Document().Lookup("index").Int32() != test.index || errs[0].Document().Lookup("code").Int32() != test.code {
			t.Errorf("%v: %v", test.command, reply)
		}
		c.refused("d", within(cmd("find", "c")), 251)
		c.refused("admin", within(cmd("abortTransaction", 1)), 251)
	}
	for _, test := range []struct {
		db      string
		command bson.D
		code    int32
	}{
		{"local", cmd("find", "x"), 263},
		{"config", cmd("insert", "x", "documents", bson.A{cmd("_id", 1)}), 263},
		{"d", cmd("aggregate", "system.profile", "pipeline", bson.A{}, "cursor", bson.D{}), 263},
		{"d", cmd("find", "system.views"), 51071},
		{"d", cmd("insert", "system.js", "documents", bson.A{cmd("_id", 1)}), 50791},
		{"d", cmd("find", "c", "tailable", true), 72},
	} {
		number++
		c.refused(test.db, within(test.command, "startTransaction", true), test.code)
		c.refused("d", within(cmd("find", "c")), 251)
	}
	number++
	c.refused("d", within(cmd("aggregate", "c", "pipeline", bson.A{cmd("$collStats", bson.D{})}, "cursor", bson.D{}), "startTransaction", true), 263)
	if n := c.must("d", cmd("count", "c")).Lookup("n").AsInt64(); n != 2 {
		t.Errorf("%d documents are left", n)
	}

	// Another transaction has written first: the command fails as a whole, and may be run again with all before it.
	other := cmd("id", bson.Binary{Subtype: bson.TypeBinaryUUID, Data: []byte("fedcba9876543210")})
	update := cmd("update", "c", "updates", bson.A{cmd("q", cmd("_id", 1), "u", cmd("$inc", cmd("n", 1)))})
	number++
	c.must("d", within(update, "startTransaction", true))
	conflicting := with(update, "lsid", other, "txnNumber", int64(1), "autocommit", false, "startTransaction", true)
	if labels := c.refused("d", conflicting, 112).Lookup("errorLabels"); labels.Type == 0 {
		t.Error("a conflict has no label")
	}
	if name := textIn(c.refused("d", with(cmd("find", "c"), "lsid", other, "txnNumber", int64(2)), 50768), "codeName"); name != "NotARetryableWriteCommand" {
		t.Errorf("the code has the name %q", name)
	}
	c.refused("d", with(update, "lsid", other, "txnNumber", int64(-1)), int32(codeInvalidOptions))

	// A new transaction has no cursors to kill, so that nothing has begun.
	number++
	c.refused("d", within(cmd("killCursors", "c", "cursors", bson.A{int64(1)}), "startTransaction", true), 263)
	c.refused("d", within(cmd("find", "c")), int32(codeNoSuchTransaction))
}

// TestRefusedCommandsLeaveTheTransaction: what is refused before it is carried out neither ends the transaction nor is part of it; and a
// retryable write with its number is no write beside it.
func TestRefusedCommandsLeaveTheTransaction(t *testing.T) {
	c := dial(t, newServer(t, nil))
	lsid := cmd("id", bson.Binary{Subtype: bson.TypeBinaryUUID, Data: []byte("0123456789abcdef")})
	within := func(command bson.D, more ...any) bson.D {
		return with(command, append(more, "lsid", lsid, "txnNumber", int64(1), "autocommit", false)...)
	}
	insert := func(id int) bson.D { return cmd("insert", "c", "documents", bson.A{cmd("_id", id)}) }
	c.must("d", cmd("create", "c"))
	c.must("d", within(insert(1), "startTransaction", true))
	for _, refused := range []struct {
		command bson.D
		code    int32
	}{
		{within(cmd("count", "c")), 263},
		{within(insert(2), "writeConcern", cmd("w", 1)), 72},
		{within(cmd("find", "c"), "readConcern", cmd("level", "local")), 72},
		{with(insert(3), "lsid", lsid, "txnNumber", int64(1)), 217},
	} {
		c.refused("d", refused.command, refused.code)
	}
	c.must("admin", within(cmd("commitTransaction", 1)))
	c.refused("d", with(insert(3), "lsid", lsid, "txnNumber", int64(1)), 217)
	if n := c.must("d", cmd("count", "c")).Lookup("n").AsInt64(); n != 1 {
		t.Errorf("%d documents are there, not the one of the transaction", n)
	}
}
