package mongo

import (
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/server/wire"
)

// filled returns a client of a server whose collection d.c has n documents, {_id: 0} and on.
func filled(t *testing.T, n int32, o *Options, options ...any) *testClient {
	t.Helper()
	c := dial(t, newServer(t, o))
	c.must("d", cmd("create", "c", options...))
	docs := bson.A{}
	for i := range n {
		docs = append(docs, bson.D{{Key: "_id", Value: i}})
	}
	c.must("d", cmd("insert", "c", "documents", docs))
	return c
}

// ids returns the _ids of a batch.
func ids(t *testing.T, reply bson.Raw, batch string) (list []int32) {
	t.Helper()
	values, err := reply.Lookup("cursor", batch).Array().Values()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range values {
		list = append(list, v.Document().Lookup("_id").Int32())
	}
	return list
}

func TestTailableCursorsSkipAndEndWhereTheyAreToldTo(t *testing.T) {
	c := filled(t, 5, &Options{}, "capped", true, "size", 4096)
	reply := c.must("d", cmd("find", "c", "tailable", true, "skip", 1, "limit", 3, "batchSize", 2))
	if got := ids(t, reply, "firstBatch"); len(got) != 2 || got[0] != 1 {
		t.Fatalf("the first batch is %v", got)
	}
	id := reply.Lookup("cursor", "id").Int64()
	for i, want := range []int{1, 0} {
		reply = c.must("d", cmd("getMore", id, "collection", "c"))
		if got := ids(t, reply, "nextBatch"); len(got) != want {
			t.Errorf("batch %d is %v, want %d documents", i+2, got, want)
		}
	}
}

func TestExhaustCursorsSendBatchAfterBatch(t *testing.T) {
	c := filled(t, 5, &Options{})
	reply := c.must("d", cmd("find", "c", "batchSize", 1))
	body, err := bson.Marshal(append(cmd("getMore", reply.Lookup("cursor", "id").Int64(), "collection", "c", "batchSize", 2), bson.E{Key: "$db", Value: "d"}))
	if err != nil {
		t.Fatal(err)
	}
	c.send(wire.ExhaustAllowed, body)
	for i, want := range []int{2, 2, 0} {
		reply = c.receive()
		if got := ids(t, reply, "nextBatch"); len(got) != want {
			t.Errorf("answer %d has %v, want %d documents", i, got, want)
		}
	}
	if id := reply.Lookup("cursor", "id").Int64(); id != 0 {
		t.Errorf("the cursor %d is still open", id)
	}
	c.must("d", cmd("ping", 1)) // nothing else comes
}

func TestTheTimeOfACommandIsThatOfItsCursorToo(t *testing.T) {
	c := filled(t, 5, &Options{TestCommands: true})
	limited := c.must("d", cmd("find", "c", "batchSize", 1, "maxTimeMS", 60_000)).Lookup("cursor", "id").Int64()
	free := c.must("d", cmd("find", "c", "batchSize", 1)).Lookup("cursor", "id").Int64()
	c.must("d", cmd("getMore", limited, "collection", "c", "batchSize", 1))
	c.must("admin", cmd("configureFailPoint", "maxTimeAlwaysTimeOut", "mode", "alwaysOn"))
	c.refused("d", cmd("getMore", limited, "collection", "c"), 50)
	c.refused("d", cmd("find", "c", "maxTimeMS", 60_000), 50)
	c.refused("d", cmd("getMore", free, "collection", "c", "maxTimeMS", 0), 2) // it waits for nothing
	c.must("d", cmd("getMore", free, "collection", "c"))
	c.must("admin", cmd("configureFailPoint", "maxTimeAlwaysTimeOut", "mode", "off"))
	c.must("d", cmd("find", "c", "maxTimeMS", 60_000))
}

func TestValidateInTheBackgroundIsNotFull(t *testing.T) {
	c := filled(t, 5, &Options{})
	c.refused("d", cmd("validate", "c", "full", true, "background", true), 72)
	c.must("d", cmd("validate", "c", "background", true))
}

// TestLimitsEndCursors: a batch that reaches the limit is the last one, and says so.
func TestLimitsEndCursors(t *testing.T) {
	c := filled(t, 10, &Options{})
	for _, test := range []struct{ limit, size, batches int }{{2, 2, 1}, {5, 2, 3}, {4, 2, 2}, {1, 0, 2}, {20, 10, 2}} {
		reply := c.must("d", cmd("find", "c", "limit", test.limit, "batchSize", test.size))
		batches := 1
		for id := reply.Lookup("cursor", "id").Int64(); id != 0; id = reply.Lookup("cursor", "id").Int64() {
			reply = c.must("d", cmd("getMore", id, "collection", "c", "batchSize", test.size))
			batches++
		}
		if batches != test.batches {
			t.Errorf("%+v: %d batches", test, batches)
		}
	}
}

// Cursors of a database have a namespace that no collection may have, and are read on and killed under it.
func TestCursorsOfADatabaseAreKilled(t *testing.T) {
	c := filled(t, 1, &Options{})
	reply := c.must("d", cmd("aggregate", 1, "pipeline", bson.A{bson.D{{Key: "$changeStream", Value: bson.D{}}}}, "cursor", bson.D{}))
	id, ns := reply.Lookup("cursor", "id").Int64(), reply.Lookup("cursor", "ns").StringValue()
	if ns != "d.$cmd.aggregate" {
		t.Errorf("the cursor is one of %s", ns)
	}
	c.must("d", cmd("getMore", id, "collection", "$cmd.aggregate", "maxTimeMS", 1))
	killed, err := c.must("d", cmd("killCursors", "$cmd.aggregate", "cursors", bson.A{id})).Lookup("cursorsKilled").Array().Values()
	if err != nil || len(killed) != 1 || killed[0].Int64() != id {
		t.Errorf("killed %v, %v; want %d", killed, err, id)
	}
}

// What is gone is not read on, in whichever way it went. Cursors on other collections stay, and those on the database itself.
func TestCursorsEndWithTheirCollection(t *testing.T) {
	docs := bson.A{cmd("_id", 1), cmd("_id", 2), cmd("_id", 3)}
	for _, how := range []struct {
		db      string
		command bson.D
		gone    []string
	}{
		{"d", cmd("drop", "c"), []string{"d.c"}},
		{"d", cmd("dropDatabase", 1), []string{"d.c", "d.cc", "d.from"}},
		{"admin", cmd("renameCollection", "d.from", "to", "d.c", "dropTarget", true), []string{"d.c"}},
		{"admin", cmd("renameCollection", "d.from", "to", "d.new"), nil},
	} {
		c := dial(t, newServer(t, nil))
		open := map[string]int64{}
		for _, ns := range []string{"d.c", "d.from", "d.cc", "dd.c"} {
			db, name, _ := strings.Cut(ns, ".")
			c.must(db, cmd("insert", name, "documents", docs))
			open[ns] = c.must(db, cmd("find", name, "batchSize", 1)).Lookup("cursor", "id").Int64()
		}
		open["d.$cmd.listCollections"] = c.must("d", cmd("listCollections", 1, "cursor", cmd("batchSize", 1))).Lookup("cursor", "id").Int64()
		c.must(how.db, how.command)
		for ns, id := range open {
			db, name, _ := strings.Cut(ns, ".")
			want := int32(0)
			if slices.Contains(how.gone, ns) {
				want = int32(codeCursorNotFound)
			}
			if reply := c.run(db, cmd("getMore", id, "collection", name)); codeIn(reply) != want {
				t.Errorf("%v: on %s code %d is wanted: %s", how.command, ns, want, reply)
			}
		}
	}
}

// A name that no collection can have is refused by what reads and by what writes, and makes no collection by any way.
func TestNamesThatNoCollectionCanHave(t *testing.T) {
	c := filled(t, 1, &Options{})
	c.must("d", cmd("insert", "there", "documents", bson.A{bson.D{{Key: "_id", Value: 1}}}))
	stage := func(name, to string) bson.A { return bson.A{bson.D{{Key: name, Value: to}}} }
	for _, name := range []string{"$cmd", "$cmd.aggregate", "$cmdx", "a$b", ".a", "a\x00b"} {
		for _, command := range []bson.D{
			cmd("find", name), cmd("count", name), cmd("distinct", name, "key", "a"), cmd("create", name),
			cmd("insert", name, "documents", bson.A{bson.D{}}),
			cmd("update", name, "updates", bson.A{bson.D{{Key: "q", Value: bson.D{}}, {Key: "u", Value: bson.D{}}, {Key: "upsert", Value: true}}}),
			cmd("delete", name, "deletes", bson.A{bson.D{{Key: "q", Value: bson.D{}}, {Key: "limit", Value: 0}}}),
			cmd("findAndModify", name, "update", bson.D{}, "upsert", true),
			cmd("createIndexes", name, "indexes", bson.A{bson.D{{Key: "key", Value: bson.D{{Key: "a", Value: 1}}}, {Key: "name", Value: "a"}}}),
			cmd("create", "view", "viewOn", name, "pipeline", bson.A{}),
			cmd("aggregate", "there", "pipeline", stage("$merge", name), "cursor", bson.D{}),
		} {
			c.refused("d", command, int32(codeInvalidNamespace))
		}
		out := int32(codeInvalidNamespace)
		if strings.Contains(name, "$") {
			out = int32(codeIllegalOperation) // $out asks for the options of its target before anything looks at the name
		}
		c.refused("d", cmd("aggregate", "there", "pipeline", stage("$out", name), "cursor", bson.D{}), out)
		c.refused("admin", cmd("renameCollection", "d.there", "to", "d."+name), int32(codeInvalidNamespace))
	}
}
