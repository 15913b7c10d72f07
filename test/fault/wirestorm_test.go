package fault

import (
	"errors"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/server/mongo"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestWireStorm is TestStorm for clients of the server: what they were told was written is there, what is sent again is carried out once,
// transactions are whole, and no cursor, session or transaction is stuck when the fault has passed.
func TestWireStorm(t *testing.T) {
	eachStorm(t, usualOtherStorms, 1000, func(t *testing.T, seed uint64) { newWireStorm(t, seed).run() })
}

// wireStorm is a server of a store on a device with faults, and its clients.
type wireStorm struct {
	crowd
	stormStore
	server  *mongo.Server
	clients []*wireClient
}

// absent is the n of a document that is not there.
const absent = -1

func newWireStorm(t *testing.T, seed uint64) *wireStorm {
	s := new(wireStorm)
	s.t, s.seed, s.rng = t, seed, rand.New(rand.NewPCG(seed, 13))
	log := slog.New(stormLog{&s.stormDevice})
	s.options = document.Options{Storage: pando.Options{MemoryBytes: 1 << 20, Logger: log}, TTLInterval: -1, History: 256 << 10, Logger: log}
	s.start(s)
	clients := []int{1, 1, 3}[s.rng.IntN(3)]
	if *stormSeeds == 0 {
		clients = 1 // see onlyAsked
	}
	for n := range clients {
		s.clients = append(s.clients, &wireClient{
			s: s, n: n, rng: rand.New(rand.NewPCG(seed, uint64(100+n))), docs: map[int32][]int32{}, again: map[int32]*resend{},
		})
	}
	return s
}

func (s *wireStorm) plug(base *memfs.FS) {
	s.stormDevice.plug(base)
	s.on(s.fs)
}

func (s *wireStorm) run() {
	s.t.Helper()
	s.must("open", s.open())
	defer s.leave(s)
	s.clients[0].works(bson.D{{Key: "createIndexes", Value: "c"}, {Key: "indexes", Value: bson.A{bson.D{{Key: "key", Value: bson.D{{Key: "n", Value: 1}}}, {Key: "name", Value: "n"}}}}})
	s.write(100, (*wireClient).write)
	for range 6 {
		if s.rng.IntN(2) == 0 {
			s.reopen(s) // nothing is in memory
		}
		s.begin()
		s.write(10+s.rng.IntN(120/len(s.clients)), (*wireClient).step)
		s.recover()
	}
	s.must("close", s.close())
	s.noLeaks("")
}

// write lets all clients take so many steps.
func (s *wireStorm) write(steps int, step func(c *wireClient)) {
	s.t.Helper()
	s.crowd.write(s, len(s.clients), func(n int) {
		for range steps {
			if s.fault != "" && time.Since(s.since) > brief || s.t.Failed() {
				return
			}
			step(s.clients[n])
		}
	})
}

// recover ends the fault and looks whether everything works.
func (s *wireStorm) recover() {
	s.t.Helper()
	s.calm()
	s.stormDevice.judge("sync", s.store.DB().Sync()) // what failed in the background is told now
	if s.failed || s.rng.IntN(4) == 0 {
		s.reopen(s)
	}
	for _, c := range s.clients {
		c.sendAgain()
		c.transaction()
		c.lookAtAll()
	}
	if st := s.server.Statistics(); st.Cursors != 0 || st.Transactions != 0 {
		s.fatalf("left open: %+v", st)
	}
	reply := s.clients[0].works(bson.D{{Key: "validate", Value: "c"}})
	if !reply.Lookup("valid").Boolean() {
		s.fatalf("%v", reply)
	}
	time.Sleep(forgotten)
}

func (s *wireStorm) open() error {
	if err := s.opened(s.openStore()); err != nil {
		return err
	}
	server, err := mongo.New(s.store, &mongo.Options{Logger: s.options.Logger})
	if err != nil {
		return errors.Join(err, s.store.Close())
	}
	s.server = server
	for _, c := range s.clients {
		c.dial()
	}
	return nil
}

// close closes the clients, the server and the store.
func (s *wireStorm) close() error {
	for _, c := range s.clients {
		_ = c.conn.Close()
		<-c.ended
	}
	if err := s.server.Close(); err != nil {
		s.fatalf("close the server: %v", err)
	}
	return s.store.Close()
}
