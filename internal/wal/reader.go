package wal

import (
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/vfs"
)

// Reader follows the log from a sequence number on, while it grows. It keeps the file of the segment that it is in from
// being used again, so an idle Reader costs one segment of space; close it. One goroutine at a time may use it.
type Reader struct {
	l       *Log
	segment *segment // pinned; nil after Close
	file    vfs.File
	offset  int64
	last    uint64 // the record before offset; 0: not known, or none
	from    uint64
	limit   uint64
	missed  uint64 // records up to it were never in the log; 0: that is not known of any

	window      []byte // of the file, from windowStart on
	windowStart int64
	record      []byte // a record that was split
}

// windowBytes is how much a Reader reads at a time. A longer frame is read as a whole.
const windowBytes = 64 << 10

// NewReader returns a reader whose first record is the first one numbered fromSeq or higher. It fails with ErrRecycled when
// that one may be gone.
func (l *Log) NewReader(fromSeq uint64) (*Reader, error) {
	l.mu.Lock()
	var in *segment
	for _, s := range l.segments {
		if s.before < max(fromSeq, 1) {
			in = s
		}
	}
	return l.pinned(in, fromSeq)
}

// NewOldestReader returns a reader whose first record is the oldest one. Who asks for Oldest and reads from there may come too late.
func (l *Log) NewOldestReader() (*Reader, error) {
	l.mu.Lock()
	oldest := l.segments[0]
	return l.pinned(oldest, oldest.before+1)
}

// pinned returns a reader in a segment, nil for one that is not there any more. The caller holds l.mu, which pinned lets go.
func (l *Log) pinned(s *segment, from uint64) (*Reader, error) {
	if err := l.Err(); errors.Is(err, ErrClosed) {
		l.mu.Unlock()
		return nil, err
	}
	if s == nil {
		l.mu.Unlock()
		return nil, fmt.Errorf("log: read from record %d: %w", from, ErrRecycled)
	}
	s.pins++
	r := &Reader{l: l, segment: s, last: s.before, from: from, limit: math.MaxUint64}
	l.mu.Unlock()
	if err := r.open(s.start); err != nil {
		return nil, err
	}
	return r, nil
}

// open opens the pinned segment, and lets go of it when it cannot.
func (r *Reader) open(offset int64) (err error) {
	r.offset, r.window, r.windowStart = offset, r.window[:0], 0
	r.file, err = r.l.o.FS.Open(r.l.o.path(r.segment.segment))
	if err != nil {
		return errors.Join(fmt.Errorf("log: read %s: %w", baseName(r.segment.segment), err), r.Close())
	}
	return nil
}

// Limit makes Next return io.EOF before any record above upTo. At first there is no limit.
func (r *Reader) Limit(upTo uint64) { r.limit = upTo }

// Missed is the last of the records that were never in the log, when Next has failed for the want of them; else 0.
func (r *Reader) Missed() uint64 { return r.missed }

// Close lets go of the segment.
func (r *Reader) Close() error {
	if r.segment == nil {
		return nil
	}
	var err error
	if r.file != nil {
		err = r.file.Close()
		r.file = nil
	}
	r.l.mu.Lock()
	r.segment.pins--
	r.l.mu.Unlock()
	r.segment = nil
	if r.l.Err() == nil {
		// A file that cannot be removed stays, which is nothing to those who read on.
		_ = errors.Join(r.l.sweep(), r.l.trimSpares(r.l.keepSpares()))
	}
	return err
}

// Next returns the next record; the payload is valid until the next call. io.EOF means that it has not been appended yet, or
// lies above the limit: call again later. ErrRecycled means that it is gone.
func (r *Reader) Next() (seq uint64, payload []byte, err error) {
	open := false // a record has begun
	for {
		if r.segment == nil || errors.Is(r.l.Err(), ErrClosed) {
			return 0, nil, ErrClosed
		}
		more, err := r.more()
		if err != nil {
			return 0, nil, err
		}
		if !more {
			continue // in the next segment
		}
		f, payload, err := r.frame()
		if err != nil {
			return 0, nil, err
		}
		if f.kind != kindMark && f.seq > r.limit {
			return 0, nil, io.EOF
		}
		if r.misses(&f) {
			r.missed = f.before()
			return 0, nil, fmt.Errorf("log: records %d to %d were never in it: %w", r.last+1, f.before(), ErrRecycled)
		}
		r.offset += f.room()
		r.last = f.seq
		switch {
		case f.kind == kindMark || f.seq < r.from:
		case f.kind == kindFull:
			return f.seq, payload, nil
		case f.kind == kindFirst:
			open = true
			r.record = append(r.record[:0], payload...)
		case open:
			r.record = append(r.record, payload...)
			if f.kind == kindLast {
				return f.seq, r.record, nil
			}
		}
	}
}

// misses reports whether there were records before the one that f begins that the reader wants and the log does not have: the database may
// have gone on without a log for a while.
func (r *Reader) misses(f *frame) bool {
	before := f.before()
	return f.span != maxSpan && r.last != 0 && before > r.last && before >= r.from
}

// more reports whether there is a frame at the offset. At the end of a segment it moves on to the next one and returns false.
func (r *Reader) more() (bool, error) {
	end := place(r.l.end.Load())
	s := r.segment
	if s.segment == end.segment() {
		if r.offset >= end.offset() {
			return false, io.EOF
		}
		return true, nil
	}
	r.l.mu.Lock()
	full, sealed := s.end, s.sealed
	r.l.mu.Unlock()
	if r.offset < full && (sealed || s.limit()-r.offset >= minRoom) {
		return true, nil
	}
	return false, r.advance()
}

// advance goes over to the segment that follows the current one.
func (r *Reader) advance() error {
	l := r.l
	l.mu.Lock()
	var next *segment
	for _, s := range l.segments {
		if s.prevSegment == r.segment.segment && s.prevSalt == r.segment.salt {
			next = s
			s.pins++
		}
	}
	l.mu.Unlock()
	if next == nil {
		return fmt.Errorf("log: read after %s: %w", baseName(r.segment.segment), ErrRecycled)
	}
	if err := r.Close(); err != nil {
		l.mu.Lock()
		next.pins--
		l.mu.Unlock()
		return err
	}
	r.segment = next
	return r.open(next.start)
}

// frame returns the frame at the offset.
func (r *Reader) frame() (frame, []byte, error) {
	s := r.segment
	name := filepath.Join(r.l.o.Dir, baseName(s.segment))
	b, err := r.bytes(r.offset, frameHeader)
	if err != nil {
		return frame{}, nil, err
	}
	f, ok := decodeFrame(b, &s.header, r.offset, s.limit())
	if !ok {
		return f, nil, corrupt.New(name, r.offset, frameHeader, "the header of the frame does not verify")
	}
	if b, err = r.bytes(r.offset, f.room()); err != nil {
		return f, nil, err
	}
	payload := b[frameHeader : frameHeader+f.length]
	if !f.payloadMatches(payload) {
		return f, nil, corrupt.New(name, r.offset, f.room(), "the payload of record %d does not verify", f.seq)
	}
	return f, payload, nil
}

// bytes returns n bytes of the file at offset. It reads ahead as far as the log reaches, but never what is being written.
func (r *Reader) bytes(offset, n int64) ([]byte, error) {
	if at := offset - r.windowStart; at >= 0 && at+n <= int64(len(r.window)) {
		return r.window[at : at+n], nil
	}
	limit := r.segment.limit()
	if end := place(r.l.end.Load()); end.segment() == r.segment.segment {
		limit = end.offset()
	}
	size := min(max(n, windowBytes), limit-offset)
	if size < n {
		return nil, corrupt.New(filepath.Join(r.l.o.Dir, baseName(r.segment.segment)), offset, n, "a frame reaches beyond the end of the log")
	}
	if int64(cap(r.window)) < size {
		r.window = make([]byte, size)
	}
	window, err := readUpTo(r.file, r.window[:size], offset)
	if err != nil {
		r.window = r.window[:0]
		return nil, fmt.Errorf("log: read %s at %d: %w", baseName(r.segment.segment), offset, err)
	}
	r.window, r.windowStart = window, offset
	if int64(len(window)) < n {
		return nil, corrupt.New(filepath.Join(r.l.o.Dir, baseName(r.segment.segment)), offset, n, "the file ends at %d", offset+int64(len(window)))
	}
	return window[:n], nil
}
