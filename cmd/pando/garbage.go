package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"

	"github.com/pandodb/pando/internal/offheap"
)

// Most of what a server keeps lies outside of the Go heap, which therefore holds a few megabytes; and Go collects garbage when there is
// as much of it as of what is in use. So a busy server would collect it many times a second, stop all threads each time, and lose the
// buffers of large messages that it keeps for the next ones. Instead so much garbage may gather, however little is in use.
const (
	garbageShare    = 16 // part of the memory for caches and buffers
	leastGarbage    = 4 << 20
	mostGarbage     = 64 << 20
	memoryShare     = 8   // of the machine's, or the container's: what serve takes when it is not told
	usualGarbage    = 100 // per cent of what is in use
	leastHeap       = 4 << 20
	garbageVariable = "GOGC" // who sets it knows better
)

// garbageFor is how much garbage may gather in a server with so much memory for caches and buffers; 0: with the usual amount.
func garbageFor(memory int64) int64 {
	if memory == 0 {
		memory = offheap.AvailableMemory() / memoryShare
	}
	return min(max(memory/garbageShare, leastGarbage), mostGarbage)
}

// garbage is collected when room bytes of it have gathered, or, as usual, as many as are in use.
type garbage struct {
	room uint64

	mu      sync.Mutex
	percent int // that the collector has been told
	before  int
	ended   bool
}

// letGather lets garbage gather until the function that it returns is called.
func letGather(room int64) (end func()) {
	if os.Getenv(garbageVariable) != "" {
		return func() {}
	}
	g := &garbage{room: uint64(room), percent: usualGarbage}
	g.before = debug.SetGCPercent(g.percent)
	g.adapt()
	return g.end
}

// adapt tells the collector what to do after what is in use has changed: each time that it has run.
func (g *garbage) adapt() {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended {
		return
	}
	percent := usualGarbage
	if live[0].Value.Kind() == metrics.KindUint64 {
		percent = g.percentFor(live[0].Value.Uint64())
	}
	// All threads stop for each change, so small ones are not made.
	if 5*percent < 4*g.percent || 4*percent > 5*g.percent {
		g.percent = percent
		debug.SetGCPercent(percent)
	}
	runtime.AddCleanup(new(collection), (*garbage).adapt, g)
}

// collection stands for the next run of the collector: nobody refers to it, so it is found then. It has a pointer because small things
// without one share their memory with others, and live as long as those.
type collection struct{ _ *garbage }

// percentFor is how much garbage may gather, in per cent of what is in use. Go counts less than leastHeap as that much.
func (g *garbage) percentFor(live uint64) int {
	return max(usualGarbage, int(usualGarbage*g.room/max(live, leastHeap)))
}

// end makes the collector run as it did.
func (g *garbage) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ended = true
	debug.SetGCPercent(g.before)
}
