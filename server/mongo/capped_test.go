package mongo

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// A collection becomes capped, or is copied into a capped one; what cannot be has MongoDB's codes.
func TestMakingCollectionsCapped(t *testing.T) {
	c := filled(t, 5, &Options{})
	c.must("d", cmd("create", "v", "viewOn", "c", "pipeline", bson.A{}))
	c.must("d", cmd("create", "ts", "timeseries", cmd("timeField", "t")))
	c.must("d", cmd("cloneCollectionAsCapped", "c", "toCollection", "e", "size", 1000))
	c.must("d", cmd("convertToCapped", "c", "size", 1e6, "writeConcern", cmd("w", "majority")))
	for name, size := range map[string]int64{"c": 1_000_192, "e": 1024} {
		listed := c.must("d", cmd("listCollections", 1, "filter", cmd("name", name))).Lookup("cursor", "firstBatch", "0")
		if got, _ := listed.Document().Lookup("options", "size").AsInt64OK(); got != size {
			t.Errorf("%s: %s", name, listed)
		}
		if n := c.must("d", cmd("count", name)).Lookup("n").AsInt64(); n != 5 {
			t.Errorf("%s has %d documents", name, n)
		}
	}
	for _, test := range []struct {
		command bson.D
		code    int32
	}{
		{cmd("convertToCapped", "none", "size", 1000), 26},
		{cmd("convertToCapped", "v", "size", 1000), 166},
		{cmd("convertToCapped", "ts", "size", 1000), 166},
		{cmd("convertToCapped", "c", "size", -1), 2},
		{cmd("convertToCapped", "c"), 2},
		{cmd("cloneCollectionAsCapped", "c", "toCollection", "e", "size", 1000), 48},
		{cmd("cloneCollectionAsCapped", "c", "toCollection", "v", "size", 1000), 48},
		{cmd("cloneCollectionAsCapped", "none", "toCollection", "f", "size", 1000), 26},
		{cmd("cloneCollectionAsCapped", "v", "toCollection", "f", "size", 1000), 166},
		{cmd("cloneCollectionAsCapped", "c", "toCollection", 1, "size", 1000), 14},
		{cmd("cloneCollectionAsCapped", "c", "size", 1000), 14},
	} {
		c.refused("d", test.command, test.code)
	}
}

// TestRefusedNamesAndOptions: names that could come to mean something, and options of collections, indexes and cursors that cannot be.
func TestRefusedNamesAndOptions(t *testing.T) {
	c := filled(t, 5, &Options{})
	clustered := func(options ...any) bson.D {
		return cmd("create", "n", "clusteredIndex", cmd(options[0].(string), options[1], options[2:]...))
	}
	index := func(spec bson.D, more ...any) bson.D {
		return append(cmd("createIndexes", "c", "indexes", bson.A{spec}), cmd("comment", "", more...)...)
	}
	byID := cmd("_id", 1)
	for _, test := range []struct {
		command bson.D
		code    int32
	}{
		{cmd("create", "system.foo"), 73},
		{cmd("create", "system.views"), 48},
		{cmd("insert", "system.foo", "documents", bson.A{bson.D{}}), 73},
		{clustered("key", cmd("a", 1), "unique", true), 197},
		{clustered("key", cmd("_id", -1), "unique", true), 197},
		{clustered("key", byID, "unique", false), 5979700},
		{clustered("key", byID), 40414},
		{clustered("unique", true), 40414},
		{clustered("key", byID, "unique", true, "colour", 1), 40415},
		{clustered("key", byID, "unique", true, "name", 1), 14},
		{cmd("create", "n", "clusteredIndex", true), 5979703},
		{append(clustered("key", byID, "unique", true), cmd("capped", true, "size", 100)...), 6049200},
		{index(cmd("key", cmd("a", 1))), 9},
		{index(cmd("name", "a")), 9},
		{index(cmd("key", cmd("a", 1), "name", "a"), "commitQuorum", 2), 278},
		{index(cmd("key", cmd("a", 1), "name", "a"), "commitQuorum", -1), 9},
		{index(cmd("key", cmd("a", 1), "name", "a"), "commitQuorum", "unknown"), 79},
		{index(cmd("key", cmd("a", 1), "name", "a"), "commitQuorum", true), 14},
		{cmd("aggregate", "c", "pipeline", bson.A{}, "cursor", cmd("colour", 1)), 40415},
		{cmd("listIndexes", "c", "cursor", cmd("colour", 1)), 40415},
		{cmd("explain", cmd("insert", "c", "documents", bson.A{bson.D{}})), 20},
		{cmd("explain", cmd("ping", 1)), 20},
		{cmd("explain", cmd("unknown", 1)), 59},
		{cmd("explain", bson.D{}), 59},
	} {
		c.refused("d", test.command, test.code)
	}
	c.must("d", clustered("key", byID, "unique", true, "v", 2, "name", "own"))
	c.must("d", cmd("create", "m", "clusteredIndex", false))
	quorum := func(command bson.D) string { return c.must("d", command).Lookup("commitQuorum").String() }
	if got := quorum(index(cmd("key", cmd("a", 1), "name", "a"), "commitQuorum", 1.5)); got != `{"$numberInt":"1"}` {
		t.Errorf("a quorum of one: %s", got)
	}
	if got := quorum(index(cmd("key", cmd("b", 1), "name", "b"))); got != `"votingMembers"` {
		t.Errorf("a quorum that nobody has asked for: %s", got)
	}
	alone := dial(t, newServer(t, &Options{Standalone: true}))
	alone.refused("d", index(cmd("key", cmd("a", 1), "name", "a"), "commitQuorum", 1), 2)
	if reply := alone.must("d", index(cmd("key", cmd("a", 1), "name", "a"))); reply.Lookup("commitQuorum").Type != 0 {
		t.Errorf("a quorum without a set: %s", reply)
	}
}
