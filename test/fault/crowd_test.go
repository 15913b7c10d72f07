package fault

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs/memfs"
)

// onlyAsked is how many storms there are, of kinds that may stand still, where no number is asked for. The clock of a synctest does not go on
// while somebody waits for a mutex whose holder waits for time to pass: who drops an index waits for the lock that others hold while their
// commit waits for the next attempt to settle. In the engine nobody who waits for time holds a mutex.
const onlyAsked = 0

// crowd is a device with faults and several writers at once, who raise a counter besides.
type crowd struct {
	stormDevice
	cutting atomic.Bool  // what is acknowledged from now on may come too late for the power cut
	fails   atomic.Bool  // somebody has been told that the database takes no more writes
	raised  atomic.Int64 // times that the counter was raised, for certain
	maybe   atomic.Int64 // times that it may have been besides
}

// opened notes that the database was opened.
func (s *crowd) opened(err error) error {
	s.fails.Store(false)
	return s.stormDevice.opened(err)
}

// cut has nothing to note: what was acknowledged in time survives.
func (s *crowd) cut(bool) { s.cutting.Store(false) }

// meet has nothing to find out.
func (s *crowd) meet() {}

// reopen closes what runs on the device and opens it again, without the fault at the latest.
func (s *crowd) reopen(d stormed) {
	s.t.Helper()
	_ = s.shut(d)
	s.comeUp(d)
}

// write lets all writers write, and cuts the power of what runs on the device meanwhile, now and then.
func (s *crowd) write(d stormed, writers int, run func(n int)) {
	s.t.Helper()
	var all sync.WaitGroup
	for n := range writers {
		all.Go(func() { run(n) })
	}
	var image *memfs.FS
	var kill bool
	if s.fault != "" {
		time.Sleep(time.Duration(s.rng.IntN(600)) * time.Millisecond)
		if s.rng.IntN(3) == 0 {
			s.cutting.Store(true)
			image, kill = s.powerCut()
		}
	}
	all.Wait()
	if s.t.Failed() {
		s.fatalf("see above")
	}
	s.failed = s.fails.Load()
	if image != nil {
		s.moveTo(d, image, kill)
	}
}

// judge looks at an error of a writer, and reports whether there is one. It has to say what it comes from.
func (s *crowd) judge(n int, what string, err error) bool {
	if err == nil {
		return false
	}
	s.note("writer %d, %s: %v", n, what, err)
	switch {
	case errors.Is(err, pando.ErrFailed):
		if s.fails.Store(true); s.fault == "" {
			s.fail(n, "%s: failed without a fault: %v", what, err)
		}
	case !isOfFault(err):
		s.fail(n, "%s: an error that says nothing of its cause: %v", what, err)
	case s.fault == "":
		s.fail(n, "%s: an error without a fault: %v", what, err)
	}
	return true
}

func (s *crowd) fail(n int, format string, args ...any) {
	s.t.Errorf("seed %d, writer %d: %s", s.seed, n, fmt.Sprintf(format, args...))
}

// unsure reports whether what was written, with an error or without, may be there and may be not.
func (s *crowd) unsure(err error) bool { return err != nil || s.cutting.Load() }

// raise notes that the counter was raised, or may have been.
func (s *crowd) raise(err error) {
	switch {
	case foundNoRoom(err):
	case s.unsure(err):
		s.maybe.Add(1)
	default:
		s.raised.Add(1)
	}
}

// counted compares the counter, which has settled, with how often it was raised.
func (s *crowd) counted(count int64) {
	s.t.Helper()
	if count < s.raised.Load() || count > s.raised.Load()+s.maybe.Load() {
		s.fatalf("the counter is %d, was raised %d times, and %d times perhaps", count, s.raised.Load(), s.maybe.Load())
	}
	s.raised.Store(count)
	s.maybe.Store(0)
}
