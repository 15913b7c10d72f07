package mongo

import (
	"encoding/binary"
	"io"
	"net"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/server/wire"
)

// rawClient sends the same bytes again and again, and does next to nothing itself.
type rawClient struct {
	tb      testing.TB
	conn    net.Conn
	request []byte
	reply   []byte
}

// overTCP returns a client that sends what a driver sends for a command: with a session, and as a section of documents what is not nil.
func overTCP(tb testing.TB, s *Server, command bson.D, field string, doc any) *rawClient {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer l.Close()
	near, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		tb.Fatal(err)
	}
	far, err := l.Accept()
	if err != nil {
		tb.Fatal(err)
	}
	serveOn(tb, s, near, far)
	id := bson.Binary{Subtype: 4, Data: []byte("0123456789abcdef")}
	now := bson.D{{Key: "clusterTime", Value: bson.Timestamp{T: 1, I: 1}}}
	body, err := bson.Marshal(append(command, bson.D{{Key: "lsid", Value: bson.D{{Key: "id", Value: id}}}, {Key: "$clusterTime", Value: now}, {Key: "$db", Value: "speed"}}...))
	if err != nil {
		tb.Fatal(err)
	}
	c := &rawClient{tb: tb, conn: near, reply: make([]byte, 64<<10)}
	c.request = wire.AppendMsg(nil, 1, 0, 0, bsoncore.Document(body))
	if doc != nil {
		raw, err := bson.Marshal(doc)
		if err != nil {
			tb.Fatal(err)
		}
		c.request = append(c.request, 1)
		c.request = binary.LittleEndian.AppendUint32(c.request, uint32(4+len(field)+1+len(raw)))
		c.request = append(append(append(c.request, field...), 0), raw...)
		binary.LittleEndian.PutUint32(c.request, uint32(len(c.request)))
	}
	return c
}

// call sends the request and reads the answer.
func (c *rawClient) call() bsoncore.Document {
	if _, err := c.conn.Write(c.request); err != nil {
		c.tb.Fatal(err)
	}
	if _, err := io.ReadFull(c.conn, c.reply[:wire.HeaderBytes]); err != nil {
		c.tb.Fatal(err)
	}
	n := binary.LittleEndian.Uint32(c.reply)
	if _, err := io.ReadFull(c.conn, c.reply[wire.HeaderBytes:n]); err != nil {
		c.tb.Fatal(err)
	}
	return bsoncore.Document(c.reply[wire.HeaderBytes+5 : n])
}

// speedCases are the commands whose cost is looked after.
func speedCases() []struct {
	name    string
	allocs  float64 // the most that one may make; what is measured has some left
	command bson.D
	field   string
	doc     any
} {
	journal := bson.E{Key: "writeConcern", Value: bson.D{{Key: "w", Value: 1}, {Key: "j", Value: true}}}
	return []struct {
		name    string
		allocs  float64
		command bson.D
		field   string
		doc     any
	}{
		{"ping", 14, bson.D{{Key: "ping", Value: 1}}, "", nil},
		{"find by _id", 20, bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: bson.D{{Key: "_id", Value: 7}}}, {Key: "limit", Value: int64(1)}, {Key: "singleBatch", Value: true}}, "", nil},
		{"find by an index", 20, bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: bson.D{{Key: "email", Value: "7@example.com"}}}, {Key: "limit", Value: int64(1)}, {Key: "singleBatch", Value: true}}, "", nil},
		{"find in the order of _id", 32, bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: bson.D{{Key: "_id", Value: bson.D{{Key: "$gte", Value: 7}}}}}, {Key: "sort", Value: bson.D{{Key: "_id", Value: 1}}}, {Key: "limit", Value: int64(50)}}, "", nil},
		{"find by a list of _ids", 25, bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: hundred()}}}}}}, "", nil},
		{"update by _id", 110, bson.D{{Key: "update", Value: "c"}, {Key: "ordered", Value: true}, journal}, "updates",
			bson.D{{Key: "q", Value: bson.D{{Key: "_id", Value: 7}}}, {Key: "u", Value: bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}}}},
		{"update by a unique index", 120, bson.D{{Key: "update", Value: "c"}, {Key: "ordered", Value: true}, journal}, "updates",
			bson.D{{Key: "q", Value: bson.D{{Key: "email", Value: "7@example.com"}}}, {Key: "u", Value: bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}}}},
		{"insert", 75, bson.D{{Key: "insert", Value: "d"}, {Key: "ordered", Value: true}, journal}, "documents", bson.D{{Key: "name", Value: "one"}, {Key: "n", Value: 1}}},
	}
}

// hundred returns a hundred _ids, some of them missing, in no order.
func hundred() (list bson.A) {
	for i := range 100 {
		list = append(list, i*89%1010)
	}
	return list
}

// speedServer returns a server with a collection of a thousand documents.
func speedServer(tb testing.TB) *Server {
	s := newServer(tb, &Options{})
	c := dial(tb, s)
	var docs bson.A
	for i := range 1000 {
		docs = append(docs, bson.D{{Key: "_id", Value: i}, {Key: "email", Value: itoa(i) + "@example.com"}, {Key: "n", Value: i}})
	}
	c.must("speed", bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: docs}})
	index := bson.D{{Key: "key", Value: bson.D{{Key: "email", Value: 1}}}, {Key: "name", Value: "email"}, {Key: "unique", Value: true}}
	c.must("speed", bson.D{{Key: "createIndexes", Value: "c"}, {Key: "indexes", Value: bson.A{index}}})
	return s
}

func BenchmarkCommand(b *testing.B) {
	s := speedServer(b)
	for _, x := range speedCases() {
		b.Run(x.name, func(b *testing.B) {
			c := overTCP(b, s, x.command, x.field, x.doc)
			b.ReportAllocs()
			for b.Loop() {
				c.call()
			}
			if reply := c.call(); okOf(bson.Raw(reply)) != 1 {
				b.Fatal(reply)
			}
		})
	}
}
