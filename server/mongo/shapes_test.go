package mongo

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// What shells and tools look at in answers, beside ok.
func TestAnswersHaveWhatShellsLookAt(t *testing.T) {
	c := filled(t, 5, &Options{})
	expect := func(reply bson.Raw, want string, path ...string) {
		t.Helper()
		if v := reply.Lookup(path...); v.String() != want {
			t.Errorf("%v is %s, want %s", path, v, want)
		}
	}
	c.must("d", cmd("createIndexes", "c", "indexes", bson.A{bson.D{{Key: "key", Value: bson.D{{Key: "t", Value: 1}}}, {Key: "name", Value: "t"}, {Key: "expireAfterSeconds", Value: 5}}}))
	reply := c.must("d", cmd("collMod", "c", "index", bson.D{{Key: "name", Value: "t"}, {Key: "hidden", Value: true}, {Key: "expireAfterSeconds", Value: 9}}))
	expect(reply, "false", "hidden_old")
	expect(reply, "true", "hidden_new")
	expect(reply, `{"$numberLong":"5"}`, "expireAfterSeconds_old")
	expect(reply, `{"$numberLong":"9"}`, "expireAfterSeconds_new")
	expect(c.must("d", cmd("explain", cmd("find", "c"))), `"d"`, "command", "$db")
	if help := textIn(c.must("d", cmd("find", 1, "help", true)), "help"); help == "" {
		t.Error("find has no help")
	}
	stats := c.must("d", cmd("collStats", "c"))
	expect(stats, `{"$numberInt":"5"}`, "count")
	expect(stats, `{"$numberInt":"14"}`, "avgObjSize")
	expect(stats, `{"$numberInt":"70"}`, "size")
	c.must("d", cmd("profile", 2))
	c.must("d", cmd("find", "c", "limit", 3))
	profiled := c.must("d", cmd("find", profileName, "filter", bson.D{{Key: "op", Value: "query"}}))
	expect(profiled, `{"$numberInt":"3"}`, "cursor", "firstBatch", "0", "nreturned")
}
