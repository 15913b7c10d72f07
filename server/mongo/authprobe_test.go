package mongo

import (
	"encoding/binary"
	"errors"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/server/wire"
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

// runBeside runs a command that has a document in a sequence beside it.
func (c *testClient) runBeside(db string, command bson.D, field string, doc bson.D) bson.Raw {
	c.t.Helper()
	body, err1 := bson.Marshal(append(command, bson.E{Key: "$db", Value: db}))
	beside, err2 := bson.Marshal(doc)
	if err := errors.Join(err1, err2); err != nil {
		c.t.Fatal(err)
	}
	msg := append(wire.AppendMsg(nil, 0, 0, 0, bsoncore.Document(body)), 1)
	msg = binary.LittleEndian.AppendUint32(msg, uint32(4+len(field)+1+len(beside)))
	msg = append(append(append(msg, field...), 0), beside...)
	c.id++
	wire.BeginMsg(msg, c.id, 0, 0)
	if _, err := c.conn.Write(msg); err != nil {
		c.t.Fatal(err)
	}
	return c.receive()
}

// What a command says is looked for in it, and only the statements of writes may stand beside it: privileges that came so were given to roles,
// and nobody had asked whether their user may give them.
func TestPrivilegesBesideACommandAreRefused(t *testing.T) {
	s, root := guarded(t)
	root.must("admin", cmd("createRole", "app", "roles", bson.A{}, "privileges", list(cmd("resource", cmd("db", "d", "collection", ""), "actions", bson.A{"find"}))))
	root.must("admin", cmd("createRole", "maker", "roles", bson.A{}, "privileges", list(cmd("resource", cmd("db", "admin", "collection", ""), "actions", bson.A{"createRole"}))))
	c := loggedIn(t, s, root, "admin", "ann", bson.A{"app", "maker"})
	everything := cmd("resource", cmd("anyResource", true), "actions", bson.A{"anyAction"})
	for _, command := range []bson.D{cmd("grantPrivilegesToRole", "app"), cmd("revokePrivilegesFromRole", "app"), cmd("createRole", "other", "roles", bson.A{})} {
		if reply := c.runBeside("admin", command, "privileges", everything); codeIn(reply) != int32(codeUnknownField) {
			t.Errorf("%v: %s", command, reply)
		}
	}
	c.refused("e", cmd("find", "c"), 13)
	if reply := root.runBeside("d", cmd("insert", "c"), "documents", bson.D{}); okOf(reply) != 1 {
		t.Error(reply)
	}
}

// A flag that is null is as if it were not there, for what asks for privileges as for the command: a findAndModify that did not remove asked
// for the privilege to remove.
func TestPrivilegesOfFlagsThatAreNull(t *testing.T) {
	s, root := guarded(t)
	set := stage("$set", bson.D{{Key: "a", Value: 1}})
	modify := cmd("findAndModify", "c", "query", cmd("_id", 1), "update", set)
	update := cmd("update", "c", "updates", list(cmd("q", bson.D{}, "u", set, "upsert", nil)))
	for action, allowed := range map[string]bool{"remove": false, "update": true} {
		privilege := cmd("resource", cmd("db", "d", "collection", ""), "actions", bson.A{"find", action})
		root.must("d", cmd("createRole", action, "roles", bson.A{}, "privileges", list(privilege)))
		c := loggedIn(t, s, root, "d", action+"r", bson.A{action})
		for _, command := range []bson.D{with(modify, "remove", nil), with(modify, "upsert", nil), update} {
			if reply := c.run("d", command); (codeIn(reply) != 13) != allowed {
				t.Errorf("%v with find and %s: %s", command, action, reply)
			}
		}
	}
}

// A filter of names sees names and kinds, as on a mongod: who may list the names of what they know could find out about options and views by it.
func TestNamesAreNotFilteredByOptions(t *testing.T) {
	s, root := guarded(t)
	root.must("d", cmd("create", "c", "capped", true, "size", 4096))
	c := loggedIn(t, s, root, "d", "ann", bson.A{"read"})
	for filter, want := range map[bson.E]int{
		{Key: "name", Value: "c"}: 1, {Key: "type", Value: "collection"}: 1, {Key: "options.capped", Value: true}: 0, {Key: "info.readOnly", Value: false}: 0,
	} {
		names := cmd("listCollections", 1, "nameOnly", true, "authorizedCollections", true, "filter", bson.D{filter})
		list, err := c.must("d", names).Lookup("cursor", "firstBatch").Array().Values()
		if err != nil || len(list) != want {
			t.Errorf("%v finds %d names, %v", filter, len(list), err)
		}
	}
}
