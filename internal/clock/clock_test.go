package clock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pandodb/pando/internal/clock"
)

var start = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

func TestManualFiresInOrder(t *testing.T) {
	m := clock.NewManual(start)
	late, early, tie := m.After(3*time.Second), m.After(time.Second), m.After(time.Second)
	if now := <-m.After(0); !now.Equal(start) {
		t.Errorf("a timer of no time fired at %v", now)
	}
	m.Advance(999 * time.Millisecond)
	if len(early)+len(late) != 0 {
		t.Fatal("fired too early")
	}
	m.Advance(time.Hour)
	for i, c := range []<-chan time.Time{early, tie, late} {
		want := start.Add([]time.Duration{1, 1, 3}[i] * time.Second)
		if now := <-c; !now.Equal(want) {
			t.Errorf("timer %d fired at %v, want %v", i, now, want)
		}
	}
	if got := m.Now().Sub(start); got != time.Hour+999*time.Millisecond {
		t.Errorf("%v passed", got)
	}
}

func TestManualSetDoesNotDisturbTimers(t *testing.T) {
	m := clock.NewManual(start)
	c := m.After(time.Minute)
	m.Set(start.Add(-time.Hour))
	m.Advance(59 * time.Second)
	if len(c) != 0 {
		t.Error("fired too early")
	}
	m.Advance(time.Second)
	if now := <-c; !now.Equal(start.Add(-59 * time.Minute)) {
		t.Errorf("fired at %v", now)
	}
}

func TestTimerStop(t *testing.T) {
	m := clock.NewManual(start)
	for name, c := range map[string]clock.Clock{"system": clock.System(), "manual": m} {
		timer := c.NewTimer(time.Hour)
		if !timer.Stop() || timer.Stop() {
			t.Errorf("%s: Stop must succeed once", name)
		}
	}
	timer := m.NewTimer(time.Second)
	m.Advance(2 * time.Second)
	if !timer.Stop() || len(timer.C()) != 0 {
		t.Error("something was left in the channel of a stopped timer")
	}
}

func TestAfterFunc(t *testing.T) {
	m := clock.NewManual(start)
	for name, c := range map[string]clock.Clock{"system": clock.System(), "manual": m} {
		called := make(chan struct{}, 2)
		c.AfterFunc(time.Millisecond, func() { called <- struct{}{} })
		stopped := c.AfterFunc(time.Hour, func() { called <- struct{}{} })
		m.Advance(time.Millisecond)
		<-called
		if !stopped.Stop() || stopped.Stop() {
			t.Errorf("%s: Stop must succeed once", name)
		}
		m.Advance(2 * time.Hour)
		if len(called) != 0 {
			t.Errorf("%s: a stopped timer called", name)
		}
	}
}

func TestSleep(t *testing.T) {
	m := clock.NewManual(start)
	for name, c := range map[string]clock.Clock{"system": clock.System(), "manual": m} {
		cause := errors.New("cause")
		ctx, cancel := context.WithCancelCause(context.Background())
		if err := c.Sleep(ctx, 0); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		cancel(cause)
		if err := c.Sleep(ctx, time.Hour); err != cause {
			t.Errorf("%s: slept in a cancelled context: %v", name, err)
		}
	}
	if err := clock.System().Sleep(t.Context(), time.Millisecond); err != nil {
		t.Error(err)
	}
	woken := make(chan error)
	go func() { woken <- m.Sleep(t.Context(), time.Minute) }()
	if err := m.AwaitTimers(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	m.Advance(time.Minute)
	if err := <-woken; err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.AwaitTimers(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestSystemNowMoves(t *testing.T) {
	c := clock.System()
	before := c.Now()
	<-c.After(time.Millisecond)
	if passed := c.Now().Sub(before); passed < time.Millisecond {
		t.Errorf("only %v passed", passed)
	}
}
