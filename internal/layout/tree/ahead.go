package tree

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/pandodb/pando/internal/layout"
)

const (
	// aheadAfter is how many leaves in order a cursor reads from the disk before it starts to read ahead.
	aheadAfter = 3
	// aheadLeaves is how many leaves are read ahead at a time. Starting a goroutine, and waking the one that waits for it, takes as
	// long as reading one.
	aheadLeaves = 16
)

// prefetcher reads the leaves that a cursor is about to reach while the caller looks at earlier ones. One goroutine at a time, with
// one that helps it, reads a run of leaves of one node; it ends by itself, and the cursor's Close waits for it. What the cache does not take is
// kept in memory of the prefetcher: that of the run that the cursor goes over, and that of the one being read.
type prefetcher struct {
	last    step // the leaf that the cursor read last
	inOrder int  // leaves read one after the other
	step    int  // 1 or -1
	once    bool // what is read stays out of the cache
	run     *run // that the cursor goes over, or is about to reach; nil: none
	next    *run // the one behind it, nil: not begun
	turn    int  // which of the rooms the next run gets
	memory  *cursorMemory
}

// room is memory for the pages of one run.
type room [aheadLeaves][]byte

// run is a number of leaves of one node: from, from+step, ..., before end.
type run struct {
	b               *body
	from, end, step int
	once            bool
	room            *room
	stop            atomic.Bool
	done            chan struct{} // closed at the end; what follows is written before
	leaves          int           // how many were read, or are in the cache
	pages           room          // of those that are not in the cache
}

// active reports whether leaves are being read ahead.
func (p *prefetcher) active() bool { return p.run != nil }

// contains reports whether the run covers leaf s.
func (f *run) contains(s step) bool {
	if f == nil || f.b != s.b {
		return false
	}
	return (s.i-f.from)*f.step >= 0 && (f.end-s.i)*f.step > 0
}

// take waits for leaf s, if it is being read ahead. The page is nil, or the memory of one that is not in the cache: it is valid
// until the cursor asks again.
func (p *prefetcher) take(s step) (memory []byte, ok bool) {
	if p.next.contains(s) {
		p.drain(p.run)
		p.run, p.next = p.next, nil
	}
	f := p.run
	if !f.contains(s) {
		return nil, false
	}
	<-f.done
	n := (s.i - f.from) * f.step
	if n >= f.leaves {
		return nil, false
	}
	return f.pages[n], true
}

// isDone reports whether the run has ended.
func (f *run) isDone() bool {
	select {
	case <-f.done:
		return true
	default:
		return false
	}
}

// missed tells that the cursor had to read leaf s itself.
func (p *prefetcher) missed(r *root, s step) {
	direction := s.i - p.last.i
	switch {
	case p.last.b != s.b:
		// Another node, but most likely the next one: go on counting once the direction is known again.
	case direction == p.step && direction != 0:
		p.inOrder++
	case direction == 1 || direction == -1:
		p.step, p.inOrder = direction, 1
	default:
		p.inOrder = 0
	}
	p.last = s
	if p.inOrder >= aheadAfter {
		p.wait()
		p.run = p.start(r, s)
	}
}

// reached tells that the cursor has come to leaf s without reading it. Once the run has been read the next one begins.
func (p *prefetcher) reached(r *root, s step) {
	f := p.run
	if f.b != s.b {
		return
	}
	p.last = s
	if p.next == nil && f.contains(s) && f.isDone() {
		p.next = p.start(r, step{s.b, f.end - f.step})
	}
}

// start reads the leaves behind s; nil: there are none, or no need, since they do not have to come from a device. Then reading them
// takes less of this processor than taking them over from another one.
func (p *prefetcher) start(r *root, s step) *run {
	first := s.i + p.step
	if p.step == 0 || first < 0 || first >= s.b.len() || r.env.Store.IsNear(s.b.slots[first].ptr) {
		return nil
	}
	end := min(max(first+aheadLeaves*p.step, -1), s.b.len())
	f := &run{b: s.b, from: first, end: end, step: p.step, once: p.once, room: &p.memory.rooms[p.turn], done: make(chan struct{})}
	p.turn = 1 - p.turn
	go f.read(r, &p.memory.ahead)
	return f
}

// read reads the leaves of the run, its two halves at the same time where there are processors for that: to decompress leaves takes
// longer than what most callers do with them. Damage is left for the cursor to find.
func (f *run) read(r *root, s *[2]layout.Scratch) {
	defer close(f.done)
	n := (f.end - f.from) * f.step
	half := n
	if n == aheadLeaves && runtime.GOMAXPROCS(0) > 1 {
		half = n / 2
	}
	behind := 0
	var wait sync.WaitGroup
	if half < n {
		wait.Go(func() { behind = f.readPart(r, &s[1], half, n) })
	}
	f.leaves = f.readPart(r, &s[0], 0, half)
	wait.Wait()
	if f.leaves == half {
		f.leaves += behind
	}
}

// readPart reads the leaves [first, end) of the run, and returns how many it has read.
func (f *run) readPart(r *root, s *layout.Scratch, first, end int) int {
	for n := first; n < end; n++ {
		if f.stop.Load() {
			return n - first
		}
		i := f.from + n*f.step
		if h := f.b.handles[i].Load(); h == 0 || !r.isCached(h) {
			var (
				memory = f.room[n]
				cached bool
				err    error
			)
			if f.once {
				memory, err = r.loadLeaf(s, f.b, i, memory)
			} else {
				memory, cached, err = r.readPage(s, f.b, i, memory)
			}
			f.room[n] = memory
			if err != nil {
				return n - first
			}
			if !cached {
				f.pages[n] = memory
			}
		}
	}
	return end - first
}

// isCached reports whether the page of a handle is in the cache.
func (r *root) isCached(h uint64) bool {
	guard := r.env.Epoch.Enter()
	defer guard.Exit()
	_, ok := cachedPage(r.env, h)
	return ok
}

// drain ends a run.
func (p *prefetcher) drain(f *run) {
	if f == nil {
		return
	}
	f.stop.Store(true)
	<-f.done
}

// wait ends all runs: their scratch is about to be used again, or the cursor goes.
func (p *prefetcher) wait() {
	p.drain(p.run)
	p.drain(p.next)
	p.run, p.next = nil, nil
}

// close waits for what is being read.
func (p *prefetcher) close() { p.wait() }
