package wal

import (
	"errors"
	"fmt"

	"github.com/pandodb/pando/vfs"
)

// Deliver takes a record in. The payload is valid during the call. synced tells that the record is known to have been on stable
// storage before the log was last closed or left: what it refers to was made durable before it was.
type Deliver func(seq uint64, payload []byte, synced bool) error

// Recover delivers every record from the position from on to fn, in order, and opens the log behind the last one. A payload
// is valid during the call. Replay ends where the log ends: remains of records that were never synced are cut off, and what
// is appended from now on goes into a new segment whose header says where the cut is. What was delivered is durable when
// Recover returns.
//
// An error of fn ends recovery and is returned, except for ErrCut. Damage to what had been synced is a *corrupt.Error; the
// files are as they were in that case.
func Recover(o Options, from Position, fn Deliver) (*Log, Recovered, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, Recovered{}, err
	}
	r := recovery{o: o, start: from, from: from.place()}
	if err := r.replay(fn); err != nil {
		return nil, r.out.Recovered, err
	}
	if err := r.settle(); err != nil {
		return nil, r.out.Recovered, err
	}
	l, err := r.open()
	return l, r.out.Recovered, err
}

// Replay delivers what Recover would, and changes nothing.
func Replay(o Options, from Position, fn Deliver) (Recovered, error) {
	o, err := o.withDefaults()
	if err != nil {
		return Recovered{}, err
	}
	r := recovery{o: o, start: from, from: from.place()}
	err = r.replay(fn)
	return r.out.Recovered, err
}

// recovery is the I/O around a planner.
type recovery struct {
	o                    Options
	start                Position // as the caller gave it
	from                 place
	chain, older, strays []found
	out                  outcome
	buf                  []byte
}

func (r *recovery) replay(fn Deliver) error {
	if r.start.Segment >= 1<<32 || r.start.Offset < 0 || r.start.Offset > MaxSegmentBytes {
		return fmt.Errorf("log: %v is no position", r.start)
	}
	files, err := survey(&r.o)
	if err != nil {
		return err
	}
	r.chain, r.older, r.strays, err = link(r.o.Dir, files, r.from.segment())
	if err != nil {
		return err
	}
	p := planner{dir: r.o.Dir, chain: r.chain, strays: r.strays, load: r.load, deliver: fn,
		// Whoever stored the position to start from made the log durable up to it before.
		claim: r.from}
	r.out, err = p.run(r.from, r.o.Seq)
	return err
}

// load reads a whole segment into the one buffer that recovery has.
func (r *recovery) load(f found) (data []byte, err error) {
	file, err := r.o.FS.Open(r.o.path(f.segment))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	n := min(f.size, f.header.size)
	if int64(cap(r.buf)) < n {
		r.buf = make([]byte, n)
	}
	return readUpTo(file, r.buf[:n], 0)
}

// settle makes durable what was delivered and is not known to be so. It may stand only in the cache of the system: after a
// killed process, or after a failed sync, of which some systems remember nothing and would call the next one a success.
// Therefore the bytes are written again before they are synced.
func (r *recovery) settle() error {
	for _, f := range r.chain {
		low := max(r.out.durable, r.from, at(f.segment, firstFrame))
		high := min(r.out.end, at(f.segment, f.header.limit()))
		if low.segment() != f.segment || high.segment() != f.segment || low >= high {
			continue
		}
		if err := r.rewrite(f.segment, low.offset(), high.offset()); err != nil {
			return fmt.Errorf("log: make %s durable: %w", baseName(f.segment), err)
		}
	}
	number := r.out.end.segment()
	if r.out.end.offset() == firstFrame {
		if err := r.settleEmpty(number); err != nil {
			return fmt.Errorf("log: make %s durable: %w", baseName(number), err)
		}
	}
	if r.out.Cut != nil {
		if err := r.cut(number, r.out.end.offset()); err != nil {
			return fmt.Errorf("log: cut %s at %d: %w", baseName(number), r.out.end.offset(), err)
		}
	}
	return nil
}

// cut overwrites the header of the frame at which the log ends, so that what lies behind it cannot be believed whatever
// becomes of the segments that follow. It needs no space on the device.
func (r *recovery) cut(number uint64, offset int64) (err error) {
	file, err := r.o.FS.OpenReadWrite(r.o.path(number))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	for _, f := range r.chain {
		if f.segment == number && offset+minRoom > min(f.header.limit(), f.size) {
			return nil // no frame can be there
		}
	}
	if _, err := file.WriteAt(make([]byte, frameHeader), offset); err != nil {
		return err
	}
	return file.Sync()
}

// settleEmpty makes the header and the name of an empty segment durable: the log ends there now, and a crash may have come
// before their sync. Any other segment has been durable since before its first frame.
func (r *recovery) settleEmpty(number uint64) error {
	for _, f := range r.chain {
		if f.segment != number {
			continue
		}
		file, err := r.o.FS.OpenReadWrite(r.o.path(number))
		if err != nil {
			return err
		}
		s := segment{header: f.header, file: file}
		if err := errors.Join(s.writeHeader(), file.Sync(), file.Close()); err != nil {
			return err
		}
	}
	return r.o.FS.SyncDir(r.o.Dir)
}

func (r *recovery) rewrite(segment uint64, low, high int64) (err error) {
	file, err := r.o.FS.OpenReadWrite(r.o.path(segment))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	for low < high {
		b, err := readUpTo(file, r.buf[:min(int64(len(r.buf)), high-low)], low)
		if err != nil {
			return err
		}
		if len(b) == 0 {
			break // less than minRoom before the limit, which is never used
		}
		if _, err := file.WriteAt(b, low); err != nil {
			return err
		}
		low += int64(len(b))
	}
	return file.Sync()
}

// open builds the log. Its last segment is sealed where the records end; the next record goes into a new one. That one is
// made at once where its header has something to tell: what was cut off, or that the last records are durable.
func (r *recovery) open() (*Log, error) {
	l := newLog(r.o)
	l.last = r.out.LastSeq
	l.next = r.nextSegment()
	if err := r.addOlder(l); err != nil {
		return nil, err
	}
	end := r.out.end
	for i, f := range r.chain {
		if f.segment > end.segment() {
			r.strays = append(r.strays, f)
			continue
		}
		s := &segment{header: f.header, start: firstFrame, before: r.out.before[i], sealed: true}
		switch {
		case f.segment == end.segment():
			s.end = end.offset()
		case r.chain[i+1].header.prevEnd != 0:
			s.end = r.chain[i+1].header.prevEnd
		default:
			s.sealed, s.end = false, f.header.limit()
		}
		if i == 0 && !r.out.whole {
			s.start = r.from.offset()
		}
		l.link(s)
	}
	if err := r.clear(l); err != nil {
		return nil, err
	}
	l.activate(l.segments[len(l.segments)-1], end.offset())
	l.limit = l.offset
	l.synced.Store(uint64(end))
	l.claimed = end // nothing can be added to this segment anyway
	if r.out.Cut == nil && !r.out.unclaimed {
		return l, nil
	}
	if err := l.Prepare(); err != nil && !errors.Is(err, vfs.ErrNoSpace) {
		return nil, err
	}
	return l, nil
}

func (r *recovery) nextSegment() uint64 {
	next := uint64(0)
	for _, list := range [][]found{r.chain, r.older, r.strays} {
		for _, f := range list {
			next = max(next, f.segment+1)
		}
	}
	return next
}

// addOlder adds the segments before the start position, which readers may want: those that are known to have been durable
// when something after them was written. The others may have holes.
func (r *recovery) addOlder(l *Log) error {
	next := r.chain[0].header
	keep := len(r.older)
	segments := make([]*segment, len(r.older))
	newer := r.out.before[0]
	for keep > 0 && r.out.whole {
		f := r.older[keep-1]
		before, ok, err := r.firstRecord(f)
		if err != nil {
			return fmt.Errorf("log: read %s: %w", baseName(f.segment), err)
		}
		if next.prevEnd == firstFrame { // nothing was ever written into it
			before, ok = newer, true
		}
		if !ok || f.segment >= r.out.durable.segment() {
			break
		}
		s := &segment{header: f.header, start: firstFrame, end: f.header.limit(), before: before}
		if next.prevEnd != 0 {
			s.sealed, s.end = true, next.prevEnd
		}
		keep--
		segments[keep] = s
		next, newer = f.header, before
	}
	if !r.out.whole {
		keep = len(r.older)
	}
	r.strays = append(r.strays, r.older[:keep]...)
	for _, s := range segments[keep:] {
		l.link(s)
	}
	return nil
}

// firstRecord returns the last record that begins before the segment, which its first frame tells.
func (r *recovery) firstRecord(f found) (before uint64, ok bool, err error) {
	file, err := r.o.FS.Open(r.o.path(f.segment))
	if err != nil {
		return 0, false, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	b, err := readUpTo(file, make([]byte, frameHeader), firstFrame)
	if err != nil {
		return 0, false, err
	}
	fr, ok := decodeFrame(b, &f.header, firstFrame, f.header.limit())
	return fr.before(), ok, nil
}

// link adds s behind the segments of the log.
func (l *Log) link(s *segment) {
	if n := len(l.segments); n > 0 {
		prev := l.segments[n-1]
		s.base = prev.base + prev.end - firstFrame
	}
	l.segments = append(l.segments, s)
}

// clear makes spares of the files that are not part of the log, and removes what is too much. One of another size may be the
// torn beginning of a segment, which must not grow into something that looks like a damaged one.
func (r *recovery) clear(l *Log) error {
	for _, f := range r.strays {
		switch {
		case f.condition == foreign:
		case f.size == r.o.SegmentBytes:
			l.spares = append(l.spares, f.segment)
		default:
			if err := l.remove(f.segment); err != nil {
				return err
			}
		}
	}
	return l.trimSpares(l.keepSpares())
}
