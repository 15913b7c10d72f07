package mongo

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// A name that stands twice in where $merge writes to: who asks for the privileges looked at the first, and the stage took the last.
func TestMergeIntoWhatIsNamedTwice(t *testing.T) {
	s, root := guarded(t)
	root.must("d", cmd("insert", "c", "documents", list(cmd("_id", 1))))
	ann := loggedIn(t, s, root, "d", "ann", list("readWrite"))
	for name, into := range map[string]bson.D{
		"the database":   {{Key: "db", Value: "d"}, {Key: "coll", Value: "taken"}, {Key: "db", Value: "e"}},
		"the collection": {{Key: "coll", Value: "own"}, {Key: "coll", Value: "taken"}, {Key: "db", Value: "d"}},
	} {
		if reply := ann.run("d", pipe("c", stage("$merge", bson.D{{Key: "into", Value: into}}))); okOf(reply) != 0 {
			t.Errorf("%s twice: %s", name, reply)
		}
		if code := codeIn(dial(t, newServer(t, nil)).run("d", pipe("c", stage("$merge", bson.D{{Key: "into", Value: into}})))); code != 40413 {
			t.Errorf("%s twice, without logins: code %d", name, code)
		}
	}
	for _, db := range []string{"d", "e"} {
		if n := root.must(db, cmd("count", "taken")).Lookup("n").AsInt64(); n != 0 {
			t.Errorf("%d documents were written to %s.taken", n, db)
		}
	}
}

// Who changes what a view shows has to be allowed to read it. A new pipeline without a new collection was not asked for.
func TestWhoChangesAViewMayReadWhatItShows(t *testing.T) {
	s, root := guarded(t)
	root.must("d", cmd("insert", "c", "documents", list(cmd("_id", 1))))
	root.must("d", cmd("insert", "secret", "documents", list(cmd("_id", 1, "secret", "s"))))
	root.must("d", cmd("create", "v", "viewOn", "c", "pipeline", list()))
	root.must("d", cmd("createRole", "r", "privileges", list(on("d", "v", "find", "collMod"), on("d", "c", "find")), "roles", list()))
	ann := loggedIn(t, s, root, "d", "ann", list("r"))
	ann.must("d", cmd("find", "v"))
	reads := list(stage("$unionWith", "secret"))
	ann.refused("d", cmd("collMod", "v", "viewOn", "c", "pipeline", reads), 13)
	ann.refused("d", cmd("collMod", "v", "pipeline", reads), 72)
	ann.refused("d", cmd("collMod", "v", "viewOn", "c"), 72)
	if docs := ann.must("d", cmd("find", "v")).Lookup("cursor", "firstBatch").String(); docs != `[{"_id": {"$numberInt":"1"}}]` {
		t.Errorf("the view shows %s", docs)
	}
	ann.must("d", cmd("collMod", "v", "viewOn", "c", "pipeline", list(stage("$match", bson.D{}))))
	root.must("d", cmd("collMod", "c", "validationLevel", "strict"))
}

// Who may not read a view may define it, as on a mongod: the role restore restores views. Once they may read it they may not change it, and what
// the system keeps they show to nobody.
func TestWhoMayNotReadAViewMayDefineIt(t *testing.T) {
	s, root := guarded(t)
	root.must("d", cmd("insert", "c", "documents", list(cmd("_id", 1))))
	bob := loggedIn(t, s, root, "admin", "bob", list("restore"))
	reads := list(lookup("c"))
	bob.must("d", cmd("create", "v", "viewOn", "c", "pipeline", reads))
	bob.must("d", cmd("collMod", "v", "viewOn", "c", "pipeline", list()))
	bob.refused("d", cmd("find", "v"), 13)
	cam := loggedIn(t, s, root, "admin", "cam", list("dbAdmin", cmd("role", "dbAdmin", "db", "d")))
	cam.must("d", cmd("create", "of cam", "viewOn", "c", "pipeline", reads))
	cam.refused("admin", cmd("create", "v", "viewOn", "system.users", "pipeline", list()), 13)
	cam.refused("admin", cmd("create", "v", "viewOn", "c", "pipeline", list(lookup("system.users"))), 13)
	bob.refused("d", cmd("create", "w", "viewOn", "c", "pipeline", list(lookup("system.js"))), 13)
	bob.refused("d", cmd("create", "w", "viewOn", "c", "pipeline", list(lookup(cmd("db", "e", "coll", "c")))), 13)
	root.must("d", cmd("createRole", "reads", "privileges", list(on("d", "v", "find")), "roles", list()))
	root.must("admin", cmd("grantRolesToUser", "bob", "roles", list(cmd("role", "reads", "db", "d"))))
	bob.must("d", cmd("find", "v"))
	bob.refused("d", cmd("collMod", "v", "viewOn", "c", "pipeline", reads), 13)
}

// Users that are changed by entries of an oplog are changed at once, whichever database the command was sent to.
func TestEntriesOfAnOplogChangeUsersAtOnce(t *testing.T) {
	for _, db := range []string{"admin", "elsewhere"} {
		s, root := guarded(t)
		ann := loggedIn(t, s, root, "d", "ann", list("read"))
		root.must("admin", cmd("createRole", "applies", "privileges", list(bson.D{{Key: "resource", Value: cmd("anyResource", true)},
			{Key: "actions", Value: list("anyAction")}}), "roles", list()))
		root.must("admin", cmd("grantRolesToUser", "root", "roles", list("applies")))
		ann.must("d", cmd("find", "c"))
		root.must(db, cmd("applyOps", list(cmd("op", "u", "ns", "admin.system.users", "o2", cmd("_id", "d.ann"), "o", cmd("$set", cmd("roles", list()))))))
		if code := codeIn(ann.run("d", cmd("find", "c"))); code != 13 {
			t.Errorf("by applyOps on %s: code %d", db, code)
		}
	}
}

// Texts of clients are cut between characters: an answer with half of one could not be read.
func TestTextsAreCutBetweenCharacters(t *testing.T) {
	text := "x"
	for range 100 {
		text += "\u00e9"
	}
	c := dial(t, newServer(t, nil))
	reply := c.refused("admin", cmd("saslStart", 1, "mechanism", text, "payload", []byte("n,,n=a,r=b")), 334)
	if message := textIn(reply, "errmsg"); message == "" || string([]rune(message)) != message {
		t.Errorf("%q", message)
	}
}
