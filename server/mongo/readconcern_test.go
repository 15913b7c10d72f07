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
