package cache

import (
	"errors"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pandodb/pando/internal/epoch"
	"github.com/pandodb/pando/internal/page"
)

// TestStress lets readers verify every page that they get or keep pinned while others insert, drop and resize. Under the race
// detector the memory is on the Go heap, so that it sees a frame that is reused too early.
func TestStress(t *testing.T) {
	const pages = 600
	c, d := newCache(t, 2<<20)
	raw := make([][]byte, pages)
	for i := range raw {
		raw[i] = content(uint64(i), []int{500, 3000, 4000, 5000, 12000}[i%5])
	}
	var slots [pages]atomic.Uint64
	var hits, misses, busy atomic.Int64
	deadline := time.Now().Add(usualStress)
	if raceEnabled {
		deadline = time.Now().Add(1500 * time.Millisecond) // whom it is for
	}
	var wg sync.WaitGroup
	for worker := range uint64(4) {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(worker, 1))
			for time.Now().Before(deadline) {
				n := uint64(rnd.IntN(rnd.IntN(pages) + 1))
				h := Handle(slots[n].Load())
				pinned := rnd.IntN(8) == 0
				g := d.Enter()
				var p page.Page
				var ok bool
				if pinned {
					p, ok = c.Pin(h)
					g.Exit()
				} else {
					p, ok = c.Get(h)
				}
				if ok {
					hits.Add(1)
					if rnd.IntN(16) == 0 {
						runtime.Gosched()
					}
					if err := verify(p, n); err != nil {
						t.Error(err)
					}
				}
				switch {
				case !pinned:
					g.Exit()
				case ok:
					c.Unpin(h)
				}
				if ok && rnd.IntN(50) == 0 {
					c.Drop(h)
				}
				if ok {
					continue
				}
				misses.Add(1)
				fresh, err := c.Insert(raw[n], 1)
				if errors.Is(err, ErrBusy) {
					busy.Add(1)
					continue
				}
				if err != nil {
					t.Error(err)
				}
				if !slots[n].CompareAndSwap(uint64(h), uint64(fresh)) {
					c.Drop(fresh)
				}
			}
		})
	}
	wg.Go(func() {
		for size := int64(1); time.Now().Before(deadline); size++ {
			c.Resize(2<<20 - size%8*(200<<10))
			if s := c.Stats(); s.Bytes > 2<<20 {
				t.Errorf("%d bytes in use", s.Bytes)
			}
			time.Sleep(5 * time.Millisecond)
		}
	})
	wg.Wait()
	t.Logf("%d hits, %d misses, %d busy; %+v", hits.Load(), misses.Load(), busy.Load(), c.Stats())
	checkDrained(t, c, d)
}

// checkDrained takes the whole budget away and expects nothing to be left.
func checkDrained(t *testing.T, c *Cache, d *epoch.Domain) {
	t.Helper()
	c.Resize(0)
	for d.Collect() > 0 {
	}
	if err := c.audit(); err != nil {
		t.Error(err)
	}
	if s := c.Stats(); s.Bytes != 0 || s.Pinned != 0 || len(c.kept) != 0 {
		t.Errorf("left in the end: %+v", s)
	}
}

// Frames are reclaimed ahead of need: a load of nothing but misses never finds the cache busy, though there is always a reader
// that has been in its section for several inserts.
func TestReclaimsAhead(t *testing.T) {
	const pages, overlap = 4000, 8
	c, d := newCache(t, 8<<20)
	raw := make([][]byte, pages)
	for i := range raw {
		raw[i] = content(uint64(i), 4000+i%3*2000)
	}
	g := d.Enter()
	for i := range 5 * pages {
		if i%overlap == 0 {
			g.Exit()
			g = d.Enter()
		}
		if _, err := c.Insert(raw[i*7%pages], 1); err != nil {
			t.Fatalf("insert %d: %v", i, err)
		}
	}
	g.Exit()
	if s := c.Stats(); s.PageBytes*10 < s.Limit*8 {
		t.Errorf("frames with pages take %d of %d bytes", s.PageBytes, s.Limit)
	}
}

// residentBytes is the physical memory of this process.
func residentBytes(t *testing.T) int64 {
	t.Helper()
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip("the system does not tell what memory the process takes")
	}
	pages, err := strconv.ParseInt(strings.Fields(string(statm))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

func TestResidentMemory(t *testing.T) {
	if raceEnabled {
		t.Skip("frames are on the Go heap")
	}
	const budget = 96 << 20
	raw := content(1, 12000)
	c, _ := newCache(t, budget)
	debug.FreeOSMemory() // else the runtime gives back what earlier tests have left while this one counts
	before := residentBytes(t)
	fill := func() {
		for range 2 * budget / len(raw) {
			if _, err := c.Insert(raw, 1); err != nil {
				t.Fatal(err)
			}
		}
	}
	fill()
	const slack = 4 << 20
	full := residentBytes(t) - before
	c.Resize(budget / 4)
	shrunk := residentBytes(t) - before
	fill()
	again := residentBytes(t) - before
	t.Logf("full %d, shrunk %d, filled again %d", full, shrunk, again)
	if full > budget+slack || shrunk > budget/4+slack || again > budget/4+slack {
		t.Error("more memory than the budget allows")
	}
	if full < budget*3/4 {
		t.Error("the budget is not used")
	}
	c.Resize(budget)
	fill()
	if s := c.Stats(); s.Bytes != budget {
		t.Errorf("%+v", s)
	}
}
