package race

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/server/mongo"
	"github.com/pandodb/pando/server/wire"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestServerDoesEverythingAtOnce has clients send commands of all kinds, in sessions that they share, use cursors of one another, end what
// others began, and go away without a word; and closes the server in the midst of that. Each command is answered, by nothing that tells of an
// error inside, and what the clients had open does not stay.
func TestServerDoesEverythingAtOnce(t *testing.T) {
	fs := memfs.New()
	for round := range uint64(2) {
		serverChaos(t, fs, round)
	}
	s := openStore(t, fs, pando.Durable)
	validateAll(t, s)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func serverChaos(t *testing.T, fs *memfs.FS, round uint64) {
	store := openStore(t, fs, pando.Durable)
	s, err := mongo.New(store, &mongo.Options{MaxCursors: 50, MaxTransactions: 20, MaxMessageBytes: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var clients sync.WaitGroup
	shared := new(sharedCursors)
	for g := range uint64(10) {
		clients.Go(func() {
			c := &serverCall{t: t, s: s, rng: rand.New(rand.NewPCG(round, g)), cursors: shared, impatient: true}
			c.dial()
			defer c.hangUp()
			for c.anything() {
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	time.Sleep(serverChaosTime)
	closed := make(chan error, 1)
	go func() {
		var err error
		if round%2 == 0 { // the clients go first, and leave open what they have
			close(stop)
			clients.Wait()
			err = nothingOpen(t, s)
		}
		err = errors.Join(err, s.Close())
		clients.Wait()
		closed <- errors.Join(err, store.Close())
	}()
	ends(t, "Close, and the commands that run", closed)
}

// nothingOpen ends all sessions, and says what stays open behind them.
func nothingOpen(t *testing.T, s *mongo.Server) error {
	c := &serverCall{t: t, s: s, rng: rand.New(rand.NewPCG(0, 0)), cursors: new(sharedCursors)}
	c.dial()
	defer c.hangUp()
	c.send("admin", bson.D{{Key: "killAllSessions", Value: bson.A{}}})
	if open := s.Statistics(); open.Transactions != 0 || open.Connections != 1 {
		return fmt.Errorf("%d transactions are open, and %d connections", open.Transactions, open.Connections)
	}
	return nil
}

// sharedCursors are numbers of cursors that clients have seen.
type sharedCursors struct {
	mu   sync.Mutex
	list []openedCursor
}

// openedCursor is a cursor as the reply of a command tells of it.
type openedCursor struct {
	id         int64
	collection string
	session    bson.D // what the command had of a session
}

func (s *sharedCursors) add(c openedCursor) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.list = append(s.list, c); len(s.list) > 40 {
		s.list = s.list[20:]
	}
}

func (s *sharedCursors) any(rng *rand.Rand) (openedCursor, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.list) == 0 {
		return openedCursor{}, false
	}
	return s.list[rng.IntN(len(s.list))], true
}

// serverCall is a client.
type serverCall struct {
	t         *testing.T
	s         *mongo.Server
	rng       *rand.Rand
	cursors   *sharedCursors
	conn      net.Conn
	reader    *wire.Reader
	ended     chan struct{} // closed when the server has done with the connection
	gone      bool          // the server has closed
	faulty    bool          // the device may fail
	impatient bool          // gives commands little time, now and then
}

// dial connects.
func (c *serverCall) dial() {
	near, far := net.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.s.ServeConn(localEnd{far})
	}()
	c.conn, c.reader, c.ended = near, wire.NewReader(near), ended
}

// hangUp ends the connection, and waits until the server has seen it.
func (c *serverCall) hangUp() {
	_ = c.conn.Close() // what is on its way is lost, as it may be
	select {
	case <-c.ended:
	case <-time.After(time.Minute):
		c.t.Error("the server does not see that a connection has ended")
	}
}

// localEnd is an end of a pipe that is connected to this machine.
type localEnd struct{ net.Conn }

func (localEnd) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 50_000} }

// write sends a command. It reports false when the connection has ended.
func (c *serverCall) write(db string, command bson.D) bool {
	body, err := bson.Marshal(append(command, bson.E{Key: "$db", Value: db}))
	if err != nil {
		c.t.Errorf("%v: %v", command, err)
		return false
	}
	_, err = c.conn.Write(wire.AppendMsg(nil, 1, 0, 0, bsoncore.Document(body)))
	return err == nil
}

// send sends a command and returns the answer; nil: the server has closed. An error inside of the server is one of the test.
func (c *serverCall) send(db string, command bson.D) bson.Raw {
	if c.impatient && c.rng.IntN(4) == 0 && command[0].Key != "getMore" {
		command = append(command[:len(command):len(command)], bson.E{Key: "maxTimeMS", Value: 1 + c.rng.IntN(3)})
	}
	if !c.write(db, command) {
		c.gone = true
		return nil
	}
	m, err := c.reader.Read()
	if err != nil {
		c.gone = true
		return nil
	}
	reply := bson.Raw(m.Body)
	for _, failed := range []bson.RawValue{reply.Lookup("errmsg"), reply.Lookup("writeErrors"), reply.Lookup("writeConcernError")} {
		for _, never := range []string{"keyspace", "corrupt", "panic", "internal", "Internal", "UnknownError"} {
			if text := failed.String(); strings.Contains(text, never) && !(c.faulty && saysDevice(text)) {
				c.t.Errorf("%v: %s", command, text)
			}
		}
	}
	if id, ok := reply.Lookup("cursor", "id").AsInt64OK(); ok && id != 0 {
		ns := reply.Lookup("cursor", "ns").StringValue()
		_, collection, _ := strings.Cut(ns, ".")
		var session bson.D
		for _, e := range command {
			if e.Key == "lsid" || e.Key == "txnNumber" || e.Key == "autocommit" {
				session = append(session, e)
			}
		}
		c.cursors.add(openedCursor{id, collection, session})
	}
	return reply
}

// anything sends one of the commands, or goes away and comes back. It reports false when the server has closed.
func (c *serverCall) anything() bool {
	draw(c.rng, serverActions).do(c)
	return !c.gone
}
