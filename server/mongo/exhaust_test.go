package mongo

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/server/wire"
)

// ask sends a command whose answers may follow one another.
func (c *testClient) ask(db string, command bson.D) {
	c.t.Helper()
	body, err := bson.Marshal(append(command, bson.E{Key: "$db", Value: db}))
	if err != nil {
		c.t.Fatal(err)
	}
	c.send(wire.ExhaustAllowed, body)
}

// read returns the next message.
func (c *testClient) read() *wire.Message {
	c.t.Helper()
	m, err := c.r.Read()
	if err != nil {
		c.t.Fatal(err)
	}
	return m
}

// untilDrained has the server shut down, and returns how many messages come until the connection ends that say that another one follows.
func (c *testClient) untilDrained(s *Server) (more int, err error) {
	drained := make(chan error, 1)
	go func() { drained <- s.Drain(c.t.Context()) }()
	for {
		m, err := c.r.Read()
		if err != nil {
			return more, <-drained
		}
		if m.Flags&wire.MoreToCome != 0 {
			more++
		}
	}
}

// TestHeartbeatsAreAnsweredOnceAndThenWait: a client that has heard of another server's topology is told of this one's at once, and from
// then on when something changes or its time is up, which a shutdown finds it waiting for.
func TestHeartbeatsAreAnsweredOnceAndThenWait(t *testing.T) {
	s := newServer(t, nil)
	c := dial(t, s)
	stale := cmd("processId", bson.ObjectID{1}, "counter", int64(1))
	c.ask("admin", cmd("hello", 1, "topologyVersion", stale, "maxAwaitTimeMS", int64(1<<31)))
	if m := c.read(); m.Flags&wire.MoreToCome == 0 || okOf(bson.Raw(m.Body)) != 1 {
		t.Fatalf("the first answer: %v", m)
	}
	if more, err := c.untilDrained(s); err != nil || more > 0 {
		t.Errorf("%d answers that are not the last one, and the end is %v", more, err)
	}
}

// TestHeartbeatsThatDoNotWaitAreAnsweredOnce: where there is no time to wait, answers do not follow one another.
func TestHeartbeatsThatDoNotWaitAreAnsweredOnce(t *testing.T) {
	s := newServer(t, nil)
	for wait, code := range map[int64]int32{0: 0, 1 << 62: 159, 1<<63 - 1: 159} {
		for _, known := range []bson.ObjectID{{1}, s.id} {
			c := dial(t, s)
			c.ask("admin", cmd("hello", 1, "topologyVersion", cmd("processId", known, "counter", int64(0)), "maxAwaitTimeMS", wait))
			if m := c.read(); m.Flags&wire.MoreToCome != 0 || codeIn(bson.Raw(m.Body)) != code {
				t.Errorf("for %d ms: flags %d, %s", wait, m.Flags, m.Body)
			}
			c.must("admin", cmd("ping", 1))
		}
	}
}

// TestAShutdownEndsTailsThatGoOn: a tail whose batches follow one another gets an empty last one, and keeps nobody waiting.
func TestAShutdownEndsTailsThatGoOn(t *testing.T) {
	s := newServer(t, nil)
	c := dial(t, s)
	c.must("d", cmd("create", "c", "capped", true, "size", 4096))
	c.must("d", cmd("insert", "c", "documents", bson.A{cmd("_id", 1)}))
	reply := c.must("d", cmd("find", "c", "tailable", true, "awaitData", true))
	c.ask("d", cmd("getMore", reply.Lookup("cursor", "id").Int64(), "collection", "c"))
	if more, err := c.untilDrained(s); err != nil || more > 0 {
		t.Errorf("%d batches that are not the last one, and the end is %v", more, err)
	}
}
