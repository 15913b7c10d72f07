package wal

import (
	"errors"
	"fmt"
	"hash/crc32"
	"runtime/debug"
	"slices"

	"github.com/pandodb/pando/vfs"
)

// Append adds a record and returns the end of it. Its number must be above those of all records before; where a record
// stands for several commits, it is the highest of theirs. The payload is copied. The record survives the end of the process
// from now on, and a power cut once Synced has reached the returned position.
//
// An error means that nothing was added. Unless it is ErrFailed, the log goes on.
func (l *Log) Append(seq uint64, payload []byte) (Position, error) {
	if err := l.failure.Load(); err != nil {
		return Position{}, *err
	}
	n := int64(len(payload))
	if n > MaxPayload {
		return Position{}, fmt.Errorf("log: append %d bytes, at most %d: %w", n, MaxPayload, ErrTooLarge)
	}
	if seq <= l.last {
		return Position{}, fmt.Errorf("log: append record %d after record %d: numbers must grow", seq, l.last)
	}
	f := frame{
		length: n,
		sum:    crc32.Checksum(payload, castagnoli),
		seq:    seq,
		claim:  place(l.synced.Load()),
		span:   spanOf(seq, l.last),
		kind:   kindFull,
	}
	room := l.limit - l.offset
	if f.room() > room || room < minRoom {
		if err := l.appendOver(&f, payload); err != nil {
			return Position{}, err
		}
	} else {
		if err := l.write(l.active, l.offset, &f, payload); err != nil {
			return Position{}, err
		}
		l.advance(f.room(), f.claim)
	}
	l.last = seq
	return l.Position(), nil
}

// advance publishes that n bytes were added to the active segment.
func (l *Log) advance(n int64, claim place) {
	l.offset += n
	l.claimed = claim
	l.end.Store(uint64(at(l.active.segment, l.offset)))
}

// write puts one frame into a segment.
func (l *Log) write(s *segment, offset int64, f *frame, payload []byte) error {
	if s.data == nil {
		return l.writePlain(s, offset, f, payload)
	}
	if len(payload) >= callBytes {
		return l.writeLong(s, offset, f, payload)
	}
	if err := l.fill(s, offset, f.room()); err != nil {
		return l.unlessFull(fmt.Errorf("%s: fill: %w", baseName(s.segment), err))
	}
	if err := s.store(offset, f, payload); err != nil {
		if err := l.storeByCall(s, offset, f, payload, err); err != nil {
			return err
		}
	}
	s.detach(offset + f.room())
	return nil
}

// detachBytes is how much is stored into a mapping until its pages are worth a call.
const detachBytes = 128 << 10

// detach takes the pages before end out of the mapping. Nothing is stored into them any more, and as long as a page is mapped
// each sync has to tell the other processors about it, which takes longer than writing the page.
func (s *segment) detach(end int64) {
	end &^= blockSize - 1
	if end-s.detached < detachBytes {
		return
	}
	if m, ok := s.mapping.(vfs.Detacher); ok {
		m.Detach(s.detached, end-s.detached)
		s.passed.Store(end)
	}
	s.detached = end
}

// writeLong puts one frame into a mapped segment with calls instead of through the mapping, so that the mapping holds none of
// its pages and the system can be told to forget them. The last page is written whole before anything else: that ends the
// frame with zeroes, and spares the system reading the page where it no longer has it in memory.
func (l *Log) writeLong(s *segment, offset int64, f *frame, payload []byte) error {
	failed := func(err error) error {
		return fmt.Errorf("%s: write %d bytes at %d: %w", baseName(s.segment), len(payload), offset, err)
	}
	end := offset + f.room()
	if _, err := s.file.WriteAt(l.zeroes()[:blockSize], (end-1)&^(blockSize-1)); err != nil {
		return l.unlessFull(failed(err))
	}
	head := l.head[:]
	f.put(head, &s.header, offset)
	if err := l.writeHeaderLast(s, offset, head, payload, failed); err != nil {
		return err
	}
	s.passed.Store(end)
	return nil
}

// writeHeaderLast writes what follows the header of a frame, and then the header: without it nothing says that the rest is a
// record. failed adds to an error what was attempted.
func (l *Log) writeHeaderLast(s *segment, offset int64, head, rest []byte, failed func(error) error) error {
	if _, err := s.file.WriteAt(rest, offset+frameHeader); err != nil {
		return l.unlessFull(failed(err))
	}
	n, err := s.file.WriteAt(head, offset)
	switch {
	case err == nil:
		return nil
	case n == 0 && errors.Is(err, vfs.ErrNoSpace):
		return failed(err) // there is nothing to be taken back, and may be no room to do it
	}
	return errors.Join(failed(err), l.invalidate(s, offset))
}

// zeroes returns fillBytes zeroes, which nobody writes to.
func (l *Log) zeroes() []byte {
	if l.zeroed == nil {
		l.zeroed = make([]byte, fillBytes)
	}
	return l.zeroed
}

// callBytes is the length from which on a payload is written with a call instead of being stored into the mapping. Each page
// that is stored into costs a fault now and another step at the next sync; a call costs as much as one or two pages.
const callBytes = 8 << 10

// fillBytes is how much of a segment is filled at a time.
const fillBytes = 128 << 10

// fill writes zeroes where the next frames are going to be stored. It is for files of which the system may have no page in memory:
// new ones, and those that it forgot before they came to be used again. One call makes all the pages. The first store into
// each of them would make it too, but at a multiple of the cost, or with a wait for the device.
func (l *Log) fill(s *segment, offset, room int64) error {
	if !s.blank || offset+room <= s.filled {
		return nil
	}
	from := max(s.filled, (offset+blockSize-1)&^(blockSize-1)) // what lies before it was written by other means
	to := min(from+fillBytes, s.limit())
	if from < to {
		if _, err := s.file.WriteAt(l.zeroes()[:to-from], from); err != nil {
			return err
		}
	}
	s.filled = to
	return nil
}

// store copies one frame into the mapping, its header last. The pages of a mapping fault when the device fails and when the file
// was cut from outside; where a file system writes everything to a new place (btrfs), they also fault when there is none.
// Such a fault becomes an error here.
func (s *segment) store(offset int64, f *frame, payload []byte) (err error) {
	b := s.data[offset : offset+f.room()]
	old := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(old)
		err = vfs.Fault(recover(), s.data)
	}()
	copy(b[frameHeader:], payload)
	clear(b[frameHeader+f.length:]) // no stale bytes in the padding
	f.put(b, &s.header, offset)
	return nil
}

// storeByCall writes a frame with calls after its pages have faulted. Calls tell a full disk from a device that fails, and they may
// find room where the mapping has found none.
func (l *Log) storeByCall(s *segment, offset int64, f *frame, payload []byte, fault error) error {
	failed := func(err error) error {
		return fmt.Errorf("%s: store %d bytes at %d: %w; %w", baseName(s.segment), f.room(), offset, fault, err)
	}
	size, err := s.file.Size()
	if err == nil && size < s.size { // a call would make the file long again, without what was there
		err = fmt.Errorf("the file was cut to %d bytes", size)
	}
	if err != nil {
		return l.fail(failed(err))
	}
	b := make([]byte, f.room())
	copy(b[frameHeader:], payload)
	f.put(b, &s.header, offset)
	return l.writeHeaderLast(s, offset, b[:frameHeader], b[frameHeader:], failed)
}

// writePlain writes one frame with one call. When that fails, what may have got into the file is made invalid: a record
// that was refused must not appear after a restart. Where this is not possible either, the log has failed.
func (l *Log) writePlain(s *segment, offset int64, f *frame, payload []byte) error {
	n := int(f.room())
	if cap(l.scratch) < n {
		l.scratch = make([]byte, n)
	}
	b := l.scratch[:n]
	f.put(b, &s.header, offset)
	copy(b[frameHeader:], payload)
	clear(b[frameHeader+len(payload):])
	_, err := s.file.WriteAt(b, offset)
	if n > keepScratch {
		l.scratch = nil
	}
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%s: write %d bytes at %d: %w", baseName(s.segment), n, offset, err)
	return errors.Join(err, l.invalidate(s, offset))
}

// invalidate sees to it that no frame at offset is ever believed. Where that fails, the log has failed.
func (l *Log) invalidate(s *segment, offset int64) error {
	if _, err := s.file.WriteAt(make([]byte, frameHeader), offset); err != nil {
		return l.fail(fmt.Errorf("take back a frame of %s at %d: %w", baseName(s.segment), offset, err))
	}
	if err := s.file.Sync(); err != nil {
		return l.fail(fmt.Errorf("take back a frame of %s at %d: sync: %w", baseName(s.segment), offset, err))
	}
	return nil
}

// keepScratch is the largest buffer that plain mode keeps from one record to the next.
const keepScratch = 1 << 20

// piece is one frame of a record that is split.
type piece struct {
	segment *segment
	offset  int64
	frame   frame
}

// appendOver adds a record that does not fit into the active segment. The segments that it needs are made ready first, so
// that nothing has been written when there is no space for them.
func (l *Log) appendOver(whole *frame, payload []byte) error {
	l.prepareMu.Lock() // until they are part of the log, nothing may be made ready to follow on the wrong segment
	defer l.prepareMu.Unlock()
	segments, err := l.takeReady(l.beyondActive(whole.length))
	if err != nil {
		return fmt.Errorf("log: make room for record %d: %w", whole.seq, err)
	}
	pieces := l.split(whole, payload, segments)
	rest := payload
	for i := range slices.Backward(pieces) { // without the first one nobody believes the others, and there is nothing to be taken back
		p := &pieces[i]
		begin := int64(len(rest)) - p.frame.length
		if err := l.write(p.segment, p.offset, &p.frame, rest[begin:]); err != nil {
			return errors.Join(err, l.giveUp(segments))
		}
		rest = rest[:begin]
	}
	begun := pieces[0].segment == l.active
	if begun {
		l.offset += pieces[0].frame.room()
	}
	l.claimed = whole.claim
	last := pieces[len(pieces)-1]
	l.enter(segments, last.offset+last.frame.room(), whole.seq, begun)
	return nil
}

// beyondActive is how much of a payload of n bytes does not fit into the active segment.
func (l *Log) beyondActive(n int64) int64 {
	if room := l.limit - l.offset; room >= minRoom {
		n -= room - frameHeader
	}
	return n
}

// split lays a record out over the rest of the active segment and further ones.
func (l *Log) split(whole *frame, payload []byte, segments []*segment) []piece {
	var pieces []piece
	rest := payload
	add := func(s *segment, offset int64) {
		f := *whole
		f.length = min(int64(len(rest)), s.limit()-offset-frameHeader)
		f.sum = crc32.Checksum(rest[:f.length], castagnoli)
		f.kind = kindMiddle
		rest = rest[f.length:]
		pieces = append(pieces, piece{s, offset, f})
	}
	if l.limit-l.offset >= minRoom {
		add(l.active, l.offset)
	}
	for _, s := range segments {
		add(s, firstFrame)
	}
	if len(pieces) == 1 {
		pieces[0].frame.kind = kindFull
		return pieces
	}
	pieces[0].frame.kind = kindFirst
	pieces[len(pieces)-1].frame.kind = kindLast
	return pieces
}

// giveUp undoes a record of which not all frames were written: the segments with those that were get a new salt before anything
// else goes into them. So do the segments that are ready behind them, as their headers refer to these. Where it is not known
// whether the first frame was written, the others stay, for recovery to find. prepareMu is held.
func (l *Log) giveUp(segments []*segment) error {
	if l.Err() != nil {
		return release(segments)
	}
	l.mu.Lock()
	segments, l.ready = append(segments, l.ready...), nil
	l.mu.Unlock()
	return l.discard(segments)
}

// enter makes the last of segments the active one; frames of record seq fill the others. begun says that the record begins
// in the segment that was active so far.
func (l *Log) enter(segments []*segment, offset int64, seq uint64, begun bool) {
	full := append([]*segment{l.active}, segments[:len(segments)-1]...)
	for _, s := range full {
		if err := s.unmap(); err != nil { // before a Sync that finds it full closes the file
			l.fail(fmt.Errorf("unmap %s: %w", baseName(s.segment), err)) // this record is in; no other will be
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.active.end = l.offset
	for i, s := range segments {
		s.before = seq
		if i == 0 && !begun {
			s.before = l.last
		}
		prev := full[i]
		if i > 0 {
			prev.end = prev.limit()
		}
		s.base = prev.base + prev.end - firstFrame
	}
	l.segments = append(l.segments, segments...)
	l.activate(segments[len(segments)-1], offset)
}
