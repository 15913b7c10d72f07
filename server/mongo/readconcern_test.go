package mongo

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// What a read concern asks for, and what cannot be promised, is not passed over: a client that asks for a time which is yet to come, or asks in a
// wrong way, does not get an answer of just now. The codes are those of a mongod 6.0.5, but for the last one.
func TestTimesOfReadConcerns(t *testing.T) {
	s := newServer(t, nil)
	c := dial(t, s)
	c.must("d", cmd("insert", "c", "documents", bson.A{cmd("_id", 1)}))
	past, future := s.store.LastTime(), bson.Timestamp{T: 4_000_000_000, I: 1}
	for _, test := range []struct {
		concern bson.D
		code    int32
	}{
		{cmd("afterClusterTime", past), 0},
		{cmd("level", "local", "afterClusterTime", past), 0},
		{cmd("level", "majority", "afterClusterTime", past), 0},
		{cmd("level", "snapshot", "afterClusterTime", past), 0},
		{cmd("level", "available", "afterClusterTime", past), 72},
		{cmd("level", "linearizable", "afterClusterTime", past), 72},
		{cmd("afterClusterTime", future), 72},
		{cmd("level", "snapshot", "afterClusterTime", future), 72},
		{cmd("afterClusterTime", bson.Timestamp{}), 72},
		{cmd("afterClusterTime", "x"), 14},
		{cmd("afterClusterTime", nil), 14},
		{cmd("afterOpTime", "x"), 14},
		{cmd("level", 1), 14},
		{cmd("level", nil), 14},
		{cmd("atClusterTime", past), 72},
		{cmd("level", "majority", "atClusterTime", past), 72},
		{cmd("level", "snapshot", "atClusterTime", "x"), 14},
		{cmd("level", "snapshot", "atClusterTime", future), 72},
		{cmd("level", "snapshot", "atClusterTime", bson.Timestamp{}), 72},
		{cmd("level", "snapshot", "atClusterTime", past, "afterClusterTime", past), 72},
		{cmd("level", "snapshot", "atClusterTime", bson.Timestamp{T: 1, I: 1}), 239},
	} {
		if reply := c.run("d", cmd("find", "c", "readConcern", test.concern)); codeIn(reply) != test.code {
			t.Errorf("%v: code %d is wanted: %s", test.concern, test.code, reply)
		}
	}
	c.refused("d", cmd("insert", "c", "documents", bson.A{bson.D{}}, "readConcern", cmd("afterClusterTime", future)), 72)
	c.refused("d", inTransaction('t', 1, cmd("find", "c"), "startTransaction", true, "readConcern", cmd("level", "snapshot", "afterClusterTime", future)), 72)
	c.refused("d", inTransaction('t', 1, cmd("find", "c"), "startTransaction", true, "readConcern", cmd("level", "snapshot", "atClusterTime", past)), 115)
	c.must("d", inTransaction('t', 1, cmd("find", "c"), "startTransaction", true, "readConcern", cmd("level", "snapshot", "afterClusterTime", past)))

	// A time that the cluster's clock is said to have come to has been heard of somewhere, before a power cut perhaps.
	heard := cmd("clusterTime", future, "signature", cmd("hash", bson.Binary{Data: make([]byte, 20)}, "keyId", int64(0)))
	c.must("d", cmd("find", "c", "readConcern", cmd("afterClusterTime", future), "$clusterTime", heard))
	c.refused("d", cmd("find", "c", "readConcern", cmd("level", "snapshot", "atClusterTime", future), "$clusterTime", heard), 239)
}

// TestConcernsOfCommandsThatHaveNone: a command that does not read documents has no moment to read them at, and one that writes nothing has
// nothing to wait for. The codes are those of a mongod.
func TestConcernsOfCommandsThatHaveNone(t *testing.T) {
	c := filled(t, 1, nil)
	read := func(level string) bson.D { return cmd("readConcern", cmd("level", level)) }
	write := cmd("writeConcern", cmd("w", 1))
	insert := cmd("insert", "c", "documents", bson.A{bson.D{}})
	for _, x := range []struct {
		command, concern bson.D
		code             int32
	}{
		{insert, read("local"), 0},
		{insert, read("majority"), 72},
		{insert, read("linearizable"), 72},
		{cmd("listCollections", 1), read("available"), 72},
		{cmd("count", "c"), read("linearizable"), 0},
		{cmd("count", "c"), read("snapshot"), 72},
		{cmd("find", "c"), read("snapshot"), 0},
		{cmd("find", "c"), write, 72},
		{cmd("getMore", int64(1), "collection", "c"), write, 72},
		{cmd("aggregate", "c", "pipeline", bson.A{}, "cursor", bson.D{}), write, 0},
		{cmd("ping", 1), cmd("writeConcern", bson.D{}), 72},
		{cmd("create", "made"), write, 0},
	} {
		if reply := c.run("d", append(x.command, x.concern...)); codeIn(reply) != x.code {
			t.Errorf("%v with %v: code %d is wanted: %s", x.command, x.concern, x.code, reply)
		}
	}
	c.must("d", inTransaction('t', 1, insert, "startTransaction", true, "readConcern", cmd("level", "majority")))
	c.must("admin", inTransaction('t', 1, cmd("abortTransaction", 1), "writeConcern", cmd("w", "majority")))
}
