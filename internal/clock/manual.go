package clock

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Manual is a Clock on which time passes only when it is told to.
type Manual struct {
	mu      sync.Mutex
	now     time.Time
	elapsed time.Duration // since it was made; timers go by this, so that Set does not disturb them
	timers  []*manualTimer
	changed chan struct{} // closed, and replaced, whenever a timer is made
}

// NewManual returns a clock that stands at now.
func NewManual(now time.Time) *Manual {
	return &Manual{now: now, changed: make(chan struct{})}
}

type manualTimer struct {
	clock *Manual
	due   time.Duration
	c     chan time.Time
	f     func() // called instead; nil: there is a channel
}

// fire lets the timer do what it was made for.
func (t *manualTimer) fire(now time.Time) {
	if t.f != nil {
		go t.f()
		return
	}
	t.c <- now
}

// Now is Clock.Now.
func (m *Manual) Now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

// Sleep is Clock.Sleep.
func (m *Manual) Sleep(ctx context.Context, d time.Duration) error { return sleep(ctx, m, d) }

// After is Clock.After.
func (m *Manual) After(d time.Duration) <-chan time.Time { return m.NewTimer(d).C() }

// NewTimer is Clock.NewTimer.
func (m *Manual) NewTimer(d time.Duration) Timer {
	return m.start(d, &manualTimer{clock: m, c: make(chan time.Time, 1)})
}

// AfterFunc is Clock.AfterFunc.
func (m *Manual) AfterFunc(d time.Duration, f func()) Timer {
	return m.start(d, &manualTimer{clock: m, f: f})
}

func (m *Manual) start(d time.Duration, t *manualTimer) Timer {
	m.mu.Lock()
	defer m.mu.Unlock()
	t.due = m.elapsed + d
	if d <= 0 {
		t.fire(m.now)
		return t
	}
	at, _ := slices.BinarySearchFunc(m.timers, t.due, func(o *manualTimer, due time.Duration) int {
		if o.due <= due {
			return -1 // timers of the same moment fire in the order in which they were made
		}
		return 1
	})
	m.timers = slices.Insert(m.timers, at, t)
	close(m.changed)
	m.changed = make(chan struct{})
	return t
}

func (t *manualTimer) C() <-chan time.Time { return t.c }

func (t *manualTimer) Stop() bool {
	m := t.clock
	m.mu.Lock()
	defer m.mu.Unlock()
	if i := slices.Index(m.timers, t); i >= 0 {
		m.timers = slices.Delete(m.timers, i, i+1)
		return true
	}
	select { // as since Go 1.23: nothing is received after Stop
	case <-t.c:
		return true
	default:
		return false
	}
}

// Advance lets d pass and fires, in order, the timers that fall due, each at its own moment.
func (m *Manual) Advance(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	target := m.elapsed + max(d, 0)
	for len(m.timers) > 0 && m.timers[0].due <= target {
		t := m.timers[0]
		m.timers = slices.Delete(m.timers, 0, 1)
		m.pass(t.due)
		t.fire(m.now)
	}
	m.pass(target)
}

func (m *Manual) pass(to time.Duration) {
	m.now = m.now.Add(to - m.elapsed)
	m.elapsed = to
}

// Set changes the wall clock, also backwards, without any time passing.
func (m *Manual) Set(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = now
}

// AwaitTimers waits until at least n timers are pending, so that a test knows that the goroutines it drives are asleep.
func (m *Manual) AwaitTimers(ctx context.Context, n int) error {
	for {
		m.mu.Lock()
		pending, changed := len(m.timers), m.changed
		m.mu.Unlock()
		if pending >= n {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
