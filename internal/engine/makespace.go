package engine

import (
	"slices"
	"time"

	"github.com/pandodb/pando/internal/segment"
)

// What writers do to make room takes no longer than makingRoom: the next one goes on with it. Where it was in vain nobody tries again for so
// many times as long, unless something has been deleted, or, of those who delete, much space has gone.
const (
	makingRoom = 2 * time.Second
	restAfter  = 3
)

const (
	worthRound = 2048 // so small a part of all segments less is worth a round
	mostVain   = 3    // rounds that were not worth it, one behind the other: what dies in one is for the next one
)

// makeSpace settles what is in memory, makes room with what has been deleted, and takes note of when that was in vain. The caller leads.
func (e *Engine) makeSpace() error {
	begun := e.o.Clock.Now()
	vain := false
	err := e.settleBehind()
	if err == nil {
		vain, err = e.collect(begun.Add(makingRoom))
	}
	if err != nil || vain {
		now := e.o.Clock.Now()
		e.space.left.Store(e.space.free.Load())
		again := now.Add(restAfter * now.Sub(begun))
		e.space.again.Store(&again)
	}
	return err
}

// collect has the cleaner go on until there is enough space, or it gains nothing. Then it empties segments in which leaves may be hollow, on
// the same terms, and reports when that is in vain, too. When its time is up, which is not before there was a round, the next call goes on
// where it was.
func (e *Engine) collect(until time.Time) (vain bool, err error) {
	e.waiting.Add(1)
	defer e.waiting.Add(-1)
	d, size := &e.space, e.segmentBytes()
	for first := true; !e.enoughSpace() && (first || e.o.Clock.Now().Before(until)); first = false {
		if d.vain >= 2*mostVain || d.vain >= mostVain && d.hollow.Load() == 0 {
			d.vain = 0
			return true, nil
		}
		if e.closed.Load() {
			return false, ErrClosed // Close waits
		}
		squeeze := d.vain >= mostVain && e.maySqueeze()
		e.store.SealValues()
		if err := e.settle(e.ctx, work{squeeze: squeeze}); err != nil {
			return false, err
		}
		d.vain++
		if now := e.segmentBytes(); now < size-size/worthRound {
			d.vain, size = 0, now
			if squeeze {
				d.vain = mostVain
			}
		}
	}
	return false, nil
}

// maySqueeze reports whether there may be hollow leaves, and some space to write them without what has been deleted.
func (e *Engine) maySqueeze() bool {
	return e.space.short.Load() && e.space.hollow.Load() > 0 && e.space.free.Load() >= e.spaceNeeded()/4
}

// sparing asks the file system, and says how many bytes the cleaner may move at most in a round of settling, and whether the round is to
// write no more than it has to when it has written room bytes: that begins when there is twice as much as is needed, for there are rounds
// that write much of what there is anew. Who writes anew what has shrunk gives space back, but only when all is done. Where nothing is
// merged all is for the cleaner, for what it begins with and does not come to the end of is in vain.
func (e *Engine) sparing(w work, merges bool) (yes bool, room, moving int64) {
	e.enoughSpace()
	free := e.space.free.Load()
	left := max(free-e.unsettled(), 0)
	switch {
	case w.sparing:
	case merges:
		room, moving = left/2, left/4
	default:
		room, moving = left-left/8, left/3
	}
	return w.sparing || free < 2*e.spaceNeeded(), room, moving
}

// trySparing reports whether a round that has found the disk full may be tried once more, and write less.
func (s *settlement) trySparing(err error, w *work) bool {
	if !isDiskFull(err) || w.sparing || w.compaction != nil || s.e.failure.Load() != nil {
		return false
	}
	w.sparing = true
	return true
}

// noteSpace takes note of what a round took that is in force, and of what it has left.
func (s *settlement) noteSpace() {
	d := &s.e.space
	if len(s.group) > 0 {
		d.settledWith(s.writer.Written())
	}
	if len(s.group) > 0 && s.sparing {
		d.hollow.Store(s.firstNew)
	}
	d.stale()
}

// hollowSegments picks segments to empty of those in which leaves may be hollow, though little is dead in them: the oldest first, for most has
// been deleted from their leaves since, and what was written a moment ago for the same reason would be moved time and again. When there are
// no more of them nothing is hollow any more.
func (s *settlement) hollowSegments(infos []segment.Info, p cleanPolicy) []uint32 {
	below := s.e.space.hollow.Load()
	infos = slices.DeleteFunc(slices.Clone(infos), func(i segment.Info) bool { return i.ID >= below })
	p.full, p.garbage, p.oldest = 1, -1, true
	victims := chooseVictims(infos, p)
	if len(victims) == 0 {
		s.e.space.hollow.Store(0)
	}
	return victims
}
