package mongo

import (
	"context"
	"math"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/server/wire"
)

// How the server presents itself.
const (
	maxWireVersion = 21 // MongoDB 7.0
	serverVersion  = "7.0.14"
)

func handshakeCommands() []*command {
	return []*command{
		{name: "hello", run: (*request).hello, anyField: true, open: true, stable: true, help: "says what the server is"},
		{name: "isMaster", aliases: []string{"ismaster"}, run: (*request).hello, anyField: true, open: true, help: "the old name of hello"},
		{name: "ping", run: func(*request) (bsoncore.Document, error) { return ok(), nil }, open: true, stable: true, help: "answers"},
	}
}

// hello answers the handshake, and the heartbeats with which drivers watch the server.
func (r *request) hello() (bsoncore.Document, error) {
	if err := r.greet(); err != nil {
		return nil, err
	}
	if err := r.awaitTopology(); err != nil {
		return nil, err
	}
	s := r.server
	b := bsoncore.NewDocumentBuilder()
	if help, err := r.flag("helloOk"); err == nil && help {
		b.AppendBoolean("helloOk", true)
	}
	if r.name == "hello" {
		b.AppendBoolean("isWritablePrimary", true)
	} else {
		b.AppendBoolean("ismaster", true)
	}
	b.AppendDocument("topologyVersion", s.topologyVersion())
	if !s.o.Standalone {
		s.appendSet(b)
	}
	b.AppendInt32("maxBsonObjectSize", document.MaxDocumentBytes).AppendInt32("maxMessageSizeBytes", wire.MaxMessage).
		AppendInt32("maxWriteBatchSize", maxWriteBatch).AppendDateTime("localTime", s.clock.Now().UnixMilli()).
		AppendInt32("logicalSessionTimeoutMinutes", int32(sessionTimeout/time.Minute)).AppendInt32("connectionId", int32(r.conn.id)).
		AppendInt32("minWireVersion", 0).AppendInt32("maxWireVersion", maxWireVersion).AppendBoolean("readOnly", false)
	if list, ok := r.args["compression"]; ok {
		b.AppendArray("compression", r.conn.choose(list))
	}
	if err := r.appendMechanisms(b); err != nil {
		return nil, err
	}
	if err := r.speculate(b); err != nil {
		return nil, err
	}
	return done(b), nil
}

// appendSet appends the identity of a replica set with one member.
func (s *Server) appendSet(b *bsoncore.DocumentBuilder) {
	hosts := bsoncore.NewArrayBuilder().AppendString(s.o.Address).Build()
	last := s.store.LastTime()
	at := bsoncore.NewDocumentBuilder().AppendTimestamp("ts", last.T, last.I).AppendInt64("t", 1).Build()
	when := time.Unix(int64(last.T), 0).UnixMilli()
	b.AppendArray("hosts", hosts).AppendString("setName", s.o.SetName).AppendInt32("setVersion", 1).AppendBoolean("secondary", false).
		AppendString("primary", s.o.Address).AppendString("me", s.o.Address).AppendObjectID("electionId", s.electionID()).
		AppendDocument("lastWrite", bsoncore.NewDocumentBuilder().AppendDocument("opTime", at).AppendDateTime("lastWriteDate", when).
			AppendDocument("majorityOpTime", at).AppendDateTime("majorityWriteDate", when).Build())
}

// electionID is the same for ever: there is no other member to elect.
func (s *Server) electionID() bson.ObjectID {
	return bson.ObjectID{0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 1}
}

// topologyVersion tells drivers whether something has changed: never, in the life of a process.
func (s *Server) topologyVersion() bsoncore.Document {
	return bsoncore.NewDocumentBuilder().AppendObjectID("processId", s.id).AppendInt64("counter", 0).Build()
}

// greet takes what a client says of itself.
func (r *request) greet() error {
	client, err := r.document("client")
	if err != nil {
		return err
	}
	if client == nil {
		return nil
	}
	if r.conn.client.Load() != nil {
		return document.NewError(document.Code(186), "The client metadata document may only be sent in the first hello")
	}
	const maxClient = 512
	if len(client) > maxClient {
		return document.NewError(document.Code(186), "The client metadata document must be less then or equal to %d bytes", maxClient)
	}
	client = slices.Clone(client)
	r.conn.client.Store(&client)
	if app, ok := client.Lookup("application", "name").StringValueOK(); ok {
		r.conn.appName = app
	}
	return nil
}

// choose returns those of the client's compressors that the server knows, in the client's order.
func (c *conn) choose(list bsoncore.Value) bsoncore.Array {
	c.offered = map[string]bool{}
	b := bsoncore.NewArrayBuilder()
	array, ok := list.ArrayOK()
	if !ok {
		return b.Build()
	}
	values, err := array.Values()
	if err != nil {
		return b.Build()
	}
	for _, v := range values {
		name, _ := v.StringValueOK()
		if _, known := wire.CompressorOf(name); known && !c.offered[name] {
			c.offered[name] = true
			b.AppendString(name)
		}
	}
	return b.Build()
}

// awaitTopology holds a heartbeat back that asks to hear of changes: there are none, so it is answered when its time is up, and, if
// the client allows it, again and again.
func (r *request) awaitTopology() error {
	version, err := r.document("topologyVersion")
	if err != nil {
		return err
	}
	wait, err := r.number("maxAwaitTimeMS")
	if err != nil {
		return err
	}
	if err := checkTopology(version); err != nil {
		return err
	}
	const oneAlone = document.Code(31368)
	switch {
	case wait < 0:
		return document.NewError(document.Code(51024), "BSON field 'maxAwaitTimeMS' value must be >= 0, actual value '%d'", wait)
	case wait > math.MaxInt64/int64(time.Millisecond):
		return document.NewError(codeDurationOverflow, "Overflow casting from a lower-precision duration to a higher-precision duration")
	case version != nil && !r.has("maxAwaitTimeMS"):
		return document.NewError(oneAlone, "A request with a 'topologyVersion' must include 'maxAwaitTimeMS'")
	case version == nil && r.has("maxAwaitTimeMS"):
		return document.NewError(oneAlone, "A request with 'maxAwaitTimeMS' must include a 'topologyVersion'")
	case version == nil:
		return nil
	}
	r.more = wait > 0 // else one answer after the other, as fast as they can be made
	process, _ := version.Lookup("processId").ObjectIDOK()
	if r.stale = process != r.server.id; r.stale || wait == 0 {
		return nil
	}
	r.conn.busy.Store(false) // a connection that waits here is idle
	defer r.conn.busy.Store(true)
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	defer context.AfterFunc(r.server.accepting, cancel)() // nor does a shutdown wait for it
	return r.server.clock.Sleep(ctx, time.Duration(wait)*time.Millisecond)
}

// withTopology is the request with the version of the topology that its answer tells.
func (r *request) withTopology() bsoncore.Document {
	const field = "topologyVersion"
	b := bsoncore.NewDocumentBuilder()
	for _, e := range elementsOf(r.body) {
		if e.Key() == field {
			b.AppendDocument(field, r.server.topologyVersion())
		} else {
			b.AppendValue(e.Key(), e.Value())
		}
	}
	return b.Build()
}

// checkTopology refuses what is no version of a topology; nil is none.
func checkTopology(version bsoncore.Document) error {
	if version == nil {
		return nil
	}
	for name := range argsOf(version) {
		if name != "processId" && name != "counter" {
			return document.NewError(codeUnknownField, "BSON field 'hello.topologyVersion.%s' is an unknown field.", name)
		}
	}
	for _, name := range []string{"processId", "counter"} {
		if version.Lookup(name).Type == 0 {
			return missingField("hello.topologyVersion." + name)
		}
	}
	return nil
}
