package mongo

import (
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// A cursor reads on for who might open it now, as on a mongod: else a change stream told for ever of what its user may not see any more.
func TestCursorsEndWithPrivileges(t *testing.T) {
	s, root := guarded(t)
	root.must("d", cmd("insert", "c", "documents", list(bson.D{}, bson.D{}, bson.D{})))
	root.must("d", cmd("create", "other"))
	c := loggedIn(t, s, root, "d", "ann", bson.A{"read"})
	few := bson.D{{Key: "batchSize", Value: 1}}
	cursors := []struct {
		open       bson.D
		collection string
	}{
		{cmd("find", "c", "batchSize", 1), "c"},
		{cmd("aggregate", "c", "pipeline", list(stage("$match", bson.D{})), "cursor", few), "c"},
		{cmd("aggregate", "c", "pipeline", list(stage("$changeStream", bson.D{})), "cursor", few), "c"},
		{cmd("listCollections", 1, "cursor", few), "$cmd.listCollections"},
	}
	var more []bson.D
	for _, x := range cursors {
		id := c.must("d", x.open).Lookup("cursor", "id").Int64()
		more = append(more, cmd("getMore", id, "collection", x.collection, "batchSize", 1))
	}
	own := loggedIn(t, s, root, "d", "bob", bson.A{"read"})
	theirs := own.must("d", cursors[0].open).Lookup("cursor", "id").Int64()

	root.must("d", cmd("revokeRolesFromUser", "ann", "roles", bson.A{"read"}))
	for i, get := range more {
		if reply := c.run("d", get); codeIn(reply) != 13 {
			t.Errorf("%v is read on without the privilege: %s", cursors[i].open, reply)
		}
	}
	own.must("d", cmd("getMore", theirs, "collection", "c", "batchSize", 1))

	root.must("d", cmd("grantRolesToUser", "ann", "roles", bson.A{"readWrite"}))
	root.must("d", cmd("insert", "c", "documents", list(bson.D{})))
	for _, get := range more {
		c.must("d", get)
	}
}

// A cursor that does not time out, and has no session to end with, outlives its connection no longer than any other: a client could take all
// cursors that there may be, leave, and nobody would ever open one again.
func TestCursorsWithoutTimeoutEndBehindTheirConnection(t *testing.T) {
	s := newServer(t, nil)
	other, stays, leaves := dial(t, s), dial(t, s), dial(t, s)
	other.must("d", cmd("insert", "c", "documents", list(bson.D{}, bson.D{}, bson.D{})))
	find := cmd("find", "c", "batchSize", 1, "noCursorTimeout", true)
	kept, left := stays.must("d", find), leaves.must("d", find)
	_ = leaves.conn.Close()
	for s.open.Load() == 3 {
		other.must("admin", cmd("ping", 1))
	}
	more := func(reply bson.Raw) bson.D {
		return cmd("getMore", reply.Lookup("cursor", "id").Int64(), "collection", "c", "batchSize", 1)
	}
	other.must("d", more(left)) // it is there for who comes back
	s.cursors.expire(time.Now().Add(time.Hour))
	other.must("d", more(kept))
	other.refused("d", more(left), int32(codeCursorNotFound))
}
