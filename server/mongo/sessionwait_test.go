package mongo

import (
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// waiting sends a command that waits for its session, which another command has, and returns its number once it runs.
func (c *testClient) waiting(s *Server, command bson.D) int64 {
	c.t.Helper()
	body, err := bson.Marshal(append(command, bson.E{Key: "$db", Value: "d"}))
	if err != nil {
		c.t.Fatal(err)
	}
	if err := c.conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil { // or who waits for ever would do so here
		c.t.Fatal(err)
	}
	c.send(0, body)
	for {
		s.ops.mu.Lock()
		for id, op := range s.ops.byID {
			if op.session.Load() != nil {
				s.ops.mu.Unlock()
				return id
			}
		}
		s.ops.mu.Unlock()
	}
}

// busySession returns a server and a client, and a session in which a command runs until the test ends.
func busySession(t *testing.T, letter byte) (*Server, *testClient) {
	s := newServer(t, nil)
	c := dial(t, s)
	c.must("d", inSession(letter, cmd("find", "c")))
	busy := sessionOf(s, letter)
	busy.mu.Lock()
	t.Cleanup(busy.mu.Unlock)
	return s, c
}

// What waits for its session ends when its time is up, or when somebody ends it: neither was heeded before the session was free.
func TestWhoWaitsForASessionCanBeEnded(t *testing.T) {
	s, c := busySession(t, 's')
	write := inTransaction('s', 1, cmd("insert", "c", "documents", list(bson.D{})), "startTransaction", true)
	for i, command := range []bson.D{write, inSession('x', cmd("endSessions", lsids('s')))} {
		c.waiting(s, append(command, bson.E{Key: "maxTimeMS", Value: 20}))
		if reply := c.receive(); codeIn(reply) != 50 {
			t.Errorf("command %d, whose time is up: %s", i, reply)
		}
		if id := c.waiting(s, command); !s.ops.kill(id) {
			t.Errorf("command %d does not run", i)
		}
		if reply := c.receive(); codeIn(reply) != int32(codeInterrupted) {
			t.Errorf("command %d, killed: %s", i, reply)
		}
	}
	if n := s.transactions.open.Load(); n != 0 {
		t.Errorf("%d transactions are open", n)
	}
}

// A command that a shutdown ends tells drivers what may be sent again: the write, or the transaction. They do not go by the code.
func TestWhatAShutdownEndsMayBeSentAgain(t *testing.T) {
	insert := cmd("insert", "c", "documents", list(bson.D{}))
	for _, x := range []struct {
		command bson.D
		label   string
	}{
		{append(inSession('s', insert), bson.E{Key: "txnNumber", Value: int64(1)}), "RetryableWriteError"},
		{inTransaction('s', 1, insert, "startTransaction", true), "TransientTransactionError"},
	} {
		s, c := busySession(t, 's')
		c.waiting(s, x.command)
		s.stop()
		reply := c.receive()
		labels, _ := reply.Lookup("errorLabels").ArrayOK()
		first, err := labels.IndexErr(0)
		if codeIn(reply) != int32(codeShutdown) || err != nil || first.StringValue() != x.label {
			t.Errorf("%s is wanted: %s", x.label, reply)
		}
	}
}

// Who ends idle sessions does not wait for a command that has begun in one of them meanwhile: idle cursors, and clients that have gone, would
// not be looked for as long as that runs.
func TestNobodyWaitsForAnIdleSessionInWhichACommandBegins(t *testing.T) {
	s, _ := busySession(t, 's')
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.sessions.expire(time.Now().Add(time.Hour))
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Error("the end of idle sessions waits for a command")
	}
	if sessionOf(s, 's') == nil {
		t.Error("the session has ended while its command runs")
	}
}
