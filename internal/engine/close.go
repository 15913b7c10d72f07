package engine

import (
	"context"
	"errors"
	"math"

	"github.com/pandodb/pando/internal/command"
	"github.com/pandodb/pando/internal/root"
)

// Close waits for running calls, settles what was committed, and gives everything up. Iterators and snapshots that are
// still open answer with ErrClosed from now on; the memory that they read from is freed when they are closed. The directory is left to
// whoever opens it next: nothing of this engine changes what lies there any more. Who closes it while somebody else does waits for that, and
// is told how it went.
func (e *Engine) Close() error {
	e.stopHeld()
	e.mu.Lock()
	if e.closed.Load() {
		e.mu.Unlock()
		return e.closing.wait()
	}
	e.closed.Store(true)
	e.stopped.Set(ErrClosed)
	e.changed.Broadcast() // a leader who waits for the worker gives up
	e.mu.Unlock()
	return e.closing.end(e.close())
}

// close does the work of Close, once.
func (e *Engine) close() error {
	e.feed.close()
	e.running.Wait()
	e.cancel()
	e.worker.Wait()
	var r request
	e.pipeline.Acquire(&r) // waits for the commit that is running; those behind it find the database closed
	e.foreseen.Wait()
	err := e.finish()
	e.pipeline.Release()
	return errors.Join(err, e.abandon())
}

// closing is a Close on its way.
type closing struct {
	ended chan struct{} // closed behind it
	err   error         // with which it has ended
}

// end notes how it has ended.
func (c *closing) end(err error) error {
	c.err = err
	close(c.ended)
	return err
}

// wait returns how it ends, and nil where it has ended before: closing twice is no error.
func (c *closing) wait() error {
	select {
	case <-c.ended:
		return nil
	default:
	}
	<-c.ended
	return c.err
}

// finish settles everything, if it still may. The caller leads.
func (e *Engine) finish() error {
	if e.o.ReadOnly {
		return nil
	}
	if err := e.failure.Load(); err != nil {
		if e.o.Profile == Durable || e.lastSeq == e.settledSeq.Load() {
			return nil // what was acknowledged is durable, but for what asked for no sync
		}
		return *err
	}
	front := e.current.Load().Tables[0]
	if e.lastSeq == e.settledSeq.Load() && front.Len() == 0 && !front.HasRanges() {
		return e.leaveSmall()
	}
	if err := e.settleAll(); err != nil {
		// What was acknowledged is in the log; the next open takes it from there.
		e.o.Logger.Error("could not settle while closing", "error", err)
		if e.log == nil {
			return err
		}
		return e.syncLog()
	}
	return e.leaveSmall()
}

// leaveSmall gives back, when everything has settled, what is in nobody's use. A program that ends behind its last write has no pause in
// which the cleaner would come, and what is dead in the file that values go to would stay until the next one writes: so there is one round
// of cleaning here, which the cleaner's budget bounds. That it fails is no reason not to close.
func (e *Engine) leaveSmall() error {
	e.epoch.Collect() // what went with the last checkpoint
	e.cleanLeft(context.Background(), math.MaxInt64)
	if e.failure.Load() != nil {
		return nil // whichever root the next open finds, everything is in it
	}
	return e.giveLogBack()
}

// storeTwice makes both root slots lead to what has settled, where the log does not tell of all that the other one lacks: a bulk load, or
// everything where there is no log. Else damage to one slot would bring an older state back, without a word. Everything is settled, and the
// caller leads and keeps others from settling.
func (e *Engine) storeTwice() error {
	if !e.unlogged || !e.root.Alone() {
		return nil
	}
	if err := e.storeRoot(e.root.Current()); err != nil {
		return err
	}
	e.unlogged = false
	return nil
}

// storeRoot stores a slot that changes nothing of what has settled: a full disk leaves the one in force as it is.
func (e *Engine) storeRoot(slot root.Slot) error {
	err := e.root.Store(slot)
	if err == nil || isDiskFull(err) && e.root.Certain() {
		return err
	}
	return e.fail(err)
}

// giveLogBack leaves the log as small as it gets: everything has settled, unless somebody has committed in the meantime.
func (e *Engine) giveLogBack() error {
	if err := e.storeTwice(); err != nil {
		return err
	}
	if e.log == nil {
		return nil
	}
	if err := e.renewLog(); err != nil {
		return err
	}
	if err := e.syncLog(); err != nil { // Shrink syncs the log alone
		return err
	}
	return e.log.Shrink()
}

// renewBytes is how much settled log the last segment may hold before a pause or Close replaces it; half of a segment, where
// that is less.
const renewBytes = 256 << 10

// renewLog lets go of a last segment that is full of what has settled: the log goes on in a new one, and a root says so.
// Everything is settled, and the caller leads and keeps others from settling.
func (e *Engine) renewLog() error {
	slot := e.root.Current()
	used := e.log.Position().Offset
	if used < min(renewBytes, e.sizes.logSegment/2) || slot.Seq != e.lastSeq {
		return nil
	}
	if err := e.log.Shrink(); err != nil { // so that the next record begins a segment
		return err
	}
	var enc command.Encoder
	enc.Clock(e.Now())
	if _, err := e.log.Append(e.lastSeq+1, enc.Payload()); err != nil {
		if err = e.appendFailed(err); isDiskFull(err) && e.failure.Load() == nil {
			return nil // it can stay as it is
		}
		return err
	}
	e.lastSeq++
	if err := e.syncLog(); err != nil {
		return err
	}
	e.visible.Store(e.lastSeq) // whatever becomes of the root: the next checkpoint settles it
	slot.Log, slot.Seq, slot.Clock = root.Position(e.log.Position()), e.lastSeq, e.clock.high.Load()
	if err := e.storeRoot(slot); err != nil {
		return err
	}
	e.settledSeq.Store(e.lastSeq)
	return e.log.Recycle(e.log.Position())
}

func (e *Engine) settleAll() error {
	if len(e.current.Load().Tables) > 1 {
		if err := e.settle(context.Background(), work{}); err != nil {
			return err
		}
	}
	if err := e.freeze(0, 0); err != nil {
		return err
	}
	return e.settle(context.Background(), work{})
}

// abandon gives up what the engine holds. It works on an engine that was opened in part.
func (e *Engine) abandon() error {
	var errs []error
	e.closed.Store(true)
	e.cancel()
	if e.log != nil {
		errs = append(errs, e.log.Close())
	}
	if e.root != nil {
		errs = append(errs, e.root.Close())
	}
	e.mu.Lock()
	recent := e.recent
	e.recent = nil
	old := e.current.Load()
	e.drained = true
	last := old == nil && !e.released
	if last {
		e.released = true
	}
	e.mu.Unlock()
	for _, t := range recent {
		t.Release()
	}
	if old != nil {
		e.epoch.Retire(old.Unref)
	}
	e.epoch.Close() // waits for reads inside their epoch sections, and runs what was retired
	if last {
		e.releaseResources()
	}
	if e.store != nil {
		e.store.HandOver() // views that are still held outlive the lock
	}
	e.removeLoose()
	if e.lock != nil {
		e.leaveInOrder()
		errs = append(errs, e.lock.Close())
	}
	return errors.Join(append(errs, e.home.leave())...)
}

// releaseResources frees what views are made of: nobody can read any more.
func (e *Engine) releaseResources() {
	e.arenas.Close()
	e.overlays.Close()
	if e.store != nil {
		if err := e.store.Close(); err != nil {
			e.o.Logger.Warn("close segments", "error", err)
		}
	}
	if e.cache != nil {
		e.cache.Close()
	}
	if err := e.home.leave(); err != nil {
		e.o.Logger.Warn("close the directory", "error", err)
	}
}
