package mongo

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

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
