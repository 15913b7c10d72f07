package mongo

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// TestWhoseSessionsAreListed: everybody sees their own, and who may see those of others gets those that they ask for, and no more. The codes are
// those of a mongod.
func TestWhoseSessionsAreListed(t *testing.T) {
	s, root := guarded(t)
	ann := loggedIn(t, s, root, "d", "ann", bson.A{"readWrite"})
	bob := loggedIn(t, s, root, "d", "bob", bson.A{})
	ann.must("d", inSession('a', cmd("find", "c")))
	ann.must("d", inSession('b', cmd("find", "c")))
	bob.must("d", inSession('a', cmd("ping", 1)))
	of := func(name string) bson.D { return cmd("user", name, "db", "d") }
	for _, x := range []struct {
		client   *testClient
		options  any
		sessions int
		code     int32
	}{
		{root, bson.D{}, 0, 0},
		{root, cmd("allUsers", true), 3, 0},
		{root, cmd("users", list(of("ann"))), 2, 0},
		{root, cmd("users", list(of("bob"), of("ann"))), 3, 0},
		{root, cmd("users", list(of("eve"))), 0, 0},
		{ann, bson.D{}, 2, 0},
		{ann, cmd("allUsers", false, "users", list()), 2, 0},
		{bob, cmd("users", list(of("bob"))), 1, 0},
		{bob, cmd("users", list(of("bob"), of("ann"))), 0, 13},
		{bob, cmd("allUsers", true), 0, 13},
		{ann, 1, 0, 14},
		{ann, cmd("allUsers", 1), 0, 14},
		{ann, cmd("users", list(1)), 0, 14},
		{ann, cmd("users", list(cmd("user", "ann"))), 0, 40414},
		{ann, cmd("other", 1), 0, 40415},
		{root, cmd("allUsers", true, "users", list(of("ann"))), 0, 12},
	} {
		for _, ask := range []struct {
			db      string
			command bson.D
		}{
			{"d", pipe(1, stage("$listLocalSessions", x.options))}, {"config", pipe("system.sessions", stage("$listSessions", x.options))},
		} {
			reply := x.client.run(ask.db, ask.command)
			batch, _ := reply.Lookup("cursor", "firstBatch").ArrayOK()
			rows, _ := batch.Values()
			if codeIn(reply) != x.code || len(rows) != x.sessions {
				t.Errorf("%v: %d sessions and code %d are wanted: %s", ask.command, x.sessions, x.code, reply)
			}
		}
	}
	root.refused("d", pipe("c", stage("$listSessions", bson.D{})), 73)
	row := bob.must("d", pipe(1, stage("$listLocalSessions", bson.D{}))).Lookup("cursor", "firstBatch", "0").Document()
	_, user, _ := row.Lookup("_id", "uid").BinaryOK()
	if want := digestOf("bob", "d"); string(user) != want {
		t.Errorf("the user of bob's session is %x, not %x: %s", user, want, row)
	}
}

// TestSessionsThatACursorLists: a stage that comes to its turn in a getMore lists the sessions of whose cursor it is, not of who has logged in
// since where it was opened.
func TestSessionsThatACursorLists(t *testing.T) {
	s, root := guarded(t)
	root.must("admin", cmd("createRole", "reader", "privileges", list(on("config", "system.sessions", "find")), "roles", bson.A{}))
	ann := loggedIn(t, s, root, "d", "ann", bson.A{cmd("role", "reader", "db", "admin")})
	bob := loggedIn(t, s, root, "d", "bob", bson.A{})
	bob.must("d", inSession('a', cmd("ping", 1)))
	union := stage("$unionWith", cmd("coll", "system.sessions", "pipeline", list(stage("$listSessions", bson.D{}))))
	open := bson.D{{Key: "aggregate", Value: "system.sessions"}, {Key: "pipeline", Value: list(union)}, {Key: "cursor", Value: cmd("batchSize", 0)}}
	id, _ := ann.must("config", open).Lookup("cursor", "id").Int64OK()
	other := dial(t, s)
	other.login("d", "ann", "pw", scramSHA256)
	ann.must("d", cmd("logout", 1))
	ann.login("d", "bob", "pw", scramSHA256)
	reply := other.must("config", cmd("getMore", id, "collection", "system.sessions"))
	batch, _ := reply.Lookup("cursor", "nextBatch").ArrayOK()
	if rows, _ := batch.Values(); len(rows) != 0 {
		t.Errorf("ann, who has no session, sees %s", batch)
	}
}
