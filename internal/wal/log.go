package wal

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/pandodb/pando/vfs"
)

// Log is an open log. Use Create or Recover.
type Log struct {
	o Options

	// Only the goroutine that appends touches these.
	last    uint64 // sequence number of the last record
	claimed place  // the highest claim that a frame carries
	offset  int64  // in active, of the next frame
	limit   int64  // in active, where room ends; below offset+minRoom when it is full or sealed
	due     int64  // in active, the offset from which on the next segment is due
	scratch []byte // plain mode: a frame is written in one piece
	zeroed  []byte // what fill writes, and the end of a long frame
	head    [frameHeader]byte

	active  *segment // changed under mu by the goroutine that appends
	end     atomic.Uint64
	synced  atomic.Uint64
	failure atomic.Pointer[error] // what every call returns from now on
	plain   atomic.Bool           // write instead of mapping

	// Locks are taken in this order; none is held over the copying of a record.
	prepareMu sync.Mutex // makes segments ready, one at a time
	syncMu    sync.Mutex // one sync at a time; Recycle keeps out of its way
	mu        sync.Mutex // guards everything below, without I/O

	segments []*segment // oldest first; the last one is active
	ready    []*segment // follow the active one; empty and durable
	retired  []*segment // recycled while a Reader was in them
	spares   []uint64   // numbers of files that may be used again
	wanted   uint64     // no reader wants a record below it
	next     uint64     // number of the next segment; no number is ever used twice
}

// segment is a file of the log. Its header never changes; the rest is guarded by Log.mu, except for mapping, data and
// detached, which belong to the goroutine that appends once the segment is active.
type segment struct {
	header
	file     vfs.File // nil when nothing in it waits for a sync
	mapping  vfs.Mapping
	data     []byte // nil in plain mode
	detached int64  // the pages before it have left the mapping
	blank    bool   // the system may have no page of the file in memory beyond filled
	filled   int64
	start    int64  // the first frame that can be read
	end      int64  // where frames end; 0 while the segment is active or ready
	sealed   bool   // ended early: the successor's header says where
	uncut    bool   // Shrink has sealed it, and not yet cut the file
	base     int64  // bytes of the log before it
	before   uint64 // the last record that begins before it
	pins     int    // readers in it
	spent    bool   // its file is not to be used again

	passed    atomic.Int64 // what lies before it is not mapped: it was written with calls, or has been detached
	forgotten int64        // the system has been told that what lies before it is not going to be read; guarded by syncMu

	// What a recovery has delivered out of [again, againEnd) may not be durable, whatever the system says: it is written again before
	// the next sync. Guarded by syncMu.
	again, againEnd int64
}

// Create makes a new log whose first segment has the number first. The directory must exist and hold no log.
func Create(o Options, first uint64) (*Log, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if first >= 1<<32 {
		return nil, fmt.Errorf("log: segment number %d is too large", first)
	}
	names, err := o.FS.List(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("log: list %s: %w", o.Dir, err)
	}
	for _, name := range names {
		if _, ok := parseName(name); ok {
			return nil, fmt.Errorf("log: %s holds a log already (%s)", o.Dir, name)
		}
	}
	l := newLog(o)
	l.next = first
	l.last = o.Seq
	if err := l.Prepare(); err != nil {
		return nil, err
	}
	s := l.ready[0]
	l.ready = nil
	s.before = o.Seq
	l.segments = []*segment{s}
	l.activate(s, firstFrame)
	l.synced.Store(l.end.Load())
	l.claimed = place(l.end.Load())
	return l, nil
}

func newLog(o Options) *Log {
	l := &Log{o: o}
	l.plain.Store(o.Plain)
	return l
}

// activate makes s the segment that is appended to, from offset on.
func (l *Log) activate(s *segment, offset int64) {
	l.active, l.offset, l.limit, l.due = s, offset, s.limit(), s.size/2
	l.end.Store(uint64(at(s.segment, offset)))
}

// Err is what the log failed with, or nil.
func (l *Log) Err() error {
	if err := l.failure.Load(); err != nil {
		return *err
	}
	return nil
}

// fail poisons the log with its first failure, and returns that.
func (l *Log) fail(err error) error {
	if !errors.Is(err, ErrFailed) {
		err = fmt.Errorf("%w: %w", ErrFailed, err)
	}
	l.failure.CompareAndSwap(nil, &err)
	return l.Err()
}

// Fail makes the log fail for a cause of the caller's: nothing is appended or synced any more, not by Close either.
func (l *Log) Fail(cause error) { _ = l.fail(cause) }

// Position is the end of what was appended.
func (l *Log) Position() Position { return place(l.end.Load()).position() }

// Synced is the end of what is durable.
func (l *Log) Synced() Position { return place(l.synced.Load()).position() }

// Unsynced is how many bytes of the log lie above Synced.
func (l *Log) Unsynced() int64 {
	synced, end := place(l.synced.Load()), place(l.end.Load()) // in this order, so that the difference is not negative
	if synced.segment() == end.segment() {
		return end.offset() - synced.offset()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.distance(synced, end)
}

// Size is how many bytes of the log are kept, from the oldest that can be read to the end.
func (l *Log) Size() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.segments[0]
	return l.distance(at(s.segment, s.start), place(l.end.Load()))
}

// Reserved is how many bytes the files of the log have that nothing has been written to: behind the end, in the segments that are ready,
// and in those that wait to be used again.
func (l *Log) Reserved() int64 {
	end := place(l.end.Load())
	l.mu.Lock()
	defer l.mu.Unlock()
	n := int64(len(l.spares)) * l.o.SegmentBytes
	for _, s := range l.ready {
		n += s.size
	}
	if s := l.active; (!s.sealed || s.uncut) && s.segment == end.segment() {
		n += s.size - end.offset()
	}
	return n
}

// distance is how many bytes of the log lie between two places; mu is held.
func (l *Log) distance(from, to place) int64 { return max(l.logical(to)-l.logical(from), 0) }

func (l *Log) logical(p place) int64 {
	for _, s := range l.segments {
		if s.segment == p.segment() {
			return s.base + p.offset() - firstFrame
		}
	}
	return l.segments[0].base // recycled
}

// Oldest is where the log that can still be read begins, and the lowest sequence number that NewReader accepts.
func (l *Log) Oldest() (Position, uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.segments[0]
	return Position{Segment: s.segment, Offset: s.start}, s.before + 1
}

// OldestRead returns the number of the oldest record that a Reader may still come to: it may be in a segment that was recycled meanwhile.
func (l *Log) OldestRead() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.segments[0].before
	for _, s := range l.retired {
		if s.pins > 0 {
			before = min(before, s.before)
		}
	}
	return before + 1
}

// Close syncs what was appended and releases the files. When something was synced that no frame in the log tells of, it adds
// a mark that does, so that damage to the last records is told from a torn tail. The log cannot be used afterwards.
// On a log that has failed it only releases the files.
func (l *Log) Close() error {
	err := l.closing()
	closed := ErrClosed
	if !l.failure.CompareAndSwap(nil, &closed) && errors.Is(l.Err(), ErrClosed) {
		return ErrClosed
	}
	l.prepareMu.Lock()
	defer l.prepareMu.Unlock()
	l.syncMu.Lock()
	defer l.syncMu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	return errors.Join(err, release(l.segments), release(l.ready))
}

// closing makes everything durable, and leaves a claim that says so.
func (l *Log) closing() error {
	if l.Err() != nil {
		return nil
	}
	if err := l.Sync(); err != nil {
		return err
	}
	if place(l.synced.Load()) <= l.claimed || l.limit-l.offset < minRoom {
		return nil
	}
	mark := frame{seq: l.last, claim: place(l.synced.Load()), kind: kindMark}
	if err := l.write(l.active, l.offset, &mark, nil); err != nil {
		return err
	}
	l.advance(mark.room(), mark.claim)
	return l.Sync()
}

// unmap ends the mapping; what was stored is still to be synced through file.
func (s *segment) unmap() error {
	if s.mapping == nil {
		return nil
	}
	m := s.mapping
	s.mapping, s.data = nil, nil
	return m.Close()
}

// release gives everything back that the segment holds open.
func (s *segment) release() error {
	err := s.unmap()
	if s.file != nil {
		err = errors.Join(err, s.file.Close())
		s.file = nil
	}
	return err
}

func release(segments []*segment) error {
	var err error
	for _, s := range segments {
		err = errors.Join(err, s.release())
	}
	return err
}
