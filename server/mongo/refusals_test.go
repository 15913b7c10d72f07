package mongo

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
)

// A cursor from outside of a transaction reads another moment than the transaction: who read from it there got what the transaction had
// not seen. The codes are those of a mongod.
func TestCursorsStayOutOfOtherTransactions(t *testing.T) {
	c := dial(t, newServer(t, nil))
	c.must("d", cmd("insert", "c", "documents", bson.A{cmd("_id", 1), cmd("_id", 2), cmd("_id", 3)}))
	find := cmd("find", "c", "batchSize", 1)
	more := func(reply bson.Raw) bson.D {
		return cmd("getMore", reply.Lookup("cursor", "id").Int64(), "collection", "c")
	}
	outside := c.must("d", inSession('s', find))
	c.refused("d", inTransaction('s', 1, more(outside), "startTransaction", true), 50739)
	inside := c.must("d", inTransaction('s', 2, find, "startTransaction", true))
	c.refused("d", inSession('s', more(inside)), 50740)
	c.must("d", inTransaction('s', 2, more(inside)))
	c.must("admin", inTransaction('s', 2, cmd("commitTransaction", 1)))
	c.must("d", inSession('s', more(outside)))
}

// A transaction reads on what is dropped meanwhile, as it was: its cursor was gone, which is no error after which it would be run again. What
// it asks for anew is a conflict.
func TestCursorsOfTransactionsOutliveADrop(t *testing.T) {
	s := newServer(t, nil)
	c, other := dial(t, s), dial(t, s)
	for i, drop := range []bson.D{cmd("drop", "c"), cmd("dropDatabase", 1)} {
		number := int64(i)
		c.must("d", cmd("insert", "c", "documents", bson.A{cmd("_id", 1), cmd("_id", 2), cmd("_id", 3)}))
		reply := c.must("d", inTransaction('t', number, cmd("find", "c", "batchSize", 1), "startTransaction", true))
		other.must("d", drop)
		more := cmd("getMore", reply.Lookup("cursor", "id").Int64(), "collection", "c")
		if values, _ := c.must("d", inTransaction('t', number, more)).Lookup("cursor", "nextBatch").Array().Values(); len(values) != 2 {
			t.Errorf("%v: %d documents more", drop, len(values))
		}
		conflict := c.refused("d", inTransaction('t', number, cmd("find", "c")), 112)
		if label := textIn(conflict, "errorLabels", "0"); label != "TransientTransactionError" {
			t.Errorf("%v: %s", drop, conflict)
		}
	}
}

// A capped collection forgets its documents in the order in which they came, and no others: who follows it would lose the place.
func TestNothingExpiresInACappedCollection(t *testing.T) {
	c := dial(t, newServer(t, nil))
	c.must("d", cmd("create", "c", "capped", true, "size", 4096))
	index := func(fields ...any) bson.D {
		return cmd("createIndexes", "c", "indexes", bson.A{cmd("key", cmd("t", 1), append([]any{"name", "t"}, fields...)...)})
	}
	c.refused("d", index("expireAfterSeconds", 10), 67)
	c.must("d", index())
	c.refused("d", cmd("collMod", "c", "index", cmd("name", "t", "expireAfterSeconds", 10)), 72)
	c.must("d", cmd("collMod", "c", "index", cmd("name", "t", "hidden", true)))
}

// A write concern is about writes: an aggregation that only reads waits for no sync, and is told of no member that there is not.
func TestAggregationsThatReadHaveNoWriteConcern(t *testing.T) {
	s := newServerOf(t, pando.Relaxed, nil)
	c := dial(t, s)
	c.must("d", cmd("insert", "c", "documents", bson.A{cmd("_id", 1)}))
	syncs := func() uint64 { return uint64(s.store.DB().Metrics().Syncs) }
	for _, concern := range []bson.D{cmd("w", 2, "wtimeout", 1), cmd("w", "majority")} {
		before := syncs()
		reply := c.must("d", with(pipe("c"), "writeConcern", concern))
		if _, err := reply.LookupErr("writeConcernError"); err == nil {
			t.Errorf("%v: %s", concern, reply)
		}
		if n := syncs() - before; n > 0 && concern[0].Value == "majority" {
			t.Errorf("%d syncs", n)
		}
	}
	reply := c.must("d", with(pipe("c", stage("$out", "o")), "writeConcern", cmd("w", 2, "wtimeout", 1)))
	if _, err := reply.LookupErr("writeConcernError"); err != nil {
		t.Errorf("of one that writes nothing is told: %s", reply)
	}
}

// TestRefusedAsOnAMongod has what was carried out, with the codes of a mongod.
func TestRefusedAsOnAMongod(t *testing.T) {
	c := filled(t, 3, nil)
	key := cmd("_id", 1)
	c.must("d", cmd("create", "clustered", "clusteredIndex", cmd("key", key, "unique", true, "name", "mine")))
	field := cmd("v", cmd("$add", bson.A{"$_id", 1}))
	for _, x := range []struct {
		command bson.D
		want    int32
	}{
		{cmd("dropIndexes", "clustered", "index", "mine"), 5979800},
		{cmd("dropIndexes", "clustered", "index", key), 5979800},
		{cmd("create", "e", "clusteredIndex", cmd("key", key, "unique", true, "v", 1)), 5979704},
		{cmd("create", "e", "collation", bson.D{}), 40414},
		{cmd("create", "e", "autoIndexId", false), 50001},
		{cmd("collMod", "c", "index", cmd("name", "_id_", "keyPattern", key, "hidden", true)), 72},
		{cmd("find", "c", "let", field), 4890500},
		{cmd("aggregate", "c", "pipeline", bson.A{}, "cursor", bson.D{}, "let", field), 4890500},
		{cmd("find", "c", "let", cmd("NOW", 1)), 4738901},
		{cmd("find", "c", "let", cmd("v", "$$w", "w", 1)), 17276},
		{cmd("aggregate", "c", "pipeline", bson.A{cmd("$merge", cmd("into", "e", "whenMatched", bson.A{cmd("$match", bson.D{})}))}, "cursor", bson.D{}), 72},
	} {
		c.refused("d", x.command, x.want)
	}
	explain := cmd("aggregate", "c", "pipeline", bson.A{}, "explain", true)
	c.refused("d", inTransaction('x', 1, explain, "startTransaction", true), 263)
	if n := c.must("d", cmd("count", "e")).Lookup("n").AsInt64(); n != 0 {
		t.Errorf("a $merge that cannot be has inserted %d documents", n)
	}
}

// TestVariablesOfACommand: each may use those in front of it, and $$NOW, which is the same everywhere in the command.
func TestVariablesOfACommand(t *testing.T) {
	c := filled(t, 3, nil)
	let := cmd("one", 1, "two", cmd("$add", bson.A{"$$one", "$$one"}), "now", "$$NOW")
	same := cmd("$expr", cmd("$and", bson.A{cmd("$eq", bson.A{"$_id", "$$two"}), cmd("$eq", bson.A{"$$now", "$$NOW"})}))
	if n := len(ids(t, c.must("d", cmd("find", "c", "filter", same, "let", let)), "firstBatch")); n != 1 {
		t.Errorf("find returns %d documents", n)
	}
	pipeline := bson.A{cmd("$match", same)}
	if n := len(ids(t, c.must("d", cmd("aggregate", "c", "pipeline", pipeline, "cursor", bson.D{}, "let", let)), "firstBatch")); n != 1 {
		t.Errorf("aggregate returns %d documents", n)
	}
	updates := bson.A{cmd("q", same, "u", bson.A{cmd("$set", cmd("at", "$$now"))})}
	if n := c.must("d", cmd("update", "c", "updates", updates, "let", let)).Lookup("nModified").AsInt64(); n != 1 {
		t.Errorf("update changes %d documents", n)
	}
}
