package mongo

import (
	"crypto/sha256"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// sessionOf returns the session that inSession names with a letter; nil when it is not there.
func sessionOf(s *Server, letter byte) *session {
	s.sessions.mu.Lock()
	defer s.sessions.mu.Unlock()
	return s.sessions.byID[string([]byte{15: letter})]
}

// lsids is what endSessions and killSessions are told.
func lsids(letter byte) bson.A {
	return bson.A{inSession(letter, nil)[0].Value}
}

// Whoever has found a session, and waits for it, takes the next one of its id when it has ended meanwhile: what would begin in one that is in no
// table any more, nobody would end.
func TestASessionThatEndsBeforeItsCommandRunsIsBegunAnew(t *testing.T) {
	s := newServer(t, nil)
	c := dial(t, s)
	c.must("d", inSession('s', cmd("find", "c")))
	before := sessionOf(s, 's')
	late := &request{server: s, session: before, op: &operation{}}
	c.must("d", cmd("endSessions", lsids('s')))
	if sessionOf(s, 's') != nil {
		t.Error("the session is there after its end")
	}
	after, err := late.lockSession()
	if err != nil {
		t.Fatal(err)
	}
	after.mu.Unlock()
	if after == before || after != sessionOf(s, 's') || late.session != after || late.op.session.Load() != after {
		t.Error("the command does not run in the session that is in the table")
	}
}

// However transactions that start and the end of their session meet, none stays open.
func TestNoTransactionOutlivesItsSession(t *testing.T) {
	for _, how := range []string{"endSessions", "killSessions"} {
		t.Run(how, func(t *testing.T) {
			s := newServer(t, nil)
			starting, ending := dial(t, s), dial(t, s)
			starting.must("d", cmd("create", "c"))
			stop := make(chan struct{})
			var ended sync.WaitGroup
			ended.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						ending.must("admin", cmd(how, lsids('s')))
					}
				}
			})
			for number := range int64(2000) {
				starting.run("d", inTransaction('s', number, cmd("find", "c"), "startTransaction", true))
			}
			close(stop)
			ended.Wait()
			ending.must("admin", cmd(how, lsids('s')))
			if n := s.transactions.open.Load(); n != 0 {
				t.Errorf("%d transactions are open", n)
			}
		})
	}
}

// Cursors end with the transaction that they read in, and with their session, also those that wait for their client for as long as it takes.
func TestCursorsEndWithWhatTheyAreOf(t *testing.T) {
	s := newServer(t, nil)
	c := dial(t, s)
	c.must("d", cmd("insert", "c", "documents", bson.A{cmd("_id", 1), cmd("_id", 2), cmd("_id", 3)}))
	find := cmd("find", "c", "batchSize", 1)
	open := func() int {
		n, _, _ := s.cursors.counts()
		return n
	}
	for i, end := range []string{"commitTransaction", "abortTransaction"} {
		number := int64(i)
		id := c.must("d", inSession('t', find)).Lookup("cursor", "id").Int64()
		c.must("d", inTransaction('t', number, find, "startTransaction", true))
		if n := open(); n != 2 {
			t.Fatalf("%d cursors are open", n)
		}
		c.must("admin", inTransaction('t', number, cmd(end, 1)))
		if n := open(); n != 1 {
			t.Errorf("%d cursors are open after %s", n, end)
		}
		c.must("d", inSession('t', cmd("getMore", id, "collection", "c")))
	}
	for _, end := range []func(){
		func() { c.must("d", cmd("endSessions", lsids('s'))) },
		func() { c.must("d", cmd("killSessions", lsids('s'))) },
		func() { s.sessions.expire(time.Now().Add(time.Hour)) },
	} {
		id := c.must("d", inSession('s', with(find, "noCursorTimeout", true))).Lookup("cursor", "id").Int64()
		s.cursors.expire(time.Now().Add(24 * time.Hour))
		if n := open(); n != 1 {
			t.Fatalf("%d cursors are open", n)
		}
		end()
		if n := open(); n != 0 {
			t.Errorf("%d cursors are open after their session has ended", n)
		}
		c.refused("d", inSession('s', cmd("getMore", id, "collection", "c")), int32(codeCursorNotFound))
	}
}

// A command may take longer than a session may be idle: what it opens has a session still.
func TestSessionsOfCommandsThatRunDoNotEnd(t *testing.T) {
	s := newServer(t, &Options{TestCommands: true})
	c, other := dial(t, s), dial(t, s)
	c.must("admin", cmd("configureFailPoint", "failCommand", "mode", cmd("times", 1),
		"data", cmd("failCommands", bson.A{"find"}, "blockConnection", true, "blockTimeMS", 3_600_000)))
	body, err := bson.Marshal(append(inSession('s', cmd("find", "c")), bson.E{Key: "$db", Value: "d"}))
	if err != nil {
		t.Fatal(err)
	}
	c.send(0, body)
	for x := sessionOf(s, 's'); x == nil || !s.ops.sessions()[x]; x = sessionOf(s, 's') { // it is there before it is known to be that of the command
		other.must("admin", cmd("ping", 1))
	}
	s.sessions.expire(time.Now().Add(time.Hour))
	if sessionOf(s, 's') == nil {
		t.Error("the session has ended while its command runs")
	}
	other.must("admin", cmd("killSessions", lsids('s')))
	if reply := c.receive(); codeIn(reply) != 11601 {
		t.Errorf("the command of a session that is killed: %s", reply)
	}
	if sessionOf(s, 's') != nil {
		t.Error("the session is there after it was killed, and has written nothing")
	}
}

// Who ends sessions of some ends no others, and who says it in a way that is not understood ends none.
func TestKillAllSessionsEndsThoseThatItNames(t *testing.T) {
	s, root := guarded(t)
	users := map[string]*testClient{}
	for _, name := range []string{"ann", "bob"} {
		users[name] = loggedIn(t, s, root, "d", name, bson.A{"readWrite"})
	}
	hash := func(name string) bson.Binary {
		sum := sha256.Sum256([]byte(name))
		return bson.Binary{Data: sum[:]}
	}
	lsid := func(letter byte, name string) bson.D {
		return append(lsids(letter)[0].(bson.D), bson.E{Key: "uid", Value: hash(name)})
	}
	const all, pattern = "killAllSessions", "killAllSessionsByPattern"
	number := int64(0)
	for _, test := range []struct {
		command bson.D
		left    string // of ann's sessions a and b, and bob's a
		code    int32
	}{
		{cmd(all, bson.A{}), "", 0},
		{cmd(all, bson.A{cmd("user", "ann", "db", "d")}), "bob a", 0},
		{cmd(all, bson.A{cmd("user", "bob", "db", "d")}), "ann a, ann b", 0},
		{cmd(all, bson.A{cmd("user", "ann", "db", "d"), cmd("user", "bob", "db", "d")}), "", 0},
		{cmd(all, bson.A{cmd("user", "ann", "db", "admin")}), "ann a, ann b, bob a", 11},
		{cmd(all, bson.A{cmd("user", "ann")}), "ann a, ann b, bob a", 40414},
		{cmd(all, bson.A{cmd("user", "ann", "db", 1)}), "ann a, ann b, bob a", 14},
		{cmd(all, bson.A{cmd("user", "ann", "db", "d", "x", 1)}), "ann a, ann b, bob a", 40415},
		{cmd(all, bson.A{1}), "ann a, ann b, bob a", 14},
		{cmd(pattern, bson.A{}), "", 0},
		{cmd(pattern, bson.A{bson.D{}}), "", 0},
		{cmd(pattern, bson.A{cmd("lsid", lsid('a', "ann@d"))}), "ann b, bob a", 0},
		{cmd(pattern, bson.A{cmd("lsid", lsid('a', "ann@d")), cmd("uid", hash("bob@d"))}), "ann b", 0},
		{cmd(pattern, bson.A{cmd("lsid", lsid('a', ""))}), "ann a, ann b, bob a", 0},
		{cmd(pattern, bson.A{cmd("uid", hash("ann@d"))}), "bob a", 0},
		{cmd(pattern, bson.A{cmd("users", bson.A{cmd("user", "ann", "db", "d")})}), "ann a, ann b, bob a", 115},
		{cmd(pattern, bson.A{cmd("lsid", lsids('a')[0])}), "ann a, ann b, bob a", 40414},
		{cmd(pattern, bson.A{cmd("uid", 1)}), "ann a, ann b, bob a", 14},
		{cmd(pattern, bson.A{cmd("uid", bson.Binary{Data: []byte("short")})}), "ann a, ann b, bob a", 12},
		{cmd(pattern, bson.A{cmd("x", 1)}), "ann a, ann b, bob a", 40415},
	} {
		number++
		for name, letters := range map[string]string{"ann": "ab", "bob": "a"} {
			for _, letter := range []byte(letters) {
				users[name].must("d", inTransaction(letter, number, cmd("find", "c"), "startTransaction", true))
			}
		}
		if reply := root.run("admin", test.command); codeIn(reply) != test.code {
			t.Errorf("%v: %s", test.command, reply)
		}
		left := ""
		for _, which := range []string{"ann a", "ann b", "bob a"} {
			there := running(s, string([]byte{15: which[4]})+digestOf(which[:3], "d"))
			if there && left != "" {
				left += ", "
			}
			if there {
				left += which
			}
		}
		if left != test.left {
			t.Errorf("%v leaves %q, want %q", test.command, left, test.left)
		}
	}
	nobody := newServer(t, nil)
	c := dial(t, nobody)
	c.must("d", inTransaction('n', 1, cmd("find", "c"), "startTransaction", true))
	c.must("admin", cmd(pattern, bson.A{cmd("uid", hash(""))}))
	if running(nobody, string([]byte{15: 'n'})) {
		t.Error("the transaction of a session of nobody goes on")
	}
}

// running reports whether a session has an open transaction.
func running(s *Server, id string) bool {
	s.sessions.mu.Lock()
	x := s.sessions.byID[id]
	s.sessions.mu.Unlock()
	if x == nil {
		return false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.txn != nil && x.txn.state == txnRunning
}

// What a session has written is known after it was killed: sent again it is not carried out twice.
func TestKilledSessionsKnowTheirWrites(t *testing.T) {
	s := newServer(t, nil)
	c := dial(t, s)
	c.must("d", cmd("insert", "c", "documents", bson.A{cmd("_id", 1, "n", 0)}))
	increment := with(inSession('w', cmd("update", "c", "updates", bson.A{cmd("q", cmd("_id", 1), "u", cmd("$inc", cmd("n", 1)))})), "txnNumber", int64(1))
	for range 2 {
		c.must("d", increment)
		c.must("admin", cmd("killAllSessions", bson.A{}))
	}
	c.must("d", inTransaction('t', 1, cmd("update", "c", "updates", bson.A{cmd("q", cmd("_id", 1), "u", cmd("$inc", cmd("n", 10)))}), "startTransaction", true))
	for range 2 {
		c.must("admin", inTransaction('t', 1, cmd("commitTransaction", 1)))
		c.must("admin", cmd("killAllSessions", bson.A{}))
	}
	found := c.must("d", cmd("find", "c")).Lookup("cursor", "firstBatch", "0", "n")
	if n, _ := found.AsInt64OK(); n != 11 {
		t.Errorf("n is %v, want 11", found)
	}
}

// A validation that is interrupted at any moment is an error, and the server lives.
func TestValidateIsInterruptedAnywhere(t *testing.T) {
	s := newServer(t, nil)
	c := dial(t, s)
	var docs bson.A
	for i := range 2000 {
		docs = append(docs, cmd("_id", i, "a", i, "b", i))
	}
	c.must("d", cmd("insert", "c", "documents", docs))
	c.must("d", cmd("createIndexes", "c", "indexes", bson.A{cmd("key", cmd("a", 1), "name", "a"), cmd("key", cmd("b", 1), "name", "b")}))
	for ms := range 40 {
		if code := codeIn(c.run("d", cmd("validate", "c", "maxTimeMS", ms+1))); code != 0 && code != 50 {
			t.Errorf("after %d ms: code %d", ms+1, code)
		}
	}
}
