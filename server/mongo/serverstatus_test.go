package mongo

import (
	"maps"
	"math"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// TestServerStatusIsReadByTools: mongostat takes the uptime for a whole number, and shows the memory that the process has.
func TestServerStatusIsReadByTools(t *testing.T) {
	c := dial(t, newServer(t, nil))
	status := c.must("admin", cmd("serverStatus", 1))
	if up, isDouble := status.Lookup("uptime").DoubleOK(); !isDouble || up != math.Floor(up) {
		t.Errorf("uptime is %s", status.Lookup("uptime"))
	}
	resident, virtual := status.Lookup("mem", "resident").AsInt64(), status.Lookup("mem", "virtual").AsInt64()
	if has, _ := memoryInUse(); resident <= 0 || resident > 2*has>>20+1 || virtual < resident {
		t.Errorf("%d MiB are resident, of %d; the process has %d bytes", resident, virtual, has)
	}
}

// TestServerStatusCountsAsMongoDBDoes: opcounters count the statements of writes that were tried, and as commands what they do not count
// elsewhere; Compass asks for the clients that read and write, and those that wait, and draws nothing without them.
func TestServerStatusCountsAsMongoDBDoes(t *testing.T) {
	c := dial(t, newServer(t, nil))
	c.must("d", cmd("create", "c"))
	counted := func() map[string]int64 {
		counts := map[string]int64{}
		elements, _ := c.must("admin", cmd("serverStatus", 1)).Lookup("opcounters").Document().Elements()
		for _, e := range elements {
			counts[e.Key()] = e.Value().AsInt64()
		}
		return counts
	}
	two := bson.A{cmd("_id", 1), cmd("_id", 2)}
	update := cmd("q", cmd("_id", 1), "u", cmd("$set", cmd("a", 1)))
	bad := cmd("q", cmd("_id", 1), "u", cmd("$push", cmd("_id", 1)))
	for _, x := range []struct {
		command bson.D
		counter string
		want    int64
	}{
		{cmd("insert", "c", "documents", two), "insert", 2},
		{cmd("insert", "c", "documents", two), "insert", 1},
		{cmd("insert", "c", "documents", two, "ordered", false), "insert", 2},
		{cmd("update", "c", "updates", bson.A{update, bad, update}), "update", 2},
		{cmd("update", "c", "updates", bson.A{update, bad, update}, "ordered", false), "update", 3},
		{cmd("delete", "c", "deletes", bson.A{cmd("q", cmd("_id", 1), "limit", 1), cmd("q", cmd("_id", 3), "limit", 1)}), "delete", 2},
		{cmd("find", "c", "batchSize", 0), "query", 1},
		{cmd("count", "c"), "command", 1},
	} {
		before := counted()
		c.run("d", x.command)
		before["command"]++ // that of serverStatus
		before[x.counter] += x.want
		if after := counted(); !maps.Equal(after, before) {
			t.Errorf("after %v: %v, want %v", x.command, after, before)
		}
	}
	status := c.must("admin", cmd("serverStatus", 1))
	if n := status.Lookup("globalLock", "activeClients", "readers").AsInt64(); n != 1 {
		t.Errorf("%d read: that is this command", n)
	}
	if n := status.Lookup("globalLock", "currentQueue", "writers").AsInt64(); n != 0 {
		t.Errorf("%d wait to write", n)
	}
	if n := status.Lookup("opLatencies", "writes", "ops").AsInt64(); n != 6 {
		t.Errorf("%d commands wrote", n)
	}
}
