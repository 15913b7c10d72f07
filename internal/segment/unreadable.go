package segment

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pandodb/pando/internal/clock"
	"github.com/pandodb/pando/internal/corrupt"
)

// ErrUnreadable is what errors.Is finds when the device failed to read. That may pass, so it is no damage. A place that goes on failing
// for half a minute, at every attempt, is damage besides: a sector that is gone does not come back, and the rest of the database must not
// wait for it for ever. It is no damage any more as soon as it can be read once.
var ErrUnreadable = errors.New("the device does not give it back")

// IsUnreadable reports whether an error of reading concerns one blob only: it is damaged, or the device failed.
func IsUnreadable(err error) bool {
	return errors.Is(err, corrupt.Err) || errors.Is(err, ErrUnreadable)
}

const (
	// lostAfter is how long a place must fail to be taken for lost. Cables, controllers and networks come back earlier as a rule, and
	// where they do not, writing fails too, so that nothing is settled meanwhile.
	lostAfter = 30 * time.Second
	// lostAttempts is how many attempts must have failed by then, none of them longer than failurePause after the one before.
	lostAttempts = 10
	failurePause = 5 * time.Minute
	// mostFailures bounds the memory for places that fail.
	mostFailures = 1 << 14
)

// failures knows which places of segments could not be read lately.
type failures struct {
	clock  clock.Clock
	some   atomic.Bool
	mu     sync.Mutex
	places map[place]failing
	newest time.Time // when one of them failed last
}

type place struct {
	segment uint32
	offset  int64
}

type failing struct {
	since, last time.Time
	attempts    int
}

// failed notes that a place could not be read, and reports whether it is to be taken for lost.
func (x *failures) failed(p place) bool {
	now := x.clock.Now()
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.places == nil || len(x.places) >= mostFailures {
		x.places = map[place]failing{}
	}
	f, known := x.places[p]
	if !known || now.Sub(f.last) > failurePause {
		f = failing{since: now}
	}
	f.last, x.newest = now, now
	f.attempts++
	x.places[p] = f
	x.some.Store(true)
	return f.attempts >= lostAttempts && now.Sub(f.since) >= lostAfter
}

// worked notes that a place could be read. It costs next to nothing where all of them can.
func (x *failures) worked(p place) {
	if !x.some.Load() {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.places, p)
	x.some.Store(len(x.places) > 0)
}

// UnreadSince reports whether the device has failed to read anything since a moment.
func (s *Store) UnreadSince(t time.Time) bool {
	s.failures.mu.Lock()
	defer s.failures.mu.Unlock()
	return !s.failures.newest.Before(t)
}

// unreadable is the error for bytes that the device did not read.
func (f *file) unreadable(offset int64, length int, err error) error {
	failed := fmt.Errorf("%s: read %d bytes at %d: %w: %w", f.name, length, offset, ErrUnreadable, err)
	if !f.failures.failed(place{f.id, offset}) {
		return failed
	}
	return fmt.Errorf("%w: %w", corrupt.New(f.name, offset, int64(length), "it could not be read for %v", lostAfter), failed)
}
