package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/pandodb/pando/internal/command"
	"github.com/pandodb/pando/internal/commit"
	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/segment"
	"github.com/pandodb/pando/internal/spill"
	"github.com/pandodb/pando/internal/view"
)

// A batch that does not fit into a memtable is a bulk load: its commands wait in a spill file, and its commit merges them
// straight into new roots, a memtable's worth at a time. The log only says that it happened, for the change feed; what
// commits it is the root slot behind that record. So a crash before it leaves nothing of the batch, and memory is bounded
// whatever its size. Other writers wait meanwhile, readers do not.

// CommitSpilled commits a batch that waits in a file. validate may be nil.
func (e *Engine) CommitSpilled(s *Spill, validate func() error) error {
	var r commit.Request
	e.pipeline.Acquire(&r)
	defer e.pipeline.Release()
	return e.CarrySpilled(s, validate)
}

// CarrySpilled is CommitSpilled for a caller who leads. What failed without ErrFailed has left nothing, and the batch in its file: it may be
// committed again, with more behind it.
func (e *Engine) CarrySpilled(s *Spill, validate func() error) error {
	if err := e.usable(); err != nil {
		return err
	}
	if validate != nil {
		if err := validate(); err != nil {
			return err
		}
	}
	if err := s.file.Close(e.o.KeepChanges > 0); err != nil {
		return err
	}
	if err := e.settleBehind(); err != nil {
		return err
	}
	e.waiting.Add(1) // a compaction makes room
	e.settling.Lock()
	e.waiting.Add(-1)
	defer e.settling.Unlock()
	first, last := e.lastSeq+1, e.lastSeq+uint64(s.file.Count())
	if err := e.load(s, first, last); err != nil {
		if isDiskFull(err) {
			e.store.GiveBack()
		}
		return fmt.Errorf("bulk load: %w", errors.Join(err, e.takeBack(s)))
	}
	s.take()
	e.lastSeq = last
	e.counters.commits.Add(1)
	e.counters.userBytes.Add(s.Size())
	e.visible.Store(last)
	e.feed.notify()
	e.keepSpill(s.number, last, s.file.Size())
	e.dropSpills() // or this one at once, where nobody may ask for it
	return nil
}

// takeBack gives the file of a bulk load that failed back to the batch. Where the log has a record of the load, the number in there has
// to stay with a file that the change feed passes over, so the batch gets another one, or is lost where there is no space for a name. What
// failed for good is left as it is: its root may be the one that the next open finds, and then the batch is committed, and the change feed
// needs its file.
func (e *Engine) takeBack(s *Spill) error {
	if !s.taken || e.failure.Load() != nil {
		return nil
	}
	number, renamed := s.number, true
	if s.logged == number {
		number = e.spills.Add(1)
		err := s.file.Renumber(number)
		if renamed = err == nil; !renamed && !isDiskFull(err) {
			return e.fail(err) // else the next root would pass a batch off as committed to those who read the changes
		}
	}
	if renamed {
		s.giveBack(number)
	} else {
		s.file.Lose() // the mark takes its place
	}
	if err := spill.MarkFailed(e.o.FS, e.o.Dir, s.logged); isDiskFull(err) {
		e.keptSpills.setUnmarked(s.logged, true)
	} else if err != nil {
		return e.fail(err)
	}
	e.keepSpill(s.logged, e.lastSeq, 0) // a mark
	e.visible.Store(e.lastSeq)          // of which readers see no more than before
	e.feed.notify()
	return nil
}

// markFailed makes the marks of loads that failed for which there was no space then. No root may come behind such a load before: it would pass
// for one that was carried out.
func (e *Engine) markFailed() error {
	for _, number := range e.keptSpills.allUnmarked() {
		if err := spill.MarkFailed(e.o.FS, e.o.Dir, number); isDiskFull(err) {
			return err
		} else if err != nil {
			return e.fail(err)
		}
		e.keptSpills.setUnmarked(number, false)
	}
	return nil
}

// readBulk calls fn for the frames of a bulk load that the log tells of by a number. One that failed has none.
func (e *Engine) readBulk(number uint64, fn func(spill.Frame) error) error {
	if slices.Contains(e.keptSpills.allUnmarked(), number) {
		return nil
	}
	return spill.Read(e.o.FS, e.o.Dir, number, fn)
}

// settleBehind settles everything that was committed before. The caller leads.
func (e *Engine) settleBehind() error {
	front := e.current.Load().Tables[0]
	if err := e.awaitSettled(); err != nil {
		return err
	}
	if front.Len() == 0 && !front.HasRanges() {
		return nil
	}
	if err := e.freeze(0, 0); err != nil {
		return err
	}
	return e.awaitSettled()
}

// logBulk tells the change feed of a bulk load, which is about to put its roots in force: from now on the file is the engine's. Where nobody keeps
// changes the file has not been synced, and a power cut may leave its name with nothing in it, which is what marks a load that failed. The log
// then gives the batch a number that no file has: its changes are gone, and it is known to have been carried out all the same.
func (e *Engine) logBulk(s *Spill, last uint64) error {
	if e.log == nil || s.taken {
		return nil
	}
	if s.logged = s.number; e.o.KeepChanges == 0 {
		s.logged = e.spills.Add(1)
	}
	var enc command.Encoder
	enc.Bulk(s.logged, uint64(s.file.Count()))
	if _, err := e.log.Append(last, enc.Payload()); err != nil {
		return e.appendFailed(err)
	}
	s.take()
	e.lastSeq = last
	return nil
}

// load merges the commands of a file into new roots and puts them in force.
func (e *Engine) load(spilled *Spill, first, last uint64) error {
	e.exchanged.Store(true) // for those that it makes
	e.fitCache()
	s, err := e.loadOnce(spilled, first, last)
	for s.giveVictimsUp(err) {
		s, err = e.loadOnce(spilled, first, last)
	}
	if err != nil {
		return err
	}
	e.mu.Lock()
	e.floor = last // open optimistic transactions cannot be checked against what passed no memtable
	e.mu.Unlock()
	s.publish()
	e.space.stale()
	e.unlogged = true
	e.counters.checkpoints.Add(1)
	return nil
}

// loadOnce does all of load but to show the new roots to readers. The log hears of it when all that takes much space has been written: a
// load that finds the disk full has hardly ever left a trace there.
func (e *Engine) loadOnce(spilled *Spill, first, last uint64) (*settlement, error) {
	before := e.store.Segments()
	s := e.newSettlement(context.Background(), e.current.Load(), nil, work{})
	s.seq = last
	s.keyspaces, s.next = e.keyspaces.at(last)
	err := s.mergeSpilled(spilled.number, first, last)
	if err == nil && segment.LiveBytes(s.writer.Table()) > segment.LiveBytes(before) && !e.enoughSpace() {
		err = e.tooLittleSpace()
	}
	if err == nil {
		err = e.logBulk(spilled, last)
	}
	if err == nil {
		if e.log != nil {
			s.through = e.log.Position()
		}
		err = s.store()
	}
	if err != nil && !spilled.taken { // no command ever gets the numbers that the values of the batch are said to be referred to by
		e.store.LowerLastSeq(before)
	}
	return s, s.giveUp(err)
}

// mergeSpilled merges a file, whose commands have the sequence numbers from first to last, into the settlement's roots, a memtable's worth
// at a time.
func (s *settlement) mergeSpilled(number, first, last uint64) error {
	if err := s.plan(); err != nil {
		return err
	}
	var table *view.Table
	merge := func() error {
		if table == nil {
			return nil
		}
		s.group = []*view.Table{table}
		err := s.mergeGroup()
		s.group, table = nil, nil
		return err
	}
	seq := first
	err := spill.Read(s.e.o.FS, s.e.o.Dir, number, func(f spill.Frame) error {
		if table != nil && !s.e.takes(table.Table, f.Count, f.Data) {
			if err := merge(); err != nil {
				return err
			}
		}
		if table == nil {
			fresh, err := s.e.newTable(f.Count, f.Data)
			if err != nil {
				return err
			}
			table = fresh
			table.Retain()
		}
		s.e.apply(table.Table, seq, f.Payload)
		seq += uint64(f.Count)
		return nil
	})
	if err == nil && seq != last+1 {
		err = wrongCount(number, seq-first, last+1-first)
	}
	return errors.Join(err, merge())
}

// wrongCount is the error of a spill file that does not hold as many commands as whoever refers to it says.
func wrongCount(number, found, want uint64) error {
	return corrupt.New(spill.Name(number), 0, 0, "%d commands instead of %d", found, want)
}

// mergeGroup merges the group and gives its tables up.
func (s *settlement) mergeGroup() error {
	defer func() {
		for _, t := range s.group {
			t.Release()
		}
	}()
	if err := s.run(); err != nil {
		return err
	}
	if s.emptied == nil { // the first round has done the cleaner's work
		s.emptied, s.moved, s.victims = s.victims, nil, nil
	}
	return s.writer.Flush()
}

// forgetSpill notes that the bulk load of a command in the log was not finished.
func (e *Engine) forgetSpill(c command.Command) error {
	if e.o.ReadOnly {
		return nil
	}
	number, _ := c.Spilled()
	return spill.MarkFailed(e.o.FS, e.o.Dir, number)
}

func (e *Engine) removeSpill(number uint64) error {
	if err := e.o.FS.Remove(e.path(spill.Name(number))); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// spillBits is how many bits of the number of a spill file count those of one run of the database. The others are the number of the last
// command before it: no number is given again while the log has a record that names it, whether its file is still there or not.
const spillBits = 24

// sweepSpills removes the spill files that nobody needs. Which of them the change feed may still be asked for the log would have to be read
// for: all are kept until what is in the log now has gone. So is a mark, by which the next open tells a load that failed from one that a
// damaged root slot knows of.
func (e *Engine) sweepSpills() error {
	numbers, err := spill.Sweep(e.o.FS, e.o.Dir)
	if err != nil {
		return err
	}
	e.spills.Store(e.lastSeq << spillBits)
	e.keptSpills.earlier = e.lastSeq
	for _, n := range numbers {
		e.spills.Store(max(e.spills.Load(), n))
		keep := e.o.KeepChanges > 0
		if !keep {
			if keep, err = spill.Failed(e.o.FS, e.o.Dir, n); err != nil {
				return err
			}
		}
		if keep {
			info, err := e.o.FS.Stat(e.path(spill.Name(n)))
			if err != nil {
				return fmt.Errorf("look at the file of a batch: %w", err)
			}
			e.keepSpill(n, e.lastSeq, info.Size)
		} else if err := e.removeSpill(n); err != nil {
			return err
		}
	}
	return nil
}
