package tree

import (
	"sync/atomic"

	"github.com/pandodb/pando/internal/layout"
)

const (
	// aheadAfter is how many leaves in order a cursor reads from the disk before it starts to read ahead.
	aheadAfter = 3
	// aheadLeaves is how many leaves are read ahead at a time.
	aheadLeaves = 16
)

// prefetcher brings the leaves that a cursor is about to reach into the cache while the caller looks at earlier ones. One
// goroutine at a time reads a run of leaves of one node; it ends by itself, and the cursor's Close waits for it. Nothing is
// read ahead where the cache does not take pages.
type prefetcher struct {
	last    step // the leaf that the cursor read last
	inOrder int  // leaves read one after the other
	step    int  // 1 or -1
	run     *run // being read, or read last; nil: none
	s       *layout.Scratch
}

// run is a number of leaves of one node: from, from+step, ..., before end.
type run struct {
	b               *body
	from, end, step int
	stop, done      atomic.Bool
	arrived         chan struct{} // one for each leaf; closed at the end
	taken           int           // how many the cursor has waited for
}

// active reports whether leaves are being read ahead.
func (p *prefetcher) active() bool { return p.run != nil }

// contains reports whether the run covers leaf s.
func (f *run) contains(s step) bool {
	if f.b != s.b {
		return false
	}
	return (s.i-f.from)*f.step >= 0 && (f.end-s.i)*f.step > 0
}

// arriving waits for leaf s, if it is being read ahead.
func (p *prefetcher) arriving(s step) bool {
	f := p.run
	if f == nil || !f.contains(s) {
		return false
	}
	for n := (s.i-f.from)*f.step + 1; f.taken < n; f.taken++ {
		if _, ok := <-f.arrived; !ok {
			return false
		}
	}
	return true
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
		p.start(r, s)
	}
}

// reached tells that the cursor has come to leaf s, which was in the cache. In the second half of a run that has been read
// the next one begins.
func (p *prefetcher) reached(r *root, s step) {
	f := p.run
	if f.b != s.b {
		return
	}
	p.last = s
	if left := (f.end - s.i) * f.step; left >= 0 && left <= aheadLeaves/2 && f.done.Load() {
		p.start(r, step{s.b, f.end - f.step})
	}
}

// start reads the leaves behind s.
func (p *prefetcher) start(r *root, s step) {
	p.wait()
	first := s.i + p.step
	if p.step == 0 || first < 0 || first >= s.b.len() {
		return
	}
	if p.s == nil {
		p.s = new(layout.Scratch)
	}
	end := min(max(first+aheadLeaves*p.step, -1), s.b.len())
	p.run = &run{b: s.b, from: first, end: end, step: p.step, arrived: make(chan struct{}, aheadLeaves)}
	go p.run.read(r, p.s)
}

// read reads the leaves of the run into the cache. Damage is left for the cursor to find.
func (f *run) read(r *root, s *layout.Scratch) {
	defer close(f.arrived)
	defer f.done.Store(true)
	for i := f.from; i != f.end && !f.stop.Load(); i += f.step {
		if h := f.b.handles[i].Load(); h == 0 || !r.isCached(h) {
			raw, err := r.readLeaf(s, f.b, i)
			if err != nil || !r.remember(f.b, i, raw) {
				return
			}
		}
		f.arrived <- struct{}{}
	}
}

// isCached reports whether the page of a handle is in the cache.
func (r *root) isCached(h uint64) bool {
	guard := r.env.Epoch.Enter()
	defer guard.Exit()
	_, ok := cachedPage(r.env, h)
	return ok
}

// wait ends the run: its scratch is about to be used again, or the cursor goes.
func (p *prefetcher) wait() {
	if p.run == nil {
		return
	}
	p.run.stop.Store(true)
	for range p.run.arrived {
	}
	p.run = nil
}

// close waits for what is being read.
func (p *prefetcher) close() { p.wait() }
