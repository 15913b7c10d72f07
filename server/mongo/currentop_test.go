package mongo

import (
	"math"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// TestCurrentOpFilters: the fields of the command that are no options are a filter.
func TestCurrentOpFilters(t *testing.T) {
	c := dial(t, newServer(t, nil))
	for _, x := range []struct {
		command bson.D
		want    int
	}{
		{cmd("currentOp", 1), 1},
		{cmd("currentOp", 1, "$ownOps", true, "$all", true, "maxTimeMS", 60_000), 1},
		{cmd("currentOp", 1, "op", "command", "ns", "admin.$cmd", "command.currentOp", 1), 1},
		{cmd("currentOp", 1, "active", bson.D{{Key: "$ne", Value: true}}), 0},
		{cmd("currentOp", 1, "op", "query"), 0},
	} {
		list, err := c.must("admin", x.command).Lookup("inprog").Array().Values()
		if err != nil || len(list) != x.want {
			t.Errorf("%v: %v, %v, want %d", x.command, list, err, x.want)
		}
	}
	c.refused("admin", cmd("currentOp", 1, "$bad", 1), 2)
}

// TestCurrentOpStage: options are booleans, and no others than MongoDB's.
func TestCurrentOpStage(t *testing.T) {
	c := dial(t, newServer(t, nil))
	run := func(options bson.D) bson.D {
		return cmd("aggregate", 1, "pipeline", bson.A{cmd("$currentOp", options), cmd("$match", cmd("op", "command"))}, "cursor", bson.D{})
	}
	rows, err := c.must("admin", run(cmd("allUsers", true, "localOps", false))).Lookup("cursor", "firstBatch").Array().Values()
	if err != nil || len(rows) != 1 {
		t.Errorf("%v, %v: one command runs", rows, err)
	}
	c.refused("admin", run(cmd("allUsers", 1)), 9)
	c.refused("admin", run(cmd("more", true)), 9)
}

// TestCurrentOpTellsOfIdleConnections: connections on which no command runs are told of when they are asked for, with what their clients say of themselves.
func TestCurrentOpTellsOfIdleConnections(t *testing.T) {
	server := newServer(t, nil)
	c, idle := dial(t, server), dial(t, server)
	idle.must("admin", cmd("hello", 1, "client", bson.D{{Key: "application", Value: bson.D{{Key: "name", Value: "sleeper"}}}}))
	stage := func(options bson.D) bson.D {
		return cmd("aggregate", 1, "pipeline", bson.A{cmd("$currentOp", options), cmd("$match", cmd("appName", "sleeper", "active", false))}, "cursor", bson.D{})
	}
	for _, x := range []struct {
		list bson.RawValue
		want int
	}{
		{c.must("admin", stage(cmd("allUsers", true, "idleConnections", true))).Lookup("cursor", "firstBatch"), 1},
		{c.must("admin", stage(cmd("allUsers", true))).Lookup("cursor", "firstBatch"), 0},
		{c.must("admin", cmd("currentOp", 1, "$all", true, "appName", "sleeper")).Lookup("inprog"), 1},
		{c.must("admin", cmd("currentOp", 1, "$all", false, "appName", "sleeper")).Lookup("inprog"), 0},
	} {
		rows, err := x.list.Array().Values()
		if err != nil || len(rows) != x.want {
			t.Errorf("%s, want %d connections (%v)", x.list, x.want, err)
		}
		for _, row := range rows {
			if name := row.Document().Lookup("clientMetadata", "application", "name").StringValue(); name != "sleeper" {
				t.Errorf("%s", row)
			}
		}
	}
}

// TestTop: each collection has its counts, until it is dropped.
func TestTop(t *testing.T) {
	c := dial(t, newServer(t, nil))
	counts := func(name string) map[string]int64 {
		v, err := c.must("admin", cmd("top", 1)).LookupErr("totals", name)
		if err != nil {
			return nil
		}
		out := map[string]int64{}
		elements, _ := v.Document().Elements()
		for _, e := range elements {
			if n := e.Value().Document().Lookup("count").Int64(); n > 0 {
				out[e.Key()] = n
			}
		}
		return out
	}
	c.must("d", cmd("insert", "c", "documents", bson.A{cmd("_id", 1), cmd("_id", 2), cmd("_id", 3)}))
	first := c.must("d", cmd("find", "c", "batchSize", 1))
	c.must("d", cmd("getMore", first.Lookup("cursor", "id").Int64(), "collection", "c"))
	c.must("d", cmd("update", "c", "updates", bson.A{cmd("q", bson.D{}, "u", cmd("$set", cmd("x", 1)))}))
	c.must("d", cmd("delete", "c", "deletes", bson.A{cmd("q", cmd("_id", 3), "limit", 1)}))
	c.must("d", cmd("count", "c"))
	want := map[string]int64{"total": 6, "readLock": 3, "writeLock": 3, "queries": 1, "getmore": 1, "insert": 1, "update": 1, "remove": 1, "commands": 1}
	got := counts("d.c")
	if len(got) != len(want) {
		t.Errorf("%v, want %v", got, want)
	}
	for name, n := range want {
		if got[name] != n {
			t.Errorf("%s: %d, want %d", name, got[name], n)
		}
	}
	long := strings.Repeat("x", document.MaxNamespaceBytes)
	c.must("d", cmd("find", long)) // there is nothing, and nothing is remembered of a name that may have megabytes
	if got := counts("d." + long); got != nil {
		t.Errorf("of a name that no collection has: %v", got)
	}
	c.must("d", cmd("drop", "c"))
	if got := counts("d.c"); got != nil {
		t.Errorf("of a collection that has been dropped: %v", got)
	}
	c.must("d", cmd("insert", "c", "documents", bson.A{cmd("_id", 1)}))
	c.must("d", cmd("dropDatabase", 1))
	if got := counts("d.c"); got != nil {
		t.Errorf("of a database that has been dropped: %v", got)
	}
}

// TestOperationsAreFoundByTheNumberThatIsTold: however many commands there have been, a number fits into what currentOp tells of it, and is
// that of one command.
func TestOperationsAreFoundByTheNumberThatIsTold(t *testing.T) {
	var ops operationTable
	ops.init()
	ops.next = math.MaxInt32 - 2
	var list []*request
	for range 5 {
		r := new(request)
		ops.begin(r)
		list = append(list, r)
	}
	ops.next = math.MaxInt32 - 2
	last := new(request)
	ops.begin(last)
	for _, r := range append(list, last) {
		if r.op.id <= 0 || int64(int32(r.op.id)) != r.op.id || ops.byID[r.op.id] != r.op {
			t.Errorf("a command has number %d", r.op.id)
		}
	}
	if last.op.id != 4 {
		t.Errorf("the last one has number %d, the first that nobody has is 4", last.op.id)
	}
}

// TestLongCommandsAreShownShort: of a long command there is what it works on, unless that is long too, as what explain is to explain: one such
// command kept currentOp from telling of any.
func TestLongCommandsAreShownShort(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for _, x := range []struct {
		command bson.D
		want    string
	}{
		{cmd("find", "c", "comment", long), `{"find": "c","$truncated": "too long"}`},
		{cmd("explain", cmd("find", "c", "comment", long)), `{"explain": null,"$truncated": "too long"}`},
	} {
		body, err := bson.Marshal(x.command)
		if err != nil {
			t.Fatal(err)
		}
		r := &request{name: x.command[0].Key, body: body, target: bsoncore.Document(body).Index(0).Value()}
		if got := shown(r).String(); got != x.want {
			t.Errorf("%.200s, want %s", got, x.want)
		}
	}
}

// TestTopHasCollectionsOnly: a command may begin with a text that names no collection, but a user or a log; that was told as one.
func TestTopHasCollectionsOnly(t *testing.T) {
	c := dial(t, newServer(t, nil))
	c.must("d", cmd("insert", "c", "documents", bson.A{cmd("_id", 1)}))
	c.must("d", cmd("dataSize", "d.c"))
	c.must("d", cmd("createUser", "ada", "pwd", "x", "roles", bson.A{}))
	c.must("d", cmd("usersInfo", "ada"))
	c.must("admin", cmd("getLog", "global"))
	c.must("admin", cmd("renameCollection", "d.c", "to", "d.e"))
	elements, _ := c.must("admin", cmd("top", 1)).Lookup("totals").Document().Elements()
	for _, e := range elements {
		if name := e.Key(); name != "note" && name != "d.c" {
			t.Errorf("top tells of %s", name)
		}
	}
}
