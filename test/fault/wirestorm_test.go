package fault

import (
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/server/mongo"
	"github.com/pandodb/pando/server/wire"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestWireStorm is TestStorm for clients of the server: what they were told was written is there, what is sent again is carried out once,
// transactions are whole, and no cursor, session or transaction is stuck when the fault has passed.
func TestWireStorm(t *testing.T) {
	eachStorm(t, usualOtherStorms, 1000, func(t *testing.T, seed uint64) { newWireStorm(t, seed).run() })
}

// wireStorm is a server of a store on a device with faults, a client, and what the store ought to hold.
type wireStorm struct {
	stormDevice
	options document.Options
	store   *document.Store
	server  *mongo.Server
	conn    net.Conn
	ended   chan struct{} // closed when the server has done with the connection
	reader  *wire.Reader
	number  int64
	docs    map[int32][]int32 // by _id, what n may be, see absent; missing: absent
	again   map[int32]*resend
}

// absent is the n of a document that is not there.
const absent = -1

// resend is a write that failed and is to be carried out once.
type resend struct {
	command bson.D
	change  func(n int32) int32
	before  []int32
}

func newWireStorm(t *testing.T, seed uint64) *wireStorm {
	s := &wireStorm{
		stormDevice: stormDevice{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 13))}, docs: map[int32][]int32{}, again: map[int32]*resend{},
	}
	log := slog.New(stormLog{&s.stormDevice})
	s.options = document.Options{Storage: pando.Options{MemoryBytes: 1 << 20, Logger: log}, TTLInterval: -1, History: 256 << 10, Logger: log}
	s.plug(memfs.New())
	if seed%2 == 0 { // else it is full without a warning
		s.base.TellSpace()
	}
	return s
}

func (s *wireStorm) plug(base *memfs.FS) {
	s.stormDevice.plug(base)
	s.options.Storage.FS, s.options.FS = s.fs, s.fs
}

func (s *wireStorm) run() {
	s.t.Helper()
	s.must("open", s.open())
	defer func() {
		if s.t.Failed() { // so that no goroutine is left
			s.calm()
			_ = s.close()
		}
	}()
	s.works(bson.D{{Key: "createIndexes", Value: "c"}, {Key: "indexes", Value: bson.A{bson.D{{Key: "key", Value: bson.D{{Key: "n", Value: 1}}}, {Key: "name", Value: "n"}}}}})
	for range 100 {
		s.write()
	}
	for range 6 {
		if s.rng.IntN(2) == 0 {
			s.reopen() // nothing is in memory
		}
		s.begin()
		for range 10 + s.rng.IntN(120) {
			if time.Since(s.since) > brief {
				break
			}
			s.step()
		}
		s.recover()
	}
	s.must("close", s.close())
	s.noLeaks("")
}

// recover ends the fault and looks whether everything works.
func (s *wireStorm) recover() {
	s.t.Helper()
	again := s.rng.IntN(4)
	if again == 0 {
		s.cutPower(s)
	}
	s.calm()
	s.judge("sync", s.store.DB().Sync()) // what failed in the background is told now
	if s.failed || again == 1 {
		s.reopen()
	}
	for _, id := range slices.Sorted(maps.Keys(s.again)) {
		r := s.again[id]
		s.works(r.command)
		s.docs[id] = nil
		for _, n := range r.before {
			s.docs[id] = append(s.docs[id], r.change(n))
		}
	}
	clear(s.again)
	s.transaction()
	s.lookAtAll()
	if st := s.server.Statistics(); st.Cursors != 0 || st.Transactions != 0 {
		s.fatalf("left open: %+v", st)
	}
	time.Sleep(forgotten)
}

func (s *wireStorm) open() error {
	o := s.options
	store, err := document.Open("db", &o)
	s.note("open: %v", err)
	if err != nil {
		return err
	}
	s.store, s.failed, s.troubled = store, false, s.fault != ""
	server, err := mongo.New(store, &mongo.Options{Logger: o.Logger})
	if err != nil {
		return fmt.Errorf("%w, %v", err, store.Close())
	}
	s.server = server
	s.dial()
	return nil
}

// dial connects the client.
func (s *wireStorm) dial() {
	near, far := net.Pipe()
	ended := make(chan struct{})
	go func(server *mongo.Server) {
		server.ServeConn(fromHere{far})
		close(ended)
	}(s.server)
	s.conn, s.reader, s.ended = near, wire.NewReader(near), ended
}

// fromHere is an end of a pipe that is connected to this machine.
type fromHere struct{ net.Conn }

func (fromHere) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 50_000} }

// close closes the client, the server and the store.
func (s *wireStorm) close() error {
	_ = s.conn.Close()
	<-s.ended
	if err := s.server.Close(); err != nil {
		s.fatalf("close the server: %v", err)
	}
	return s.store.Close()
}

// cut has nothing to note: what was acknowledged survives.
func (s *wireStorm) cut(bool) {}

// meet has nothing to find out.
func (s *wireStorm) meet() {}

// reopen closes the store and opens it again, without the fault at the latest.
func (s *wireStorm) reopen() {
	s.t.Helper()
	_ = s.shut(s)
	s.comeUp(s)
}

// send sends a command and returns the answer, and what of it says that it failed; empty: nothing.
func (s *wireStorm) send(command bson.D) (reply bson.Raw, failure string) {
	s.t.Helper()
	db := "test"
	if strings.HasSuffix(command[0].Key, "Transaction") {
		db = "admin"
	}
	body, err := bson.Marshal(append(slices.Clone(command), bson.E{Key: "$db", Value: db}))
	s.must("marshal", err)
	_, err = s.conn.Write(wire.AppendMsg(nil, 1, 0, 0, bsoncore.Document(body)))
	s.must("send", err)
	m, err := s.reader.Read()
	s.must("receive", err)
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

// works sends a command that has to work.
func (s *wireStorm) works(command bson.D) bson.Raw {
	s.t.Helper()
	reply, failure := s.send(command)
	if failure != "" {
		s.fatalf("%v: %v", command, reply)
	}
	return reply
}

// tried sends a command that may fail where there is a fault, and reports whether it did.
func (s *wireStorm) tried(command bson.D) (reply bson.Raw, failed bool) {
	s.t.Helper()
	reply, failure := s.send(command)
	if failure == "" {
		return reply, false
	}
	s.note("%v: %s", command, failure)
	if strings.Contains(failure, pando.ErrFailed.Error()) || strings.Contains(failure, "has failed and must be recovered") {
		s.failed = true
	}
	if s.fault == "" && !s.failed {
		s.fatalf("%v: an error without a fault: %v", command, reply)
	}
	return reply, true
}

// may returns what n of a document may be.
func (s *wireStorm) may(id int32) []int32 {
	if list := s.docs[id]; len(list) > 0 {
		return list
	}
	return []int32{absent}
}

// wrote notes a write that was carried out, or may have been.
func (s *wireStorm) wrote(id int32, change func(n int32) int32, failed bool) {
	if !failed && s.failed {
		return // it found nothing to change
	}
	delete(s.again, id)
	before := s.may(id)
	var after []int32
	for _, n := range before {
		after = append(after, change(n))
	}
	if failed {
		after = append(after, before...)
	}
	slices.Sort(after)
	s.docs[id] = slices.Compact(after)
}

// lookAtAll reads all documents, in two ways, and compares them with the model.
func (s *wireStorm) lookAtAll() {
	s.t.Helper()
	for _, order := range []string{"_id", "n"} {
		found := map[int32]int32{}
		reply := s.works(bson.D{{Key: "find", Value: "c"}, {Key: "sort", Value: bson.D{{Key: order, Value: 1}}}, {Key: "batchSize", Value: 7}})
		for batch := "firstBatch"; ; batch = "nextBatch" {
			values, err := reply.Lookup("cursor", batch).Array().Values()
			s.must("batch", err)
			for _, v := range values {
				found[v.Document().Lookup("_id").Int32()] = v.Document().Lookup("n").Int32()
			}
			cursor := reply.Lookup("cursor", "id").Int64()
			if cursor == 0 {
				break
			}
			reply = s.works(bson.D{{Key: "getMore", Value: cursor}, {Key: "collection", Value: "c"}, {Key: "batchSize", Value: 50}})
		}
		for id := range s.docs {
			n, is := found[id]
			if !is {
				n = absent
			}
			if !slices.Contains(s.may(id), n) {
				s.fatalf("by %s, %d has %d, and may have %v", order, id, n, s.may(id))
			}
			delete(found, id)
		}
		if len(found) > 0 {
			s.fatalf("nobody wrote %v", found)
		}
	}
	reply := s.works(bson.D{{Key: "validate", Value: "c"}})
	if !reply.Lookup("valid").Boolean() {
		s.fatalf("%v", reply)
	}
}
