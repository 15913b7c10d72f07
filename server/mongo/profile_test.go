package mongo

import (
	"math"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// profiled returns which operations are in a database's profile.
func profiled(t *testing.T, c *testClient, db string) string {
	t.Helper()
	reply := c.must(db, cmd("find", profileName))
	list, _ := reply.Lookup("cursor", "firstBatch").ArrayOK()
	values, err := list.Values()
	if err != nil {
		t.Fatal(err)
	}
	var ops []string
	for _, v := range values {
		ops = append(ops, textIn(bson.Raw(v.Value), "op"))
	}
	return strings.Join(ops, " ")
}

// TestProfileFilter: with a filter the profiler's level 1 takes what matches, however quick it is; level 2 takes all.
func TestProfileFilter(t *testing.T) {
	c := dial(t, newServer(t, nil))
	work := func() {
		c.must("d", cmd("insert", "c", "documents", bson.A{bson.D{{Key: "x", Value: 1}}}))
		c.must("d", cmd("find", "c"))
		c.must("d", cmd("count", "c"))
	}
	for _, step := range []struct {
		set    bson.D
		answer string // that the command gives, which is the setting before
		ops    string
	}{
		{cmd("profile", 1), `was slowms sampleRate ok`, ""},
		{cmd("profile", 1, "slowms", 0, "sampleRate", 0.0), `was slowms sampleRate ok`, ""},
		{cmd("profile", 1, "filter", cmd("op", "query", "ns", "d.c")), `was slowms sampleRate note ok`, "query"},
		{cmd("profile", -1, "sampleRate", 1.0), `was slowms sampleRate filter note ok`, "query query"},
		{cmd("profile", 1, "filter", cmd("$expr", bson.D{{Key: "$eq", Value: bson.A{"$ninserted", 1}}})), `was slowms sampleRate filter note ok`, "query query insert"},
		{cmd("profile", 0), `was slowms sampleRate filter note ok`, "query query insert"},
		{cmd("profile", 2), `was slowms sampleRate filter note ok`, "query query insert command insert query command"},
		{cmd("profile", 0, "filter", "unset"), `was slowms sampleRate filter note ok`, "query query insert command insert query command"},
		{cmd("profile", 1), `was slowms sampleRate ok`, "query query insert command insert query command command insert query command"},
		{cmd("profile", 0), `was slowms sampleRate ok`, "query query insert command insert query command command insert query command"},
	} {
		if answer := fieldsOf(t, c.must("d", step.set)); answer != step.answer {
			t.Errorf("%v answers %s, want %s", step.set, answer, step.answer)
		}
		work()
		if ops := profiled(t, c, "d"); ops != step.ops {
			t.Errorf("after %v the profile has %q, want %q", step.set, ops, step.ops)
		}
	}
	c.refused("d", cmd("profile", 1, "filter", 5), 2)
	c.refused("d", cmd("profile", 1, "filter", "x"), 2)
	c.refused("d", cmd("profile", 1, "filter", cmd("$bad", 1)), 2)
	if level, _ := c.must("d", cmd("profile", -1)).Lookup("was").AsInt64OK(); level != 0 {
		t.Errorf("what was refused set the level %d", level)
	}
}

// TestSlowerThanAnything: a bound of more milliseconds than a duration has is not one below zero, which everything would be slower than.
func TestSlowerThanAnything(t *testing.T) {
	c := dial(t, newServer(t, nil))
	for _, ms := range []any{int64(math.MaxInt64), math.Inf(1), int64(1 << 55)} {
		c.must("d", cmd("profile", 1, "slowms", ms))
		c.must("d", cmd("find", "c"))
		if ops := profiled(t, c, "d"); ops != "" {
			t.Errorf("slower than %v ms were: %s", ms, ops)
		}
		if was := c.must("d", cmd("profile", -1)).Lookup("slowms").Int32(); was != math.MaxInt32 {
			t.Errorf("%v ms are %d", ms, was)
		}
	}
}

// TestSampleRatesOfAnyType: a decimal counts as any other number does.
func TestSampleRatesOfAnyType(t *testing.T) {
	c := dial(t, newServer(t, nil))
	decimal := func(n uint64) bson.Decimal128 { return bson.NewDecimal128(0x3040<<48, n) }
	c.must("d", cmd("profile", 1, "slowms", 0, "sampleRate", decimal(0)))
	c.must("d", cmd("find", "c"))
	if ops := profiled(t, c, "d"); ops != "" {
		t.Errorf("no command was to be profiled, and there are %s", ops)
	}
	c.refused("d", cmd("profile", 1, "sampleRate", decimal(2)), 2)
	c.must("d", cmd("profile", 1, "sampleRate", decimal(1)))
	c.must("d", cmd("count", "c"))
	if ops := profiled(t, c, "d"); !strings.HasSuffix(ops, "command") {
		t.Errorf("all commands were to be profiled, and there are %s", ops)
	}
}

// TestADroppedDatabaseIsNotProfiled: the profiler is off then, and nothing of it brings the database back. While it is on nobody drops the
// profile, or writes to it. The answers are those of a mongod 6.0.5.
func TestADroppedDatabaseIsNotProfiled(t *testing.T) {
	c := dial(t, newServer(t, nil))
	c.must("d", cmd("insert", "c", "documents", bson.A{cmd("a", 1)}))
	c.must("d", cmd("profile", 2, "slowms", 7))
	c.must("d", cmd("find", "c"))
	c.must("d", cmd("dropDatabase", 1))
	reply := c.must("d", cmd("profile", -1))
	if reply.Lookup("was").AsInt64() != 0 || reply.Lookup("slowms").AsInt64() != 7 {
		t.Errorf("the profiler: %s", reply)
	}
	c.must("d", cmd("find", "c"))
	list := cmd("listCollections", 1)
	if reply := c.must("d", list); reply.Lookup("cursor", "firstBatch", "0").Type != 0 {
		t.Errorf("the database is back: %s", reply)
	}
	c.must("d", cmd("profile", 2))
	for name, code := range map[string]int32{"system.profile": 73, "system.views": 73, "system.js": 0} {
		for _, command := range []bson.D{
			cmd("insert", name, "documents", bson.A{cmd("a", 1)}), cmd("update", name, "updates", bson.A{cmd("q", bson.D{}, "u", cmd("$set", cmd("a", 2)))}),
			cmd("delete", name, "deletes", bson.A{cmd("q", bson.D{}, "limit", 0)}), cmd("findAndModify", name, "query", cmd("a", 1), "update", cmd("a", 2)),
			cmd("createIndexes", name, "indexes", bson.A{cmd("key", cmd("a", 1), "name", "a")}),
		} {
			if reply := c.run("d", command); codeIn(reply) != code {
				t.Errorf("%v: code %d is wanted: %s", command, code, reply)
			}
		}
	}
	c.refused("d", cmd("drop", "system.profile"), 20)
	c.must("d", cmd("profile", 0))
	c.must("d", cmd("drop", "system.profile"))
}

// TestProfileThatIsOffIsNotKept: who asks for the settings of databases that are not there leaves nothing behind, nor who switches one off.
func TestProfileThatIsOffIsNotKept(t *testing.T) {
	s := newServer(t, nil)
	c := dial(t, s)
	for _, level := range []int{-1, 0, 2, 0, -1} {
		c.must("d", cmd("profile", level))
	}
	c.must("other", cmd("profile", 0, "slowms", 5))
	s.profile.mu.Lock()
	defer s.profile.mu.Unlock()
	if _, kept := s.profile.byDatabase["d"]; kept || len(s.profile.byDatabase) != 1 {
		t.Errorf("%d settings are kept", len(s.profile.byDatabase))
	}
}
