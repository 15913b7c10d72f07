// Package clock is the only place of the project that asks for the time or waits for it to pass.
//
// It promises that a test can put a Manual clock under any part of the engine and decide itself when time passes. It keeps
// no goroutine and never fails; Sleep ends early with the context's error. Reading the system clock is one call into the
// kernel's shared page (some 40 ns); a timer is one allocation or two.
package clock

import (
	"context"
	"time"
)

// Clock tells and measures time. All methods may be called concurrently.
type Clock interface {
	// Now is the current time. Differences of two answers do not suffer from changes of the wall clock.
	Now() time.Time
	// Sleep waits for d, or until ctx ends; then it returns the cause. It returns at once when d is not positive.
	Sleep(ctx context.Context, d time.Duration) error
	// After sends the time once, when d has passed.
	After(d time.Duration) <-chan time.Time
	// NewTimer is After for one who may stop waiting.
	NewTimer(d time.Duration) Timer
	// AfterFunc calls f in a goroutine of its own when d has passed, unless the timer, which has no channel, is stopped before.
	AfterFunc(d time.Duration, f func()) Timer
}

// Timer sends the time once, unless it is stopped before.
type Timer interface {
	// C is the channel on which the time is sent.
	C() <-chan time.Time
	// Stop reports whether it came in time: after true nothing is or will be in the channel.
	Stop() bool
}

// System is the clock of the operating system.
func System() Clock { return system{} }

type system struct{}

type systemTimer struct{ *time.Timer }

func (t systemTimer) C() <-chan time.Time { return t.Timer.C }

func (system) Now() time.Time { return time.Now() }

func (system) After(d time.Duration) <-chan time.Time { return time.After(d) }

func (system) NewTimer(d time.Duration) Timer { return systemTimer{time.NewTimer(d)} }

func (system) AfterFunc(d time.Duration, f func()) Timer { return systemTimer{time.AfterFunc(d, f)} }

func (s system) Sleep(ctx context.Context, d time.Duration) error { return sleep(ctx, s, d) }

func sleep(ctx context.Context, c Clock, d time.Duration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if d <= 0 {
		return nil
	}
	t := c.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
