package mongo

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Whether a condition of applyOps holds tells what is in a document: who may not read that one must not get to ask, with no entry at all, or
// with a transaction of them inside.
func TestConditionsOfApplyOpsAreReads(t *testing.T) {
	s, root := guarded(t)
	root.must("d", cmd("insert", "c", "documents", list(cmd("_id", 1, "a", 5))))
	c := loggedIn(t, s, root, "admin", "ann", bson.A{"dbAdminAnyDatabase"})
	asks := func(ns, field string, value any) bson.D {
		condition := cmd("ns", ns, "q", bson.D{}, "res", cmd(field, value))
		return cmd("applyOps", bson.A{}, "preCondition", list(condition))
	}
	users := asks("admin.system.users", "user", "root")
	inside := cmd("applyOps", list(cmd("op", "c", "ns", "admin.$cmd", "o", users)))
	for _, probe := range []bson.D{asks("d.c", "a", 5), users, inside} {
		c.refused("admin", probe, 13)
	}
	root.must("admin", cmd("grantRolesToUser", "ann", "roles", list(cmd("role", "read", "db", "d"))))
	c.must("admin", asks("d.c", "a", 5))
	if reply := c.run("admin", asks("d.c", "a", 6)); okOf(reply) == 1 || codeIn(reply) == 13 {
		t.Errorf("a condition that does not hold: %s", reply)
	}
}

// Who may read a database's profile may ask how it is set, and not set it.
func TestToAskForTheProfilerIsNotToSetIt(t *testing.T) {
	s, root := guarded(t)
	c := loggedIn(t, s, root, "admin", "agent", bson.A{"clusterMonitor"})
	c.must("d", cmd("profile", -1))
	for _, field := range []bson.E{{Key: "slowms", Value: 0}, {Key: "sampleRate", Value: 0.5}, {Key: "filter", Value: bson.D{}}} {
		c.refused("d", append(cmd("profile", -1), field), 13)
	}
	if reply := root.must("d", cmd("profile", -1)); reply.Lookup("slowms").AsInt64() != 100 || reply.Lookup("sampleRate").Double() != 1 {
		t.Errorf("the profiler was set by who may only read its collection: %s", reply)
	}
}
