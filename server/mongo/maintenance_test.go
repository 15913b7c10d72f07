package mongo

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
)

// What those send who look after replica sets is answered as by a mongod that has nothing to do.
func TestMaintenance(t *testing.T) {
	c := dial(t, newServer(t, nil))
	for name, want := range map[string]string{
		"logRotate": "ok", "lockInfo": "lockInfo ok", "refreshLogicalSessionCacheNow": "ok", "reapLogicalSessionCacheNow": "ok",
		"whatsmysni": "sni ok", "shardingState": "enabled ok", "replSetGetRBID": "rbid ok",
	} {
		if got := fieldsOf(t, c.must("admin", cmd(name, 1))); got != want {
			t.Errorf("%s answers %s", name, got)
		}
	}
	for name, code := range map[string]int32{
		"fsyncUnlock": 20, "getShardMap": 203, "replSetFreeze": 95, "replSetMaintenance": 95, "replSetStepDown": 262,
	} {
		c.refused("admin", cmd(name, 1), code)
	}
	c.refused("admin", cmd("replSetStepDown", 1, "force", true), 115)
	c.refused("admin", cmd("replSetStepDown", "x"), 2)
	c.refused("d", cmd("replSetGetRBID", 1), 13)
	for _, x := range refusedCommands() {
		c.refused("admin", cmd(x.name, 1), 115)
	}
	dial(t, newServer(t, &Options{Standalone: true})).refused("admin", cmd("replSetStepDown", 1), 76)
}

// fsync leaves nothing in the log that a checkpoint could settle.
func TestFsync(t *testing.T) {
	s := newServer(t, nil)
	c := dial(t, s)
	c.must("d", cmd("insert", "c", "documents", bson.A{bson.D{{Key: "x", Value: 1}}}))
	if m := s.store.DB().Metrics(); m.Settled >= m.LastSeq {
		t.Fatalf("%d of %d is settled before", m.Settled, m.LastSeq)
	}
	c.must("admin", cmd("fsync", 1))
	if m := s.store.DB().Metrics(); m.Settled < m.LastSeq {
		t.Errorf("%d of %d is settled", m.Settled, m.LastSeq)
	}
	c.refused("admin", cmd("fsync", 1, "lock", true), 115)
	c.refused("d", cmd("fsync", 1), 13)
}

// TestShutdown: clients of the same machine may end a server, others when they have logged in, and none where nobody listens.
func TestShutdown(t *testing.T) {
	asked := 0
	s := newServer(t, &Options{Shutdown: func() { asked++ }})
	dialFrom(t, s, "10.0.0.1").refused("admin", cmd("shutdown", 1), 13)
	c := dial(t, s)
	c.refused("d", cmd("shutdown", 1), 13)
	c.refused("admin", cmd("shutdown", 1, "force", "x"), 14)
	c.refused("admin", cmd("shutdown", 1, "timeoutSecs", "x"), 14)
	c.refused("admin", cmd("shutdown", 1, "colour", 1), 40415)
	if asked != 0 {
		t.Errorf("what was refused is told %d times", asked)
	}
	if c.must("admin", cmd("shutdown", 1, "force", true, "timeoutSecs", 5)); asked != 1 {
		t.Errorf("it is told %d times", asked)
	}
	dial(t, newServer(t, nil)).refused("admin", cmd("shutdown", 1), 115)
}

// A write that says nothing of its concern waits for a sync where the profile does, and nowhere else.
func TestDefaultWriteConcern(t *testing.T) {
	for profile, want := range map[pando.Profile]string{pando.Durable: `"majority"`, pando.Relaxed: `{"$numberInt":"1"}`} {
		reply := dial(t, newServerOf(t, profile, nil)).must("admin", cmd("getDefaultRWConcern", 1))
		if got := reply.Lookup("defaultWriteConcern", "w").String(); got != want {
			t.Errorf("profile %d: w is %s, not %s", profile, got, want)
		}
	}
}

// reIndex makes the indexes that are there: one without a collation gets none, though its collection has one.
func TestReIndexKeepsIndexesWithoutACollation(t *testing.T) {
	c := dial(t, newServer(t, &Options{Standalone: true}))
	c.must("d", cmd("create", "c", "collation", cmd("locale", "en", "strength", 2)))
	c.must("d", cmd("createIndexes", "c", "indexes", bson.A{
		cmd("key", cmd("own", 1), "name", "own", "collation", cmd("locale", "simple")), cmd("key", cmd("taken", 1), "name", "taken"),
	}))
	before := c.must("d", cmd("listIndexes", "c")).Lookup("cursor", "firstBatch").String()
	c.must("d", cmd("reIndex", "c"))
	if after := c.must("d", cmd("listIndexes", "c")).Lookup("cursor", "firstBatch").String(); after != before {
		t.Errorf("%s\nbecame %s", before, after)
	}
}
