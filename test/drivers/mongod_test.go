package drivers

import (
	"net"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/server/wire"
	"github.com/pandodb/pando/test/mongod"
)

// replicaSet starts MongoDB's own server, as a replica set of one member, and returns its address.
func replicaSet(t *testing.T) (addr string) {
	t.Helper()
	addr = mongod.Start(t, "--replSet", "rs0", "--oplogSize", "64")
	c := connect(t, addr)
	c.run("admin", bson.D{{Key: "replSetInitiate", Value: bson.D{{Key: "_id", Value: "rs0"}, {Key: "members", Value: bson.A{
		bson.D{{Key: "_id", Value: 0}, {Key: "host", Value: addr}}}}}}})
	for c.run("admin", bson.D{{Key: "hello", Value: 1}}).Lookup("isWritablePrimary").Boolean() != true {
		time.Sleep(50 * time.Millisecond)
	}
	return addr
}

// connection is one to a server of either make, on which commands are sent as they are.
type connection struct {
	t      *testing.T
	conn   net.Conn
	reader *wire.Reader
	id     int32
}

func connect(t *testing.T, addr string) *connection {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &connection{t: t, conn: conn, reader: wire.NewReader(conn)}
}

// try sends a command and returns the answer.
func (c *connection) try(db string, command bson.D) bson.Raw {
	c.t.Helper()
	body, err := bson.Marshal(append(command, bson.E{Key: "$db", Value: db}))
	if err != nil {
		c.t.Fatal(err)
	}
	c.id++
	if err := c.conn.SetDeadline(time.Now().Add(5 * time.Minute)); err != nil {
		c.t.Fatal(err)
	}
	if _, err := c.conn.Write(wire.AppendMsg(nil, c.id, 0, 0, bsoncore.Document(body))); err != nil {
		c.t.Fatal(err)
	}
	m, err := c.reader.Read()
	if err != nil {
		c.t.Fatalf("no answer to %v: %v", command, err)
	}
	return append(bson.Raw(nil), m.Body...)
}

// run is try for what has to succeed.
func (c *connection) run(db string, command bson.D) bson.Raw {
	c.t.Helper()
	answer := c.try(db, command)
	if ok, isNumber := answer.Lookup("ok").AsFloat64OK(); !isNumber || ok != 1 {
		c.t.Fatalf("%v: %s", command, last(answer.String(), 2000))
	}
	if failed, err := answer.LookupErr("writeErrors"); err == nil {
		c.t.Fatalf("%v: %s", command[0], failed)
	}
	return answer
}

// all runs a command that opens a cursor and reads it to its end.
func (c *connection) all(db string, command bson.D) (docs []bson.Raw) {
	c.t.Helper()
	answer := c.run(db, command)
	for batch := "firstBatch"; ; batch = "nextBatch" {
		values, err := answer.Lookup("cursor", batch).Array().Values()
		if err != nil {
			c.t.Fatal(err)
		}
		for _, v := range values {
			docs = append(docs, v.Document())
		}
		id, ns := answer.Lookup("cursor", "id").Int64(), answer.Lookup("cursor", "ns").StringValue()
		if id == 0 {
			return docs
		}
		answer = c.run(db, bson.D{{Key: "getMore", Value: id}, {Key: "collection", Value: ns[len(db)+1:]}})
	}
}
