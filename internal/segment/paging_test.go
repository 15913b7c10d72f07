package segment

import (
	"testing"
	"time"

	"github.com/pandodb/pando/internal/clock"
)

// shortage is a store whose process waits for pages as often as the test says, at the time that the test says.
type shortage struct {
	*Store
	clock  *clock.Manual
	faults int64
	looks  int // at the faults
	*testing.T
	pointers []Pointer
	contents [][]byte
}

func newShortage(t *testing.T) *shortage {
	s, pointers, contents := mappedStore(t)
	mappingAt(t, s, pointers[0])
	x := &shortage{Store: s, clock: clock.NewManual(time.Unix(1e9, 0)), T: t, pointers: pointers, contents: contents}
	s.paging.init(x.clock, func() int64 { x.looks++; return x.faults }, s.forgetMarks)
	return x
}

// readOn reads so many blobs that somebody looks, or would, and waits for pages meanwhile.
func (x *shortage) readOn(faults int64) {
	x.Helper()
	x.faults += faults
	before := x.looks
	for i := range 4 * lookReads * sampleOneIn {
		if x.looks > before {
			return
		}
		mustRead(x.T, x.Store, x.pointers[i%len(x.pointers)], x.contents[i%len(x.pointers)])
	}
}

func (x *shortage) want(calls bool, when string) {
	x.Helper()
	if got := x.paging.withCalls(); got != calls {
		x.Errorf("%s: read with calls %v, want %v", when, got, calls)
	}
}

func TestBlobsAreReadWithCallsWhereMemoryIsShort(t *testing.T) {
	x := newShortage(t)
	x.readOn(mostFaults - 1)
	x.want(false, "after a few faults")
	x.readOn(mostFaults)
	x.want(true, "after many faults")
	if m := mappingAt(t, x.Store, x.pointers[0]); m.holds(int64(x.pointers[0].Offset), 1) {
		t.Error("a page is still believed to be in memory")
	}
	x.readOn(100 * mostFaults) // which are not those of reads out of mappings
	x.clock.Advance(leastPause)
	x.want(false, "after the pause")
	x.readOn(mostFaults - 1)
	x.want(false, "after a few faults since, those of the pause do not count")

	x.readOn(mostFaults)
	x.want(true, "when memory is still short")
	x.clock.Advance(leastPause)
	x.want(true, "after the time of the first pause")
	x.clock.Advance(leastPause)
	x.want(false, "after twice the time")

	x.clock.Advance(2 * leastPause)
	x.readOn(0)
	x.readOn(mostFaults)
	x.want(true, "when memory is short again, after it was not")
	x.clock.Advance(leastPause)
	x.want(false, "after the time of the first pause")
}

func TestPausesAreBounded(t *testing.T) {
	x := newShortage(t)
	for range 20 {
		x.readOn(mostFaults)
		x.want(true, "when memory is short")
		x.clock.Advance(mostPause)
		x.want(false, "after the longest pause")
	}
}
