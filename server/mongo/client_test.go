package mongo

import (
	"net"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/server/wire"
	"github.com/pandodb/pando/vfs/memfs"
)

// newServer returns a server on an empty store in memory, which ends with the test.
func newServer(t testing.TB, o *Options) *Server {
	t.Helper()
	return newServerOf(t, pando.Durable, o)
}

// newServerOf is newServer with a profile.
func newServerOf(t testing.TB, profile pando.Profile, o *Options) *Server {
	t.Helper()
	storage := pando.Options{FS: memfs.New(), MemoryBytes: 8 << 20, Profile: profile}
	store, err := document.Open("db", &document.Options{Storage: storage, TTLInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(store, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// testClient speaks the protocol with a server over a pipe.
type testClient struct {
	t    testing.TB
	conn net.Conn
	r    *wire.Reader
	id   int32
}

// pipeEnd is an end of a pipe that says where it is connected to.
type pipeEnd struct {
	net.Conn
	remote net.Addr
}

func (p *pipeEnd) RemoteAddr() net.Addr { return p.remote }

// dial connects to a server, as from this machine.
func dial(t testing.TB, s *Server) *testClient { return dialFrom(t, s, "127.0.0.1") }

// dialFrom connects to a server as from an address.
func dialFrom(t testing.TB, s *Server, ip string) *testClient {
	t.Helper()
	near, far := net.Pipe()
	return serveOn(t, s, near, &pipeEnd{far, &net.TCPAddr{IP: net.ParseIP(ip), Port: 50_000}})
}

// serveOn lets the server serve one end of a connection, and returns a client on the other.
func serveOn(t testing.TB, s *Server, near, far net.Conn) *testClient {
	ended := make(chan struct{})
	go func() {
		s.ServeConn(far)
		close(ended)
	}()
	t.Cleanup(func() {
		_ = near.Close()
		<-ended
	})
	return &testClient{t: t, conn: near, r: wire.NewReader(near)}
}

// run sends a command and returns the answer.
func (c *testClient) run(db string, command bson.D) bson.Raw {
	c.t.Helper()
	body, err := bson.Marshal(append(append(bson.D{}, command...), bson.E{Key: "$db", Value: db}))
	if err != nil {
		c.t.Fatal(err)
	}
	c.send(0, body)
	return c.receive()
}

// send sends a message with a body.
func (c *testClient) send(flags uint32, body []byte) {
	c.t.Helper()
	c.id++
	if _, err := c.conn.Write(wire.AppendMsg(nil, c.id, 0, flags, bsoncore.Document(body))); err != nil {
		c.t.Fatal(err)
	}
}

// receive returns the next answer. It is the caller's own.
func (c *testClient) receive() bson.Raw {
	c.t.Helper()
	m, err := c.r.Read()
	if err != nil {
		c.t.Fatal(err)
	}
	return append(bson.Raw(nil), m.Body...)
}

// must runs a command that succeeds.
func (c *testClient) must(db string, command bson.D) bson.Raw {
	c.t.Helper()
	reply := c.run(db, command)
	if okOf(reply) != 1 {
		c.t.Fatalf("%v on %s: %s", command, db, reply)
	}
	return reply
}

// refused runs a command that fails with a code.
func (c *testClient) refused(db string, command bson.D, code int32) bson.Raw {
	c.t.Helper()
	reply := c.run(db, command)
	if got := codeIn(reply); okOf(reply) != 0 || got != code {
		c.t.Fatalf("%v on %s: code %d is wanted: %s", command, db, code, reply)
	}
	return reply
}

func okOf(reply bson.Raw) float64 {
	v, _ := reply.Lookup("ok").DoubleOK()
	return v
}

// codeIn returns the code of an answer, 0 of one without.
func codeIn(reply bson.Raw) int32 {
	v, _ := reply.Lookup("code").Int32OK()
	return v
}

// textIn returns a field of an answer that is a string.
func textIn(reply bson.Raw, path ...string) string {
	v, _ := reply.Lookup(path...).StringValueOK()
	return v
}
