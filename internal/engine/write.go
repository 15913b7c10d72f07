package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pandodb/pando/internal/command"
	"github.com/pandodb/pando/internal/commit"
	"github.com/pandodb/pando/internal/memtable"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/segment"
	"github.com/pandodb/pando/internal/value"
	"github.com/pandodb/pando/internal/view"
	"github.com/pandodb/pando/internal/wal"
)

// Commit carries a request out and returns its error. The request's Sync says whether to wait for stable storage.
func (e *Engine) Commit(r *commit.Request) error {
	if err := e.usable(); err != nil {
		return err
	}
	return e.pipeline.Do(r)
}

// SyncCommits is Sync for who waits in line with the writers, and shares their syncs. It must not be called by who leads.
func (e *Engine) SyncCommits() error {
	if e.log == nil {
		return e.Sync()
	}
	return e.Commit(&request{Sync: true})
}

// process is what the pipeline's leader does: append each request to the log and apply it to the memtable, sync once for
// all that want it, and only then let readers see them.
func (e *Engine) process(group []*commit.Request) {
	carried, sync := false, false
	for _, r := range group {
		if r.Err = e.carry(r); r.Err == nil {
			carried, sync = true, sync || r.Sync
		}
	}
	if !carried {
		return // readers see no more: what was applied before a sync that failed must not come along
	}
	if !sync && e.o.Profile == Durable {
		sync = e.atRisk() >= e.o.SyncBytes // or those who wait for the next sync wait for the disk to take all that was not waited for
	}
	if sync && e.log != nil {
		if err := e.syncCommits(); err != nil {
			for _, r := range group {
				if r.Err == nil {
					r.Err = err
				}
			}
			e.keyspaces.undo(e.visible.Load())
			return // what was applied stays invisible for ever
		}
	}
	e.visible.Store(e.lastSeq)
	e.feed.notify()
	if e.o.Profile == Relaxed && e.log != nil {
		if err := e.boundRisk(); err != nil {
			e.o.Logger.Error("sync failed", "error", err) // and every later write will say so
		}
	}
}

// carry appends and applies one request.
func (e *Engine) carry(r *commit.Request) error {
	if err := e.usable(); err != nil {
		return err
	}
	if r.Validate != nil {
		if err := r.Validate(); err != nil {
			return err
		}
	}
	if r.Count == 0 {
		r.Seq = e.lastSeq
		return nil
	}
	if err := e.spaceFor(r.Commands); err != nil {
		return err
	}
	if err := e.makeRoom(r.Count, r.Bytes); err != nil {
		return err
	}
	first := e.lastSeq + 1
	front := e.current.Load().Tables[0]
	e.look(front.Table, r.Commands)
	if e.log != nil {
		// A record of the log is numbered by its last command, as a root is by the last one that it holds.
		if _, err := e.log.Append(first+uint64(r.Count)-1, r.Commands); err != nil {
			e.ahead.forget()
			return e.appendFailed(err)
		}
		if e.log.Due() {
			e.foreseen.Go(e.prepareLog) // the worker may be settling, which takes longer than to fill a segment
		}
		e.counters.logBytes.Add(int64(len(r.Commands)))
		e.logged += int64(len(r.Commands)) + logFrame
	}
	e.applySeen(front.Table, first)
	e.foresee(front, r)
	e.lastSeq += uint64(r.Count)
	r.Seq = e.lastSeq
	e.counters.commits.Add(1)
	e.counters.userBytes.Add(int64(r.Bytes))
	return nil
}

// largeCommit is how many bytes of keys and values a commit has for memory to be asked for ahead.
const largeCommit = 512 << 10

// foresee asks the system, in the background, for the memory that another commit like the one that was just applied takes: that is a
// good part of what a large one costs, and its writer has other things to do meanwhile. The caller leads.
func (e *Engine) foresee(t *view.Table, r *commit.Request) {
	if r.Bytes < largeCommit || e.foreseeing.Swap(true) {
		return
	}
	f := t.Foresee(r.Count, r.Bytes)
	t.Retain()
	e.foreseen.Go(func() {
		t.Provide(f)
		t.Release()
		e.foreseeing.Store(false)
	})
}

// appendFailed says what a failed append means: nothing was added, and unless the log says that it has failed it goes on. A full disk passes,
// and so may a want of files.
func (e *Engine) appendFailed(err error) error {
	if isDiskFull(err) {
		e.store.GiveBack()
	}
	if errors.Is(err, wal.ErrFailed) {
		return e.fail(err)
	}
	return err
}

// syncLog makes everything appended durable: first the values that lie apart, then the log that refers to them.
func (e *Engine) syncLog() error {
	logged := e.valuesLogged.Load() // by what lies below the end of the log
	end := e.log.Position()         // others append meanwhile, and what they refer to may come behind the values that are synced now
	if err := e.store.SyncValues(); err != nil {
		return e.fail(err)
	}
	if err := e.log.SyncTo(end); err != nil {
		return e.fail(err)
	}
	for old := e.valuesSynced.Load(); old < logged && !e.valuesSynced.CompareAndSwap(old, logged); old = e.valuesSynced.Load() {
	}
	return nil
}

// syncCommits is syncLog where the sync is one that Metrics counts: not a checkpoint's, which comes at a time of its own.
func (e *Engine) syncCommits() error {
	if err := e.syncLog(); err != nil {
		return err
	}
	e.counters.syncs.Add(1)
	return nil
}

// prefetchWidth is how many commands of a batch are hashed ahead, so that their cache misses in the memtable's index overlap.
const prefetchWidth = 32

// ahead is the commands that are about to be applied, and the hashes of their keys.
type ahead struct {
	n        int
	commands [prefetchWidth]command.Command
	hashes   [prefetchWidth]uint64
	rest     command.Decoder // behind them, where there are so many that more may follow
}

// fill takes the next commands in.
func (a *ahead) fill(d *command.Decoder) {
	a.n = 0
	for a.n < prefetchWidth {
		c := &a.commands[a.n]
		if !d.NextTo(c) {
			break
		}
		a.hashes[a.n] = 0
		if c.Op != command.Note { // of no use for a few other kinds, and harmless
			a.hashes[a.n] = record.Hash(c.Keyspace, c.Key)
		}
		a.n++
	}
}

// forget drops what the commands point to, which is the caller's.
func (a *ahead) forget() {
	if a.n == prefetchWidth {
		a.rest = command.Decoder{}
	}
	clear(a.commands[:a.n])
	a.n = 0
}

// look takes in the first of the encoded commands that applySeen is going to apply, and asks for the memory that it reads first: that
// comes while something else is done. The caller leads.
func (e *Engine) look(t *memtable.Table, commands []byte) {
	d := command.NewDecoder(commands)
	e.ahead.fill(&d)
	if e.ahead.n == prefetchWidth {
		e.ahead.rest = d
	}
	t.Ask(e.ahead.hashes[:e.ahead.n])
}

// apply carries encoded commands into a memtable; the n-th gets the sequence number first+n. The caller leads.
func (e *Engine) apply(t *memtable.Table, first uint64, commands []byte) {
	e.look(t, commands)
	e.applySeen(t, first)
}

// applySeen is apply for the commands that were given to look.
func (e *Engine) applySeen(t *memtable.Table, first uint64) {
	a := &e.ahead
	gaps := !e.gaps.Empty()
	d, seq := a.rest, first
	for more := true; more; {
		if a.n > 1 {
			e.sink += t.Prefetch(a.hashes[:a.n])
		}
		if gaps {
			e.closeGaps(a.commands[:a.n])
		}
		for i := range a.n {
			e.applyOne(t, &a.commands[i], a.hashes[i], seq)
			seq++
		}
		if more = a.n == prefetchWidth; more {
			a.forget()
			a.fill(&d)
		}
	}
	a.forget()
}

func (e *Engine) applyOne(t *memtable.Table, c *command.Command, hash, seq uint64) {
	switch c.Op {
	case command.Put:
		t.Put(c.Keyspace, hash, c.Key, seq, record.Record{Kind: record.Inline, Expiry: c.Expiry, Value: c.Value})
	case command.PutApart:
		e.referTo(c.Value, seq)
		t.Put(c.Keyspace, hash, c.Key, seq, record.Record{Kind: record.Apart, Expiry: c.Expiry, Value: c.Value})
	case command.Delete:
		t.Put(c.Keyspace, hash, c.Key, seq, record.Record{Kind: record.Tombstone})
	case command.DeleteRange:
		t.DeleteRange(c.Keyspace, c.Key, c.Value, seq)
	case command.CreateKeyspace:
		if o, _, err := decodeOptions(c.Value); err == nil {
			e.keyspaces.create(Spec{ID: c.Keyspace, Name: string(c.Key), KeyspaceOptions: o}, seq)
		}
	case command.DropKeyspace:
		e.keyspaces.drop(c.Keyspace, seq)
	case command.Clock:
		e.clock.raise(c.Expiry)
	}
}

// referTo notes that the log refers to a value apart: who loses the record loses it too, and its segments are not to be cleaned before
// the record has settled. Where the chunks of a value lie is not known while the device does not tell: so it is every segment that they
// may lie in.
func (e *Engine) referTo(encoded []byte, seq uint64) {
	ref, err := value.DecodeRef(encoded)
	if err != nil {
		return
	}
	e.valuesLogged.Add(int64(ref.Length))
	e.store.SetLastSeq(ref.Pointer.Segment, seq)
	if ref.Length <= value.ChunkBytes {
		return
	}
	err = value.Walk(e.store, ref, func(p segment.Pointer, _ segment.Kind) error {
		e.store.SetLastSeq(p.Segment, seq)
		return nil
	})
	if err != nil {
		e.o.Logger.Error("where the chunks of a value lie cannot be read", "error", err)
		e.store.RaiseLastSeq(ref.Segment, seq)
	}
}

// makeRoom sees to it that the memtable in front takes a batch, and slows the writer down while settling lags behind.
func (e *Engine) makeRoom(records, bytes int) error {
	v := e.current.Load()
	front := v.Tables[0]
	if e.goesOn(front, records, bytes) {
		if len(v.Tables) > 1 {
			e.pace(front, bytes)
		} else if front.Ordered() >= e.sizes.ordered {
			return e.freeze(records, bytes)
		} else if int64(front.Bytes()+bytes) > e.fits.Load() {
			e.wakeWorker()
		}
		return nil
	}
	if err := e.awaitSettled(); err != nil {
		return err
	}
	return e.freeze(records, bytes)
}

// goesOn reports whether the memtable in front may take a batch: else what is behind it has to settle first.
func (e *Engine) goesOn(front *view.Table, records, bytes int) bool {
	return e.takes(front.Table, records, bytes) && !e.valuesDue(front.Len()) && !e.logDue() &&
		(front.Len() == 0 || int64(front.Bytes()) < e.shortTable())
}

// logPerMemtable is how many times as many bytes as a memtable has come to the log before the memtable settles, whatever it holds. Notes
// take no room in it, and a long key that is written again and again next to none: the log goes with what settles.
const logPerMemtable = 4

// logFrame is what a record takes in the log beside its commands, about.
const logFrame = 32

// logDue reports whether the log behind the memtable in front has come to its limit. The caller leads.
func (e *Engine) logDue() bool { return e.logged >= logPerMemtable*int64(e.sizes.memtable) }

// takes reports whether a memtable has room for a batch: in its arena, and, with its indexes, in its share of the budget.
func (e *Engine) takes(t *memtable.Table, records, bytes int) bool {
	return t.Fits(records, bytes) && (t.Len() == 0 || t.Bytes()+bytes <= e.sizes.memtable)
}

// newTable makes a memtable that takes at least a batch of so many records with so many bytes: one of tiny records needs
// many times their bytes, and one in the log may have been written when the budget was larger. Where it is for nobody yet, settling may have
// the memory that waits until somebody writes.
func (e *Engine) newTable(records, bytes int) (*view.Table, error) {
	limit, create := e.sizes.memtable, e.arenas.New
	if records == 0 {
		create = e.arenas.NewLater
	}
	if needed := memtable.LimitFor(records, bytes); needed > limit {
		limit, create = needed, memtable.New // the budget has no room to keep it
	}
	t, err := create(limit)
	if err != nil {
		return nil, fmt.Errorf("make a memtable of %d bytes: %w", limit, err)
	}
	return view.NewTable(t), nil
}

// freeze puts a new memtable in front, which takes at least a batch of so many records with so many bytes. The caller leads.
func (e *Engine) freeze(records, bytes int) error {
	fresh, err := e.newTable(records, bytes)
	if err != nil {
		return err
	}
	end := wal.Position{}
	if e.log != nil {
		end = e.log.Position()
	}
	e.beginValues()
	e.logged = 0
	e.mu.Lock()
	old := e.current.Load()
	old.Tables[0].End = end
	old.Tables[0].Last = e.lastSeq
	tables := append([]*view.Table{fresh}, old.Tables...)
	e.publish(tables, old.Roots)
	e.mu.Unlock()
	e.progress.Store(0)
	e.exchanged.Store(true)
	e.wakeWorker()
	return nil
}

// awaitSettled waits until all frozen memtables have settled: none is frozen behind another one, except where damage keeps
// them (mostUnsettled). It fails when a round of settling that began during the wait fails; one that had begun before may
// have failed of something that is over by now. The caller leads.
func (e *Engine) awaitSettled() error {
	start := e.o.Clock.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	begun := e.settles
	anyFrozen := func() bool { return len(e.current.Load().Tables) > 1 }
	for anyFrozen() {
		if e.closed.Load() {
			return ErrClosed
		}
		e.wakeWorker()
		e.changed.Wait()
		if e.settled > begun && e.lastErr != nil && anyFrozen() {
			return fmt.Errorf("settle the memtable: %w", e.lastErr)
		}
	}
	if d := e.o.Clock.Now().Sub(start); d > time.Millisecond {
		e.counters.stalls.Add(1)
		e.counters.stallTime.Add(int64(d))
	}
	return nil
}

// pace slows a writer down when the memtable in front fills faster than the one behind it settles, so that the two meet
// gradually instead of at a wall. The delay grows with the square of the lag, up to about the speed at which settling goes.
func (e *Engine) pace(front *view.Table, bytes int) {
	const mostPerByte = 40 // nanoseconds
	values := e.valuesToPace()
	fill := max(float64(front.Bytes())/float64(e.sizes.memtable), float64(e.newValues())/float64(e.valuesLimit(front.Len())))
	lag := fill - 0.5 - float64(e.progress.Load())/progressWhole/2
	if lag <= 0 {
		return
	}
	e.owed += int64(float64(int64(bytes+64)+values/valuePerSettled) * mostPerByte * 4 * lag * lag)
	if e.owed < int64(time.Millisecond) {
		return
	}
	d := min(time.Duration(e.owed), 20*time.Millisecond)
	e.owed = 0
	e.counters.stalls.Add(1)
	e.counters.stallTime.Add(int64(d))
	_ = e.o.Clock.Sleep(context.Background(), d) // cannot end early
}
