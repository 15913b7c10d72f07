package mongo

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document"
)

// The first user is made together with the indexes of users and roles, and the version of these, which mongodump and mongorestore look for. Where
// that failed on its way, those that were missing were never made: the next one took them for being there.
func TestWhatUsersNeedIsMadeAfterAFailure(t *testing.T) {
	s := newServer(t, nil)
	c, admin := dial(t, s), s.store.Database(adminDB)
	roles := admin.Lookup(rolesCollection)
	role := func(id int) bson.D {
		return bson.D{{Key: "_id", Value: id}, {Key: "role", Value: "r"}, {Key: "db", Value: "d"}}
	}
	if _, err := roles.InsertMany(t.Context(), []bson.D{role(1), role(2)}, nil); err != nil {
		t.Fatal(err)
	}
	user := cmd("createUser", "u", "pwd", "x", "roles", bson.A{})
	c.refused("d", user, int32(document.DuplicateKey)) // of the index of roles
	if _, err := roles.Delete(t.Context(), role(2), nil); err != nil {
		t.Fatal(err)
	}
	c.must("d", user)
	for _, name := range []string{usersCollection, rolesCollection} {
		if list, err := admin.Lookup(name).Indexes(t.Context()); len(list) != 2 || err != nil {
			t.Errorf("%s has %d indexes, %v", name, len(list), err)
		}
	}
	if version, err := admin.Lookup(versionCollection).Get(t.Context(), "authSchema"); err != nil {
		t.Errorf("the version: %s, %v", version, err)
	}
}
