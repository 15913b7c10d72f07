package server

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/server/wire"
)

// TestSlowClients: who begins and does not go on, or goes on a byte at a time, loses the connection, though it never falls silent.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	s := startTuned(t, Config{Addr: "127.0.0.1:0"}, hasty)
	h := newHonest(t, s)
	whole := message(t, 1, "admin", cmd("ping", 1, "comment", string(make([]byte, 1<<20))))
	tests := []struct {
		name string
		do   func(p *peer)
	}{
		{"silent from the start", func(*peer) {}},
		{"silent in the header", func(p *peer) { p.sends(whole[:3]...) }},
		{"silent behind the header", func(p *peer) { p.sends(whole[:16]...) }},
		{"silent before the last byte", func(p *peer) { p.sends(whole[:len(whole)-1]...) }},
		{"a byte at a time in the header", func(p *peer) { p.sends(0xff, 0xff); go p.trickle(0) }},
		{"a byte at a time in the body", func(p *peer) { p.sends(whole[:20]...); go p.trickle(0) }},
		{"a byte at a time in the second message", func(p *peer) {
			p.must("admin", cmd("ping", 1))
			p.sends(whole[:20]...)
			go p.trickle(0)
		}},
		{"half closed in a message", func(p *peer) { p.sends(whole[:100]...); _ = p.Conn.(*net.TCPConn).CloseWrite() }},
		{"half closed between messages", func(p *peer) { _ = p.Conn.(*net.TCPConn).CloseWrite() }},
	}
	patient := newPeer(t, s)
	patient.must("admin", cmd("ping", 1))
	var peers []*peer // all at once, as each waits for the time for a message to pass
	for _, test := range tests {
		p := newPeer(t, s)
		test.do(p)
		h.works()
		peers = append(peers, p)
	}
	for i, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			peers[i].t = t
			peers[i].ended()
		})
	}
	left(t, s, 2)
	t.Run("silent between messages", func(t *testing.T) { patient.must("admin", cmd("ping", 1)) })
	_ = patient.Close()
	t.Run("reset in a message", func(t *testing.T) {
		p := newPeer(t, s)
		p.sends(whole[:100]...)
		_ = p.Conn.(*net.TCPConn).SetLinger(0)
		_ = p.Close()
		left(t, s, 1)
		h.works()
	})
}

// TestAnswersNotTaken: who asks and asks and does not read the answers loses the connection.
func TestAnswersNotTaken(t *testing.T) {
	t.Parallel()
	s := startTuned(t, Config{Addr: "127.0.0.1:0"}, hasty)
	h := newHonest(t, s)
	p := newPeer(t, s)
	p.must("d", cmd("insert", "c", "documents", bson.A{bson.D{{Key: "x", Value: string(make([]byte, 1<<20))}}}))
	find := message(t, 2, "d", cmd("find", "c"))
	for range 64 {
		if _, err := p.Write(find); err != nil {
			break
		}
	}
	h.works()
	left(t, s, 1)
}

// TestClientsThatLeave: a command whose client has gone does not go on for ever, nor hold the connection, also when the client had sent
// other commands behind it.
func TestClientsThatLeave(t *testing.T) {
	t.Parallel()
	s := start(t, Config{Addr: "127.0.0.1:0"})
	h := newHonest(t, s)
	h.must("d", cmd("create", "capped", "capped", true, "size", 4096))
	h.must("d", cmd("insert", "capped", "documents", bson.A{bson.D{}}))
	version := h.must("admin", cmd("hello", 1)).Lookup("topologyVersion")
	const hours = int64(10 * time.Hour / time.Millisecond)
	var gone []*peer
	awaited := func(*peer) bson.D { return cmd("hello", 1, "topologyVersion", version, "maxAwaitTimeMS", hours) }
	for i, test := range []func(p *peer) bson.D{
		awaited, awaited,
		func(p *peer) bson.D {
			found := p.must("d", cmd("find", "capped", "tailable", true, "awaitData", true))
			return cmd("getMore", found.Lookup("cursor", "id").Int64(), "collection", "capped", "maxTimeMS", int32(1<<30))
		},
		func(p *peer) bson.D {
			found := p.must("d", cmd("aggregate", "c", "pipeline", bson.A{bson.D{{Key: "$changeStream", Value: bson.D{}}}}, "cursor", bson.D{}))
			return cmd("getMore", found.Lookup("cursor", "id").Int64(), "collection", "c", "maxTimeMS", int32(1<<30))
		},
		func(*peer) bson.D { return endless() },
	} {
		if len(gone) == 4 && testing.Short() {
			break // an expression ends between two documents, which is long with the race detector
		}
		p := newPeer(t, s)
		sent := message(t, 9, "d", test(p))
		if i > 0 {
			sent = append(sent, message(t, 10, "d", cmd("ping", 1))...)
		}
		p.sends(sent...)
		gone = append(gone, p)
	}
	eventually(t, "the commands run", func() bool { return running(h.peer) == 1+len(gone) })
	for _, p := range gone {
		_ = p.Close()
	}
	left(t, s, 1)
	h.works()
}

// running counts the commands that run, this one included.
func running(p *peer) int {
	p.t.Helper()
	reply := p.must("admin", cmd("aggregate", 1, "pipeline", bson.A{bson.D{{Key: "$currentOp", Value: bson.D{}}}}, "cursor", bson.D{}))
	values, _ := reply.Lookup("cursor", "firstBatch").Array().Values()
	n := 0
	for _, v := range values {
		if active, _ := v.Document().Lookup("active").BooleanOK(); active {
			n++
		}
	}
	return n
}

// endless is a query that takes longer than any test.
func endless() bson.D {
	list := bson.D{{Key: "$range", Value: bson.A{0, 100_000}}}
	inner := bson.D{{Key: "$size", Value: bson.D{{Key: "$filter", Value: bson.D{{Key: "input", Value: list}, {Key: "cond", Value: bson.D{{Key: "$gt", Value: bson.A{"$$this", -1}}}}}}}}}
	deep := bson.D{{Key: "$sum", Value: bson.D{{Key: "$map", Value: bson.D{{Key: "input", Value: list}, {Key: "as", Value: "x"}, {Key: "in", Value: inner}}}}}}
	return cmd("aggregate", 1, "pipeline", bson.A{
		bson.D{{Key: "$documents", Value: bson.A{bson.D{{Key: "a", Value: 1}}}}}, bson.D{{Key: "$project", Value: bson.D{{Key: "n", Value: deep}}}},
	}, "cursor", bson.D{})
}

// TestLyingLengths: what cannot be true ends the connection without an answer.
func TestLyingLengths(t *testing.T) {
	s := start(t, Config{Addr: "127.0.0.1:0"})
	h := newHonest(t, s)
	ping := message(t, 1, "admin", cmd("ping", 1))
	with := func(at int, v uint32) []byte {
		b := slices.Clone(ping)
		binary.LittleEndian.PutUint32(b[at:], v)
		return b
	}
	const flags, kind, doc = 16, 20, 21
	for _, test := range []struct {
		name  string
		bytes []byte
	}{
		{"no length", with(0, 0)}, {"less than a header", with(0, 15)}, {"a header only", header(16, wire.OpMsg)}, {"a negative length", with(0, 1<<31)},
		{"48 MB and a byte", with(0, wire.MaxMessage+1)}, {"2 GB", with(0, 1<<31-1)}, {"4 GB", with(0, 1<<32-1)},
		{"a document longer than its message", with(doc, uint32(len(ping)))}, {"a document of 2 GB", with(doc, 1<<31-1)},
		{"a document shorter than any", with(doc, 4)}, {"a document without end", with(doc, uint32(len(ping)-doc-1))}, {"a negative document", with(doc, 1<<31)},
		{"flags that nobody knows", with(flags, 1<<5)}, {"a checksum that is not there", with(flags, 1)},
		{"a section of another kind", append(append(slices.Clone(ping[:kind]), 7), ping[doc:]...)},
		{"an opcode that nobody knows", with(12, 2999)}, {"an answer", with(12, uint32(wire.OpReply))},
		{"a sequence longer than its message", slices.Concat(header(30, wire.OpMsg), []byte{0, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0x7f, 'a', 0, 0, 0, 0})},
		{"another protocol", []byte("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")},
		{"a TLS handshake", []byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\x00\x00\x00\x00\x00")},
		{"zeros", make([]byte, 64)},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newPeer(t, s)
			p.must("admin", cmd("ping", 1))
			p.sends(test.bytes...)
			p.ended()
			h.works()
		})
	}
	left(t, s, 1)
}

// TestHTTPOnTheWrongPort: who points a browser at the port of drivers is told what it is for; who has spoken the protocol before is not.
func TestHTTPOnTheWrongPort(t *testing.T) {
	s := start(t, Config{Addr: "127.0.0.1:0"})
	response, err := http.Get("http://" + s.Addrs()[0] + "/")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil || response.StatusCode != http.StatusBadRequest || !bytes.Contains(body, []byte("mongodb://")) {
		t.Errorf("%s: %q, %v", response.Status, body, err)
	}
	p := newPeer(t, s)
	p.must("admin", cmd("ping", 1))
	p.sends([]byte("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")...)
	if got, _ := io.ReadAll(p.Conn); len(got) > 0 { // a reset ends it as well
		t.Errorf("an answer: %q", got)
	}
}

// TestGarbageBetweenMessages: what comes between two messages ends the connection, whatever it is, and what came before it was answered.
func TestGarbageBetweenMessages(t *testing.T) {
	s := startTuned(t, Config{Addr: "127.0.0.1:0"}, hasty)
	h := newHonest(t, s)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	var peers []*peer // all at once, as some of the garbage is the beginning of a message
	for range 50 {
		p := newPeer(t, s)
		ping := message(t, 1, "admin", cmd("ping", 1))
		garbage := make([]byte, 1+random.IntN(100))
		for i := range garbage {
			garbage[i] = byte(random.Uint32())
		}
		garbage = append(garbage, 0xee) // no message ends like this
		p.sends(slices.Concat(ping, garbage, ping)...)
		peers = append(peers, p)
	}
	for _, p := range peers {
		if m, err := p.r.Read(); err != nil || !isOK(bson.Raw(m.Body)) {
			t.Errorf("the message before the garbage: %v", err)
		}
		p.drained()
	}
	h.works()
	left(t, s, 1)
}

// TestPipelined: requests that come together are answered one by one, in their order.
func TestPipelined(t *testing.T) {
	s := start(t, Config{Addr: "127.0.0.1:0"})
	h := newHonest(t, s)
	p := newPeer(t, s)
	const n = 1000
	var all []byte
	for i := range int32(n) {
		all = append(all, message(t, i, "d", cmd("insert", "c", "documents", bson.A{bson.D{{Key: "_id", Value: i}}}))...)
	}
	go p.sends(all...)
	for i := range int32(n) {
		m, err := p.r.Read()
		if err != nil || m.ResponseTo != i || !isOK(bson.Raw(m.Body)) {
			t.Fatalf("the answer to request %d: %v", i, err)
		}
	}
	if n, _ := p.must("d", cmd("count", "c")).Lookup("n").Int32OK(); n != 1000 {
		t.Errorf("%d documents", n)
	}
	h.works()
}

// TestWrongOrder: a handshake in the wrong order is refused or harmless.
func TestWrongOrder(t *testing.T) {
	s := start(t, Config{Addr: "127.0.0.1:0", Auth: true})
	client := bson.D{{Key: "driver", Value: bson.D{{Key: "name", Value: "x"}, {Key: "version", Value: "1"}}}, {Key: "os", Value: bson.D{{Key: "type", Value: "x"}}}}
	first := func(name string) bson.D {
		return cmd(name, 1, "mechanism", "SCRAM-SHA-256", "payload", []byte("n,,n=x,r=abc"), "conversationId", 1)
	}
	p := newPeer(t, s)
	p.refused("admin", cmd("saslContinue", 1, "conversationId", 1, "payload", []byte{}), 17)
	p.refused("admin", cmd("find", "c"), 13)
	p.must("admin", cmd("hello", 1, "client", client))
	p.refused("admin", cmd("hello", 1, "client", client), 186)
	p.must("admin", cmd("saslStart", 1, "mechanism", "SCRAM-SHA-256", "payload", []byte("n,,n=x,r=abc")))
	p.must("admin", cmd("saslStart", 1, "mechanism", "SCRAM-SHA-256", "payload", []byte("n,,n=x,r=abc"))) // begins anew
	p.refused("admin", first("authenticate"))
	p.must("admin", cmd("logout", 1))
	p.must("admin", cmd("hello", 1))

	query := func(command bson.D) []byte {
		body, err := bson.Marshal(command)
		if err != nil {
			t.Fatal(err)
		}
		b := slices.Concat([]byte{0, 0, 0, 0}, []byte("admin.$cmd\x00"), make([]byte, 4), []byte{0xff, 0xff, 0xff, 0xff}, body)
		return append(header(uint32(16+len(b)), wire.OpQuery), b...)
	}
	p.sends(query(cmd("find", "c"))...)
	if m, err := p.r.Read(); err != nil || m.Op != wire.OpReply || codeOf(bson.Raw(m.Body)) != 352 {
		t.Errorf("a find as OP_QUERY: %v, %v", m, err)
	}
	p.sends(query(cmd("isMaster", 1))...)
	if m, err := p.r.Read(); err != nil || m.Op != wire.OpReply || !isOK(bson.Raw(m.Body)) {
		t.Errorf("an old hello after all others: %v, %v", m, err)
	}
	packed, err := wire.AppendCompressed(nil, message(t, 7, "admin", cmd("ping", 1)), wire.Zstd)
	if err != nil {
		t.Fatal(err)
	}
	p.sends(packed...) // without having agreed on it
	if m, err := p.r.Read(); err != nil || !isOK(bson.Raw(m.Body)) {
		t.Errorf("a compressed ping: %v, %v", m, err)
	}
}

// bomb is a message that says it holds size bytes, whatever is in it.
func bomb(c wire.Compressor, size int, inside []byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(wire.OpMsg))
	b = binary.LittleEndian.AppendUint32(b, uint32(size))
	b = append(append(b, byte(c)), inside...)
	return append(header(uint32(16+len(b)), wire.OpCompressed), b...)
}

// packed returns bytes as a compressor has them.
func packed(t *testing.T, c wire.Compressor, plain []byte) []byte {
	t.Helper()
	m, err := wire.AppendCompressed(nil, append(header(0, wire.OpMsg), plain...), c)
	if err != nil {
		t.Fatal(err)
	}
	return m[25:]
}

// TestZipBombs: compressed messages hold what they say they hold, and that is no more than a message may have.
func TestZipBombs(t *testing.T) {
	s := start(t, Config{Addr: "127.0.0.1:0"})
	h := newHonest(t, s)
	plain := message(t, 1, "admin", cmd("ping", 1))[16:]
	for _, c := range []wire.Compressor{wire.Uncompressed, wire.Snappy, wire.Zlib, wire.Zstd} {
		zeros := packed(t, c, make([]byte, 1<<20))
		for _, test := range []struct {
			name  string
			bytes []byte
		}{
			{"more than a message may have", bomb(c, wire.MaxMessage, zeros)},
			{"much more", bomb(c, 1<<31-1, zeros)},
			{"negative", bomb(c, -1, zeros)},
			{"less than is in it", bomb(c, len(plain)-1, packed(t, c, plain))},
			{"far less than is in it", bomb(c, 100, zeros)},
			{"nothing", bomb(c, 0, zeros)},
			{"more than is in it", bomb(c, len(plain)+1, packed(t, c, plain))},
			{"far more than is in it", bomb(c, wire.MaxMessage-16, packed(t, c, plain))},
			{"cut short", bomb(c, 1<<20, zeros[:len(zeros)/2])},
			{"garbage", bomb(c, 1<<20, bytes.Repeat([]byte{0xa5}, 1000))},
			{"empty", bomb(c, 1<<20, nil)},
			{"compressed twice", bomb(c, 0, packed(t, c, bomb(c, len(plain), packed(t, c, plain))))},
		} {
			t.Run(fmt.Sprint(c, "/", test.name), func(t *testing.T) {
				p := newPeer(t, s)
				p.sends(test.bytes...)
				p.ended()
			})
		}
		t.Run(fmt.Sprint(c, "/honest"), func(t *testing.T) {
			p := newPeer(t, s)
			p.sends(bomb(c, len(plain), packed(t, c, plain))...)
			if m, err := p.r.Read(); err != nil || !isOK(bson.Raw(m.Body)) {
				t.Errorf("%v, %v", m, err)
			}
		})
		h.works()
	}
	left(t, s, 1)
}

// TestTooLarge: 48 MB and a byte end the connection as soon as the header is there; strangers may not say much more than hello.
func TestTooLarge(t *testing.T) {
	s := start(t, Config{Addr: "127.0.0.1:0", Auth: true})
	for _, length := range []uint32{16<<10 + 1, 1 << 20, wire.MaxMessage, wire.MaxMessage + 1} {
		p := newPeer(t, s)
		p.must("admin", cmd("ping", 1))
		p.sends(header(length, wire.OpMsg)...)
		p.ended()
	}
	p := newPeer(t, s)
	p.sends(bomb(wire.Zstd, 1<<20, packed(t, wire.Zstd, make([]byte, 1<<20)))...)
	p.ended()
	p = newPeer(t, s)
	p.must("admin", cmd("ping", 1, "comment", string(make([]byte, 16<<10-100))))
}

// nested returns a document, or an array, that is as deep as can be.
func nested(depth int, kind byte) bson.RawValue {
	const level = 4 + 1 + 2 + 1 // length, type, name, end
	var b []byte
	for i := range depth {
		b = binary.LittleEndian.AppendUint32(b, uint32(5+level*(depth-i)))
		b = append(b, kind, '0', 0)
	}
	b = append(b, 5, 0, 0, 0, 0)
	return bson.RawValue{Type: bson.Type(kind), Value: append(b, make([]byte, depth)...)}
}

// TestDeepNesting: a value of 10,000 levels is refused with a code wherever it stands.
func TestDeepNesting(t *testing.T) {
	s := start(t, Config{Addr: "127.0.0.1:0"})
	h := newHonest(t, s)
	p := newPeer(t, s)
	p.must("d", cmd("insert", "c", "documents", bson.A{bson.D{{Key: "_id", Value: 1}}}))
	for _, kind := range []byte{byte(bson.TypeEmbeddedDocument), byte(bson.TypeArray)} {
		deep := nested(10_000, kind)
		in := func(name string) bson.D { return bson.D{{Key: name, Value: deep}} }
		for _, test := range []struct {
			name    string
			command bson.D
		}{
			{"the command", cmd("ping", deep)}, {"a field that does not matter", cmd("ping", 1, "comment", deep)},
			{"a session", cmd("ping", 1, "lsid", deep)}, {"a hello", cmd("hello", 1, "client", deep)},
			{"a filter", cmd("find", "c", "filter", in("a"))}, {"a filter's operator", cmd("find", "c", "filter", in("$and"))},
			{"a condition", cmd("find", "c", "filter", bson.D{{Key: "a", Value: in("$not")}})}, {"an expression", cmd("find", "c", "filter", in("$expr"))},
			{"a schema", cmd("find", "c", "filter", in("$jsonSchema"))}, {"a sort", cmd("find", "c", "sort", in("a"))},
			{"a projection", cmd("find", "c", "projection", in("a"))}, {"a hint", cmd("find", "c", "hint", deep)},
			{"a stored document", cmd("insert", "c", "documents", bson.A{in("a")})}, {"its _id", cmd("insert", "c", "documents", bson.A{in("_id")})},
			{"a replacement", cmd("update", "c", "updates", bson.A{bson.D{{Key: "q", Value: bson.D{}}, {Key: "u", Value: in("a")}}})},
			{"an update", cmd("update", "c", "updates", bson.A{bson.D{{Key: "q", Value: bson.D{}}, {Key: "u", Value: bson.D{{Key: "$set", Value: in("a")}}}}})},
			{"an update's filter", cmd("update", "c", "updates", bson.A{bson.D{{Key: "q", Value: in("a")}, {Key: "u", Value: bson.D{}}}})},
			{"a deletion", cmd("delete", "c", "deletes", bson.A{bson.D{{Key: "q", Value: in("a")}, {Key: "limit", Value: 0}}})},
			{"a pipeline", cmd("aggregate", "c", "pipeline", deep, "cursor", bson.D{})},
			{"a stage", cmd("aggregate", "c", "pipeline", bson.A{in("$match")}, "cursor", bson.D{})},
			{"a stage's expression", cmd("aggregate", "c", "pipeline", bson.A{bson.D{{Key: "$project", Value: in("a")}}}, "cursor", bson.D{})},
			{"a facet", cmd("aggregate", "c", "pipeline", bson.A{bson.D{{Key: "$facet", Value: in("a")}}}, "cursor", bson.D{})},
			{"a key", cmd("createIndexes", "c", "indexes", bson.A{bson.D{{Key: "key", Value: in("a")}, {Key: "name", Value: "a"}}})},
			{"a partial index", cmd("createIndexes", "c", "indexes", bson.A{bson.D{{Key: "key", Value: bson.D{{Key: "a", Value: 1}}}, {Key: "name", Value: "a"}, {Key: "partialFilterExpression", Value: in("a")}}})},
			{"a validator", cmd("create", "v", "validator", in("a"))}, {"a view", cmd("create", "v", "viewOn", "c", "pipeline", bson.A{in("$match")})},
			{"variables", cmd("find", "c", "let", in("a"))},
		} {
			t.Run(fmt.Sprint(bson.Type(kind), "/", test.name), func(t *testing.T) {
				p.t = t
				p.refused("d", test.command)
			})
		}
	}
	p.t = t
	if n, _ := p.must("d", cmd("count", "c")).Lookup("n").Int32OK(); n != 1 {
		t.Errorf("%d documents are stored", n)
	}
	h.works()
}

// TestDeepSequences: the documents beside a command are looked at like those in it.
func TestDeepSequences(t *testing.T) {
	s := start(t, Config{Addr: "127.0.0.1:0"})
	p := newPeer(t, s)
	deep := nested(10_000, byte(bson.TypeEmbeddedDocument)).Value
	body := bsoncore.NewDocumentBuilder().AppendString("insert", "c").AppendString("$db", "d").Build()
	m := wire.AppendMsg(nil, 1, 0, 0, body)
	m = append(m, 1)
	m = binary.LittleEndian.AppendUint32(m, uint32(4+len("documents")+1+len(deep)))
	m = append(append(append(m, "documents"...), 0), deep...)
	binary.LittleEndian.PutUint32(m, uint32(len(m)))
	p.sends(m...)
	if reply, err := p.r.Read(); err != nil || codeOf(bson.Raw(reply.Body)) == 0 {
		t.Errorf("%v, %v", reply, err)
	}
	newHonest(t, s).works()
}
