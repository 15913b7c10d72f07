// Package epoch tells when the last reader that could still see a piece of memory has left, so that memory outside of the
// Go heap can be reused.
//
// Readers bracket a short section with Enter and Exit. A writer first unlinks what it wants to reuse, so that no reader
// that enters later can find it, then hands Retire a function; the function runs, inside of some later Collect, once every
// reader that was inside at that moment has left. It never runs earlier, it never runs twice, and it always runs: at the
// latest in Close.
//
// The method is that of sleepable RCU (P. McKenney, "Sleepable RCU", LWN 2006): two sets of counters, of which readers
// use one; the phase flips only when the other is at rest. Unlike there, a reader makes sure after it has counted itself
// that the phase has not flipped in between, so that one flip is enough.
//
// Enter and Exit cost one atomic addition each on a cache line that few readers share; they never allocate, block or
// fail. A reader that stays inside delays all reuse and blocks nobody. Sections nest.
package epoch

import (
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"
)

// Domain is one set of readers and the memory that they protect. Make it with New.
type Domain struct {
	shards []shard
	shift  uint

	phase atomic.Uint64 // its lowest bit says which counters readers use
	_     [120]byte     // readers load phase all the time: what follows is written by others

	collecting sync.Mutex // held while a phase is examined and functions run

	mu      sync.Mutex // guards retired
	retired []retirement
}

// retirement is a function that waits for the readers of phases up to and including its own.
type retirement struct {
	phase uint64
	fn    func()
}

// shard holds the number of readers inside, by the lowest bit of the phase in which they entered. Two cache lines wide,
// since processors fetch lines in pairs.
type shard struct {
	readers [2]atomic.Int32
	_       [120]byte
}

// Guard is a reader's presence in a section, from Enter to Exit.
type Guard struct{ readers *atomic.Int32 }

const (
	shardsPerCPU = 4
	maxShards    = 256
)

// New returns a domain without readers.
func New() *Domain {
	want := min(uint(runtime.GOMAXPROCS(0)*shardsPerCPU), maxShards)
	width := uint(bits.Len(want - 1))
	d := &Domain{shards: make([]shard, 1<<width), shift: 32 - width}
	d.phase.Store(1) // so that there is one before it
	return d
}

// Enter begins a section: what a reader finds from here on stays valid until Exit.
func (d *Domain) Enter() Guard {
	// Two goroutines have different stacks, so the address of a local tells them apart, at no cost. The factor is 2^32
	// divided by the golden ratio; it spreads neighbouring stacks over the shards.
	var local byte
	s := &d.shards[uint32(uintptr(unsafe.Pointer(&local))>>10)*0x9E3779B9>>d.shift]
	for {
		phase := d.phase.Load()
		readers := &s.readers[phase&1]
		readers.Add(1)
		if d.phase.Load() == phase {
			return Guard{readers}
		}
		readers.Add(-1) // the phase flipped before we counted: Collect may have missed us
	}
}

// Exit ends the section. It must be called exactly once for each Enter, from any goroutine.
func (g Guard) Exit() { g.readers.Add(-1) }

// Retire takes a function to run once every reader that is inside now has left. It may be called inside of a section and
// from a retired function.
func (d *Domain) Retire(fn func()) {
	d.mu.Lock()
	// A reader that enters in a later phase does so after this load, hence after the caller unlinked what fn will reuse.
	d.retired = append(d.retired, retirement{d.phase.Load(), fn})
	d.mu.Unlock()
}

// Collect runs the functions that are due, and says how many. It never waits for readers; it does nothing while another
// Collect is at work. Call it now and then, outside of sections for it to be of use.
func (d *Domain) Collect() (ran int) {
	if !d.collecting.TryLock() {
		return 0
	}
	defer d.collecting.Unlock()
	return d.collect()
}

// Drain waits until every reader that is inside now has left, and runs what was retired before the call. It must not be called inside of a
// section or from a retired function. Sections are short, so it waits by yielding.
func (d *Domain) Drain() {
	d.collecting.Lock()
	defer d.collecting.Unlock()
	for last := d.phase.Load(); d.waits(last); {
		if d.collect() == 0 {
			runtime.Gosched()
		}
	}
}

// waits reports whether a function waits for the phases up to the given one.
func (d *Domain) waits(phase uint64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.retired) > 0 && d.retired[0].phase <= phase
}

// collect is Collect with d.collecting held.
func (d *Domain) collect() (ran int) {
	phase := d.phase.Load() // flipped only by us
	if d.Pending() == 0 || !d.left(phase-1) {
		return 0
	}
	// The counters of the previous phase are at rest: its functions are due, and the counters may serve the next phase.
	d.phase.Store(phase + 1)
	due := d.take(phase - 1)
	if d.left(phase) {
		due = append(due, d.take(phase)...)
	}
	for _, r := range due {
		r.fn()
	}
	return len(due)
}

// left reports whether no reader is left of a phase other than the present one. Nobody can enter such a phase, so each
// shard may be looked at at another moment; whoever counts itself there by mistake takes it back without reading.
func (d *Domain) left(phase uint64) bool {
	for i := range d.shards {
		if d.shards[i].readers[phase&1].Load() != 0 {
			return false
		}
	}
	return true
}

// take removes and returns the functions that wait for the phases up to the given one. The list is ordered by phase.
func (d *Domain) take(phase uint64) []retirement {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := 0
	for n < len(d.retired) && d.retired[n].phase <= phase {
		n++
	}
	due := append([]retirement(nil), d.retired[:n]...)
	kept := copy(d.retired, d.retired[n:])
	clear(d.retired[kept:])
	d.retired = d.retired[:kept]
	return due
}

// Pending is the number of functions that have not been started.
func (d *Domain) Pending() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.retired)
}

// Close waits until every reader has left, and runs everything that is still waiting, also what those functions retire.
// It must not be called inside of a section or from a retired function. Sections are short, so it waits by yielding.
func (d *Domain) Close() {
	d.collecting.Lock()
	defer d.collecting.Unlock()
	for d.Pending() > 0 || !d.left(0) || !d.left(1) {
		if d.collect() == 0 {
			runtime.Gosched()
		}
	}
}
