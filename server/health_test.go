package server

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pandodb/pando/internal/clock"
)

// However often somebody asks, the store is synced once in syncInterval, and what that said is what everybody hears.
func TestHealthChecksSyncNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		syncs, failure := 0, error(nil)
		p := &probe{clock: clock.System(), sync: func() error { syncs++; return failure }}
		ask := func(want int, err error) {
			t.Helper()
			for range 10 {
				if got := p.check(); !errors.Is(got, err) || syncs != want {
					t.Fatalf("%v after %d syncs; %v after %d is wanted", got, syncs, err, want)
				}
			}
		}
		ask(1, nil)
		time.Sleep(syncInterval - time.Nanosecond)
		failure = errors.New("no disk")
		ask(1, nil)
		time.Sleep(time.Nanosecond)
		ask(2, failure)
		was := failure
		failure = nil
		ask(2, was)
		time.Sleep(syncInterval)
		ask(3, nil)
	})
}

// A sync that hangs holds up the one who syncs only, and is a failure after a while.
func TestHealthChecksDoNotQueueBehindASync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end, ended := make(chan struct{}), make(chan error)
		p := &probe{clock: clock.System(), sync: func() error { <-end; return nil }}
		go func() { ended <- p.check() }()
		synctest.Wait()
		if err := p.check(); err != nil {
			t.Error(err)
		}
		time.Sleep(slowSync)
		if err := p.check(); err == nil {
			t.Error("a sync that hangs is no failure")
		}
		close(end)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
