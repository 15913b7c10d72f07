package tree

import (
	"sync/atomic"

	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/page"
)

const (
	// aheadAfter is how many leaves in order a cursor reads from the disk before it starts to read ahead.
	aheadAfter = 3
	// aheadLeaves is how many leaves are read ahead at a time.
	aheadLeaves = 8
)

// prefetcher reads the leaves that a cursor is about to reach while the caller looks at earlier ones. One goroutine at a time
// reads a run of leaves of one node; it ends by itself, and the cursor's Close waits for it. What the cache does not take is
// kept in memory of the prefetcher: that of the run that the cursor goes over, and that of the one being read.
type prefetcher struct {
	last    step // the leaf that the cursor read last
	inOrder int  // leaves read one after the other
	step    int  // 1 or -1
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
	room            *room
	stop, done      atomic.Bool
	arrived         chan []byte // a page for each leaf, nil where it is in the cache; closed at the end
	taken           int         // how many the cursor has taken
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
	for n := (s.i-f.from)*f.step + 1; f.taken < n; f.taken++ {
		if memory, ok = <-f.arrived; !ok {
			return nil, false
		}
	}
	return memory, ok
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
	if p.next == nil && f.contains(s) && f.done.Load() {
		p.next = p.start(r, step{s.b, f.end - f.step})
	}
}

// start reads the leaves behind s; nil: there are none.
func (p *prefetcher) start(r *root, s step) *run {
	first := s.i + p.step
	if p.step == 0 || first < 0 || first >= s.b.len() {
		return nil
	}
	end := min(max(first+aheadLeaves*p.step, -1), s.b.len())
	f := &run{b: s.b, from: first, end: end, step: p.step, room: &p.memory.rooms[p.turn], arrived: make(chan []byte, aheadLeaves)}
	p.turn = 1 - p.turn
	go f.read(r, &p.memory.ahead)
	return f
}

// read reads the leaves of the run. Damage is left for the cursor to find.
func (f *run) read(r *root, s *layout.Scratch) {
	defer close(f.arrived)
	defer f.done.Store(true)
	for i, n := f.from, 0; i != f.end && !f.stop.Load(); i, n = i+f.step, n+1 {
		if h := f.b.handles[i].Load(); h != 0 && r.isCached(h) {
			f.arrived <- nil
			continue
		}
		raw, err := r.readLeaf(s, f.b, i)
		if err != nil {
			return
		}
		if r.worthKeeping(f.b, i) && r.remember(f.b, i, raw) {
			f.arrived <- nil
			continue
		}
		memory, err := loadInto(f.room[n], raw)
		if err != nil {
			return
		}
		f.room[n] = memory
		f.arrived <- memory
	}
}

// loadInto makes a page that is read in order of a raw one, in memory, or in more where that is too little.
func loadInto(memory, raw []byte) ([]byte, error) {
	size, err := page.ResidentSize(raw)
	if err != nil {
		return nil, err
	}
	if cap(memory) < size {
		memory = make([]byte, size+size/4)
	}
	memory = memory[:cap(memory)]
	return memory, page.LoadOrdered(memory, raw)
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
	for range f.arrived {
	}
}

// wait ends all runs: their scratch is about to be used again, or the cursor goes.
func (p *prefetcher) wait() {
	p.drain(p.run)
	p.drain(p.next)
	p.run, p.next = nil, nil
}

// close waits for what is being read.
func (p *prefetcher) close() { p.wait() }
