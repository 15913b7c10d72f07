package engine

import (
	"sync/atomic"
	"time"

	"github.com/pandodb/pando/internal/command"
)

// clockMark is the moment behind which the database's clock never goes, so that a record that has expired stays expired
// when the system's clock jumps back: the root keeps it, and so does the log.
type clockMark struct {
	high    atomic.Uint64 // Unix milliseconds
	written atomic.Uint64 // the mark that the log or a root holds
	used    atomic.Bool   // a record was hidden because it had expired, since the mark was last written

	// The command that wrote the mark last, and the newest one before it that did something else: none between them did. Changed by who leads.
	marked, before atomic.Uint64
}

// raise lifts the mark.
func (c *clockMark) raise(to uint64) { raise(&c.high, to) }

// clockDelay is how much a jump back of the clock can give back to expired records at most.
const clockDelay = time.Second

// keepClock is a background goroutine of its own: the mark must not lag behind while the worker settles, nor while others write.
func (e *Engine) keepClock() {
	for {
		select {
		case <-e.ctx.Done():
			return
		case <-e.o.Clock.After(clockDelay):
		}
		e.markClock()
	}
}

// markClock writes the clock's mark into the log when expiry is in use and the mark has moved. It waits in line with those who write.
func (e *Engine) markClock() {
	if !e.clock.used.Load() || e.Now() < e.clock.written.Load()+uint64(clockDelay/time.Millisecond) {
		return
	}
	var r request
	e.pipeline.Acquire(&r)
	defer e.pipeline.Release()
	if v := e.current.Load(); len(v.Tables) > 1 && !e.goesOn(v.Tables[0], 1, 0) {
		return // it would wait until something has settled, and everybody with it
	}
	e.clock.used.Store(false) // before the moment is taken: who hides a record from now on says so again
	high := e.Now()
	var enc command.Encoder
	enc.Clock(high)
	marked, before := e.clock.marked.Load(), e.clock.before.Load()
	if marked != e.lastSeq {
		e.clock.before.Store(e.lastSeq)
	}
	e.clock.marked.Store(e.lastSeq + 1) // before anybody sees it
	r.Commands, r.Count, r.Sync = enc.Payload(), 1, e.o.Profile == Durable
	if err := e.pipeline.Carry(&r); err != nil {
		e.clock.marked.Store(marked)
		e.clock.before.Store(before)
		e.clock.used.Store(true) // the next round tries again
		return
	}
	e.clock.written.Store(high)
}

// writtenUpTo is the newest command up to seq that did more than to write the clock's mark, where seq is the newest one that readers see.
func (e *Engine) writtenUpTo(seq uint64) uint64 {
	marked := e.clock.marked.Load() // the later one may be on its way
	if before := e.clock.before.Load(); before < seq && seq <= marked {
		return before
	}
	return seq
}

// Now returns the moment by which expiry is judged, in Unix milliseconds: the system's clock, or the mark when that is later.
func (e *Engine) Now() uint64 {
	e.clock.raise(uint64(max(e.o.Clock.Now().UnixMilli(), 0)))
	return e.clock.high.Load()
}
