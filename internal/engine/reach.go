package engine

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/pandodb/pando/internal/command"
	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/segment"
	"github.com/pandodb/pando/internal/spill"
	"github.com/pandodb/pando/internal/value"
	"github.com/pandodb/pando/internal/wal"
)

// How far back the change feed reaches: as far as the log does, and as what the log refers to is there. That goes earlier than the log where
// nobody keeps it for the feed, or where it takes too much room.

// reach is up to where what the log refers to may have gone.
type reach struct {
	mu    sync.Mutex
	found bool // what went before the database was opened; guarded by mu
	gone  atomic.Uint64
	kept  atomic.Uint64 // what commands before it refer to is not kept for the feed
}

// raise notes that what a command refers to has gone.
func (r *reach) raise(seq uint64) { raise(&r.gone, seq) }

// oldestChange is the sequence number from which on the log may still be asked for changes.
func (e *Engine) oldestChange() uint64 {
	if e.log == nil || e.o.KeepChanges == 0 {
		return math.MaxUint64
	}
	_, seq := e.log.Oldest()
	return max(seq, e.reach.kept.Load())
}

// keptFor is what is there for the sake of commands in the log up to a number, of which it is the last one: the dead bytes of a segment, or
// the file of a batch.
type keptFor struct {
	last  uint64
	bytes int64
}

// limitKept bounds what is there for the sake of the log alone as the log itself is bounded: a record of a hundred bytes may refer to a value of
// a gigabyte, which was replaced at once. Where that is more than Options.KeepChanges, the feed reaches back as far as so much of it does.
// The log goes first, and what it referred to with the next checkpoint: whoever opens the database after a crash looks no further for what has
// gone than into the first segment of the log. The caller has settled everything up to a sequence number.
func (e *Engine) limitKept(settled uint64) {
	if e.o.KeepChanges == 0 {
		return
	}
	from := e.affordable(settled)
	if from > 0 && e.placeSpills() {
		from = e.affordable(settled)
	}
	if from > 0 {
		raise(&e.reach.kept, from)
		e.log.KeepFrom(from)
	}
}

// affordable is the first command such that what it and later ones refer to may be kept; 0: all may be kept that is.
func (e *Engine) affordable(settled uint64) uint64 {
	oldest := e.oldestChange()
	kept := e.keptSpills.since(oldest)
	for _, i := range e.store.Segments() {
		if i.Class == segment.Values && i.LastSeq >= oldest && i.LastSeq <= settled {
			kept = append(kept, keptFor{i.LastSeq, i.Size - max(i.Live, 0)})
		}
	}
	slices.SortFunc(kept, func(a, b keptFor) int { return cmp.Compare(b.last, a.last) })
	var bytes int64
	for i, k := range kept {
		// What a crash has left goes as one: it is only known that no command behind the crash refers to it.
		if bytes >= e.o.KeepChanges && k.last < kept[i-1].last {
			return k.last + 1
		}
		bytes += k.bytes
	}
	return 0
}

// OldestChange returns the sequence number of the oldest command that the log still has, with all that comes after it.
func (e *Engine) OldestChange() uint64 {
	if e.log == nil {
		return e.visible.Load() + 1
	}
	e.lookForGone()
	_, seq := e.log.Oldest()
	return max(seq, e.reach.gone.Load()+1)
}

// lookForGone has findGone look once; and again, while the device does not give something back, whenever it is called.
func (e *Engine) lookForGone() {
	e.reach.mu.Lock()
	defer e.reach.mu.Unlock()
	if !e.reach.found {
		err := e.findGone()
		e.reach.found = final(err)
	}
}

// final reports whether who has read the log and got err would learn no more by reading it again: that was all, or damage, of which whoever
// reads the changes is told. The device may give back the next time what it did not.
func final(err error) bool { return err == nil || errors.Is(err, corrupt.Err) }

// findGone looks for commands in the log that refer to what an earlier run has given up. It left no more of the log behind that than the
// segment where it ends, see limitKept, or where it kept no changes the one that it ended in itself: it is enough to look at as much as that,
// whatever the budget was then, and at as much again behind each find. Its error is one of reading.
func (e *Engine) findGone() (err error) {
	if e.enter() != nil {
		return nil // nobody can ask for changes any more
	}
	defer e.leave()
	_, from := e.log.Oldest()
	for from > 0 && err == nil {
		from, err = e.findGoneFrom(from)
	}
	return err
}

// findGoneFrom is findGone from a command on. It returns from where to go on, 0: that is all.
func (e *Engine) findGoneFrom(from uint64) (next uint64, err error) {
	reader, err := e.log.NewReader(from)
	if err == nil {
		defer reader.Close()
		reader.Limit(e.visible.Load())
		err = e.findGoneIn(reader)
		e.reach.raise(reader.Missed())
	}
	if !errors.Is(err, wal.ErrRecycled) {
		return 0, err
	}
	if _, oldest := e.log.Oldest(); oldest > from {
		return oldest, nil // it was recycled meanwhile
	}
	if next := e.reach.gone.Load() + 1; next > from {
		return next, nil
	}
	return 0, nil
}

func (e *Engine) findGoneIn(reader *wal.Reader) error {
	for left := int64(mostLogSegment); left > 0; {
		last, payload, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		left -= int64(len(payload))
		d := command.NewDecoder(payload)
		for d.Next() {
			c := d.Command()
			err := e.refersTo(&c)
			if errors.Is(err, errGone) {
				e.reach.raise(last)
				left = mostLogSegment
				break
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// errGone is what errors.Is finds where what the log refers to is not there any more.
var errGone = errors.New("what the log refers to has gone")

// refersTo looks for what a command refers to. It is errGone where that is not there any more, and another error where what would tell cannot
// be read. What is damaged is there.
func (e *Engine) refersTo(c *command.Command) (err error) {
	switch c.Op {
	case command.Bulk:
		number, _ := c.Spilled()
		err = e.readBulk(number, func(f spill.Frame) error {
			for d := command.NewDecoder(f.Payload); d.Next(); {
				if c := d.Command(); c.Op == command.PutApart {
					if err := e.refersTo(&c); err != nil {
						return err // a value of the batch may have gone before its file
					}
				}
			}
			return nil
		})
	case command.PutApart:
		var ref value.Ref
		if ref, err = value.DecodeRef(c.Value); err == nil {
			err = e.lookForValue(ref)
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errGone
	case errors.Is(err, corrupt.Err):
		return nil
	}
	return err
}

// lookForValue is errGone where a value is not there any more. The file of a segment of which nothing lives may be there and hold other values:
// it was removed, and used again under another name, and a power cut has brought the old name back.
func (e *Engine) lookForValue(ref value.Ref) error {
	dead := false
	look := func(p segment.Pointer, _ segment.Kind) error {
		live, ok := e.store.LiveIn(p.Segment)
		if !ok {
			return segment.ErrUnknownSegment
		}
		dead = dead || live <= 0
		return nil
	}
	err := look(ref.Pointer, segment.KindValue) // first: to tell where chunks lie, Walk reads what may not be there
	if err == nil {
		err = value.Walk(e.store, ref, look)
	}
	if err == nil && dead {
		err = value.Verify(e.store, ref)
	}
	if errors.Is(err, segment.ErrUnreadable) {
		return err // which does not tell, however long it lasts: it may be there, and be read again
	}
	if errors.Is(err, segment.ErrUnknownSegment) || dead && errors.Is(err, corrupt.Err) {
		return errGone
	}
	return err
}
