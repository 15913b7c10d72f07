package server

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/server/mongo"
	"github.com/pandodb/pando/server/wire"
)

// hangs is when a test gives up waiting for what must come. Nothing is asserted about how long things take.
const hangs = 3 * time.Minute

// peer is a client that can say what no driver says.
type peer struct {
	net.Conn
	t  testing.TB
	r  *wire.Reader
	id int32
}

// newPeer connects to a server until the test ends.
func newPeer(t testing.TB, s *Server) *peer {
	t.Helper()
	c, err := net.Dial("tcp", s.Addrs()[0])
	if err != nil {
		t.Fatal(err)
	}
	return speak(t, c)
}

// speak makes a peer of a connection.
func speak(t testing.TB, c net.Conn) *peer {
	t.Helper()
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(hangs)); err != nil {
		t.Fatal(err)
	}
	return &peer{Conn: c, t: t, r: wire.NewReader(c)}
}

// cmd is a command: its name, what it is about, and further fields.
func cmd(name string, target any, fields ...any) bson.D {
	d := bson.D{{Key: name, Value: target}}
	for i := 0; i < len(fields); i += 2 {
		d = append(d, bson.E{Key: fields[i].(string), Value: fields[i+1]})
	}
	return d
}

// message returns a command as an OP_MSG.
func message(t testing.TB, id int32, db string, command bson.D) []byte {
	t.Helper()
	body, err := bson.Marshal(append(append(bson.D{}, command...), bson.E{Key: "$db", Value: db}))
	if err != nil {
		t.Fatal(err)
	}
	return wire.AppendMsg(nil, id, 0, 0, bsoncore.Document(body))
}

// run sends a command and returns the answer.
func (p *peer) run(db string, command bson.D) bson.Raw {
	p.t.Helper()
	_ = p.SetDeadline(time.Now().Add(hangs)) // if it cannot be set, the connection is gone, as the next lines find
	p.id++
	if _, err := p.Write(message(p.t, p.id, db, command)); err != nil {
		p.t.Fatalf("%s: %v", command[0].Key, err)
	}
	m, err := p.r.Read()
	if err != nil {
		p.t.Fatalf("the answer to %s: %v", command[0].Key, err)
	}
	if m.ResponseTo != p.id {
		p.t.Fatalf("%s: an answer to %d, not to %d", command[0].Key, m.ResponseTo, p.id)
	}
	return append(bson.Raw(nil), m.Body...)
}

// must runs a command that succeeds.
func (p *peer) must(db string, command bson.D) bson.Raw {
	p.t.Helper()
	reply := p.run(db, command)
	if !isOK(reply) {
		p.t.Fatalf("%s: %s", command[0].Key, reply)
	}
	return reply
}

// refused runs a command that fails with one of the codes, or with any if none is given.
func (p *peer) refused(db string, command bson.D, codes ...int32) bson.Raw {
	p.t.Helper()
	reply := p.run(db, command)
	got := codeOf(reply)
	for _, c := range codes {
		if got == c {
			return reply
		}
	}
	if isOK(reply) || got == 0 || len(codes) > 0 {
		p.t.Fatalf("%s: one of the codes %v is wanted: %.300s", command[0].Key, codes, reply.String())
	}
	return reply
}

func isOK(reply bson.Raw) bool {
	v, _ := reply.Lookup("ok").DoubleOK()
	return v == 1
}

// codeOf returns the code of an answer: its own, or that of its first write error.
func codeOf(reply bson.Raw) int32 {
	if v, ok := reply.Lookup("code").Int32OK(); ok {
		return v
	}
	v, _ := reply.Lookup("writeErrors", "0", "code").Int32OK()
	return v
}

// ended waits until the server ends the connection, and wants no answer before that.
func (p *peer) ended() {
	p.t.Helper()
	m, err := p.r.Read()
	var late net.Error
	switch {
	case err == nil:
		p.t.Errorf("an answer: %s", bson.Raw(m.Body))
	case errors.As(err, &late) && late.Timeout():
		p.t.Error("the connection is still open")
	}
}

// sends writes bytes; that the server ends the connection meanwhile is no failure.
func (p *peer) sends(b ...byte) {
	_, _ = p.Write(b) // see ended
}

// header is the header of a message.
func header(length uint32, op wire.Opcode) []byte {
	b := binary.LittleEndian.AppendUint32(nil, length)
	b = binary.LittleEndian.AppendUint32(b, 1)
	b = binary.LittleEndian.AppendUint32(b, 0)
	return binary.LittleEndian.AppendUint32(b, uint32(op))
}

// honest is a client that does its work while others attack.
type honest struct {
	*peer
	done int32
}

func newHonest(t testing.TB, s *Server) *honest {
	t.Helper()
	h := &honest{peer: newPeer(t, s)}
	h.must("admin", cmd("ping", 1))
	return h
}

// works writes and reads back, and wants right answers.
func (h *honest) works() {
	h.t.Helper()
	for range 10 {
		h.done++
		h.must("honest", cmd("insert", "c", "documents", bson.A{bson.D{{Key: "_id", Value: h.done}, {Key: "square", Value: h.done * h.done}}}))
		found := h.must("honest", cmd("find", "c", "filter", bson.D{{Key: "square", Value: h.done * h.done}}))
		if id, _ := found.Lookup("cursor", "firstBatch", "0", "_id").Int32OK(); id != h.done {
			h.t.Fatalf("the document %d is not found: %s", h.done, found)
		}
		if n, _ := h.must("honest", cmd("count", "c")).Lookup("n").Int32OK(); n != h.done {
			h.t.Fatalf("%d documents are counted, not %d", n, h.done)
		}
	}
}

// eventually waits until something holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(hangs); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: still not so", what)
		}
	}
}

// left waits until as many connections are open as there should be.
func left(t testing.TB, s *Server, n int) {
	t.Helper()
	eventually(t, "the other connections are gone", func() bool { return int(s.mongo.Statistics().Connections) == n })
}

// hasty is a server's options with limits that a test can reach, and an honest client on a busy machine does not.
func hasty(o *mongo.Options) {
	o.MessageTimeout, o.WriteTimeout = 2*time.Second, 2*time.Second
}

// trickle writes bytes one by one, for as long as the other side takes them.
func (p *peer) trickle(b byte) {
	for {
		if _, err := p.Write([]byte{b}); err != nil {
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// drained reads all that comes until the connection ends.
func (p *peer) drained() {
	p.t.Helper()
	var late net.Error
	if _, err := io.Copy(io.Discard, p.Conn); errors.As(err, &late) && late.Timeout() {
		p.t.Error("the connection is still open")
	}
}
