package mongo

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// oplogEntry is an entry with the names of its fields, those of fields below, and their types, as far as MongoDB prescribes them.
func shapeOf(t testing.TB, doc bson.Raw) string {
	t.Helper()
	elements, err := doc.Elements()
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range elements {
		s := e.Key() + ":" + e.Value().Type.String()
		switch e.Key() {
		case "o", "o2":
			s = e.Key() + ":" + e.Value().String()
		case "op", "ns", "stmtId", "t", "v", "txnNumber":
			s = e.Key() + ":" + e.Value().String()
		case "lsid", "prevOpTime":
			s = e.Key() + "{" + shapeOf(t, e.Value().Document()) + "}"
		}
		list = append(list, s)
	}
	return strings.Join(list, " ")
}

// The entries are those that a mongod 6.0 wrote for the same commands, field by field.
func TestEntriesOfTheOplogAreMongoDBs(t *testing.T) {
	s := newServer(t, nil)
	c := dial(t, s)
	session := bson.E{Key: "lsid", Value: bson.D{{Key: "id", Value: bson.Binary{Subtype: bson.TypeBinaryUUID, Data: []byte("0123456789abcdef")}}}}
	number := int64(0)
	retryable := func(command bson.D) {
		number++
		c.must("d", append(command, session, bson.E{Key: "txnNumber", Value: number}))
	}
	id := func(n int) bson.D { return bson.D{{Key: "_id", Value: n}} }
	c.must("d", cmd("create", "a"))
	retryable(cmd("insert", "a", "documents", bson.A{id(1), id(2)}))
	retryable(cmd("update", "a", "updates", bson.A{bson.D{{Key: "q", Value: id(1)}, {Key: "u", Value: bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: 2}}}}}}}))
	retryable(cmd("update", "a", "updates", bson.A{bson.D{{Key: "q", Value: id(1)}, {Key: "u", Value: bson.D{{Key: "y", Value: 1}}}}}))
	retryable(cmd("delete", "a", "deletes", bson.A{bson.D{{Key: "q", Value: id(2)}, {Key: "limit", Value: 1}}}))
	c.must("d", cmd("delete", "a", "deletes", bson.A{bson.D{{Key: "q", Value: bson.D{}}, {Key: "limit", Value: 0}}}))
	number++
	txn := []bson.E{session, {Key: "txnNumber", Value: number}, {Key: "autocommit", Value: false}}
	c.must("d", append(append(cmd("insert", "a", "documents", bson.A{id(5)}), txn...), bson.E{Key: "startTransaction", Value: true}))
	c.must("admin", append(cmd("commitTransaction", 1), txn...))
	c.must("d", cmd("drop", "a"))

	const (
		lsid  = "lsid{id:binary uid:binary} txnNumber:"
		tail  = " ts:timestamp t:{\"$numberLong\":\"1\"} v:{\"$numberLong\":\"2\"} wall:UTC datetime"
		prev  = " prevOpTime{ts:timestamp t:{\"$numberLong\":\"-1\"}}"
		index = `"idIndex": {"v": {"$numberInt":"2"},"key": {"_id": {"$numberInt":"1"}},"name": "_id_"}`
	)
	one, two := `{"_id": {"$numberInt":"1"}}`, `{"_id": {"$numberInt":"2"}}`
	want := []string{
		`op:"n" ns:"" o:{"msg": "new primary"}` + tail,
		`op:"c" ns:"d.$cmd" ui:binary o:{"create": "a",` + index + `}` + tail,
		lsid + `{"$numberLong":"1"} op:"i" ns:"d.a" ui:binary o:` + one + ` o2:` + one + ` stmtId:{"$numberInt":"0"}` + tail + prev,
		lsid + `{"$numberLong":"1"} op:"i" ns:"d.a" ui:binary o:` + two + ` o2:` + two + ` stmtId:{"$numberInt":"1"}` + tail + strings.Replace(prev, "-1", "1", 1),
		lsid + `{"$numberLong":"2"} op:"u" ns:"d.a" ui:binary o:{"$v": {"$numberInt":"2"},"diff": {"i": {"x": {"$numberInt":"2"}}}} o2:` + one + ` stmtId:{"$numberInt":"0"}` + tail + prev,
		lsid + `{"$numberLong":"3"} op:"u" ns:"d.a" ui:binary o:{"_id": {"$numberInt":"1"},"y": {"$numberInt":"1"}} o2:` + one + ` stmtId:{"$numberInt":"0"}` + tail + prev,
		lsid + `{"$numberLong":"4"} op:"d" ns:"d.a" ui:binary o:` + two + ` stmtId:{"$numberInt":"0"}` + tail + prev,
		`op:"d" ns:"d.a" ui:binary o:` + one + tail,
		lsid + `{"$numberLong":"5"} op:"c" ns:"admin.$cmd" o:{"applyOps": [{"op": "i","ns": "d.a","ui": UUID,"o": {"_id": {"$numberInt":"5"}},"o2": {"_id": {"$numberInt":"5"}}}]}` + tail + prev,
		`op:"c" ns:"d.$cmd" ui:binary o:{"drop": "a"} o2:{"numRecords": {"$numberInt":"1"}}` + tail,
	}
	reply := c.must("local", cmd("find", "oplog.rs", "oplogReplay", true))
	entries, err := reply.Lookup("cursor", "firstBatch").Array().Values()
	if err != nil || len(entries) != len(want) {
		t.Fatalf("%d entries, want %d: %s", len(entries), len(want), reply)
	}
	for i, e := range entries {
		got := shapeOf(t, e.Document())
		if ui, err := e.Document().LookupErr("o", "applyOps", "0", "ui"); err == nil {
			got = strings.ReplaceAll(got, ui.String(), "UUID")
		}
		if got != want[i] {
			t.Errorf("entry %d is\n%s, want\n%s", i, got, want[i])
		}
	}
}

func TestTheOplogIsFollowedWithGetMore(t *testing.T) {
	s := newServer(t, nil)
	c := dial(t, s)
	last := c.must("local", cmd("find", "oplog.rs", "sort", bson.D{{Key: "$natural", Value: -1}}, "limit", 1))
	ts := last.Lookup("cursor", "firstBatch", "0", "ts")
	reply := c.must("local", cmd("find", "oplog.rs", "filter", bson.D{{Key: "ts", Value: bson.D{{Key: "$gte", Value: ts}}}}, "tailable", true, "awaitData", true, "oplogReplay", true))
	id := reply.Lookup("cursor", "id").Int64()
	if n := len(documentsIn(t, reply, "firstBatch")); id == 0 || n != 1 {
		t.Fatalf("the first batch: %s", reply)
	}
	for i := range 3 {
		c.must("d", cmd("insert", "c", "documents", bson.A{bson.D{{Key: "_id", Value: i}}}))
		for found := false; !found; {
			more := c.must("local", cmd("getMore", id, "collection", "oplog.rs", "maxTimeMS", 1000))
			for _, e := range documentsIn(t, more, "nextBatch") {
				n, ok := e.Lookup("o", "_id").Int32OK()
				found = ok && n == int32(i)
			}
		}
	}
	c.must("local", cmd("killCursors", "oplog.rs", "cursors", bson.A{id}))
	if n := c.must("local", cmd("count", "oplog.rs", "query", bson.D{{Key: "op", Value: "i"}})).Lookup("n").Int32(); n != 3 {
		t.Errorf("%d inserts are counted", n)
	}
	empty := c.must("local", cmd("find", "nothing", "tailable", true))
	if empty.Lookup("cursor", "id").Int64() != 0 {
		t.Errorf("a tail of what is not there: %s", empty)
	}
}

func documentsIn(t testing.TB, reply bson.Raw, batch string) (list []bson.Raw) {
	t.Helper()
	values, err := reply.Lookup("cursor", batch).Array().Values()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range values {
		list = append(list, v.Document())
	}
	return list
}

func TestTheOplogLooksLikeACappedCollectionThatNobodyWritesTo(t *testing.T) {
	s := newServer(t, nil)
	c := dial(t, s)
	list := documentsIn(t, c.must("local", cmd("listCollections", 1)), "firstBatch")
	if len(list) != 1 || textIn(list[0], "name") != "oplog.rs" || !list[0].Lookup("options", "capped").Boolean() || list[0].Lookup("options", "size").AsInt64() <= 0 {
		t.Errorf("collections of local: %v", list)
	}
	if names := c.must("admin", cmd("listDatabases", 1, "nameOnly", true)); !strings.Contains(names.String(), `"local"`) {
		t.Errorf("databases: %s", names)
	}
	if list := documentsIn(t, c.must("local", cmd("listIndexes", "oplog.rs")), "firstBatch"); len(list) != 0 {
		t.Errorf("indexes: %v", list)
	}
	stats := c.must("local", cmd("collStats", "oplog.rs"))
	if !stats.Lookup("capped").Boolean() || stats.Lookup("count").AsInt64() != 1 {
		t.Errorf("collStats: %s", stats)
	}
	c.must("admin", cmd("appendOplogNote", 1, "data", bson.D{{Key: "why", Value: "test"}}))
	note := documentsIn(t, c.must("local", cmd("find", "oplog.rs", "filter", bson.D{{Key: "o.why", Value: "test"}})), "firstBatch")
	if len(note) != 1 || textIn(note[0], "op") != "n" {
		t.Errorf("a note: %v", note)
	}
	for _, refused := range []struct {
		db      string
		command bson.D
		code    int32
	}{
		{"local", cmd("insert", "oplog.rs", "documents", bson.A{bson.D{}}), 73},
		{"local", cmd("update", "oplog.rs", "updates", bson.A{bson.D{{Key: "q", Value: bson.D{}}, {Key: "u", Value: bson.D{{Key: "a", Value: 1}}}}}), 73},
		{"local", cmd("delete", "oplog.rs", "deletes", bson.A{bson.D{{Key: "q", Value: bson.D{}}, {Key: "limit", Value: 0}}}), 73},
		{"local", cmd("findAndModify", "oplog.rs", "remove", true), 73},
		{"local", cmd("createIndexes", "oplog.rs", "indexes", bson.A{bson.D{{Key: "key", Value: bson.D{{Key: "a", Value: 1}}}, {Key: "name", Value: "a_1"}}}), 73},
		{"local", cmd("drop", "oplog.rs"), 5255000},
		{"local", cmd("create", "oplog.rs"), 48},
		{"local", cmd("dropDatabase", 1), 20},
		{"admin", cmd("renameCollection", "local.oplog.rs", "to", "local.x"), 20},
		{"local", cmd("find", "oplog.rs", "tailable", true, "sort", bson.D{{Key: "$natural", Value: -1}}), 2},
		{"local", cmd("aggregate", "oplog.rs", "pipeline", bson.A{bson.D{{Key: "$changeStream", Value: bson.D{}}}}, "cursor", bson.D{}), 73},
	} {
		c.refused(refused.db, refused.command, refused.code)
	}
	if n := c.must("local", cmd("aggregate", "oplog.rs", "pipeline", bson.A{bson.D{{Key: "$sort", Value: bson.D{{Key: "op", Value: 1}}}}, bson.D{{Key: "$count", Value: "n"}}}, "cursor", bson.D{})).Lookup("cursor", "firstBatch", "0", "n").Int32(); n != 2 {
		t.Errorf("%d entries in a pipeline", n)
	}
	if alone := newServer(t, &Options{Standalone: true}); alone.o.Standalone {
		dial(t, alone).must("local", cmd("dropDatabase", 1))
	}
}
