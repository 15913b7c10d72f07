package mongo

import (
	"slices"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

func on(db, collection string, actions ...string) bson.D {
	return bson.D{{Key: "resource", Value: bson.D{{Key: "db", Value: db}, {Key: "collection", Value: collection}}}, {Key: "actions", Value: actions}}
}

// managementCase is a command on users or roles, and its answer: that of a MongoDB server.
type managementCase struct {
	db      string
	command bson.D
	code    int32
	message string
}

func userCases() []managementCase {
	user := func(fields ...any) bson.D { return cmd("createUser", "u", append([]any{"pwd", "x"}, fields...)...) }
	return []managementCase{
		{"d", user("roles", list("readWrite", bson.D{{Key: "role", Value: "read"}, {Key: "db", Value: "other"}}), "customData", bson.D{{Key: "a", Value: 1}}), 0, ""},
		{"d", user("roles", list()), 51003, `User "u@d" already exists`},
		{"d", user(), 40414, "BSON field 'createUser.roles' is missing but a required field"},
		{"d", cmd("createUser", "v", "roles", list()), 2, "Must provide a 'pwd' field for all user documents, except those with '$external' as the user's source db"},
		{"d", cmd("createUser", "", "pwd", "x", "roles", list()), 2, "User document needs 'user' field to be non-empty"},
		{"d", cmd("createUser", "v", "pwd", "", "roles", list()), 2, "a password must not be empty"},
		{"d", cmd("createUser", "v", "pwd", "x", "roles", list("nope")), 31, "Could not find role: nope@d"},
		{"d", cmd("createUser", "v", "pwd", "x", "roles", list("root")), 31, "Could not find role: root@d"},
		{"d", cmd("createUser", "v", "pwd", "x", "roles", list(1)), 2, "Role name must be either a document or string"},
		{"d", cmd("createUser", "v", "pwd", "x", "roles", list(bson.D{{Key: "role", Value: "read"}})), 2, "RoleName must contain a field named: db"},
		{"d", cmd("createUser", "v", "pwd", "x", "roles", list(), "mechanisms", list("FOO")), 2, "Unknown auth mechanism 'FOO'"},
		{"d", cmd("createUser", "v", "pwd", "x", "roles", list(), "mechanisms", list()), 2, "mechanisms field must not be empty"},
		{"d", cmd("createUser", "v", "pwd", "x", "roles", list(), "digestPassword", false), 2, "Use of SCRAM-SHA-256 requires undigested passwords"},
		{"$external", cmd("createUser", "CN=a", "pwd", "x", "roles", list()), 2, "Cannot set the password for users defined on the '$external' database"},
		{"$external", cmd("createUser", "CN=a", "roles", list()), 0, ""},
		{"local", cmd("createUser", "v", "pwd", "x", "roles", list()), 2, "Cannot create users in the local database"},
		{"d", cmd("usersInfo", 1, "showPrivileges", true), 20, "Privilege or restriction details require exact-match usersInfo queries"},
		{"d", cmd("updateUser", "u"), 2, "Must specify at least one field to update in updateUser"},
		{"d", cmd("updateUser", "zz", "pwd", "y"), 11, "User zz@d not found"},
		{"d", cmd("updateUser", "u", "roles", list("nope")), 31, "Could not find role: nope@d"},
		{"d", cmd("updateUser", "u", "mechanisms", list(scramSHA1)), 0, ""},
		{"d", cmd("updateUser", "u", "mechanisms", list(scramSHA256)), 2, "mechanisms field must be a subset of previously set mechanisms"},
		{"d", cmd("grantRolesToUser", "u", "roles", list("dbAdmin", "read")), 0, ""},
		{"d", cmd("grantRolesToUser", "zz", "roles", list("dbAdmin")), 11, `Could not find user "zz" for db "d"`},
		{"d", cmd("grantRolesToUser", "u", "roles", list()), 2, `grantRolesToUser command requires a non-empty "roles" array`},
		{"d", cmd("revokeRolesFromUser", "u", "roles", list("nope")), 31, "Could not find role: nope@d"},
		{"d", cmd("dropUser", "zz"), 11, "User 'zz@d' not found"},
	}
}

func roleCases() []managementCase {
	role := func(name string, privileges, roles bson.A) bson.D {
		return cmd("createRole", name, "privileges", privileges, "roles", roles)
	}
	return []managementCase{
		{"d", role("r", list(on("d", "c", "find", "insert")), list("read")), 0, ""},
		{"d", role("r", list(), list()), 51002, `Role "r@d" already exists`},
		{"d", role("read", list(), list()), 2, "Cannot create roles with the same name as a built-in role"},
		{"d", cmd("createRole", "r2", "privileges", list()), 40414, "BSON field 'createRole.roles' is missing but a required field"},
		{"d", role("r2", list(on("other", "c", "find")), list()), 49, "Roles on the 'd' database cannot be granted privileges that target other databases or the cluster"},
		{"d", role("r2", list(on("d", "c", "bogus")), list()), 2, "Unrecognized action: bogus"},
		{"d", role("r2", list(on("d", "c")), list()), 9, "missing actions field"},
		{"d", role("r2", list(bson.D{{Key: "resource", Value: bson.D{{Key: "db", Value: "d"}}}, {Key: "actions", Value: list("find")}}), list()), 9,
			"resource must set both db and collection or neither, but not exactly one."},
		{"d", role("r2", list(), list("r")), 0, ""},
		{"d", cmd("grantRolesToRole", "r", "roles", list("r2")), 49, "Granting roles to r@d would introduce a cycle in the role graph"},
		{"d", cmd("updateRole", "r"), 2, "Must specify at least one field to update in updateRole"},
		{"d", cmd("updateRole", "zz", "roles", list()), 31, "Could not find role: zz@d"},
		{"d", cmd("dropRole", "zz"), 31, "Could not find role: zz@d"},
		{"d", cmd("dropRole", "read"), 2, "read@d is a built-in role and cannot be modified"},
		{"d", cmd("grantPrivilegesToRole", "r", "privileges", list(on("d", "c", "remove"), on("d", "", "find"))), 0, ""},
		{"d", cmd("revokePrivilegesFromRole", "r", "privileges", list(on("d", "c", "remove", "find"))), 0, ""},
	}
}

// TestManagement runs commands on users and roles one after the other.
func TestManagement(t *testing.T) {
	_, root := guarded(t)
	for i, x := range append(userCases(), roleCases()...) {
		reply := root.run(x.db, x.command)
		if codeIn(reply) != x.code || textIn(reply, "errmsg") != x.message {
			t.Errorf("%d: %v: %s", i, x.command, reply)
		}
	}
	got := root.must("d", cmd("usersInfo", "u", "showCustomData", false)).Lookup("users", "0", "roles").String()
	want := `[{"role": "readWrite","db": "d"},{"role": "read","db": "other"},{"role": "dbAdmin","db": "d"},{"role": "read","db": "d"}]`
	if got != want {
		t.Errorf("the roles of u:\n%s\n%s", got, want)
	}
	r := root.must("d", cmd("rolesInfo", "r", "showPrivileges", true)).Lookup("roles", "0", "privileges").String()
	want = `[{"resource": {"db": "d","collection": "c"},"actions": ["insert"]},{"resource": {"db": "d","collection": ""},"actions": ["find"]}]`
	if r != want {
		t.Errorf("the privileges of r:\n%s\n%s", r, want)
	}
	root.must("d", cmd("grantRolesToUser", "u", "roles", list("r")))
	root.must("d", cmd("dropRole", "r"))
	if got := root.must("d", cmd("usersInfo", "u")).Lookup("users", "0", "roles").String(); got != `[{"role": "readWrite","db": "d"},{"role": "read","db": "other"},{"role": "dbAdmin","db": "d"},{"role": "read","db": "d"}]` {
		t.Error("a role that was dropped is still had:", got)
	}
	if got := root.must("d", cmd("rolesInfo", "r2")).Lookup("roles", "0", "roles").String(); got != "[]" {
		t.Error("a role that was dropped is still inherited:", got)
	}
	if n := root.must("d", cmd("dropAllRolesFromDatabase", 1)).Lookup("n").Int32(); n != 1 {
		t.Error("roles dropped:", n)
	}
	if n := root.must("d", cmd("dropAllUsersFromDatabase", 1)).Lookup("n").Int32(); n != 1 {
		t.Error("users dropped:", n)
	}
}

// TestChangesCountAtOnce: what a user may do changes for connections that are there already.
func TestChangesCountAtOnce(t *testing.T) {
	s, root := guarded(t)
	ann := loggedIn(t, s, root, "d", "ann", bson.A{})
	find := cmd("find", "c")
	ann.refused("d", find, 13)
	for _, x := range []struct {
		why     string
		db      string
		command bson.D
		allowed bool
	}{
		{"a role is granted", "d", cmd("grantRolesToUser", "ann", "roles", list("read")), true},
		{"it is revoked", "d", cmd("revokeRolesFromUser", "ann", "roles", list("read")), false},
		{"a role is made", "d", cmd("createRole", "r", "privileges", list(), "roles", list()), false},
		{"and granted", "d", cmd("grantRolesToUser", "ann", "roles", list("r")), false},
		{"the role gets a privilege", "d", cmd("grantPrivilegesToRole", "r", "privileges", list(on("d", "c", "find"))), true},
		{"it loses it", "d", cmd("revokePrivilegesFromRole", "r", "privileges", list(on("d", "c", "find"))), false},
		{"the role gets a role", "d", cmd("grantRolesToRole", "r", "roles", list("readWrite")), true},
		{"the role is dropped", "d", cmd("dropRole", "r"), false},
		{"the user's document is written to", "admin", cmd("update", "system.users", "updates", list(cmd("q", bson.D{{Key: "user", Value: "ann"}},
			"u", stage("$set", bson.D{{Key: "roles", Value: list(bson.D{{Key: "role", Value: "read"}, {Key: "db", Value: "d"}})}})))), true},
		{"the user is dropped", "d", cmd("dropUser", "ann"), false},
		{"and made again", "d", cmd("createUser", "ann", "pwd", "pw", "roles", list("read")), false},
	} {
		root.must(x.db, x.command)
		if reply := ann.run("d", find); okOf(reply) == 1 != x.allowed {
			t.Errorf("%s: %s", x.why, reply)
		}
	}
	root.must("d", cmd("updateUser", "ann", "pwd", "new"))
	if reply := ann.steps("d", "ann", "pw", scramSHA256, true, false); codeIn(reply) != 18 {
		t.Error("the old password still counts:", reply)
	}
	ann.login("d", "ann", "new", scramSHA1)
	ann.must("d", find)
}

// TestChangesWhileOthersWork: what users may do changes while they and others are at work; in the end the last change counts.
func TestChangesWhileOthersWork(t *testing.T) {
	s, root := guarded(t)
	var wait sync.WaitGroup
	for i := range 3 {
		name := "user" + itoa(i)
		c := loggedIn(t, s, root, "d", name, bson.A{})
		boss := dial(t, s)
		boss.login("admin", "root", "secret", scramSHA256)
		wait.Go(func() {
			for range 50 {
				if reply := c.run("d", cmd("find", "c")); okOf(reply) != 1 && codeIn(reply) != 13 {
					t.Error(reply)
				}
			}
		})
		wait.Go(func() {
			for j := range 21 {
				verb := []string{"grantRolesToUser", "revokeRolesFromUser"}[j%2]
				if reply := boss.run("d", cmd(verb, name, "roles", list("read"))); okOf(reply) != 1 {
					t.Error(reply)
				}
			}
		})
		t.Cleanup(func() { c.must("d", cmd("find", "c")) })
	}
	wait.Wait()
}

// TestOwnPassword: users with the privilege change their own password, and nobody else's.
func TestOwnPassword(t *testing.T) {
	s, root := guarded(t)
	root.must("d", cmd("createRole", "self", "privileges", list(on("d", "", "changeOwnPassword", "changeOwnCustomData")), "roles", list()))
	ann := loggedIn(t, s, root, "d", "ann", bson.A{"self"})
	_ = loggedIn(t, s, root, "d", "bob", bson.A{})
	ann.must("d", cmd("updateUser", "ann", "pwd", "new", "customData", bson.D{{Key: "a", Value: 1}}))
	ann.refused("d", cmd("updateUser", "bob", "pwd", "new"), 13)
	ann.must("d", cmd("usersInfo", "ann"))
	ann.refused("d", cmd("usersInfo", "bob"), 13)
	ann.must("d", cmd("rolesInfo", "self"))
	ann.refused("d", cmd("rolesInfo", "read"), 13)
}

func TestListsShowWhatOneMaySee(t *testing.T) {
	s, root := guarded(t)
	for _, ns := range [][2]string{{"d", "c"}, {"d", "hidden"}, {"e", "c"}} {
		root.must(ns[0], cmd("insert", ns[1], "documents", list(bson.D{})))
	}
	root.must("d", cmd("createRole", "narrow", "privileges", list(on("d", "c", "find")), "roles", list()))
	ann := loggedIn(t, s, root, "d", "ann", bson.A{"narrow"})
	names := func(c *testClient, db string, command bson.D, path ...string) []string {
		values, _ := c.must(db, command).Lookup(path...).Array().Values()
		var out []string
		for _, v := range values {
			out = append(out, textIn(v.Document(), "name"))
		}
		return out
	}
	databases := cmd("listDatabases", 1)
	collections := cmd("listCollections", 1, "nameOnly", true, "authorizedCollections", true)
	if got := names(ann, "admin", databases, "databases"); !slices.Equal(got, []string{"d"}) {
		t.Error("databases:", got)
	}
	if got := names(root, "admin", databases, "databases"); !slices.Equal(got, []string{"admin", "d", "e", "local"}) {
		t.Error("databases:", got)
	}
	if got := names(ann, "d", collections, "cursor", "firstBatch"); !slices.Equal(got, []string{"c"}) {
		t.Error("collections:", got)
	}
}

func TestRestrictions(t *testing.T) {
	s, root := guarded(t)
	near := list(bson.D{{Key: "clientSource", Value: list("192.0.2.0/24", "2001:db8::1")}})
	root.must("d", cmd("createUser", "ann", "pwd", "pw", "roles", list(), "authenticationRestrictions", near))
	root.must("d", cmd("createRole", "narrow", "privileges", list(), "roles", list(), "authenticationRestrictions", near))
	root.must("d", cmd("createUser", "bob", "pwd", "pw", "roles", list("narrow")))
	for ip, code := range map[string]int32{"192.0.2.7": 0, "192.0.3.7": 18, "2001:db8::1": 0, "2001:db8::2": 18, "127.0.0.1": 18} {
		for _, user := range []string{"ann", "bob"} {
			if reply := dialFrom(t, s, ip).steps("d", user, "pw", scramSHA256, true, false); codeIn(reply) != code {
				t.Errorf("%s from %s: %s", user, ip, reply)
			}
		}
	}
	root.refused("d", cmd("updateUser", "ann", "authenticationRestrictions", list(bson.D{{Key: "clientSource", Value: list("here")}})), 2)
	root.refused("d", cmd("updateUser", "ann", "authenticationRestrictions", list(bson.D{{Key: "moon", Value: list("full")}})), 12)
	root.must("d", cmd("updateUser", "ann", "authenticationRestrictions", list()))
	root.must("d", cmd("usersInfo", "ann", "showAuthenticationRestrictions", true))
	_ = dial(t, s).must("admin", cmd("ping", 1))
	dial(t, s).login("d", "ann", "pw", scramSHA256)
}

// TestRestrictionsCountAtOnce: who may not log in from where a client is has no connection from there that was made before either.
func TestRestrictionsCountAtOnce(t *testing.T) {
	s, root := guarded(t)
	restricted := func(ranges ...string) bson.E {
		return bson.E{Key: "authenticationRestrictions", Value: list(bson.D{{Key: "clientSource", Value: ranges}})}
	}
	find := cmd("find", "c")
	for why, command := range map[string]bson.D{
		"of the user": append(cmd("updateUser", "ann"), restricted("192.0.3.0/24")),
		"of a role":   append(cmd("updateRole", "narrow"), restricted("192.0.3.0/24")),
	} {
		root.must("d", append(cmd("createRole", "narrow", "privileges", list(), "roles", list()), restricted("192.0.2.0/23")))
		root.must("d", cmd("createUser", "ann", "pwd", "pw", "roles", list("read", "narrow")))
		out, in := dialFrom(t, s, "192.0.2.7"), dialFrom(t, s, "192.0.3.7")
		for _, ann := range []*testClient{out, in} {
			ann.login("d", "ann", "pw", scramSHA256)
			ann.must("d", find)
		}
		root.must("d", command)
		if reply := out.run("d", find); codeIn(reply) != 13 {
			t.Errorf("%s, from elsewhere: %s", why, reply)
		}
		if reply := in.run("d", find); codeIn(reply) != 0 {
			t.Errorf("%s, from there: %s", why, reply)
		}
		root.must("d", cmd("dropUser", "ann"))
		root.must("d", cmd("dropRole", "narrow"))
	}
}

// TestRestore takes users over from another server as mongorestore does: it writes them elsewhere, and asks to merge.
func TestRestore(t *testing.T) {
	s, root := guarded(t)
	root.must("d", cmd("createRole", "r", "privileges", list(on("d", "c", "find")), "roles", list()))
	root.must("d", cmd("createUser", "ann", "pwd", "pw", "roles", list("r")))
	for _, name := range []string{"users", "roles"} {
		batch := root.must("admin", cmd("find", "system."+name)).Lookup("cursor", "firstBatch")
		root.must("admin", cmd("insert", "temp"+name, "documents", batch))
	}
	root.must("d", cmd("dropUser", "ann"))
	root.must("d", cmd("dropRole", "r"))
	root.must("d", cmd("createUser", "late", "pwd", "pw", "roles", list()))
	merge := cmd("_mergeAuthzCollections", 1, "tempUsersCollection", "admin.tempusers", "tempRolesCollection", "admin.temproles", "db", "")
	root.must("admin", append(merge, bson.E{Key: "drop", Value: false}))
	ann := dial(t, s)
	ann.login("d", "ann", "pw", scramSHA256)
	ann.must("d", cmd("find", "c"))
	ann.refused("admin", append(merge, bson.E{Key: "drop", Value: false}), 13)
	dial(t, s).login("d", "late", "pw", scramSHA256)
	root.must("admin", append(merge, bson.E{Key: "drop", Value: true}))
	if reply := dial(t, s).steps("d", "late", "pw", scramSHA256, true, false); codeIn(reply) != 18 {
		t.Error("a user who was not restored is still there:", reply)
	}
	root.must("admin", cmd("insert", "odd", "documents", list(bson.D{{Key: "user", Value: 1}})))
	root.refused("admin", cmd("_mergeAuthzCollections", 1, "tempUsersCollection", "admin.odd", "drop", true), 12)
}
