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

// TestServerStatusTellsOfTransactions: how many are open, and what became of the others: those that their clients end, that an error ends,
// and that their session takes with it. One that the server has refused to begin was not started.
func TestServerStatusTellsOfTransactions(t *testing.T) {
	s := newServer(t, &Options{MaxTransactions: 1})
	c := dial(t, s)
	c.must("d", cmd("insert", "c", "documents", bson.A{cmd("_id", 1)}))
	begin := func(id byte, number int64) {
		t.Helper()
		c.must("d", inTransaction(id, number, cmd("find", "c"), "startTransaction", true))
	}
	check := func(when string, open, started, committed, aborted int64) {
		t.Helper()
		told := c.must("admin", cmd("serverStatus", 1)).Lookup("transactions").Document()
		for name, want := range map[string]int64{
			"currentActive": 0, "currentInactive": open, "currentOpen": open, "totalStarted": started, "totalCommitted": committed, "totalAborted": aborted,
		} {
			if got, isLong := told.Lookup(name).Int64OK(); !isLong || got != want {
				t.Errorf("%s: %s is %s, want %d", when, name, told.Lookup(name), want)
			}
		}
	}
	check("at first", 0, 0, 0, 0)
	begin('s', 1)
	check("one is open", 1, 1, 0, 0)
	c.refused("d", inTransaction('t', 1, cmd("find", "c"), "startTransaction", true), 246)
	check("another one was refused", 1, 1, 0, 0)
	for range 2 {
		c.must("admin", inTransaction('s', 1, cmd("commitTransaction", 1)))
		check("it is committed", 0, 1, 1, 0)
	}
	begin('s', 2)
	c.must("admin", inTransaction('s', 2, cmd("abortTransaction", 1)))
	check("one is aborted", 0, 2, 1, 1)
	begin('s', 3)
	c.must("d", inTransaction('s', 3, cmd("insert", "c", "documents", bson.A{cmd("_id", 1)}))) // a write error
	check("an error has ended one", 0, 3, 1, 2)
	begin('s', 4)
	c.must("admin", cmd("killSessions", lsids('s')))
	check("one has gone with its session", 0, 4, 1, 3)
}

// Monitoring agents draw the cursors by their kinds, and the connections on which a command runs: what nobody counted was always 0, or 1.
func TestServerStatusTellsOfCursorsAndConnections(t *testing.T) {
	s := newServer(t, nil)
	c, reader := dial(t, s), dial(t, s)
	c.must("d", cmd("insert", "c", "documents", bson.A{bson.D{}, bson.D{}}))
	c.must("d", cmd("find", "c", "batchSize", 1))
	c.must("d", cmd("find", "c", "batchSize", 1, "noCursorTimeout", true))
	id := reader.must("d", pipe("c", stage("$changeStream", bson.D{}))).Lookup("cursor", "id").Int64()
	more, err := bson.Marshal(cmd("getMore", id, "collection", "c", "maxTimeMS", 3_600_000, "$db", "d"))
	if err != nil {
		t.Fatal(err)
	}
	reader.send(0, more)
	for reads := false; !reads; {
		s.cursors.mu.Lock()
		reads = s.cursors.byID[id].pinned
		s.cursors.mu.Unlock()
	}
	status := c.must("admin", cmd("serverStatus", 1))
	cursors := status.Lookup("metrics", "cursor", "open").Document()
	for field, want := range map[string]int64{"total": 3, "noTimeout": 1, "pinned": 1} {
		if n := cursors.Lookup(field).AsInt64(); n != want {
			t.Errorf("cursors, %s: %d, not %d", field, n, want)
		}
	}
	if n := status.Lookup("connections", "active").AsInt64(); n != 2 {
		t.Errorf("%d connections are active, not 2", n)
	}
	c.must("d", cmd("insert", "c", "documents", bson.A{bson.D{}}))
	reader.receive()
}
