package mongo

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xdg-go/scram"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// cmd is a command: its name, what it is about, and further fields.
func cmd(name string, target any, fields ...any) bson.D {
	d := bson.D{{Key: name, Value: target}}
	for i := 0; i < len(fields); i += 2 {
		d = append(d, bson.E{Key: fields[i].(string), Value: fields[i+1]})
	}
	return d
}

// guarded returns a server that wants logins, and a client who has logged in as root.
func guarded(t testing.TB) (*Server, *testClient) {
	s := newServer(t, &Options{Auth: true})
	root := dial(t, s)
	root.must("admin", cmd("createUser", "root", "pwd", "secret", "roles", bson.A{"root"}, "mechanisms", bson.A{scramSHA256}))
	root.login("admin", "root", "secret", scramSHA256)
	return s, root
}

// steps runs the conversation of a login and returns the last answer.
func (c *testClient) steps(db, user, password, mechanism string, skipEmpty, speculate bool) bson.Raw {
	c.t.Helper()
	prepare, secret := scram.SHA256.NewClient, password
	if mechanism == scramSHA1 {
		prepare, secret = scram.SHA1.NewClientUnprepped, digestPassword(user, password)
	}
	x, err := prepare(user, secret, "")
	if err != nil {
		c.t.Fatal(err)
	}
	talk := x.NewConversation()
	first, err := talk.Step("")
	if err != nil {
		c.t.Fatal(err)
	}
	start := cmd("saslStart", 1, "mechanism", mechanism, "payload", []byte(first), "options", bson.D{{Key: "skipEmptyExchange", Value: skipEmpty}})
	var reply bson.Raw
	if speculate {
		hello := c.must("admin", cmd("hello", 1, "speculativeAuthenticate", append(start, bson.E{Key: "db", Value: db})))
		reply, _ = hello.Lookup("speculativeAuthenticate").DocumentOK()
	} else {
		reply = c.run(db, start)
	}
	for okOf(reply) == 1 && !reply.Lookup("done").Boolean() {
		_, payload := reply.Lookup("payload").Binary()
		answer := ""
		if !talk.Done() {
			if answer, err = talk.Step(string(payload)); err != nil {
				c.t.Fatalf("the server's answer: %v", err)
			}
		}
		reply = c.run(db, cmd("saslContinue", 1, "conversationId", reply.Lookup("conversationId").Int32(), "payload", []byte(answer)))
	}
	if okOf(reply) == 1 && skipEmpty {
		_, payload := reply.Lookup("payload").Binary()
		if _, err := talk.Step(string(payload)); err != nil || !talk.Valid() {
			c.t.Fatalf("the server does not prove that it knows the password: %v", err)
		}
	}
	return reply
}

func (c *testClient) login(db, user, password, mechanism string) {
	c.t.Helper()
	if reply := c.steps(db, user, password, mechanism, true, false); okOf(reply) != 1 {
		c.t.Fatalf("login of %s: %s", user, reply)
	}
}

// loggedIn makes a user with roles and returns a client who has logged in as that.
func loggedIn(t testing.TB, s *Server, root *testClient, db, user string, roles bson.A) *testClient {
	t.Helper()
	root.must(db, cmd("createUser", user, "pwd", "pw", "roles", roles, "mechanisms", bson.A{scramSHA256}))
	c := dial(t, s)
	c.login(db, user, "pw", scramSHA256)
	return c
}

func (c *testClient) whoami() string {
	users := c.must("admin", cmd("connectionStatus", 1)).Lookup("authInfo", "authenticatedUsers")
	values, _ := users.Array().Values()
	if len(values) == 0 {
		return ""
	}
	return textIn(values[0].Document(), "user") + "@" + textIn(values[0].Document(), "db")
}

// A driver tries SCRAM-SHA-256 with its handshake, before it knows which mechanisms the user has.
func TestSpeculationOnAMechanismThatTheUserLacks(t *testing.T) {
	s, root := guarded(t)
	root.must("d", cmd("createUser", "old", "pwd", "pw", "roles", bson.A{}, "mechanisms", bson.A{scramSHA1}))
	c := dial(t, s)
	start := cmd("saslStart", 1, "mechanism", scramSHA256, "payload", []byte("n,,n=old,r=abcdefgh"))
	hello := c.must("admin", cmd("hello", 1, "saslSupportedMechs", "d.old", "speculativeAuthenticate", append(start, bson.E{Key: "db", Value: "d"})))
	if v, err := hello.LookupErr("speculativeAuthenticate"); err == nil {
		t.Errorf("the handshake went on with %s", v)
	}
	c.login("d", "old", "pw", scramSHA1)
}

func TestLogin(t *testing.T) {
	s, root := guarded(t)
	root.must("d", cmd("createUser", "ann, =", "pwd", "pa,s=s\u00e9", "roles", bson.A{}))
	for _, mechanism := range []string{scramSHA1, scramSHA256} {
		for i := range 4 {
			skip, speculate := i&1 != 0, i&2 != 0
			t.Run(fmt.Sprintf("%s skip=%t speculate=%t", mechanism, skip, speculate), func(t *testing.T) {
				c := dial(t, s)
				if reply := c.steps("d", "ann, =", "pa,s=s\u00e9", mechanism, skip, speculate); okOf(reply) != 1 {
					t.Fatal(reply)
				}
				if who := c.whoami(); who != "ann, =@d" {
					t.Error("logged in as", who)
				}
				c.must("d", cmd("logout", 1))
				c.refused("d", cmd("find", "c"), 13)
			})
		}
	}
}

func TestFailedLoginsLookAlike(t *testing.T) {
	s, root := guarded(t)
	root.must("d", cmd("createUser", "ann", "pwd", "right", "roles", bson.A{}))
	root.must("d", cmd("createUser", "old", "pwd", "right", "roles", bson.A{}, "mechanisms", bson.A{scramSHA1}))
	c := dial(t, s)
	first := func(user, mechanism string) (salt string, rest string) {
		reply := c.must("d", cmd("saslStart", 1, "mechanism", mechanism, "payload", []byte("n,,n="+user+",r=abc")))
		_, payload := reply.Lookup("payload").Binary()
		parts := strings.Split(string(payload), ",")
		raw, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(parts[1], "s="))
		return string(raw), fmt.Sprint(len(parts[0]), len(raw), parts[2:])
	}
	for _, mechanism := range []string{scramSHA1, scramSHA256} {
		_, want := first("ann", mechanism)
		salt, got := first("nobody", mechanism)
		again, _ := first("nobody", mechanism)
		other, _ := first("nobody else", mechanism)
		if got != want || salt != again || salt == other {
			t.Errorf("%s: users who are not there are told apart: %s and %s", mechanism, got, want)
		}
		for _, x := range []struct{ user, password string }{{"ann", "wrong"}, {"nobody", "right"}, {"old", "wrong"}} {
			reply := dial(t, s).steps("d", x.user, x.password, mechanism, true, false)
			if codeIn(reply) != 18 || textIn(reply, "errmsg") != "Authentication failed." {
				t.Errorf("%v: %s", x, reply)
			}
		}
	}
	if reply := dial(t, s).steps("d", "old", "right", scramSHA256, true, false); codeIn(reply) != 18 {
		t.Errorf("a user without this mechanism: %s", reply)
	}
	for user, want := range map[string]string{"ann": "SCRAM-SHA-1 SCRAM-SHA-256", "old": "SCRAM-SHA-1", "nobody": "SCRAM-SHA-1 SCRAM-SHA-256"} {
		var list []string
		if err := c.must("admin", cmd("hello", 1, "saslSupportedMechs", "d."+user)).Lookup("saslSupportedMechs").Unmarshal(&list); err != nil || strings.Join(list, " ") != want {
			t.Errorf("%s logs in with %v, not %s", user, list, want)
		}
	}
}

func TestConversationsThatGoWrong(t *testing.T) {
	s, root := guarded(t)
	_ = loggedIn(t, s, root, "d", "ann", bson.A{})
	start := func(c *testClient) int32 {
		reply := c.must("d", cmd("saslStart", 1, "mechanism", scramSHA256, "payload", []byte("n,,n=ann,r=abc")))
		return reply.Lookup("conversationId").Int32()
	}
	c := dial(t, s)
	c.refused("d", cmd("saslContinue", 1, "conversationId", 1, "payload", []byte("x")), 17)
	c.refused("d", cmd("saslContinue", 1, "conversationId", start(c)+1, "payload", []byte("x")), 17)
	id := start(c)
	c.refused("d", cmd("saslContinue", 1, "conversationId", id, "payload", []byte("x")), 18)
	c.refused("d", cmd("saslContinue", 1, "conversationId", id, "payload", []byte("x")), 17)
	c.refused("d", cmd("saslStart", 1, "mechanism", scramSHA256, "payload", []byte("nonsense")), 18)
	c.refused("d", cmd("saslStart", 1, "mechanism", scramSHA256, "payload", bytes.Repeat([]byte("n"), 5000)), 18)
	c.refused("d", cmd("saslStart", 1, "mechanism", scramSHA256, "payload", "!"), 18)
	c.refused("d", cmd("saslStart", 1, "mechanism", scramSHA256), 40414)
	c.refused("d", cmd("saslStart", 1, "mechanism", "PLAIN", "payload", []byte("x")), 334)
	c.refused("$external", cmd("authenticate", 1, "mechanism", mechX509), 18)
	hello := c.must("admin", cmd("hello", 1, "speculativeAuthenticate", cmd("saslStart", 1, "mechanism", "PLAIN", "payload", []byte("x"))))
	if _, err := hello.LookupErr("speculativeAuthenticate"); err == nil {
		t.Error("a speculation that failed is mentioned")
	}
	// What has been proven, but not ended, is no login.
	id = start(c)
	c.refused("d", cmd("find", "c"), 13)
	c.refused("d", cmd("saslContinue", 1, "conversationId", id, "payload", []byte{}), 18)
	// One connection is for one user.
	c.login("d", "ann", "pw", scramSHA256)
	c.login("d", "ann", "pw", scramSHA256)
	if reply := c.steps("admin", "root", "secret", scramSHA256, true, false); codeIn(reply) != 5626700 {
		t.Error(reply)
	}
	if who := c.whoami(); who != "ann@d" {
		t.Error("logged in as", who)
	}
}

func TestFirstUser(t *testing.T) {
	s := newServer(t, &Options{Auth: true})
	make1 := cmd("createUser", "root", "pwd", "secret", "roles", bson.A{"root"})
	dialFrom(t, s, "192.0.2.1").refused("admin", make1, 13)
	c := dialFrom(t, s, "::1")
	c.refused("d", make1, 13)
	c.refused("admin", cmd("createRole", "x", "privileges", bson.A{}, "roles", bson.A{}), 13)
	c.refused("admin", cmd("find", "system.users"), 13)
	c.must("admin", make1)
	c.refused("admin", cmd("createUser", "root2", "pwd", "secret", "roles", bson.A{"root"}), 13)
	c.refused("admin", cmd("find", "system.users"), 13)
	c.login("admin", "root", "secret", scramSHA1)
	c.must("admin", cmd("find", "system.users"))
}

func TestEveryCommandHasARule(t *testing.T) {
	rules := commandRules()
	for name, c := range commandTable() {
		if rules[c.name] == nil {
			t.Errorf("nobody may run %s: it has no rule in commandRules", name)
		}
	}
}

// forAll are the commands that everybody who has logged in may run.
func forAll() []string {
	return []string{"hello", "isMaster", "ping", "buildInfo", "whatsmyuri", "connectionStatus", "saslStart", "saslContinue", "authenticate", "logout",
		"startSession", "endSessions", "refreshSessions", "killSessions", "commitTransaction", "abortTransaction", "listCommands", "features",
		"getLastError", "configureFailPoint", "testVersion2", "getMore", "killCursors", "listDatabases", "explain", "grantRolesToUser", "revokeRolesFromUser",
		"whatsmysni", "refreshLogicalSessionCacheNow", "reapLogicalSessionCacheNow", "grantRolesToRole", "revokeRolesFromRole", "grantPrivilegesToRole", "revokePrivilegesFromRole", "updateUser", "aggregate"}
}

// TestEveryCommandInEveryState sends every command before anybody has logged in, as a user who may do nothing, and as one who may do
// everything. What the commands themselves say of their arguments does not matter.
func TestEveryCommandInEveryState(t *testing.T) {
	s, root := guarded(t)
	nobody, poor := dial(t, s), loggedIn(t, s, root, "d", "poor", bson.A{})
	table := commandTable()
	names := make([]string, 0, len(table))
	for name := range table {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		c := table[name]
		db, target := "x", any("c")
		if c.admin {
			db, target = "admin", "x.c"
		}
		switch name {
		case "usersInfo", "rolesInfo":
			target = 1
		case "logout":
			target = 1 // of another database, where nobody is logged in
		}
		request := cmd(name, target)
		reply := nobody.run(db, request)
		if needs := codeIn(reply) == 13; needs == c.open {
			t.Errorf("%s before logging in: %s", name, reply)
		}
		if !c.open && textIn(reply, "errmsg") != "Command "+name+" requires authentication" {
			t.Errorf("%s before logging in: %s", name, reply)
		}
		reply = poor.run(db, request)
		denied := codeIn(reply) == 13 && strings.HasPrefix(textIn(reply, "errmsg"), "not authorized on "+db+" to execute command { "+name+":")
		if free := slices.Contains(forAll(), c.name); denied == free {
			t.Errorf("%s by a user without roles: %s", name, reply)
		}
		if reply = root.run(db, request); codeIn(reply) == 13 {
			t.Errorf("%s by root: %s", name, reply)
		}
	}
	if root.whoami() != "root@admin" || poor.whoami() != "poor@d" {
		t.Error("somebody was logged out")
	}
}

func TestSecretsAreNotShown(t *testing.T) {
	var log bytes.Buffer
	s := newServer(t, &Options{Auth: true, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	c := dial(t, s)
	c.must("admin", cmd("createUser", "root", "pwd", "hunter2", "roles", bson.A{"root"}))
	c.login("admin", "root", "hunter2", scramSHA256)
	poor := loggedIn(t, s, c, "d", "poor", bson.A{})
	c.must("d", cmd("profile", 2))
	var said strings.Builder
	for _, request := range []bson.D{
		cmd("createUser", "x", "pwd", "hunter2", "roles", bson.A{}), cmd("updateUser", "x", "pwd", "hunter2"),
		cmd("createUser", "x", "pwd", "hunter2\u0007", "roles", bson.A{}),
		cmd("explain", cmd("createUser", "x", "pwd", "hunter2", "roles", bson.A{})),
	} {
		said.WriteString(poor.run("d", request).String())
		said.WriteString(c.run("d", request).String())
	}
	_ = dial(t, s).steps("admin", "root", "hunter2 not", scramSHA1, true, false)
	said.WriteString(c.must("d", cmd("find", "system.profile")).String())
	c.must("d", cmd("profile", 0))
	if !strings.Contains(said.String(), "createUser") {
		t.Error("the profile is empty")
	}
	_ = s.Close()
	if all := said.String() + log.String(); strings.Contains(all, "hunter2") {
		t.Error("a password is told:", all)
	}
}

func TestCursorsAndSessionsBelongToUsers(t *testing.T) {
	s, root := guarded(t)
	ann := loggedIn(t, s, root, "d", "ann", bson.A{"readWrite"})
	bob := loggedIn(t, s, root, "e", "bob", bson.A{"read"})
	ann.must("d", cmd("insert", "c", "documents", bson.A{bson.D{}, bson.D{}, bson.D{}}))
	id := ann.must("d", cmd("find", "c", "batchSize", 1)).Lookup("cursor", "id").Int64()
	more, kill := cmd("getMore", id, "collection", "c", "batchSize", 1), cmd("killCursors", "c", "cursors", bson.A{id})
	bob.refused("d", more, 13)
	bob.refused("d", kill, 13)
	bob.refused("e", kill, 13) // where he may close those of others
	root.refused("d", more, 13)
	ann.must("d", more)
	ann.must("d", kill)
	lsid := bson.D{{Key: "id", Value: newUUID()}}
	ann.must("d", cmd("insert", "c", "documents", bson.A{bson.D{}}, "lsid", lsid, "txnNumber", int64(1), "startTransaction", true, "autocommit", false))
	end := cmd("commitTransaction", 1, "lsid", lsid, "txnNumber", int64(1), "autocommit", false)
	bob.refused("admin", end, 251)
	ann.must("admin", end)
}

// BenchmarkFailedLogin: what a failed login costs the server, with the user there and not. The two are to be alike.
func BenchmarkFailedLogin(b *testing.B) {
	s, root := guarded(b)
	root.must("d", cmd("createUser", "ann", "pwd", "right", "roles", bson.A{}))
	for _, user := range []string{"ann", "bob"} {
		b.Run(user, func(b *testing.B) {
			c := dial(b, s)
			for b.Loop() {
				first := c.must("d", cmd("saslStart", 1, "mechanism", scramSHA256, "payload", []byte("n,,n="+user+",r=abc")))
				_, payload := first.Lookup("payload").Binary()
				nonce, _, _ := strings.Cut(string(payload), ",")
				proof := "c=biws," + nonce + ",p=" + base64.StdEncoding.EncodeToString(make([]byte, 32))
				c.refused("d", cmd("saslContinue", 1, "conversationId", first.Lookup("conversationId").Int32(), "payload", []byte(proof)), 18)
			}
		})
	}
}

// A user, or a role, that a TTL index deletes is gone for those who have logged in, too.
func TestUsersWhoExpireAreLoggedOut(t *testing.T) {
	s, root := guarded(t)
	expiring := list(cmd("key", cmd("customData.until", 1), "name", "until", "expireAfterSeconds", 0))
	root.must("admin", cmd("createIndexes", "system.users", "indexes", expiring))
	root.must("d", cmd("createUser", "guest", "pwd", "x", "roles", bson.A{"read"}, "customData", cmd("until", time.Now().Add(-time.Hour))))
	c := dial(t, s)
	c.login("d", "guest", "x", scramSHA256)
	c.must("d", cmd("find", "c"))
	if n, err := s.store.DeleteExpired(t.Context()); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	for end := time.Now().Add(20 * time.Second); okOf(c.run("d", cmd("find", "c"))) == 1; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("a user who is gone still reads")
		}
	}
	root.must("d", cmd("find", "c"))
}
