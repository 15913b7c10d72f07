// Package commit is the queue in front of the log: it decides who writes when.
//
// At any moment at most one goroutine leads. The leader takes every request that has come in, carries the group out through
// the function that the pipeline was made with (which appends, applies, syncs once and publishes), tells the others how
// theirs went, and hands the lead to whoever came in meanwhile. So one sync serves all that waited for it, requests are
// carried out in the order in which they came, and there is no goroutine that could outlive the database.
//
// Acquire takes the lead and keeps it: everything else waits until Release. That is how a serialised transaction gets the
// database to itself.
//
// It starts no goroutine, does no I/O and cannot fail by itself: the error of a request is that of its Validate, or the one that the
// function has given it.
//
// A request that finds nobody leading costs two uncontended mutex operations and no allocation. A follower spins for about
// the time of a short commit before it sleeps.
package commit

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Request is one batch to commit. Its owner fills the exported fields in, and reads Err and Seq after Do.
// A Request may be used again, but only after Do has returned.
type Request struct {
	Commands []byte // encoded by package command
	Count    int    // how many commands
	Bytes    int    // of keys and inline values
	Sync     bool   // Do returns only when the batch is on stable storage
	// Validate, if set, is called by the leader right before the batch is carried out; an error ends the request.
	Validate func() error

	Seq uint64 // of the last command
	Err error

	next      *Request
	exclusive bool
	state     atomic.Uint32
	wake      chan struct{}
}

// States of a queued request.
const (
	waiting uint32 = iota
	asleep         // the owner waits on wake
	leads          // the owner has been made the leader
	done
)

// spins is how often a follower looks before it sleeps: about the time of one short commit.
const spins = 60

// gatherYields is for how many yields the queue must not have grown before a leader takes it: some microseconds.
const gatherYields = 32

// groupBytes bounds what one leader takes on, so that nobody leads for ever.
const groupBytes = 4 << 20

// Pipeline orders requests. Use New.
type Pipeline struct {
	process func(group []*Request)

	mu         sync.Mutex
	head, tail *Request
	queued     int
	leading    bool
	group      []*Request // the leader's; kept for its capacity
	shared     int        // how many requests the last group had; the leader's
}

// New makes a pipeline. process carries a group out in order and fills in Seq and Err of each; only one call of it runs at a
// time.
func New(process func(group []*Request)) *Pipeline { return &Pipeline{process: process} }

// Do carries r out and returns its error.
func (p *Pipeline) Do(r *Request) error {
	r.exclusive = false
	p.lead(r)
	if r.state.Load() == done {
		return r.Err
	}
	if r.Sync && p.shared > 1 {
		p.gather()
	}
	group := p.take(r)
	p.shared = len(group)
	p.process(group)
	p.finish(group)
	return r.Err
}

// Acquire takes the lead and keeps it. r is carried out by Carry, as often as wanted, and given back by Release.
func (p *Pipeline) Acquire(r *Request) {
	r.exclusive = true
	p.lead(r)
}

// TryAcquire is Acquire for who must not wait: it answers false when somebody leads.
func (p *Pipeline) TryAcquire() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.leading {
		return false
	}
	p.leading = true
	return true
}

// Carry carries r out for a caller who holds the lead.
func (p *Pipeline) Carry(r *Request) error {
	p.group = append(p.group[:0], r)
	p.process(p.group)
	return r.Err
}

// Release gives the lead up.
func (p *Pipeline) Release() { p.finish(p.group[:0]) }

// lead returns when r's owner leads, or when another leader has carried r out.
func (p *Pipeline) lead(r *Request) {
	r.Err, r.Seq = nil, 0
	r.state.Store(waiting)
	p.mu.Lock()
	if !p.leading {
		p.leading = true
		p.mu.Unlock()
		r.state.Store(leads)
		return
	}
	if r.wake == nil {
		r.wake = make(chan struct{}, 1)
	}
	r.next = nil
	if p.tail == nil {
		p.head = r
	} else {
		p.tail.next = r
	}
	p.tail = r
	p.queued++
	p.mu.Unlock()
	r.await()
}

// await waits until r is done or leads.
func (r *Request) await() {
	for i := 0; i < spins; i++ {
		if r.state.Load() != waiting {
			return
		}
		if i%16 == 15 {
			runtime.Gosched()
		}
	}
	if r.state.CompareAndSwap(waiting, asleep) {
		<-r.wake
	}
}

// tell moves a queued request on.
func (r *Request) tell(state uint32) {
	if r.state.Swap(state) == asleep {
		r.wake <- struct{}{}
	}
}

// gather lets the writers that the last sync released come back before the next one begins, so that all of them share it
// instead of half of them: it yields until as many wait as there were, or until nobody has come for a while. A sync takes
// many times as long.
func (p *Pipeline) gather() {
	for before, idle := -1, 0; idle < gatherYields; idle++ {
		p.mu.Lock()
		n := p.queued
		p.mu.Unlock()
		if n+1 >= p.shared {
			return
		}
		if n != before {
			before, idle = n, 0
		}
		runtime.Gosched()
	}
}

// take makes the leader's group: r and what has queued up behind it, up to the first request that wants the lead to itself.
func (p *Pipeline) take(r *Request) []*Request {
	p.group = append(p.group[:0], r)
	size := len(r.Commands)
	p.mu.Lock()
	for p.head != nil && !p.head.exclusive && size < groupBytes {
		next := p.pop()
		p.group = append(p.group, next)
		size += len(next.Commands)
	}
	p.mu.Unlock()
	return p.group
}

// pop takes the first request off the queue. The caller holds mu.
func (p *Pipeline) pop() *Request {
	r := p.head
	p.head, r.next = r.next, nil
	p.queued--
	if p.head == nil {
		p.tail = nil
	}
	return r
}

// finish hands the lead on and tells the followers of group (all but the first, who is the caller).
func (p *Pipeline) finish(group []*Request) {
	// The group belongs to the next leader as soon as there is one: tell the followers first.
	for i, r := range group {
		if i > 0 {
			r.tell(done)
		}
		group[i] = nil
	}
	p.mu.Lock()
	if p.head == nil {
		p.leading = false
		p.mu.Unlock()
		return
	}
	next := p.pop()
	p.mu.Unlock()
	next.tell(leads)
}
