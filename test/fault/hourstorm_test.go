package fault

import (
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document"
)

// TestHourStorm is TestWireStorm with pauses of seconds, minutes and hours: what is kept for a client is there as long as it has to be and
// gone some time later, be it documents, sessions and what they have written, transactions, cursors, moments to read at, or change streams.
func TestHourStorm(t *testing.T) {
	eachStorm(t, usualOtherStorms, 1000, func(t *testing.T, seed uint64) { newHourStorm(t, seed).run() })
}

// hourStorm is a wire storm of one client, and what is kept for it.
type hourStorm struct {
	wireStorm
	*wireClient
	quiet    time.Time // since when there has been no fault, and nothing has changed that says what expires
	things   []*kept
	sessions []string             // all that there ever were
	expiring map[string]*expiring // collections, by their names
	told     []toldNumber         // what was inserted for change streams to tell of
	held     map[int32]presence   // documents of transactions, by _id
	drawn    int32                // numbers of documents and sessions
}

func newHourStorm(t *testing.T, seed uint64) *hourStorm {
	s := &hourStorm{expiring: map[string]*expiring{}, held: map[int32]presence{}}
	s.wireStorm.t, s.wireStorm.seed, s.wireStorm.rng = t, seed, rand.New(rand.NewPCG(seed, 16))
	log := slog.New(stormLog{&s.stormDevice})
	s.options = document.Options{Storage: pando.Options{MemoryBytes: 1 << 20, Logger: log}, History: 256 << 10, Logger: log}
	s.start(&s.wireStorm)
	s.wireClient = &wireClient{s: &s.wireStorm, rng: rand.New(rand.NewPCG(seed, 100)), docs: map[int32][]int32{}, again: map[int32]*resend{}}
	s.clients = []*wireClient{s.wireClient}
	return s
}

func (s *hourStorm) run() {
	s.t.Helper()
	s.must("open", s.wireStorm.open())
	s.settle()
	defer s.leave(&s.wireStorm)
	s.works(bson.D{{Key: "createIndexes", Value: "c"}, {Key: "indexes", Value: bson.A{bson.D{{Key: "key", Value: bson.D{{Key: "n", Value: 1}}}, {Key: "name", Value: "n"}}}}})
	s.createExpiring()
	s.works(bson.D{{Key: "create", Value: "told"}})
	s.works(bson.D{{Key: "create", Value: "held"}})
	for range 60 {
		s.wireClient.write()
	}
	for range 3 {
		s.steps(20 + s.wireClient.rng.IntN(60))
		s.storm()
	}
	s.end()
}

// steps takes so many steps, fewer where a fault lasts too long.
func (s *hourStorm) steps(n int) {
	s.t.Helper()
	for range n {
		if s.fault != "" && time.Since(s.since) > brief {
			return
		}
		if stepOf(s, s.wireClient.rng, hourSteps); s.t.Failed() {
			s.fatalf("see above")
		}
	}
}

// storm lets a fault come and go.
func (s *hourStorm) storm() {
	s.t.Helper()
	s.begin()
	s.steps(5 + s.wireClient.rng.IntN(60))
	s.calm()
	s.stormDevice.judge("sync", s.store.DB().Sync()) // what failed in the background is told now
	s.failed = s.failed || s.fails.Load()
	switch n := s.stormDevice.rng.IntN(4); {
	case n == 0:
		s.restart(func() { s.cutPower(&s.wireStorm) })
	case s.failed || n == 1:
		s.restart(func() { s.reopen(&s.wireStorm) })
	}
	s.calm()
	s.settle()
	s.sendAgain()
	s.wireClient.lookAtAll()
	s.lookAtExpiring()
	if reply := s.works(bson.D{{Key: "validate", Value: "c"}}); !reply.Lookup("valid").Boolean() {
		s.fatalf("%v", reply)
	}
}

// restart notes what no restart leaves.
func (s *hourStorm) restart(do func()) {
	do()
	for _, k := range s.things {
		k.lost = true
	}
}

// settle notes that from now on nothing fails.
func (s *hourStorm) settle() { s.quiet = time.Now() }

// hourSteps are what a step may be, each as often as its weight says.
var hourSteps = []stormStep[*hourStorm]{
	{10, func(s *hourStorm) { s.wireClient.write() }},
	{3, func(s *hourStorm) { s.wireClient.transaction() }},
	{2, func(s *hourStorm) { s.walk() }},
	{2, func(s *hourStorm) { s.ask() }},
	{6, (*hourStorm).insertExpiring},
	{1, (*hourStorm).changeExpiry},
	{3, func(s *hourStorm) {
		if s.fault == "" {
			s.lookAtExpiring()
		}
	}},
	{4, (*hourStorm).tell},
	{3, (*hourStorm).keepSession},
	{2, (*hourStorm).keepCursor},
	{2, (*hourStorm).keepMoment},
	{2, (*hourStorm).keepTransaction},
	{2, (*hourStorm).keepStream},
	{16, (*hourStorm).useKept},
	{1, func(s *hourStorm) { s.stormDevice.judge("checkpoint", s.store.DB().Checkpoint(ctx)) }},
	{10, (*hourStorm).sleep},
}

// sleep lets time pass, but for a fault seconds.
func (s *hourStorm) sleep() {
	rng := s.wireClient.rng
	most := []time.Duration{time.Second, 20 * time.Second, 3 * time.Minute, 12 * time.Minute, 40 * time.Minute, 90 * time.Minute}
	n := rng.IntN(len(most))
	if s.fault != "" {
		n = 0
	}
	d := time.Duration(rng.Int64N(int64(most[n])))
	s.note("sleep %v", d)
	time.Sleep(d)
}

// end waits until everything has been forgotten.
func (s *hourStorm) end() {
	s.t.Helper()
	s.restart(func() { s.reopen(&s.wireStorm) })
	s.settle()
	s.wireClient.lookAtAll()
	time.Sleep(65 * time.Minute)
	s.lookAtExpiring()
	for _, id := range s.sessions {
		if n, _, err := s.store.NewestNumber(id); n != -1 || err != nil {
			s.fatalf("session %q is remembered with %d, %v", id, n, err)
		}
	}
	if st := s.server.Statistics(); st.Cursors != 0 || st.Transactions != 0 {
		s.fatalf("left open: %+v", st)
	}
	if m := s.store.DB().Metrics(); m.Readers > 1 {
		s.fatalf("left behind: %+v", m)
	}
	report, err := s.store.DB().Check(ctx)
	s.must("check", err)
	s.must("check", report.Err())
	s.must("close", s.close())
	s.noLeaks("")
}
