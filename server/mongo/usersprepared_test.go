package mongo

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// The first user is made together with the indexes of users and roles, and the document that says how these are stored, which
// mongodump and mongorestore look for. Where that failed on its way, what was missing was once never made: the next user was
// taken to mean that it is there.
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

// The same holds after a power cut on the way: mongorestore does not know how users are stored that come from where no document
// says so.
func TestWhatUsersNeedIsMadeAfterAPowerCut(t *testing.T) {
	fs := memfs.New()
	faults := faultfs.New(fs)
	s := serverOn(t, faults)
	var left []*memfs.FS
	faults.OnCall(func(faultfs.Op, string) error {
		left = append(left, fs.CrashImage(memfs.Policy{}))
		return nil
	})
	dial(t, s).must("d", cmd("createUser", "eve", "pwd", "x", "roles", list("read")))
	faults.OnCall(nil)
	for i, image := range left {
		c := dial(t, serverOn(t, image))
		c.must("d", cmd("createUser", "adam", "pwd", "x", "roles", list("read")))
		if batch := c.must("admin", cmd("find", "system.version", "filter", cmd("_id", "authSchema"))).Lookup("cursor", "firstBatch").String(); batch == "[]" {
			t.Errorf("after call %d of %d: nothing says how users are stored", i, len(left))
		}
		indexes, err := c.must("admin", cmd("listIndexes", "system.roles")).Lookup("cursor", "firstBatch").Array().Values()
		if err != nil || len(indexes) != 2 {
			t.Errorf("after call %d of %d: roles have the indexes %v, %v", i, len(left), indexes, err)
		}
	}
}
