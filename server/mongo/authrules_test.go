package mongo

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// stage is a pipeline stage.
func stage(name string, spec any) bson.D { return bson.D{{Key: name, Value: spec}} }

// pipe is an aggregate command.
func pipe(collection any, stages ...any) bson.D {
	return cmd("aggregate", collection, "pipeline", append(bson.A{}, stages...), "cursor", bson.D{})
}

func list(docs ...any) bson.A { return append(bson.A{}, docs...) }

// lookup is a stage that joins another collection.
func lookup(from any) bson.D {
	return stage("$lookup", bson.D{{Key: "from", Value: from}, {Key: "pipeline", Value: bson.A{}}, {Key: "as", Value: "x"}})
}

// allRoles are the roles that the tests of rules look at; none is a user without any.
const allRoles = "read readWrite dbAdmin userAdmin dbOwner none"

// ruleCase is a command, and the roles in the database d that may run it.
type ruleCase struct {
	db      string
	command bson.D
	allowed string
}

func commandCases() []ruleCase {
	update := func(fields ...any) bson.D {
		return cmd("update", "c", "updates", list(cmd("q", bson.D{}, append([]any{"u", stage("$set", bson.D{{Key: "a", Value: 1}})}, fields...)...)))
	}
	insert := cmd("insert", "c", "documents", list(bson.D{}))
	return []ruleCase{
		{"d", cmd("find", "c"), "read readWrite dbOwner"},
		{"e", cmd("find", "c"), ""},
		{"admin", cmd("find", "system.users"), ""},
		{"d", cmd("find", "system.profile"), "dbAdmin dbOwner"},
		{"d", cmd("count", "c"), "read readWrite dbOwner"},
		{"d", cmd("distinct", "c", "key", "a"), "read readWrite dbOwner"},
		{"d", cmd("explain", cmd("find", "c")), "read readWrite dbOwner"},
		{"d", cmd("explain", cmd("delete", "c", "deletes", list(cmd("q", bson.D{}, "limit", 0)))), "readWrite dbOwner"},
		{"d", insert, "readWrite dbOwner"},
		{"e", insert, ""},
		{"d", append(insert, bson.E{Key: "bypassDocumentValidation", Value: true}), "dbOwner"},
		{"d", update(), "readWrite dbOwner"},
		{"d", update("upsert", true), "readWrite dbOwner"},
		{"d", cmd("delete", "nothing", "deletes", list(cmd("q", bson.D{}, "limit", 0))), "readWrite dbOwner"},
		{"d", cmd("findAndModify", "c", "update", stage("$set", bson.D{{Key: "a", Value: 1}})), "readWrite dbOwner"},
		{"d", cmd("create", "made", "capped", true, "size", 4096), "readWrite dbAdmin dbOwner"},
		{"d", cmd("create", "view", "viewOn", "c", "pipeline", list(lookup("c"))), "readWrite dbAdmin dbOwner"},
		{"d", cmd("createIndexes", "c", "indexes", list(cmd("key", bson.D{{Key: "a", Value: 1}}, "name", "a_1"))), "readWrite dbAdmin dbOwner"},
		{"d", cmd("listIndexes", "c"), "read readWrite dbAdmin dbOwner"},
		{"d", cmd("listCollections", 1), "read readWrite dbAdmin dbOwner"},
		{"d", cmd("listCollections", 1, "nameOnly", true, "authorizedCollections", true), allRoles},
		{"d", cmd("collMod", "c", "validationLevel", "strict"), "dbAdmin dbOwner"},
		{"d", cmd("drop", "nothing"), "readWrite dbAdmin dbOwner"},
		{"d", cmd("validate", "c"), "dbAdmin dbOwner"},
		{"d", cmd("profile", 0), "dbAdmin dbOwner"},
		{"d", cmd("dbStats", 1), "read readWrite dbAdmin dbOwner"},
		{"admin", cmd("listDatabases", 1), allRoles},
		{"admin", cmd("listDatabases", 1, "authorizedDatabases", false), ""},
		{"admin", cmd("serverStatus", 1), ""},
		{"admin", cmd("renameCollection", "d.nothing", "to", "d.other"), "readWrite dbAdmin dbOwner"},
		{"admin", cmd("renameCollection", "d.nothing", "to", "e.other"), ""},
		{"d", cmd("usersInfo", 1), "userAdmin dbOwner"},
		{"d", cmd("rolesInfo", 1), "userAdmin dbOwner"},
		{"d", cmd("createUser", "made", "pwd", "x", "roles", list("read")), "userAdmin dbOwner"},
		{"d", cmd("createUser", "made2", "pwd", "x", "roles", list(bson.D{{Key: "role", Value: "read"}, {Key: "db", Value: "e"}})), ""},
		{"admin", cmd("createUser", "made3", "pwd", "x", "roles", list("root")), ""},
		{"d", cmd("grantRolesToUser", "made", "roles", list("readWrite")), "userAdmin dbOwner"},
		{"d", cmd("updateUser", "made", "pwd", "y"), "userAdmin dbOwner"},
		{"d", cmd("updateUser", "made", "roles", list("read")), ""},
	}
}

func pipelineCases() []ruleCase {
	return []ruleCase{
		{"d", pipe("c"), "read readWrite dbOwner"},
		{"d", pipe("c", lookup("c")), "read readWrite dbOwner"},
		{"d", pipe("c", lookup("system.profile")), "dbOwner"},
		{"d", pipe("c", lookup(bson.D{{Key: "db", Value: "e"}, {Key: "coll", Value: "c"}})), ""},
		{"d", pipe("c", stage("$facet", bson.D{{Key: "x", Value: list(lookup(bson.D{{Key: "db", Value: "e"}, {Key: "coll", Value: "c"}}))}})), ""},
		{"d", pipe("c", stage("$unionWith", bson.D{{Key: "coll", Value: "c"}, {Key: "pipeline", Value: list(lookup("system.profile"))}})), "dbOwner"},
		{"d", pipe("c", stage("$unionWith", "system.profile")), "dbOwner"},
		{"d", pipe("c", stage("$out", "made")), "readWrite dbOwner"},
		{"d", pipe("c", stage("$out", bson.D{{Key: "db", Value: "e"}, {Key: "coll", Value: "made"}})), ""},
		{"d", pipe("c", stage("$merge", "made")), "readWrite dbOwner"},
		{"d", pipe("c", stage("$merge", bson.D{{Key: "into", Value: bson.D{{Key: "db", Value: "e"}, {Key: "coll", Value: "c"}}}})), ""},
		{"d", pipe("c", stage("$collStats", bson.D{{Key: "storageStats", Value: bson.D{}}})), "read readWrite dbAdmin dbOwner"},
		{"d", pipe("c", stage("$indexStats", bson.D{})), "dbAdmin dbOwner"},
		{"d", pipe(1, stage("$documents", list(bson.D{}))), allRoles},
		{"d", pipe("c", stage("$changeStream", bson.D{})), "read readWrite dbOwner"},
		{"d", pipe(1, stage("$changeStream", bson.D{})), "read readWrite dbOwner"},
		{"admin", pipe(1, stage("$changeStream", bson.D{{Key: "allChangesForCluster", Value: true}})), ""},
		{"d", pipe("c", stage("$collStats", bson.D{{Key: "count", Value: bson.D{}}})), "read readWrite dbAdmin dbOwner"},
		{"admin", pipe(1, stage("$currentOp", bson.D{})), allRoles},
		{"admin", pipe(1, stage("$currentOp", cmd("allUsers", true))), ""},
		{"d", pipe(1, stage("$listLocalSessions", bson.D{})), allRoles},
		{"d", pipe(1, stage("$listLocalSessions", cmd("allUsers", true))), ""},
		{"d", pipe(1, stage("$listLocalSessions", cmd("users", list(cmd("user", "root", "db", "admin"))))), ""},
		{"config", pipe("system.sessions", stage("$listSessions", bson.D{})), allRoles},
		{"config", pipe("system.sessions", stage("$listSessions", cmd("allUsers", true))), ""},
	}
}

// TestWhatRolesAllow runs commands as users with one role each. The database d is theirs.
func TestWhatRolesAllow(t *testing.T) {
	s, root := guarded(t)
	root.must("d", cmd("insert", "c", "documents", list(bson.D{{Key: "_id", Value: 1}})))
	root.must("e", cmd("insert", "c", "documents", list(bson.D{{Key: "_id", Value: 1}})))
	clients := map[string]*testClient{}
	for _, role := range strings.Fields(allRoles) {
		roles := bson.A{role}
		if role == "none" {
			roles = bson.A{}
		}
		clients[role] = loggedIn(t, s, root, "d", role+"er", roles)
	}
	for _, x := range append(commandCases(), pipelineCases()...) {
		for _, role := range strings.Fields(allRoles) {
			reply := clients[role].run(x.db, x.command)
			want := slices.Contains(strings.Fields(x.allowed), role)
			if got := codeIn(reply) != 13; got != want {
				t.Errorf("%s: %v on %s: allowed %t, is to be %t: %s", role, x.command, x.db, got, want, reply)
			}
		}
	}
}

func TestResources(t *testing.T) {
	for _, x := range []struct {
		name           string
		of             resource
		db, collection string
		want           bool
	}{
		{"itself", namespace("d", "c"), "d", "c", true},
		{"another collection", namespace("d", "c"), "d", "b", false},
		{"the database of a collection", namespace("d", "c"), "d", "", false},
		{"all of a database", namespace("d", ""), "d", "c", true},
		{"a database", namespace("d", ""), "d", "", true},
		{"the system's collections", namespace("d", ""), "d", "system.js", false},
		{"another database", namespace("d", ""), "e", "c", false},
		{"a collection of all databases", namespace("", "c"), "local", "c", true},
		{"all databases", namespace("", ""), "d", "c", true},
		{"all databases, and users", namespace("", ""), "admin", "system.users", false},
		{"all databases, and the oplog", namespace("", ""), "local", "oplog.rs", false},
		{"everything", resource{AnyResource: true}, "admin", "system.users", true},
		{"the cluster", resource{Cluster: true}, "d", "c", false},
		{"all of a database, and buckets", namespace("d", ""), "d", "system.buckets.c", false},
		{"all buckets", resource{Buckets: new("")}, "d", "system.buckets.c", true},
		{"all buckets, and a collection", resource{Buckets: new("")}, "d", "c", false},
		{"all buckets of a database", resource{DB: new("d"), Buckets: new("")}, "e", "system.buckets.c", false},
		{"the buckets of one", resource{DB: new("d"), Buckets: new("c")}, "d", "system.buckets.c", true},
		{"the buckets of another", resource{Buckets: new("b")}, "d", "system.buckets.c", false},
	} {
		if got := x.of.covers(x.db, x.collection); got != x.want {
			t.Errorf("%s: %t", x.name, got)
		}
	}
}

// TestBuiltinRoles: what a role allows is known, sorted, and said once.
func TestBuiltinRoles(t *testing.T) {
	known := strings.Fields(knownActions)
	for _, role := range append(databaseRoles(), clusterRoles()...) {
		name := authName{Name: role, DB: adminDB}
		if !isBuiltin(name) || len(builtinPrivileges(name)) == 0 {
			t.Errorf("%s is no role", name)
		}
		seen := map[string]bool{}
		for _, p := range together(builtinPrivileges(name)) {
			raw, err := bson.Marshal(p.Resource)
			if err != nil || seen[string(raw)] {
				t.Errorf("%s has %s twice", name, bson.Raw(raw))
			}
			seen[string(raw)] = true
			for i, a := range p.Actions {
				if i > 0 && p.Actions[i-1] >= a {
					t.Errorf("%s on %s: %s is out of order", name, bson.Raw(raw), a)
				}
				if !slices.Contains(known, a) {
					t.Errorf("%s on %s: %s is no action", name, bson.Raw(raw), a)
				}
			}
		}
	}
	for _, a := range known {
		if g := (&grants{privileges: builtinPrivileges(authName{Name: "__system", DB: adminDB})}); !g.allows("admin", "system.users", a) || !g.allowsCluster(a) {
			t.Errorf("__system may not %s", a)
		}
	}
}

func TestPipelinesInPipelinesEnd(t *testing.T) {
	s, root := guarded(t)
	c := loggedIn(t, s, root, "d", "ann", bson.A{"read"})
	deep := bson.A{}
	for range maxPipelines + 2 {
		deep = list(stage("$unionWith", bson.D{{Key: "coll", Value: "c"}, {Key: "pipeline", Value: deep}}))
	}
	c.refused("d", pipe("c", deep...), 13)
	twice := stage("$lookup", bson.D{{Key: "from", Value: "c"}, {Key: "pipeline", Value: bson.A{}}, {Key: "from", Value: "system.profile"}, {Key: "as", Value: "x"}})
	if reply := c.run("d", pipe("c", twice)); okOf(reply) == 1 {
		t.Error("of a field that is there twice one was looked at and the other used")
	}
}

// BenchmarkAuthorise is what every command pays.
func BenchmarkAuthorise(b *testing.B) {
	for _, role := range []string{"readWrite", "root"} {
		g := &grants{privileges: together(builtinPrivileges(authName{Name: role, DB: adminDB}))}
		b.Run(fmt.Sprint(role, "/", len(g.privileges)), func(b *testing.B) {
			for b.Loop() {
				if !g.allows("admin", "c", "insert") {
					b.Fatal("it may")
				}
			}
		})
	}
}

// TestWhoMayMakeWhat: to write into a collection that is not there yet makes it, but no view, and a capped one takes more than to make a plain
// one, as on a mongod.
func TestWhoMayMakeWhat(t *testing.T) {
	s, root := guarded(t)
	plain, view, capped := cmd("create", "plain"), cmd("create", "view", "viewOn", "plain", "pipeline", bson.A{}), cmd("create", "capped", "capped", true, "size", 4096)
	for i, x := range []struct {
		action  string
		allowed []bson.D
	}{
		{"insert", []bson.D{plain}},
		{"createCollection", []bson.D{plain, view}},
		{"convertToCapped", nil},
	} {
		role, privilege := fmt.Sprint("role", i), cmd("resource", cmd("db", "d", "collection", ""), "actions", bson.A{"find", x.action})
		root.must("d", cmd("createRole", role, "roles", bson.A{}, "privileges", list(privilege)))
		c := loggedIn(t, s, root, "d", fmt.Sprint("user", i), bson.A{role})
		for _, command := range []bson.D{plain, view, capped} {
			allowed := slices.ContainsFunc(x.allowed, func(d bson.D) bool { return d[0] == command[0] })
			if reply := c.run("d", command); (codeIn(reply) != 13) != allowed {
				t.Errorf("%s: %v: allowed is to be %v: %s", x.action, command, allowed, reply)
			}
			root.run("d", cmd("drop", command[0].Value))
		}
	}
}
