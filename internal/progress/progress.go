// Package progress tells a caller how far a long call is, through its context: so that what goes on deep below can count, and the
// signatures in between stay as they are.
//
// It promises that a caller who does not ask costs nothing but a look into the context, that the count of a part only grows and never
// exceeds its total, and that the caller is told a bounded number of times for each part, one at a time.
package progress

import (
	"context"
	"sync"
)

// steps is about how often the caller is told during one part.
const steps = 1000

// Meter counts what a call has done. A nil one counts nothing. It is safe for concurrent use.
type Meter struct {
	tell func(done, total int64)

	mu    sync.Mutex
	done  int64
	total int64
	next  int64 // what has to be done before the caller is told again
}

type key struct{}

// With returns a context whose calls tell how much they have done of how much.
func With(ctx context.Context, tell func(done, total int64)) context.Context {
	return context.WithValue(ctx, key{}, &Meter{tell: tell})
}

// From returns the meter of a context; nil: nobody asked.
func From(ctx context.Context) *Meter {
	m, _ := ctx.Value(key{}).(*Meter)
	return m
}

// Begin begins a part of the work that counts to total, or somewhat less.
func (m *Meter) Begin(total int64) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.done, m.total = 0, max(total, 1)
	m.report()
}

// Add counts.
func (m *Meter) Add(n int64) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.done = min(m.done+n, m.total); m.done >= m.next {
		m.report()
	}
}

// End ends the part: all of it is done.
func (m *Meter) End() {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.done < m.total {
		m.done = m.total
		m.report()
	}
}

// report tells the caller. mu is held.
func (m *Meter) report() {
	m.tell(m.done, m.total)
	m.next = min(m.done+m.total/steps+1, max(m.total, m.done+1))
}
