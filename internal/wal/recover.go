package wal

import (
	"bytes"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/vfs"
)

// Deliver takes a record in. The payload is valid during the call. synced tells that the record is known to have been on stable
// storage before the log was last closed or left: what it refers to was made durable before it was.
type Deliver func(seq uint64, payload []byte, synced bool) error

// Recover delivers every record from the position from on to fn, in order, and opens the log behind the last one. A payload
// is valid during the call. Replay ends where the log ends: remains of records that were never synced are cut off, and what
// is appended from now on goes into a new segment whose header says where the cut is, or into the last one where nothing was
// ever appended to that. What was delivered is durable when Recover returns, or after the next Sync where
// Options.SettleLater says so and nothing was cut off.
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

	buf     []byte      // what load read into, where files cannot be mapped
	file    vfs.File    // under mapping
	mapping vfs.Mapping // of the segment that was loaded last; nil where it was read
}

// leastMapped is the size from which on a segment is mapped, and holes are asked for: to read all of a smaller one takes less time.
const leastMapped = 32 << 10

// content is what recovery has of a segment.
type content struct {
	data []byte
	// Nothing was ever written in [hole, holeEnd): there are zeroes, which nobody has to look at.
	hole, holeEnd int64
}

func (r *recovery) replay(fn Deliver) (err error) {
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
	defer func() { err = errors.Join(err, r.unload()) }()
	p := planner{dir: r.o.Dir, chain: r.chain, strays: r.strays, load: r.load, deliver: fn,
		// Whoever stored the position to start from made the log durable up to it before.
		claim: r.from}
	return r.run(&p)
}

// run runs the planner. The pages of a mapping fault when the device fails or the file is cut from outside; such a fault becomes an
// error here.
func (r *recovery) run(p *planner) (err error) {
	old := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(old)
		var mapped []byte
		if r.mapping != nil {
			mapped = r.mapping.Bytes()
		}
		if fault := vfs.Fault(recover(), mapped); fault != nil {
			err = fmt.Errorf("log: read: %w", fault)
		}
	}()
	r.out, err = p.run(r.from, r.o.Seq)
	return err
}

// load makes the content of a segment readable, until the next one is loaded: in a mapping, or else in the one buffer that recovery
// has. Only inside of run may it be touched.
func (r *recovery) load(f found) (c content, err error) {
	if err := r.unload(); err != nil {
		return c, err
	}
	n := min(f.size, f.header.limit())
	if n <= int64(len(f.content)) {
		return content{data: f.content[:n]}, nil
	}
	file, err := r.o.FS.Open(r.o.path(f.segment))
	if err != nil {
		return c, err
	}
	if h, ok := file.(vfs.HoleFinder); ok && n >= leastMapped {
		if c.hole, c.holeEnd, err = h.Hole(firstFrame); err != nil {
			c.hole, c.holeEnd = 0, 0 // then everything is looked at
		}
	}
	if m, ok := file.(vfs.ReadMapper); ok && n >= leastMapped {
		if r.mapping, err = m.MapRead(n); err == nil {
			if s, ok := r.mapping.(vfs.SequentialMapping); ok {
				s.Sequential()
			}
			r.file = file
			c.data = r.mapping.Bytes()
			return c, nil
		}
		r.mapping = nil
	}
	c.data, err = r.readInto(file, n)
	return c, errors.Join(err, file.Close())
}

// unload lets go of what was loaded last.
func (r *recovery) unload() error {
	if r.mapping == nil {
		return nil
	}
	err := errors.Join(r.mapping.Close(), r.file.Close())
	r.mapping, r.file = nil, nil
	return err
}

// readInto reads the first n bytes of a segment into the buffer, without the header, at which nobody looks again: it may lie where the device
// gives nothing back.
func (r *recovery) readInto(file vfs.File, n int64) ([]byte, error) {
	if int64(cap(r.buf)) < n {
		r.buf = make([]byte, n)
	}
	if n <= firstFrame {
		return r.buf[:n], nil
	}
	frames, err := readUpTo(file, r.buf[firstFrame:n], firstFrame)
	return r.buf[:firstFrame+len(frames)], err
}

// settle makes durable what was delivered and is not known to be so. It may stand only in the cache of the system: after a
// killed process, or after a failed sync, of which some systems remember nothing and would call the next one a success.
// Therefore the bytes are written again before they are synced.
func (r *recovery) settle() error {
	if r.later() {
		return nil // see unsettled
	}
	if r.o.Settling != nil {
		if err := r.o.Settling(); err != nil {
			return err
		}
	}
	for _, f := range r.chain {
		low, high := r.undurable(&f)
		if low >= high {
			continue
		}
		if err := r.rewrite(f.segment, low, high); err != nil {
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

// later reports whether the first sync is to make durable what was delivered. An end that was cut off, or lies at the beginning of a
// segment, has to be durable before anything follows.
func (r *recovery) later() bool {
	return r.o.SettleLater && r.out.Cut == nil && r.out.end.offset() != firstFrame
}

// undurable is the part of a segment which was delivered and is not known to be durable; it may be empty.
func (r *recovery) undurable(f *found) (low, high int64) {
	from := max(r.out.durable, r.from, at(f.segment, firstFrame))
	to := min(r.out.end, at(f.segment, f.header.limit()))
	if from.segment() != f.segment || to.segment() != f.segment || from >= to {
		return 0, 0
	}
	return from.offset(), to.offset()
}

// unsettled leaves what is undurable of a segment to the next sync.
func (r *recovery) unsettled(s *segment, f *found) (err error) {
	if s.again, s.againEnd = r.undurable(f); s.again < s.againEnd {
		s.file, err = r.o.FS.OpenReadWrite(r.o.path(f.segment))
	}
	return err
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

// againBytes is how much is written again at a time.
const againBytes = 256 << 10

func (r *recovery) rewrite(segment uint64, low, high int64) (err error) {
	file, err := r.o.FS.OpenReadWrite(r.o.path(segment))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := writeAgain(file, low, high); err != nil {
		return err
	}
	return file.Sync()
}

// writeAgain writes what a file holds in [low, high) over itself.
func writeAgain(file vfs.File, low, high int64) error {
	n := min(high-low, againBytes)
	buf, other := make([]byte, n), make([]byte, n)
	for low < high {
		n = min(n, high-low)
		b, err := readAlike(file, buf[:n], other[:n], low)
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
	return nil
}

// readAlike is readUpTo, twice: what a fault on the way from the disk makes of a read must not be written. Most faults are of one read, so the
// next two may be alike.
func readAlike(file vfs.File, b, other []byte, offset int64) ([]byte, error) {
	for range 2 {
		first, err := readUpTo(file, b, offset)
		if err != nil {
			return nil, err
		}
		second, err := readUpTo(file, other, offset)
		if err != nil {
			return nil, err
		}
		if bytes.Equal(first, second) {
			return first, nil
		}
	}
	return nil, fmt.Errorf("%d bytes at %d are read differently each time: %w", len(b), offset, corrupt.Err)
}

// open builds the log. Its last segment is sealed where the records end, unless there are none in it; the next record goes into a new
// one. That one is made at once where its header has something to tell: what was cut off, or that the last records are durable.
func (r *recovery) open() (*Log, error) {
	l := newLog(r.o)
	if err := r.fill(l); err != nil {
		return nil, errors.Join(err, release(l.segments))
	}
	end := r.out.end
	last := l.segments[len(l.segments)-1]
	l.activate(last, end.offset())
	if last.sealed {
		l.limit = l.offset
	}
	l.claimed = end // no frame says so, and none has to: what was made durable now the next header tells of
	if r.later() {
		l.synced.Store(uint64(r.out.durable))
		return l, nil
	}
	l.synced.Store(uint64(end))
	if r.out.Cut == nil && !r.out.unclaimed {
		return l, nil
	}
	if err := l.Prepare(); err != nil && !errors.Is(err, vfs.ErrNoSpace) {
		return nil, err
	}
	return l, nil
}

// fill gives a log its segments.
func (r *recovery) fill(l *Log) error {
	l.last = r.out.LastSeq
	l.next = r.nextSegment()
	if err := r.addOlder(l); err != nil {
		return err
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
		if r.unused(&f) {
			if err := r.reopen(l, s); err != nil {
				return fmt.Errorf("log: open %s: %w", baseName(f.segment), err)
			}
		}
		if !r.later() {
			continue
		}
		if err := r.unsettled(s, &f); err != nil {
			return fmt.Errorf("log: open %s: %w", baseName(f.segment), err)
		}
	}
	return r.clear(l)
}

// unused reports whether nothing was ever appended to a segment in which the log ends, as in a new database. Nothing in it verifies as a
// frame, so it is as good as a new one, which an appender would have to wait for.
func (r *recovery) unused(f *found) bool {
	return r.out.end == at(f.segment, firstFrame) && r.out.Cut == nil && !r.out.unclaimed && f.size == f.header.size
}

// reopen makes an unused segment one that is appended to.
func (r *recovery) reopen(l *Log, s *segment) (err error) {
	s.sealed, s.end, s.blank = false, 0, true
	if s.file, err = r.o.FS.OpenReadWrite(r.o.path(s.segment)); err != nil {
		return err
	}
	return l.mapFile(s)
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
