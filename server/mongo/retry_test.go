package mongo

import (
	"errors"
	"io"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// The fail point of retryable writes strikes once for each statement that changes something; the command goes on to its end, and a
// client that sends it again is told what was done.
func TestRetryableWritesWhoseOutcomeIsNotHeardOf(t *testing.T) {
	s := newServer(t, &Options{TestCommands: true})
	c := dial(t, s)
	c.must("admin", cmd("configureFailPoint", "onPrimaryTransactionalWrite", "mode", bson.D{{Key: "times", Value: 1}}))
	c.must("d", cmd("insert", "c", "documents", bson.A{bson.D{{Key: "_id", Value: 1}}, bson.D{{Key: "_id", Value: 2}}}))
	lsid := bson.D{{Key: "id", Value: bson.Binary{Subtype: bson.TypeBinaryUUID, Data: []byte("0123456789abcdef")}}}
	set := func(id int) bson.D {
		return bson.D{{Key: "q", Value: bson.D{{Key: "_id", Value: id}}}, {Key: "u", Value: bson.D{{Key: "$inc", Value: bson.D{{Key: "x", Value: 1}}}}}}
	}
	update := cmd("update", "c", "updates", bson.A{set(9), set(1), set(2)}, "lsid", lsid, "txnNumber", int64(1))
	body, err := bson.Marshal(append(append(bson.D{}, update...), bson.E{Key: "$db", Value: "d"}))
	if err != nil {
		t.Fatal(err)
	}
	c.send(0, body)
	if _, err := c.r.Read(); !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrClosedPipe) {
		t.Fatalf("the connection stays: %v", err)
	}
	c = dial(t, s)
	reply := c.must("d", update)
	if n := reply.Lookup("nModified").Int32(); n != 2 {
		t.Errorf("sent again: %s", reply)
	}
	if n := c.must("d", cmd("count", "c", "query", bson.D{{Key: "x", Value: 1}})).Lookup("n").Int32(); n != 2 {
		t.Errorf("%d documents were updated once", n)
	}
	c.must("admin", cmd("configureFailPoint", "onPrimaryTransactionalWrite", "mode", bson.D{{Key: "times", Value: 1}}, "data", bson.D{
		{Key: "failBeforeCommitExceptionCode", Value: 1}, {Key: "closeConnection", Value: false}}))
	reply = c.must("d", cmd("update", "c", "updates", bson.A{set(1), set(2)}, "lsid", lsid, "txnNumber", int64(2)))
	if code := reply.Lookup("writeErrors", "0", "code").Int32(); code != 1 || reply.Lookup("n").Int32() != 0 {
		t.Errorf("failed before it commits: %s", reply)
	}
}

// Statements are known by the numbers that the client gives them: others of the same txnNumber are carried out.
func TestNumbersOfStatements(t *testing.T) {
	c := dial(t, newServer(t, nil))
	lsid := bson.D{{Key: "id", Value: bson.Binary{Subtype: bson.TypeBinaryUUID, Data: []byte("0123456789abcdef")}}}
	insert := func(number int64, ids bson.A, known string, by any) bson.D {
		docs := bson.A{}
		for _, id := range ids {
			docs = append(docs, cmd("_id", id))
		}
		return cmd("insert", "c", "documents", docs, "lsid", lsid, "txnNumber", number, known, by)
	}
	c.must("d", insert(1, bson.A{1}, "stmtId", 5))
	if reply := c.must("d", insert(1, bson.A{1}, "stmtId", 5)); reply.Lookup("retriedStmtIds", "0").Int32() != 5 {
		t.Errorf("the same statement: %s", reply)
	}
	if reply := c.must("d", insert(1, bson.A{2}, "stmtId", 6)); len(reply.Lookup("retriedStmtIds").Value) > 0 {
		t.Errorf("another statement: %s", reply)
	}
	c.must("d", insert(2, bson.A{3, 4}, "stmtIds", bson.A{4, 9}))
	if reply := c.must("d", insert(2, bson.A{4, 5}, "stmtIds", bson.A{9, 10})); reply.Lookup("retriedStmtIds", "0").Int32() != 9 || reply.Lookup("n").Int32() != 2 {
		t.Errorf("one again, and one that is new: %s", reply)
	}
	c.refused("d", insert(3, bson.A{6, 7}, "stmtIds", bson.A{1}), 16)
	c.refused("d", with(insert(3, bson.A{6}, "stmtIds", bson.A{1}), "stmtId", 1), 72)
	c.refused("d", cmd("insert", "c", "documents", bson.A{cmd("_id", 6)}, "stmtIds", bson.A{1, 2}), 16) // of no use, and wrong
	if n := c.must("d", cmd("count", "c")).Lookup("n").Int32(); n != 5 {
		t.Errorf("%d documents", n)
	}
	modify := cmd("findAndModify", "c", "query", cmd("_id", 1), "update", cmd("$inc", cmd("n", 1)), "lsid", lsid, "txnNumber", int64(4), "stmtId", 8)
	c.must("d", modify)
	if reply := c.must("d", modify); reply.Lookup("retriedStmtId").Int32() != 8 {
		t.Errorf("findAndModify: %s", reply)
	}
}

// A number that a client gives to another command is not answered with what the first one did, as far as that can be told. The codes are those
// of a mongod.
func TestFindAndModifyUnderTheNumberOfAnotherCommand(t *testing.T) {
	c := dial(t, newServer(t, nil))
	set := cmd("$set", cmd("a", 1))
	update := func(id int, upsert bool) bson.D {
		return cmd("update", "c", "updates", bson.A{cmd("q", cmd("_id", id), "u", set, "upsert", upsert)})
	}
	modify := func(more ...any) bson.D { return with(cmd("findAndModify", "c", "query", cmd("_id", 1)), more...) }
	c.must("d", cmd("insert", "c", "documents", bson.A{cmd("_id", 1), cmd("_id", 2)}))
	number := int64(0)
	for _, x := range []struct {
		first, second bson.D
		code          int32
	}{
		{update(1, false), modify("update", set), 40612},
		{update(2, false), modify("update", set, "new", true), 40611},
		{cmd("delete", "c", "deletes", bson.A{cmd("q", cmd("_id", 2), "limit", 1)}), modify("remove", true), 40607},
		{update(3, true), modify("update", set), 40608},
		{update(4, true), modify("remove", true), 40608},
	} {
		number++
		c.must("d", inSession('s', x.first, "txnNumber", number))
		c.refused("d", inSession('s', x.second, "txnNumber", number), x.code)
	}
	number++
	c.must("d", inSession('s', update(5, true), "txnNumber", number))
	reply := c.must("d", inSession('s', cmd("delete", "c", "deletes", bson.A{cmd("q", cmd("_id", 1), "limit", 1)}), "txnNumber", number))
	if _, err := reply.LookupErr("upserted"); err == nil {
		t.Errorf("a delete tells of an upsert: %s", reply)
	}
}

// TestConstantsOfUpdates: a statement's own variables are values beside the command's.
func TestConstantsOfUpdates(t *testing.T) {
	c := dial(t, newServer(t, nil))
	c.must("d", cmd("insert", "c", "documents", bson.A{cmd("_id", 1)}))
	sum := bson.A{cmd("$set", cmd("sum", cmd("$add", bson.A{"$_id", "$$one", "$$all"}), "text", "$$text"))}
	c.must("d", cmd("update", "c", "let", cmd("all", 100), "updates", bson.A{cmd("q", bson.D{}, "u", sum, "c", cmd("one", 10, "text", "$_id"))}))
	doc := c.must("d", cmd("find", "c")).Lookup("cursor", "firstBatch", "0").Document()
	if doc.Lookup("sum").AsInt64() != 111 || doc.Lookup("text").StringValue() != "$_id" {
		t.Errorf("%s", doc)
	}
}

// A pipeline that no server knows fails the whole update, a filter only its statement; a write concern that cannot hold is told of
// beside the error of a command.
func TestWhatFailsOfAWrite(t *testing.T) {
	s := newServer(t, nil)
	c := dial(t, s)
	c.must("d", cmd("create", "c"))
	statement := func(q, u any) bson.A { return bson.A{bson.D{{Key: "q", Value: q}, {Key: "u", Value: u}}} }
	c.refused("d", cmd("update", "c", "updates", statement(bson.D{}, bson.A{bson.D{{Key: "$unknown", Value: 1}}})), 40324)
	reply := c.must("d", cmd("update", "c", "updates", statement(bson.D{{Key: "$unknown", Value: 1}}, bson.D{})))
	if code := reply.Lookup("writeErrors", "0", "code").Int32(); code != 2 {
		t.Errorf("a filter: %s", reply)
	}
	for _, filters := range []any{bson.A{1}, bson.D{{Key: "e", Value: 1}}} {
		one := bson.D{{Key: "q", Value: bson.D{}}, {Key: "u", Value: cmd("$set", cmd("a.$[e]", 1))}, {Key: "arrayFilters", Value: filters}}
		c.refused("d", cmd("update", "c", "updates", bson.A{one}), 14)
	}
	for concern, code := range map[*bson.D]int32{
		{{Key: "j", Value: true}, {Key: "fsync", Value: true}}: 9, {{Key: "w", Value: 51}}: 9, {{Key: "x", Value: 1}}: 40415,
	} {
		c.refused("d", cmd("insert", "c", "documents", bson.A{bson.D{}}, "writeConcern", *concern), code)
	}
	c.refused("d", cmd("find", "c", "readConcern", cmd("level", "x")), 9)
	three := bson.D{{Key: "w", Value: 3}, {Key: "wtimeout", Value: 1}}
	reply = c.refused("d", cmd("create", "c", "capped", true, "size", 4096, "writeConcern", three), 48)
	if code := reply.Lookup("writeConcernError", "code").Int32(); code != 100 {
		t.Errorf("an error beside a write concern's: %s", reply)
	}
	if from := textIn(reply, "writeConcernError", "errInfo", "writeConcern", "provenance"); from != "clientSupplied" {
		t.Errorf("the write concern is from %q", from)
	}
	reply = c.refused("d", cmd("findAndModify", "c", "writeConcern", three), 9)
	if _, err := reply.LookupErr("writeConcernError"); err == nil {
		t.Errorf("a command that cannot be read: %s", reply)
	}
}

func TestStableVersionRefusesWhatIsNotInIt(t *testing.T) {
	s := newServer(t, &Options{TestCommands: true})
	c := dial(t, s)
	strict := func(command bson.D) bson.D {
		return append(command, bson.E{Key: "apiVersion", Value: "1"}, bson.E{Key: "apiStrict", Value: true})
	}
	c.refused("d", cmd("find", "c", "apiStrict", true), 4886600)
	c.must("admin", cmd("testVersion2", 1))
	c.refused("admin", strict(cmd("testVersion2", 1)), 323)
	c.refused("admin", strict(cmd("aggregate", 1, "pipeline", bson.A{bson.D{{Key: "$listLocalSessions", Value: bson.D{}}}}, "cursor", bson.D{})), 323)
	dial(t, newServer(t, nil)).refused("admin", cmd("testVersion2", 1), 59)
}

func TestFindReturnsKeysAndRecordIds(t *testing.T) {
	s := newServer(t, nil)
	c := dial(t, s)
	c.must("d", cmd("insert", "c", "documents", bson.A{bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: 2}, {Key: "b", Value: 3}}}))
	c.must("d", cmd("createIndexes", "c", "indexes", bson.A{bson.D{{Key: "key", Value: bson.D{{Key: "a", Value: 1}}}, {Key: "name", Value: "a_1"}}}))
	c.must("d", cmd("create", "l", "capped", true, "size", 4096))
	c.must("d", cmd("insert", "l", "documents", bson.A{bson.D{{Key: "_id", Value: 5}}}))
	for _, test := range []struct {
		find bson.D
		want string
	}{
		{cmd("find", "c", "filter", bson.D{{Key: "a", Value: 2}}, "returnKey", true), `{"a": {"$numberInt":"2"}}`},
		{cmd("find", "c", "filter", bson.D{{Key: "_id", Value: 1}}, "returnKey", true), `{"_id": {"$numberInt":"1"}}`},
		{cmd("find", "c", "sort", bson.D{{Key: "_id", Value: 1}}, "returnKey", true, "showRecordId", true), `{"_id": {"$numberInt":"1"}}`},
		{cmd("find", "c", "filter", bson.D{{Key: "b", Value: 3}}, "returnKey", true), `{}`},
		{cmd("find", "l", "showRecordId", true), `{"_id": {"$numberInt":"5"},"$recordId": {"$numberLong":"1"}}`},
	} {
		reply := c.must("d", test.find)
		if got := reply.Lookup("cursor", "firstBatch", "0").String(); got != test.want {
			t.Errorf("%v gives %s, want %s", test.find, got, test.want)
		}
	}
	reply := c.must("d", cmd("find", "c", "showRecordId", true, "projection", bson.D{{Key: "_id", Value: 1}}))
	if id, err := reply.LookupErr("cursor", "firstBatch", "0", "$recordId"); err != nil || id.Type != bson.TypeBinary {
		t.Errorf("the record's id: %s", reply)
	}
}
