package engine

import (
	"context"
	"time"

	"github.com/pandodb/pando/internal/command"
)

// Intervals of the background worker.
const (
	idleDelay   = time.Second            // a pause in writing after which everything settles
	clockDelay  = time.Second            // how much a jump back of the clock can give back to expired records at most
	retryDelay  = 500 * time.Millisecond // between attempts to settle that fail
	workerTick  = 50 * time.Millisecond
	shrinkDelay = 2 * time.Second // a pause after which spare log segments are given back
)

// work is the background goroutine: it settles frozen memtables, settles everything after a pause, keeps the clock's mark, and reclaims memory.
//
// It never waits for the commit pipeline: a leader may be waiting for it.
func (e *Engine) work() {
	ctx := e.ctx
	var clockDue, retryDue, quietSince time.Time
	var quietSeq uint64
	shrunk := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.kick:
		case <-e.o.Clock.After(workerTick):
		}
		now := e.o.Clock.Now()
		e.epoch.Collect()
		e.fitCache()
		e.sweepValues()
		if len(e.current.Load().Tables) > 1 && !now.Before(retryDue) {
			if err := e.settle(ctx, work{}); err != nil && ctx.Err() == nil {
				e.o.Logger.Error("checkpoint failed; it is tried again", "error", err)
				retryDue = now.Add(retryDelay)
			}
		}
		if seq := e.visible.Load(); seq != quietSeq {
			quietSeq, quietSince, shrunk = seq, now, false
			e.prepareLog()
		} else if now.Sub(quietSince) >= idleDelay && e.settledSeq.Load() != seq && !now.Before(retryDue) {
			if err := e.settleQuietly(ctx); err != nil && ctx.Err() == nil {
				e.o.Logger.Error("checkpoint failed; it is tried again", "error", err)
				retryDue = now.Add(retryDelay)
			}
		} else if !shrunk && e.log != nil && now.Sub(quietSince) >= shrinkDelay && e.settledSeq.Load() == seq {
			shrunk = e.shrinkLog()
		}
		if !now.Before(clockDue) {
			e.keepClock()
			clockDue = now.Add(clockDelay)
		}
	}
}

// keepSynced is the second background goroutine in the Relaxed profile: it bounds what a power cut may cost, also while the
// other one is settling.
func (e *Engine) keepSynced() {
	for {
		select {
		case <-e.ctx.Done():
			return
		case <-e.kickSync:
		case <-e.o.Clock.After(e.o.SyncInterval):
		}
		e.syncRelaxed()
	}
}

// atRisk is how many bytes a power cut would cost now.
func (e *Engine) atRisk() int64 {
	synced := e.valuesSynced.Load() // before what was written, which goes on growing
	return e.log.Unsynced() + e.valuesWritten.Load() - synced
}

// boundRisk keeps what a power cut may cost below SyncBytes: from half of it on the background syncs, and a leader who comes
// up to it does so himself.
func (e *Engine) boundRisk() error {
	risk := e.atRisk()
	if risk >= e.o.SyncBytes {
		return e.syncLog()
	}
	if risk >= e.o.SyncBytes/2 {
		select {
		case e.kickSync <- struct{}{}:
		default:
		}
	}
	return nil
}

// prepareLog makes the next segment of the log ready, so that a writer who fills the present one does not have to. When that
// fails, for want of space say, the writer will be told.
func (e *Engine) prepareLog() {
	if e.log == nil || !e.log.Due() {
		return
	}
	if err := e.log.Prepare(); err != nil && !isDiskFull(err) {
		e.o.Logger.Warn("the next log segment could not be made ready", "error", err)
	}
}

// shrinkLog gives the log's spare files back after a pause.
func (e *Engine) shrinkLog() bool {
	if !e.pipeline.TryAcquire() {
		return false
	}
	defer e.pipeline.Release()
	if !e.settling.TryLock() {
		return false
	}
	defer e.settling.Unlock()
	if err := e.giveLogBack(); err != nil {
		e.o.Logger.Warn("spare log segments stay", "error", err)
	}
	return true
}

// wakeWorker makes the worker look around. It never blocks.
func (e *Engine) wakeWorker() {
	select {
	case e.kick <- struct{}{}:
	default:
	}
}

// settleQuietly settles what a pause in writing has left in the memtable.
func (e *Engine) settleQuietly(ctx context.Context) error {
	if !e.pipeline.TryAcquire() {
		return nil // then there is no pause
	}
	err := e.freezeFront()
	e.pipeline.Release()
	if err != nil {
		return err
	}
	return e.settle(ctx, work{})
}

// syncRelaxed bounds what a power cut may cost in the Relaxed profile.
func (e *Engine) syncRelaxed() {
	if e.log == nil || e.o.Profile != Relaxed || e.failure.Load() != nil {
		return
	}
	if e.atRisk() == 0 {
		return
	}
	if err := e.syncLog(); err != nil {
		e.o.Logger.Error("sync failed", "error", err)
	}
}

// keepClock writes the clock's mark into the log when expiry is in use and the mark has moved.
func (e *Engine) keepClock() {
	if !e.clock.used.Load() || e.log == nil {
		return
	}
	high := e.Now()
	if high < e.clock.written.Load()+uint64(clockDelay/time.Millisecond) {
		return
	}
	if !e.pipeline.TryAcquire() {
		return // the next round will do
	}
	defer e.pipeline.Release()
	e.clock.used.Store(false)
	var enc command.Encoder
	enc.Clock(high)
	r := request{Commands: enc.Payload(), Count: 1, Sync: e.o.Profile == Durable}
	if err := e.pipeline.Carry(&r); err == nil {
		e.clock.written.Store(high)
	}
}
