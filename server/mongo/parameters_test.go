package mongo

import (
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// TestParametersThatAreSetCount: what setParameter takes has an effect, and what it cannot give is refused, as is what makes no sense. The
// answers, but those of what is refused, are those of a mongod 6.0.5.
func TestParametersThatAreSetCount(t *testing.T) {
	s := newServer(t, nil)
	c := dial(t, s)
	for _, x := range []struct {
		name string
		v    any
		code int32
	}{
		{"ttlMonitorEnabled", false, 0}, {"ttlMonitorEnabled", 1, 0}, {"ttlMonitorEnabled", "false", 2}, {"quiet", bson.D{}, 2},
		{"notablescan", true, 115}, {"notablescan", false, 0}, {"requireApiVersion", 1, 115}, {"requireApiVersion", "x", 2},
		{"transactionLifetimeLimitSeconds", 2.5, 0}, {"transactionLifetimeLimitSeconds", true, 0}, {"transactionLifetimeLimitSeconds", 0, 2},
		{"transactionLifetimeLimitSeconds", false, 2}, {"transactionLifetimeLimitSeconds", 1e20, 2}, {"transactionLifetimeLimitSeconds", "7", 2},
		{"ttlMonitorSleepSecs", 0, 2}, {"ttlMonitorSleepSecs", nil, 2}, {"ttlMonitorSleepSecs", int64(7), 0},
		{"cursorTimeoutMillis", "x", 2}, {"cursorTimeoutMillis", 1e20, 2}, {"cursorTimeoutMillis", 5000, 0},
		{"logLevel", 6, 2}, {"logLevel", 1, 0}, {"authSchemaVersion", 5, 20}, {"nothing", 1, 72},
	} {
		if reply := c.run("admin", cmd("setParameter", 1, x.name, x.v)); codeIn(reply) != x.code {
			t.Errorf("%s of %v: code %d is wanted: %s", x.name, x.v, x.code, reply)
		}
	}
	cursors, transactions := time.Duration(s.params.cursorTimeout.Load()), time.Duration(s.params.transactionTimeout.Load())
	if cursors != 5*time.Second || transactions != time.Second {
		t.Errorf("cursors end after %s, transactions after %s", cursors, transactions)
	}
	reply := c.must("admin", cmd("getParameter", 1, "cursorTimeoutMillis", 1, "transactionLifetimeLimitSeconds", 1, "ttlMonitorSleepSecs", 1))
	for name, want := range map[string]int64{"cursorTimeoutMillis": 5000, "transactionLifetimeLimitSeconds": 1, "ttlMonitorSleepSecs": 7} {
		if got := reply.Lookup(name).AsInt64(); got != want {
			t.Errorf("%s is %d, want %d", name, got, want)
		}
	}
}

// TestParametersAreSetTogetherOrNotAtAll, and the answer tells what the last one was.
func TestParametersAreSetTogetherOrNotAtAll(t *testing.T) {
	c := dial(t, newServer(t, nil))
	c.refused("admin", cmd("setParameter", 1, "quiet", true, "logLevel", 9), 2)
	if reply := c.must("admin", cmd("getParameter", 1, "quiet", 1)); reply.Lookup("quiet").Boolean() {
		t.Error("one of two is set")
	}
	if reply := c.must("admin", cmd("setParameter", 1, "quiet", true, "logLevel", 2)); reply.Lookup("was").AsInt64() != 0 {
		t.Errorf("%s", reply)
	}
	reply := c.must("admin", cmd("getParameter", 1, "quiet", 1, "logLevel", 1))
	if !reply.Lookup("quiet").Boolean() || reply.Lookup("logLevel").AsInt64() != 2 {
		t.Errorf("%s", reply)
	}
}

// TestATimeForCursorsEndsThoseThatAreIdle: it counts for cursors that are open already.
func TestATimeForCursorsEndsThoseThatAreIdle(t *testing.T) {
	s := newServer(t, nil)
	c := dial(t, s)
	c.must("d", cmd("insert", "c", "documents", bson.A{cmd("_id", 1), cmd("_id", 2)}))
	id := c.must("d", cmd("find", "c", "batchSize", 1)).Lookup("cursor", "id").Int64()
	c.must("admin", cmd("setParameter", 1, "cursorTimeoutMillis", 1000))
	s.cursors.expire(s.clock.Now().Add(2 * time.Second))
	c.refused("d", cmd("getMore", id, "collection", "c"), 43)
}
