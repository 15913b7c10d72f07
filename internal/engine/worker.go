package engine

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/pandodb/pando/internal/segment"
	"github.com/pandodb/pando/internal/view"
)

// Intervals of the background worker.
const (
	idleDelay   = time.Second            // a pause in writing after which a full memtable settles
	longestIdle = 30 * time.Second       // a pause after which everything settles, however little it is
	retryDelay  = 500 * time.Millisecond // between attempts to settle that fail
	workerTick  = 50 * time.Millisecond
	shrinkDelay = 2 * time.Second // a pause after which spare log segments are given back
	trimDelay   = 2 * time.Second // a pause after everything has settled, after which memory and files that wait for records are given back
)

// work is the background goroutine: it settles frozen memtables, settles everything after a pause, and reclaims memory.
//
// It never waits for the commit pipeline: a leader may be waiting for it.
func (e *Engine) work() {
	ctx := e.ctx
	var retryDue, shrinkDue, quietSince, settledSince time.Time
	var quietSeq uint64
	shrunk, cleaned, garbage := false, false, int64(0)
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
		if e.sweepValues() {
			cleaned, garbage = false, math.MaxInt64
		}
		e.renewFront()
		if len(e.current.Load().Tables) > 1 && !now.Before(retryDue) {
			if err := e.settle(ctx, work{frozen: true}); err != nil && ctx.Err() == nil {
				e.o.Logger.Error("checkpoint failed; it is tried again", "error", err)
				retryDue = now.Add(retryDelay)
			}
		}
		seq := e.writtenUpTo(e.visible.Load()) // marks of the clock are no writes: they come for as long as somebody reads what has expired
		settled := e.settledSeq.Load() >= seq
		if !settled {
			settledSince = now
		}
		if seq != quietSeq {
			quietSeq, quietSince, settledSince, shrunk, cleaned, garbage = seq, now, now, false, false, math.MaxInt64
		} else if now.Sub(quietSince) >= e.patienceNow() && !settled && !now.Before(retryDue) {
			if err := e.settleQuietly(ctx); err != nil && ctx.Err() == nil {
				e.o.Logger.Error("checkpoint failed; it is tried again", "error", err)
				retryDue = now.Add(retryDelay)
			}
		} else if !shrunk && e.log != nil && now.Sub(quietSince) >= shrinkDelay && settled && !now.Before(shrinkDue) {
			var err error
			if shrunk, err = e.shrinkLog(); err != nil {
				e.o.Logger.Warn("spare log segments stay", "error", err)
				shrinkDue = now.Add(longestIdle)
			}
		} else if now.Sub(settledSince) >= trimDelay {
			e.trim()
			if !cleaned {
				cleaned, garbage = e.cleanLeft(ctx, garbage)
			}
		}
	}
}

// cleanLeft cleans when there is more garbage than the cleaner lets be, and less than before. What dies in a checkpoint is for the next one,
// and when nobody writes any more there is none. done says that there is no more to do until somebody does; one that fails is not tried again.
func (e *Engine) cleanLeft(ctx context.Context, before int64) (done bool, left int64) {
	if e.compacted.Load() > 0 {
		return false, before // most of it goes by itself
	}
	left, much := e.garbage()
	squeeze := left >= before && e.maySqueeze()
	if !squeeze && (!much || left >= before) {
		return true, left
	}
	e.store.SealValues() // the cleaner leaves the segment alone that values go to, and where there is little else that has all the garbage
	err := e.settle(ctx, work{squeeze: squeeze})
	if err != nil && ctx.Err() == nil {
		e.o.Logger.Error("cleaning failed; the next checkpoint tries again", "error", err)
	}
	return err != nil, left
}

// garbage returns how many bytes of the segments are dead, and whether that is more than the cleaner lets be. Segments that go with the last of
// their readers are none of it.
func (e *Engine) garbage() (dead int64, much bool) {
	if e.o.ReadOnly {
		return 0, false
	}
	list := e.store.Segments()
	e.mu.Lock()
	doomed := e.doomedIDs()
	e.mu.Unlock()
	list = slices.DeleteFunc(list, func(i segment.Info) bool { return doomed[i.ID] })
	size := segment.Bytes(list)
	dead = size - segment.LiveBytes(list)
	if e.space.short.Load() {
		return dead, dead > 0 // it lets nothing be
	}
	return dead, float64(dead) > garbageMost*float64(size)
}

// patience is how long a pause in writing must be for what is in a memtable to settle. A leaf is written whole however little of it has
// changed: the less there is, the longer it may wait for more to share that with.
func patience(used, full int) time.Duration {
	times := min(full/max(used, 1), int(longestIdle/idleDelay))
	return max(time.Duration(times), 1) * idleDelay
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

// atRisk is how many bytes a power cut would cost now: of the log, and of the values apart that it refers to, be they durable or not.
func (e *Engine) atRisk() int64 {
	synced := e.valuesSynced.Load() // before what was logged, which goes on growing
	return e.log.Unsynced() + e.valuesLogged.Load() - synced
}

// boundRisk keeps what a power cut may cost below SyncBytes: from half of it on the background syncs, and a leader who comes
// up to it does so himself.
func (e *Engine) boundRisk() error {
	risk := e.atRisk()
	if risk >= e.o.SyncBytes {
		return e.syncCommits()
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
	if err := e.log.Prepare(); err != nil && !isDiskFull(err) {
		e.o.Logger.Warn("the next log segment could not be made ready", "error", err)
	}
}

// shrinkLog gives the log's spare files back after a pause. done says that it is not to be tried again.
func (e *Engine) shrinkLog() (done bool, err error) {
	if !e.pipeline.TryAcquire() {
		return false, nil
	}
	defer e.pipeline.Release()
	if !e.settling.TryLock() {
		return false, nil
	}
	defer e.settling.Unlock()
	err = e.giveLogBack()
	return err == nil || e.failure.Load() != nil, err
}

// fitLog gives back, when everything has settled, what the log has in reserve where that is more than all the data: after a burst of
// writes to a small database it is most of what there is on the disk.
func (e *Engine) fitLog() {
	if e.log == nil || e.log.Reserved() <= segment.LiveBytes(e.store.Segments()) {
		return
	}
	var r request
	e.pipeline.Acquire(&r)
	defer e.pipeline.Release()
	if e.lastSeq != e.settledSeq.Load() {
		return // somebody goes on writing
	}
	if err := e.log.Shrink(); err != nil {
		e.o.Logger.Warn("spare log segments stay", "error", err)
	}
}

// renewFront gives a memtable in front that nothing has been written to the memory of one that has settled, where that is more than it
// has: after a pause in writing the new one was there before the old one had settled. Writers go on for a moment with what they have if
// they come now.
func (e *Engine) renewFront() {
	poorer := func() bool {
		defer e.epoch.Enter().Exit()
		tables := e.current.Load().Tables
		front := tables[0]
		return len(tables) == 1 && front.Len() == 0 && !front.HasRanges() && front.Spare() < e.arenas.Waiting()
	}
	if e.arenas.Waiting() == 0 || !poorer() || !e.pipeline.TryAcquire() {
		return
	}
	defer e.pipeline.Release()
	if !poorer() {
		return
	}
	table, err := e.arenas.New(e.sizes.memtable)
	if err != nil {
		return // the one that is there will do
	}
	fresh := view.NewTable(table)
	e.mu.Lock()
	defer e.mu.Unlock()
	old := e.current.Load()
	e.publish(append([]*view.Table{fresh}, old.Tables[1:]...), old.Roots)
}

// trim gives back to the system, after a pause, what memory of settled memtables and what files of values are kept for the next ones.
func (e *Engine) trim() {
	e.store.GiveBack()
	e.arenas.Release()
	e.exchanged.Store(false)
	if e.pipeline.TryAcquire() {
		e.current.Load().Tables[0].Trim()
		e.pipeline.Release()
	}
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
	_, err := e.freezeFront()
	e.pipeline.Release()
	if err != nil {
		return err
	}
	return e.settle(ctx, work{frozen: true})
}

// syncRelaxed bounds what a power cut may cost in the Relaxed profile.
func (e *Engine) syncRelaxed() {
	if e.log == nil || e.o.Profile != Relaxed || e.failure.Load() != nil {
		return
	}
	if e.atRisk() == 0 {
		return
	}
	if err := e.syncCommits(); err != nil {
		e.o.Logger.Error("sync failed", "error", err)
	}
}
