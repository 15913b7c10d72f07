package engine

import (
	"sync/atomic"
)

// clockMark is the moment behind which the database's clock never goes, so that a record that has expired stays expired
// when the system's clock jumps back: the root keeps it, and so does the log.
type clockMark struct {
	high    atomic.Uint64 // Unix milliseconds
	written atomic.Uint64 // the mark that the log or a root holds
	used    atomic.Bool   // a record was hidden because it had expired, since the mark was last written
}

// raise lifts the mark.
func (c *clockMark) raise(to uint64) {
	for {
		old := c.high.Load()
		if to <= old || c.high.CompareAndSwap(old, to) {
			return
		}
	}
}

// Now returns the moment by which expiry is judged, in Unix milliseconds: the system's clock, or the mark when that is later.
func (e *Engine) Now() uint64 {
	e.clock.raise(uint64(max(e.o.Clock.Now().UnixMilli(), 0)))
	return e.clock.high.Load()
}
