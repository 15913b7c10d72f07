package fault

import (
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/server/mongo"
	"github.com/pandodb/pando/server/wire"
)

// wireClient is a client with documents of its own.
type wireClient struct {
	s      *wireStorm
	n      int
	rng    *rand.Rand
	conn   net.Conn
	ended  chan struct{} // closed when the server has done with the connection
	reader *wire.Reader
	number int64
	docs   map[int32][]int32 // by _id, what n may be, see absent; missing: absent
	again  map[int32]*resend
}

// resend is a write that failed and is to be carried out once.
type resend struct {
	command bson.D
	change  func(n int32) int32
	before  []int32
}

// dial connects the client.
func (c *wireClient) dial() {
	near, far := net.Pipe()
	ended := make(chan struct{})
	go func(server *mongo.Server) {
		server.ServeConn(fromHere{far})
		close(ended)
	}(c.s.server)
	c.conn, c.reader, c.ended = near, wire.NewReader(near), ended
}

// fromHere is an end of a pipe that is connected to this machine.
type fromHere struct{ net.Conn }

func (fromHere) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 50_000} }

// send sends a command and returns the answer, and what of it says that it failed; empty: nothing.
func (c *wireClient) send(command bson.D) (reply bson.Raw, failure string) {
	db := "test"
	if strings.HasSuffix(command[0].Key, "Transaction") {
		db = "admin"
	}
	body, err := bson.Marshal(append(slices.Clone(command), bson.E{Key: "$db", Value: db}))
	if err == nil {
		_, err = c.conn.Write(wire.AppendMsg(nil, 1, 0, 0, bsoncore.Document(body)))
	}
	if err != nil {
		c.s.fail(c.n, "send %v: %v", command, err)
		return nil, err.Error()
	}
	m, err := c.reader.Read()
	if err != nil {
		c.s.fail(c.n, "receive the answer to %v: %v", command, err)
		return nil, err.Error()
	}
	reply = bson.Raw(slices.Clone(m.Body))
	if ok, _ := reply.Lookup("ok").DoubleOK(); ok != 1 {
		return reply, reply.Lookup("errmsg").StringValue()
	}
	for _, key := range []string{"writeErrors", "writeConcernError"} {
		if v := reply.Lookup(key); v.Type != 0 {
			return reply, v.String()
		}
	}
	return reply, ""
}

// works sends a command that has to work. It is for when no other client is at work.
func (c *wireClient) works(command bson.D) bson.Raw {
	c.s.t.Helper()
	reply, failure := c.send(command)
	if failure != "" {
		c.s.fatalf("%v: %v", command, reply)
	}
	return reply
}

// tried sends a command that may fail where there is a fault, and reports whether it did.
func (c *wireClient) tried(command bson.D) (reply bson.Raw, failed bool) {
	reply, failure := c.send(command)
	if failure == "" {
		return reply, false
	}
	c.s.note("client %d, %v: %s", c.n, command, failure)
	if strings.Contains(failure, pando.ErrFailed.Error()) {
		c.s.fails.Store(true)
	}
	if c.s.fault == "" && !c.s.fails.Load() {
		c.s.fail(c.n, "%v: an error without a fault: %v", command, reply)
	}
	return reply, true
}

// may returns what n of a document may be.
func (c *wireClient) may(id int32) []int32 {
	if list := c.docs[id]; len(list) > 0 {
		return list
	}
	return []int32{absent}
}

// wrote notes a write that was carried out, or may have been.
func (c *wireClient) wrote(id int32, change func(n int32) int32, failed bool) {
	delete(c.again, id)
	before := c.may(id)
	var after []int32
	for _, n := range before {
		after = append(after, change(n))
	}
	if failed || c.s.cutting.Load() || c.s.fails.Load() { // in a database that has failed it may have found nothing to change
		after = append(after, before...)
	}
	slices.Sort(after)
	c.docs[id] = slices.Compact(after)
}

// sendAgain sends what failed, unless the document has been written otherwise meanwhile.
func (c *wireClient) sendAgain() {
	c.s.t.Helper()
	for _, id := range slices.Sorted(maps.Keys(c.again)) {
		r := c.again[id]
		c.works(r.command)
		c.docs[id] = r.before
		c.wrote(id, r.change, false)
	}
}

// lookAtAll reads the client's documents, in two ways, and compares them with the model.
func (c *wireClient) lookAtAll() {
	c.s.t.Helper()
	own := bson.D{{Key: "_id", Value: bson.D{{Key: "$gte", Value: c.first()}, {Key: "$lt", Value: c.first() + ownIDs}}}}
	for _, order := range []string{"_id", "n"} {
		found := map[int32]int32{}
		reply := c.works(bson.D{
			{Key: "find", Value: "c"}, {Key: "filter", Value: own}, {Key: "sort", Value: bson.D{{Key: order, Value: 1}}}, {Key: "batchSize", Value: 7},
		})
		for batch := "firstBatch"; ; batch = "nextBatch" {
			values, err := reply.Lookup("cursor", batch).Array().Values()
			c.s.must("batch", err)
			for _, v := range values {
				found[v.Document().Lookup("_id").Int32()] = v.Document().Lookup("n").Int32()
			}
			cursor := reply.Lookup("cursor", "id").Int64()
			if cursor == 0 {
				break
			}
			reply = c.works(bson.D{{Key: "getMore", Value: cursor}, {Key: "collection", Value: "c"}, {Key: "batchSize", Value: 50}})
		}
		for id := range c.docs {
			n, is := found[id]
			if !is {
				n = absent
			}
			if !slices.Contains(c.may(id), n) {
				c.s.fatalf("by %s, %d has %d, and may have %v", order, id, n, c.may(id))
			}
			delete(found, id)
		}
		if len(found) > 0 {
			c.s.fatalf("nobody wrote %v", found)
		}
	}
}
