package race

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/server/mongo"
	"github.com/pandodb/pando/vfs/memfs"
)

var (
	faultSeed  = flag.Uint64("fault.seed", 1, "the first seed of devices that fail while everything is done at once")
	faultSeeds = flag.Int("fault.seeds", 1, "how many seeds there are of them")
)

// TestStoreDoesEverythingWhereTheDeviceFails is TestStoreDoesEverythingAtOnce on a device that fails now and then, or is full, or slow: every
// error says what it comes from, nobody waits for ever, nothing is left open, and behind a closing, a kill or a power cut all is there that
// witnesses were told was written. What happens is not the seed's alone.
func TestStoreDoesEverythingWhereTheDeviceFails(t *testing.T) {
	eachFaultyRun(t, (*faultyRun).callStore)
}

// TestServerDoesEverythingWhereTheDeviceFails is that for clients of the server.
func TestServerDoesEverythingWhereTheDeviceFails(t *testing.T) {
	eachFaultyRun(t, (*faultyRun).callServer)
}

// faultyRun is a store on a device that fails, those who use it, and what witnesses know of it.
type faultyRun struct {
	*device
	t         *testing.T
	seed      uint64
	profile   pando.Profile
	opened    uint64 // times
	failed    atomic.Bool
	witnesses [3]witness
	raised    tally // the counters
}

func eachFaultyRun(t *testing.T, use func(r *faultyRun, s *document.Store)) {
	for i := range uint64(*faultSeeds) {
		seed := *faultSeed + i
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			r := &faultyRun{t: t, seed: seed, device: newDevice(seed), profile: []pando.Profile{pando.Durable, pando.Durable, pando.Relaxed}[seed%3]}
			for n := range r.witnesses {
				r.witnesses[n].n = n
			}
			for range 2 {
				s := r.comeUp()
				use(r, s)
				r.noLeaks()
				r.calm()
				r.interrupt()
				s = r.comeUp()
				r.lookAtAll(s)
				if t.Failed() {
					return
				}
			}
		})
	}
}

func (r *faultyRun) fail(format string, args ...any) {
	r.t.Helper()
	r.t.Errorf("%s\nseed %d, %v: %s", r.last(20), r.seed, r.profile, fmt.Sprintf(format, args...))
}

// comeUp opens the store.
func (r *faultyRun) comeUp() *document.Store { return comeUp(r, r.open) }

// comeUp opens a store or a database, without a fault at the latest.
func comeUp[T any](r *faultyRun, open func() (T, error)) T {
	r.t.Helper()
	r.opened++
	r.failed.Store(false)
	if r.profile == pando.Durable && r.rng.IntN(2) == 0 {
		r.begin()
		opened, err := open()
		r.calm()
		if err == nil {
			return opened
		}
		r.excuses("", err)
		r.noLeaks()
	}
	opened, err := open()
	if err != nil {
		r.fail("open: %v", err)
		r.t.FailNow()
	}
	return opened
}

func (r *faultyRun) open() (*document.Store, error) {
	return document.Open("db", storeOptions(r.fs, r.profile))
}

func (r *faultyRun) noLeaks() {
	r.t.Helper()
	if leaks := r.fs.Leaks(); len(leaks) > 0 {
		r.fail("left open: %v", leaks)
	}
}

// callStore calls the store from many goroutines while faults come and go, and closes it in the midst of that.
func (r *faultyRun) callStore(s *document.Store) {
	var callers sync.WaitGroup
	for g := range uint64(8) {
		callers.Go(func() {
			c := storeCall{ctx: context.Background(), s: s, rng: r.fork(g), session: fmt.Sprint("session ", g)}
			for {
				if err := c.anything(); errors.Is(err, document.ErrClosed) || err != nil && !r.excuses("", err) {
					return
				}
			}
		})
	}
	for n := range r.witnesses {
		callers.Go(func() { r.witnesses[n].callStore(r, s, r.fork(uint64(100+n))) })
	}
	callers.Go(func() { r.copyAgainAndAgain(s) })
	r.strikeAndClose(s.Close, &callers)
}

// strikeAndClose has faults come and go, and closes what the callers are calling.
func (r *faultyRun) strikeAndClose(closeIt func() error, callers *sync.WaitGroup) {
	r.strikeWhile()
	closed := make(chan error, 1)
	go func() {
		err := closeIt()
		callers.Wait()
		closed <- r.ofDevice(err)
	}()
	ends(r.t, "Close, and the calls that run", closed)
}

// callServer has clients of a server send commands while faults come and go, and closes it in the midst of that.
func (r *faultyRun) callServer(store *document.Store) {
	s, err := mongo.New(store, &mongo.Options{MaxCursors: 50, MaxTransactions: 20, MaxMessageBytes: 64 << 20})
	if err != nil {
		r.fail("serve: %v", err)
		return
	}
	stop, shared := make(chan struct{}), new(sharedCursors)
	var clients sync.WaitGroup
	connect := func(rng *rand.Rand, do func(c *serverCall) bool) {
		clients.Go(func() {
			c := &serverCall{t: r.t, s: s, rng: rng, cursors: shared, faulty: true}
			c.dial()
			defer c.hangUp()
			for do(c) {
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	for g := range uint64(8) {
		connect(r.fork(g), func(c *serverCall) bool {
			c.impatient = true
			return c.anything()
		})
	}
	for n := range r.witnesses {
		connect(r.fork(uint64(100+n)), func(c *serverCall) bool { return r.witnesses[n].callServer(r, c) })
	}
	r.strikeWhile()
	closed := make(chan error, 1)
	go func() {
		var err error
		if r.opened%4 == 1 { // in every other run the clients go first, and leave open what they have
			close(stop)
			clients.Wait()
			err = nothingOpen(r.t, s)
		}
		err = errors.Join(err, s.Close())
		clients.Wait()
		closed <- errors.Join(err, r.ofDevice(store.Close()))
	}()
	ends(r.t, "Close, and the commands that run", closed)
}

// fork returns random numbers for one of those who use the store.
func (r *faultyRun) fork(n uint64) *rand.Rand { return rand.New(rand.NewPCG(r.seed<<8+r.opened, n)) }

// strikeWhile lets faults come and go for a while, not much longer than the store takes writes.
func (r *faultyRun) strikeWhile() {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		r.strike(stop)
		close(stopped)
	}()
	for range 10 {
		time.Sleep(20 * time.Millisecond)
		if r.failed.Load() {
			break
		}
	}
	close(stop)
	<-stopped
	if r.rng.IntN(2) == 0 { // else the last fault meets the closing, too
		r.calm()
	}
}

// ofDevice drops an error whose reason is the device.
func (r *faultyRun) ofDevice(err error) error {
	r.note("close: %v", err)
	if err != nil && isOfDevice(err) {
		return nil
	}
	return err
}

// excuses reports whether an error, or the text of one, says that the device is its reason; else the test fails.
func (r *faultyRun) excuses(text string, err error) bool {
	switch {
	case errors.Is(err, pando.ErrFailed), strings.Contains(text, pando.ErrFailed.Error()):
		r.failed.Store(true)
		time.Sleep(time.Millisecond) // no writer gets any further
	case err != nil && isOfDevice(err), err == nil && saysDevice(text):
	default:
		r.fail("%v (code %d) %s", err, document.CodeOf(err), text)
		return false
	}
	return true
}

// interrupt goes on with what a kill or a power cut leaves, now and then.
func (r *faultyRun) interrupt() {
	switch n := r.rng.IntN(3); {
	case n == 0 && r.profile == pando.Durable:
		policy := memfs.Policy{Unsynced: memfs.Random, Seed: r.rng.Uint64(), Torn: 512, Reordered: r.rng.IntN(2) == 0, Stale: r.rng.IntN(2) == 0}
		r.note("power cut: %+v", policy)
		r.plug(r.base.CrashImage(policy))
	case n == 1:
		r.note("kill")
		r.plug(r.base.KillImage())
	}
}

// lookAtAll looks at all that is there, and closes the store.
func (r *faultyRun) lookAtAll(s *document.Store) {
	r.t.Helper()
	ctx := context.Background()
	validateAll(r.t, s)
	own, counters := r.read(s)
	for n := range r.witnesses {
		for i := range r.witnesses[n].own {
			r.settle(fmt.Sprintf("document %d of witness %d", i, n), &r.witnesses[n].own[i], own[r.witnesses[n].id(i)])
		}
	}
	r.settle("the counter", &r.raised, counters)
	if err := s.DB().Checkpoint(ctx); err != nil { // a root slot that was torn is made anew
		r.fail("checkpoint: %v", err)
	}
	report, err := s.DB().Check(ctx)
	if err := errors.Join(err, report.Err(), s.Close()); err != nil {
		r.fail("check and close: %v", err)
	}
	r.noLeaks()
}

// read reads what the witnesses have raised, each by its _id, and the counters.
func (r *faultyRun) read(s *document.Store) (own map[int32]int64, counters int64) {
	r.t.Helper()
	ctx := context.Background()
	own = map[int32]int64{}
	for doc, err := range s.Database(kept).Lookup("own").Find(ctx, nil, nil) {
		if err != nil {
			r.fail("find: %v", err)
			break
		}
		own[int32(doc.Lookup("_id").AsInt64())], _ = doc.Lookup("n").AsInt64OK()
	}
	var counts [2]int64
	for i, name := range []string{"left", "right"} {
		doc, err := s.Database(kept).Lookup(name).Get(ctx, counter)
		if err != nil && !errors.Is(err, document.ErrNotFound) {
			r.fail("get: %v", err)
		}
		counts[i], _ = doc.Lookup("n").AsInt64OK()
	}
	if counts[0] != counts[1] {
		r.fail("half a transaction: %v", counts)
	}
	return own, counts[0]
}

// copyAgainAndAgain makes backups of the store until it is closed, and looks whether each is whole and has what was written before.
func (r *faultyRun) copyAgainAndAgain(s *document.Store) {
	dir := fmt.Sprint("copy", r.opened)
	for {
		before := r.sure()
		err := s.DB().Backup(context.Background(), dir)
		switch {
		case errors.Is(err, pando.ErrClosed):
			return
		case err != nil:
			if !r.excuses("", err) {
				return
			}
		default:
			r.lookAtCopy(dir, before)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// sure returns how often each document of the witnesses was raised for certain.
func (r *faultyRun) sure() map[int32]int64 {
	sure := map[int32]int64{}
	for n := range r.witnesses {
		for i := range r.witnesses[n].own {
			sure[r.witnesses[n].id(i)] = r.witnesses[n].own[i].sure.Load()
		}
	}
	return sure
}

// lookAtCopy opens a backup, as a kill leaves it.
func (r *faultyRun) lookAtCopy(dir string, before map[int32]int64) {
	image := r.base.KillImage()
	image.SetCapacity(0)
	s, err := document.Open(dir, storeOptions(image, r.profile))
	if err != nil {
		r.fail("open a copy: %v", err)
		return
	}
	validateAll(r.t, s)
	own, _ := r.read(s)
	for id, n := range before {
		if own[id] < n {
			r.fail("%d was raised %d times before it was copied, and is %d there", id, n, own[id])
		}
	}
	if err := s.Close(); err != nil {
		r.fail("close a copy: %v", err)
	}
}

// settle compares what was raised with what it is.
func (r *faultyRun) settle(what string, t *tally, is int64) {
	r.t.Helper()
	if sure, maybe := t.sure.Load(), t.maybe.Load(); is < sure || is > sure+maybe {
		r.fail("%s was raised %d times, and %d times perhaps; it is %d", what, sure, maybe, is)
	}
	t.sure.Store(is)
	t.maybe.Store(0)
}
