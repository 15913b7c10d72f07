package mongo

import (
	"math"
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

// What $collStats, $indexStats and $planCacheStats are asked for is checked, and what they tell says where it is from.
func TestStagesOfStatistics(t *testing.T) {
	c := filled(t, 5, &Options{Address: "there:27017"})
	aggregate := func(name, stage string, spec any) bson.D {
		return cmd("aggregate", name, "pipeline", bson.A{cmd(stage, spec)}, "cursor", bson.D{})
	}
	for _, x := range []struct {
		command bson.D
		want    int32
	}{
		{aggregate("c", "$collStats", 1), 5447000},
		{aggregate("c", "$collStats", cmd("size", bson.D{})), 40415},
		{aggregate("c", "$collStats", cmd("count", 1)), 14},
		{aggregate("c", "$collStats", cmd("count", cmd("a", 1))), 31170},
		{aggregate("c", "$collStats", cmd("storageStats", cmd("scale", 0))), 51024},
		{aggregate("c", "$collStats", cmd("storageStats", cmd("scale", "x"))), 14},
		{aggregate("c", "$collStats", cmd("storageStats", cmd("scale", math.NaN()))), 51024},
		{aggregate("c", "$collStats", cmd("storageStats", cmd("scale", bson.NewDecimal128(0xb040<<48, 1)))), 51024}, // -1
		{aggregate("c", "$collStats", cmd("latencyStats", cmd("histograms", 1))), 14},
		{aggregate("c", "$collStats", cmd("latencyStats", cmd("colour", 1))), 40415},
		{aggregate("c", "$collStats", cmd("queryExecStats", 1)), 14},
		{aggregate("none", "$collStats", cmd("count", bson.D{})), 26},
		{aggregate("none", "$collStats", cmd("storageStats", bson.D{})), 26},
		{aggregate("c", "$indexStats", cmd("a", 1)), 28803},
		{aggregate("c", "$planCacheStats", cmd("a", 1)), 9},
		{aggregate("none", "$planCacheStats", bson.D{}), 50933},
	} {
		c.refused("d", x.command, x.want)
	}
	for _, scale := range []any{bson.NewDecimal128(0x3040<<48, 1024), 1024.9} {
		scaled := c.must("d", aggregate("c", "$collStats", cmd("storageStats", cmd("scale", scale))))
		if n := scaled.Lookup("cursor", "firstBatch", "0", "storageStats", "scaleFactor").AsInt64(); n != 1024 {
			t.Errorf("the scale %v is %d", scale, n)
		}
	}
	stats := c.must("d", aggregate("c", "$collStats", bson.D{{Key: "latencyStats", Value: bson.D{}}, {Key: "count", Value: bson.D{}}})).Lookup("cursor", "firstBatch", "0").Document()
	if n := stats.Lookup("latencyStats", "writes", "ops").AsInt64(); textIn(stats, "host") != "there:27017" || n != 1 {
		t.Errorf("$collStats: %s", stats)
	}
	if n := stats.Lookup("latencyStats", "commands", "ops").AsInt64(); n != 1 { // the collection was made
		t.Errorf("%d commands", n)
	}
	index := c.must("d", aggregate("c", "$indexStats", bson.D{})).Lookup("cursor", "firstBatch", "0").Document()
	if textIn(index, "host") != "there:27017" {
		t.Errorf("$indexStats: %s", index)
	}
	c.must("d", aggregate("none", "$collStats", bson.D{}))
	c.must("d", aggregate("none", "$indexStats", bson.D{}))

	// A view has neither a size nor a count, but times.
	c.must("d", cmd("create", "v", "viewOn", "c", "pipeline", bson.A{cmd("$match", cmd("x", 1))}))
	for _, part := range []string{"count", "storageStats", "queryExecStats"} {
		c.refused("d", aggregate("v", "$collStats", cmd(part, bson.D{})), 166)
	}
	c.refused("d", aggregate("v", "$collStats", cmd("size", bson.D{})), 40415)
	stats = c.must("d", aggregate("v", "$collStats", cmd("latencyStats", bson.D{}))).Lookup("cursor", "firstBatch", "0").Document()
	if _, told := stats.Lookup("latencyStats", "reads").DocumentOK(); textIn(stats, "ns") != "d.v" || !told {
		t.Errorf("$collStats of a view: %s", stats)
	}
}
