package mongo

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// TestWhatLooksLikeATransactionIsNotCarriedOutAlone: a write that says it is part of a transaction, and does not say of which, was done at
// once, and nothing could take it back. The codes are those of a mongod.
func TestWhatLooksLikeATransactionIsNotCarriedOutAlone(t *testing.T) {
	c := dial(t, newServer(t, nil))
	insert := cmd("insert", "c", "documents", bson.A{cmd("_id", 1)})
	number := int64(1)
	for _, x := range []struct {
		fields []any
		code   int32
	}{
		{[]any{"autocommit", false}, 72},
		{[]any{"autocommit", false, "startTransaction", true}, 72},
		{[]any{"startTransaction", true}, 72},
		{[]any{"txnNumber", number, "startTransaction", true}, 72},
		{[]any{"txnNumber", number, "autocommit", true}, 72},
		{[]any{"txnNumber", number, "autocommit", false, "startTransaction", false}, 72},
		{[]any{"txnNumber", number, "autocommit", 0, "startTransaction", true}, 14},
		{[]any{"txnNumber", number, "autocommit", false, "startTransaction", 1}, 14},
		{[]any{"txnNumber", 1.5, "autocommit", false, "startTransaction", true}, 14},
		{[]any{"txnNumber", 1.5}, 14},
		{[]any{"txnNumber", int32(1)}, 14},
	} {
		c.refused("d", with(insert, x.fields...), x.code)
		c.refused("d", inSession('s', insert, x.fields...), x.code)
	}
	if n := c.must("d", cmd("count", "c")).Lookup("n").AsInt64(); n != 0 {
		t.Errorf("%d documents", n)
	}
	c.must("d", inSession('s', insert, "txnNumber", nil, "autocommit", nil)) // null is like a field that is not there
}

// TestSessionsOfServersAreRefused: sessions that the servers of a cluster begin inside of a client's share its id, and would be taken for it.
func TestSessionsOfServersAreRefused(t *testing.T) {
	c := dial(t, newServer(t, nil))
	id := bson.Binary{Subtype: bson.TypeBinaryUUID, Data: make([]byte, 16)}
	for _, x := range []struct {
		session bson.D
		code    int32
	}{
		{cmd("id", id, "txnUUID", id), 72}, {cmd("id", id, "txnNumber", int64(1)), 72}, {cmd("id", id, "x", 1), 40415}, {cmd("x", 1, "id", id), 40415},
	} {
		c.refused("d", cmd("find", "c", "lsid", x.session), x.code)
		c.refused("admin", cmd("endSessions", bson.A{x.session}), x.code)
	}
}

// TestWhatNoTransactionCanBeLeavesItAsItIs: what is refused because of what it is, and not because of what it has found, ends no
// transaction and begins none, and its number is there for another one. The codes are those of a mongod.
func TestWhatNoTransactionCanBeLeavesItAsItIs(t *testing.T) {
	c := dial(t, newServer(t, nil))
	find, commit := cmd("find", "c"), cmd("commitTransaction", 1)
	level := func(name string) bson.D { return cmd("level", name) }
	for _, x := range []struct {
		db      string
		command bson.D
		code    int32
	}{
		{"d", cmd("count", "c"), 263},
		{"d", cmd("drop", "c"), 263},
		{"local", find, 263},
		{"config", find, 263},
		{"d", cmd("find", "system.profile"), 263},
		{"d", cmd("insert", "c", "documents", bson.A{bson.D{}}, "writeConcern", cmd("w", 1)), 72},
	} {
		c.refused(x.db, inTransaction('s', 1, x.command, "startTransaction", true), x.code)
	}
	c.refused("d", inTransaction('s', 1, find, "startTransaction", true, "readConcern", level("linearizable")), 72)
	c.refused("admin", inTransaction('s', 1, commit, "startTransaction", true), 263)

	c.must("d", inTransaction('s', 1, cmd("insert", "c", "documents", bson.A{cmd("_id", 1)}), "startTransaction", true))
	for _, command := range []bson.D{cmd("count", "c"), cmd("find", "system.profile")} {
		c.refused("d", inTransaction('s', 1, command), 263)
		c.refused("d", inTransaction('s', 2, command, "startTransaction", true), 263)
	}
	c.refused("local", inTransaction('s', 1, find), 263)
	c.refused("d", inTransaction('s', 1, find, "readConcern", level("local")), 72)
	c.refused("admin", inTransaction('s', 1, commit, "readConcern", level("local")), 72)
	c.must("d", inTransaction('s', 1, find, "readConcern", bson.D{}))
	c.must("admin", inTransaction('s', 1, commit))
	if n := c.must("d", cmd("count", "c")).Lookup("n").AsInt64(); n != 1 {
		t.Errorf("%d documents", n)
	}
	c.refused("d", inTransaction('s', 1, cmd("count", "c")), 263) // also when it has ended
}
