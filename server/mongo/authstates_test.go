package mongo

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// scramTalk is a login with SCRAM-SHA-256 step by step, so that each step can be a wrong one.
type scramTalk struct {
	c           *testClient
	header      string // what the client says of channel binding
	bare        string // its first message
	serverFirst string
	id          int32
}

// beginScram sends the first message of a login.
func beginScram(c *testClient, header, user, nonce string) (*scramTalk, bson.Raw) {
	x := &scramTalk{c: c, header: header, bare: "n=" + user + ",r=" + nonce}
	reply := c.run("d", cmd("saslStart", 1, "mechanism", scramSHA256, "payload", []byte(header+x.bare), "options", bson.D{{Key: "skipEmptyExchange", Value: false}}))
	if okOf(reply) == 1 {
		_, payload := reply.Lookup("payload").Binary()
		x.serverFirst, x.id = string(payload), reply.Lookup("conversationId").Int32()
	}
	return x, reply
}

// final is the client's last message, with its proof of the password: RFC 5802, 3. header is what it says of channel binding now.
func (x *scramTalk) final(password, header string) string {
	x.c.t.Helper()
	parts := strings.Split(x.serverFirst, ",")
	salt, err1 := base64.StdEncoding.DecodeString(strings.TrimPrefix(parts[1], "s="))
	rounds, err2 := strconv.Atoi(strings.TrimPrefix(parts[2], "i="))
	salted, err3 := pbkdf2.Key(sha256.New, password, salt, rounds, sha256.Size)
	if err1 != nil || err2 != nil || err3 != nil {
		x.c.t.Fatal(err1, err2, err3)
	}
	mac := func(key []byte, text string) []byte {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(text))
		return h.Sum(nil)
	}
	without := "c=" + base64.StdEncoding.EncodeToString([]byte(header)) + "," + parts[0]
	proof := mac(salted, "Client Key")
	stored := sha256.Sum256(proof)
	for i, b := range mac(stored[:], x.bare+","+x.serverFirst+","+without) {
		proof[i] ^= b
	}
	return without + ",p=" + base64.StdEncoding.EncodeToString(proof)
}

// step sends a message of the login.
func (x *scramTalk) step(payload string) bson.Raw {
	x.c.t.Helper()
	return x.c.run("d", cmd("saslContinue", 1, "conversationId", x.id, "payload", []byte(payload)))
}

// strangers are the ways in which a connection is nobody's: how it comes there, by name. The user ann of d has the password pw.
func strangers(t *testing.T, s *Server, root *testClient) map[string]func() *testClient {
	const plain = "n,,"
	refused := func(reply bson.Raw) {
		t.Helper()
		if codeIn(reply) != 18 {
			t.Fatalf("a login that goes wrong: %s", reply)
		}
	}
	begun := func() *scramTalk {
		x, reply := beginScram(dial(t, s), plain, "ann", "abc")
		if okOf(reply) != 1 {
			t.Fatal(reply)
		}
		return x
	}
	removed := 0
	return map[string]func() *testClient{
		"before any login":         func() *testClient { return dial(t, s) },
		"in the middle of a login": func() *testClient { return begun().c },
		"before the last step of a login": func() *testClient {
			x := begun()
			if reply := x.step(x.final("pw", plain)); okOf(reply) != 1 {
				t.Fatal(reply)
			}
			return x.c
		},
		"after a wrong password": func() *testClient {
			x := begun()
			refused(x.step(x.final("wrong", plain)))
			return x.c
		},
		"after a replayed proof": func() *testClient {
			old := begun()
			proof := old.final("pw", plain)
			if reply := old.step(proof); okOf(reply) != 1 {
				t.Fatal(reply)
			}
			x := begun() // the client's nonce is the same, the server's is not
			refused(x.step(proof))
			return x.c
		},
		"after a proof with the nonce of another conversation": func() *testClient {
			x := begun()
			parts := strings.Split(begun().serverFirst, ",")
			x.serverFirst = strings.Join(append(parts[:1:1], strings.Split(x.serverFirst, ",")[1:]...), ",")
			refused(x.step(x.final("pw", plain)))
			return x.c
		},
		"after asking for a channel that is not bound": func() *testClient {
			x, reply := beginScram(dial(t, s), "p=tls-server-end-point,,", "ann", "abc")
			refused(reply)
			return x.c
		},
		"after speaking of another channel binding in the proof": func() *testClient {
			x := begun()
			refused(x.step(x.final("pw", "y,,")))
			return x.c
		},
		"after speaking for somebody else": func() *testClient {
			x, reply := beginScram(dial(t, s), "n,a=root,", "ann", "abc")
			refused(reply)
			return x.c
		},
		"after a logout": func() *testClient {
			c := dial(t, s)
			c.login("d", "ann", "pw", scramSHA256)
			c.must("d", cmd("logout", 1))
			return c
		},
		"after the user was removed": func() *testClient {
			removed++
			name := fmt.Sprint("gone", removed)
			c := loggedIn(t, s, root, "d", name, bson.A{"readWrite"})
			root.must("d", cmd("dropUser", name))
			return c
		},
	}
}

// TestStrangersMayDoWhatTheListSays: every command, in every state in which nobody is logged in, is refused unless it stands in
// testdata/strangers.txt.
func TestStrangersMayDoWhatTheListSays(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "strangers.txt"))
	if err != nil {
		t.Fatal(err)
	}
	free := strings.Fields(string(text))
	s, root := guarded(t)
	root.must("d", cmd("createUser", "ann", "pwd", "pw", "roles", bson.A{"readWrite"}, "mechanisms", bson.A{scramSHA256}))
	table := commandTable()
	for _, name := range free {
		if table[name] == nil {
			t.Errorf("testdata/strangers.txt names %s, which is no command", name)
		}
	}
	for state, reach := range strangers(t, s, root) {
		t.Run(state, func(t *testing.T) {
			c := reach()
			for _, name := range slices.Sorted(maps.Keys(table)) {
				db, target := "d", any("c")
				if table[name].admin {
					db, target = "admin", "d.c"
				}
				reply := c.run(db, cmd(name, target))
				allowed := codeIn(reply) != codeUnauthorizedNumber
				if want := slices.Contains(free, name); allowed != want {
					t.Errorf("%s: allowed is %t, and testdata/strangers.txt says %t: %s", name, allowed, want, reply)
				}
				if allowed { // it may have changed the state
					_ = c.conn.Close()
					c = reach()
				}
			}
		})
	}
	if n := s.Statistics().Sessions; n != 0 {
		t.Errorf("strangers have made %d sessions", n)
	}
}

// codeUnauthorizedNumber is what everything answers that needs a login.
const codeUnauthorizedNumber = 13

// TestSessionsOfOthers: whatever command somebody sends with the session, and the transaction, of another user, that user's stay as
// they are.
func TestSessionsOfOthers(t *testing.T) {
	s, root := guarded(t)
	ann := loggedIn(t, s, root, "d", "ann", bson.A{"readWrite"})
	bob := loggedIn(t, s, root, "d", "bob", bson.A{"readWrite"})
	lsid := bson.D{{Key: "id", Value: newUUID()}}
	in := func(d bson.D, more ...bson.E) bson.D {
		d = append(d, bson.E{Key: "lsid", Value: lsid}, bson.E{Key: "txnNumber", Value: int64(1)}, bson.E{Key: "autocommit", Value: false})
		return append(d, more...)
	}
	ann.must("d", cmd("create", "c"))
	ann.must("d", in(cmd("insert", "c", "documents", bson.A{bson.D{{Key: "_id", Value: "ann's"}}}), bson.E{Key: "startTransaction", Value: true}))
	table := commandTable()
	for _, name := range slices.Sorted(maps.Keys(table)) {
		if name == "logout" || name == "drop" || name == "dropDatabase" || name == "renameCollection" {
			continue // these end bob's login, or what ann writes to, as they may
		}
		db, target := "d", any("c")
		if table[name].admin {
			db, target = "admin", "d.c"
		}
		switch name {
		case "killSessions", "endSessions", "refreshSessions":
			target = bson.A{lsid}
		case "killAllSessions":
			target = bson.A{}
		}
		bob.run(db, in(cmd(name, target)))
		if name == "killSessions" || name == "endSessions" || name == "killAllSessions" {
			bob.run(db, cmd(name, target))
		}
	}
	if n, _ := bob.must("d", cmd("count", "c", "query", bson.D{{Key: "_id", Value: "ann's"}})).Lookup("n").Int32OK(); n != 0 {
		t.Error("somebody else has committed ann's transaction")
	}
	if n := len(ann.must("d", in(cmd("find", "c", "filter", bson.D{{Key: "_id", Value: "ann's"}}))).Lookup("cursor", "firstBatch").Array()); n <= 5 {
		t.Error("ann's transaction does not see what it has written")
	}
	ann.must("admin", in(cmd("commitTransaction", 1)))
	if n, _ := bob.must("d", cmd("count", "c", "query", bson.D{{Key: "_id", Value: "ann's"}})).Lookup("n").Int32OK(); n != 1 {
		t.Error("ann's transaction is lost")
	}
}
