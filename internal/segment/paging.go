package segment

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/pandodb/pando/internal/clock"
)

// Where memory is short the system takes pages of mappings back as fast as they come. A read out of a mapping then waits for the device
// once for each page of 4 KiB, and its thread with it, where a call asks for all of a blob at once: in a process with 91 MiB of memory and
// 140 MB of segments a load took 1.7 times as much processor time as with calls, and a scan almost four times. So a Store looks now and then
// how often the process has had to wait for pages. When that is often, blobs are read with calls for a while.

const (
	// lookReads is how many reads out of a mapping there are between two looks, about.
	lookReads = 256
	// mostFaults is how many pages the process may have waited for between two looks: some are those of its program, or of others.
	mostFaults = 16
	// leastPause is for how long blobs are read with calls at first. It doubles up to mostPause while memory stays short.
	leastPause = time.Second
	mostPause  = 32 * time.Second
)

// paging tells whether mappings do more harm than good.
type paging struct {
	clock  clock.Clock
	begin  time.Time
	faults func() int64 // for how many pages the process has waited so far
	forget func()       // forgets which pages are believed to be in memory

	calls atomic.Bool  // blobs are read with calls
	until atomic.Int64 // ... until so long behind begin
	mu    sync.Mutex   // guards the rest, and changes of calls
	seen  int64        // faults at the last look
	pause time.Duration
}

func (x *paging) init(c clock.Clock, faults func() int64, forget func()) {
	x.clock, x.begin, x.faults, x.forget = c, c.Now(), faults, forget
	x.seen = faults()
}

func (x *paging) now() time.Duration { return x.clock.Now().Sub(x.begin) }

// withCalls reports whether blobs are to be read with calls.
func (x *paging) withCalls() bool { return x.calls.Load() && !x.over() }

// over ends the time of calls when it is due.
func (x *paging) over() bool {
	if int64(x.now()) < x.until.Load() {
		return false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.calls.Load() {
		x.seen = x.faults() // what others have waited for meanwhile does not count
		x.calls.Store(false)
	}
	return true
}

// look counts the faults since the last look.
func (x *paging) look() {
	if !x.mu.TryLock() {
		return // somebody looks
	}
	defer x.mu.Unlock()
	n := x.faults()
	fresh := n - x.seen
	x.seen = n
	now := x.now()
	switch {
	case x.calls.Load():
	case fresh >= mostFaults:
		x.pause = min(max(2*x.pause, leastPause), mostPause)
		x.until.Store(int64(now + x.pause))
		x.forget()
		x.calls.Store(true)
	case int64(now-x.pause) >= x.until.Load():
		x.pause = 0 // it has been calm for as long
	}
}

// mappingOf is the mapping of a file, if there is one and blobs are read out of it. The caller is inside, or touches nothing of it.
func (s *Store) mappingOf(f *file) *mapped {
	if s.paging.withCalls() {
		return nil
	}
	return f.mapped.Load()
}

// forgetMarks forgets which pages of files are believed to be in memory.
func (s *Store) forgetMarks() {
	for _, f := range s.files.Load().places {
		if f == nil {
			continue
		}
		if m := f.mapped.Load(); m != nil {
			for i := range m.warm {
				m.warm[i].Store(0)
			}
		}
	}
}
