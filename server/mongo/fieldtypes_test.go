package mongo

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// TestFieldsOfWrongTypes has the codes that a mongod has for fields of wrong types, and fields that are missing.
func TestFieldsOfWrongTypes(t *testing.T) {
	c := filled(t, 5, &Options{})
	c.must("d", cmd("create", "v", "viewOn", "c", "pipeline", bson.A{}))
	insert := cmd("insert", "c", "documents", bson.A{bson.D{}})
	aggregate := cmd("aggregate", "c", "pipeline", bson.A{}, "cursor", bson.D{})
	for _, test := range []struct {
		command bson.D
		code    int32
	}{
		{cmd("find", 1), 2},
		{cmd("find", nil), 2},
		{cmd("count", 1), 73},
		{cmd("aggregate", 2, "pipeline", bson.A{}, "cursor", bson.D{}), 9},
		{cmd("aggregate", true, "pipeline", bson.A{}, "cursor", bson.D{}), 14},
		{cmd("find", "c", "filter", nil), 14},
		{cmd("find", "c", "singleBatch", 1), 14},
		{cmd("find", "c", "noCursorTimeout", "x"), 14},
		{cmd("find", "c", "maxTimeMS", "x"), 2},
		{cmd("find", "c", "maxTimeMS", 1.5), 2},
		{cmd("find", "c", "maxTimeMS", nil), 2},
		{cmd("find", "c", "maxTimeMS", -1), 2},
		{with(aggregate, "maxTimeMS", -1), 51024},
		{with(aggregate, "maxTimeMS", "x"), 14},
		{cmd("find", "c", "readConcern", 1), 9},
		{cmd("find", "c", "readConcern", cmd("colour", 1)), 72},
		{with(aggregate, "readConcern", 1), 14},
		{with(aggregate, "explain", 1), 14},
		{cmd("count", "c", "limit", "x"), 2},
		{cmd("count", "c", "limit", 1.5), 9},
		{cmd("distinct", "c"), 40414},
		{cmd("distinct", "c", "key", 1), 14},
		{with(insert, "ordered", 1), 14},
		{with(insert, "stmtIds", 1), 14},
		{with(insert, "writeConcern", nil), 14},
		{cmd("getMore", 1, "collection", "c"), 14},
		{cmd("getMore", int64(1)), 40414},
		{cmd("getMore", int64(1), "collection", ""), 73},
		{cmd("killCursors", "c"), 40414},
		{cmd("killCursors", "c", "cursors", 1), 14},
		{cmd("killCursors", 1, "cursors", bson.A{}), 2},
		{cmd("create", "n", "colour", 1), 40415},
		{cmd("create", "n", "capped", "x"), 14},
		{cmd("create", "n", "temp", true), 72},
		{cmd("create", "n", "viewOn", ""), 2},
		{cmd("create", "n", "changeStreamPreAndPostImages", bson.D{}), 40414},
		{cmd("collMod", "c", "colour", 1), 40415},
		{cmd("collMod", "c", "validationLevel", 1), 14},
		{cmd("collMod", "c", "changeStreamPreAndPostImages", cmd("colour", 1)), 40415},
		{cmd("dropDatabase", -1), 5255100},
		{cmd("dropDatabase", "x"), 14},
		{cmd("dropIndexes", "v", "index", "*"), 166},
		{cmd("planCacheClear", "v"), 166},
		{cmd("planCacheClear", "c", "query", 1), 2},
		{cmd("validate", "v"), 166},
		{cmd("validate", "c", "repair", true), 72},
		{cmd("dataSize", "d"), 73},
		{cmd("dataSize", "d.c", "min", bson.D{}), 2},
		{cmd("profile", "x"), 14},
		{cmd("profile", 0, "sampleRate", 1.5), 2},
		{cmd("profile", 0, "sampleRate", -1), 2},
		{cmd("find", "c", "hint", nil), 9},
		{cmd("explain", cmd("find", "c"), "verbosity", ""), 2},
		{cmd("profile", 0, "filter", cmd("$bad", 1)), 2},
		{cmd("hello", 1, "maxAwaitTimeMS", 1), 31368},
		{cmd("hello", 1, "topologyVersion", bson.D{}, "maxAwaitTimeMS", 1), 40414},
		{cmd("killAllSessions", 1), 14},
		{cmd("getLastError", 1), 5739000},
		{cmd("createUser", "u", "pwd", "p"), 40414},
		{cmd("createRole", "r", "privileges", bson.A{}, "roles", nil), 10065},
		{cmd("saslStart", 1), 40414},
	} {
		c.refused("d", test.command, test.code)
	}
}

// TestFieldsOfWrongTypesOfTheServer is TestFieldsOfWrongTypes on the database admin.
func TestFieldsOfWrongTypesOfTheServer(t *testing.T) {
	c := dial(t, newServer(t, nil))
	c.refused("admin", cmd("renameCollection", "x", "to", "d.y"), 73)
	c.refused("admin", cmd("renameCollection", "d.x", "to", "d.y", "dropTarget", 1), 14)
	c.refused("admin", cmd("commitTransaction", 1), 125)
	c.refused("admin", cmd("setParameter", 1, "logLevel", "x"), 2)
	c.refused("admin", cmd("getDefaultRWConcern", 1, "colour", 1), 40415)
	c.refused("admin", cmd("setFeatureCompatibilityVersion", "1.0"), 4926900)
}

// TestTheFirstFieldOfAWrongTypeIsTold: of several fields of wrong types it is the one that the client names first, and a field that no
// command has goes before all of them.
func TestTheFirstFieldOfAWrongTypeIsTold(t *testing.T) {
	c := dial(t, newServer(t, nil))
	for _, test := range []struct {
		command bson.D
		code    int32
		about   string
	}{
		{cmd("find", "c", "sort", 1, "filter", 1), 14, "'find.sort'"},
		{cmd("find", "c", "filter", 1, "sort", 1), 14, "'find.filter'"},
		{cmd("find", "c", "filter", bson.D{}, "min", 1, "hint", nil), 14, "'find.min'"},
		{cmd("find", "c", "hint", nil, "min", 1), 9, "Hint"},
		{cmd("find", "c", "sort", 1, "colour", 1), 40415, "'find.colour'"},
		{cmd("find", "c", "sort", 1, "sort", 1), 40413, "'find.sort'"},
		{cmd("saslStart", 1, "mechanism", 1), 14, "'saslStart.mechanism'"},
	} {
		if reply := c.refused("d", test.command, test.code); !strings.Contains(textIn(reply, "errmsg"), test.about) {
			t.Errorf("%v: %s, which is not about %s", test.command, reply, test.about)
		}
	}
}

// Commands that new drivers send more with than a server knows of take it, and null is as good as nothing in options.
func TestFieldsThatAreNotKnown(t *testing.T) {
	c := filled(t, 5, &Options{})
	for _, command := range []bson.D{
		cmd("hello", 1, "colour", 1), cmd("buildInfo", 1, "colour", 1), cmd("dbStats", 1, "colour", 1), cmd("collStats", "c", "colour", 1),
		cmd("startSession", 1, "colour", 1), cmd("whatsmyuri", 1, "colour", 1), cmd("create", "n", "validator", nil, "size", nil),
		cmd("delete", "c", "bypassDocumentValidation", true, "deletes", bson.A{cmd("q", bson.D{}, "limit", 1)}),
	} {
		c.must("d", command)
	}
	c.must("d", cmd("create", "v", "viewOn", "c", "pipeline", bson.A{}))
	reply := c.must("d", cmd("insert", "v", "ordered", false, "documents", bson.A{bson.D{}, bson.D{}}))
	if code, _ := reply.Lookup("writeErrors", "1", "code").Int32OK(); code != 166 {
		t.Errorf("inserts into a view: %s", reply)
	}
	hashes := c.must("d", cmd("dbHash", 1, "collections", bson.A{"c"}))
	if id := hashes.Lookup("uuids", "c"); id.Type != bson.TypeBinary {
		t.Errorf("the UUID is missing: %s", hashes)
	}
	if _, err := hashes.LookupErr("collections", "n"); err == nil {
		t.Errorf("more than what was asked for: %s", hashes)
	}
}
