package wal

import (
	"fmt"

	"github.com/pandodb/pando/vfs"
)

// Sync makes durable everything for which Append returned before the call. Appends go on meanwhile. The first failure is
// the last: what the device has is unknown then, so nothing that comes after it could be promised.
func (l *Log) Sync() error { return l.SyncTo(l.Position()) }

// SyncTo is Sync up to a position only: what was appended behind it is not claimed to be durable, since what it refers to may
// not be yet.
func (l *Log) SyncTo(p Position) error {
	l.syncMu.Lock()
	defer l.syncMu.Unlock()
	if err := l.Err(); err != nil {
		return err
	}
	end := p.place()
	if place(l.synced.Load()) >= end {
		return nil
	}
	// In the order of the log: a segment may never be known to be durable before its predecessor is.
	waiting := l.waitingFor(end)
	for _, s := range waiting {
		if err := s.settle(); err != nil {
			return l.fail(fmt.Errorf("sync %s: %w", baseName(s.segment), err))
		}
	}
	l.synced.Store(uint64(end))
	for _, s := range waiting {
		l.forget(s, end)
		if s.segment == end.segment() {
			break
		}
		if err := l.closeFile(s); err != nil {
			return l.fail(fmt.Errorf("close %s: %w", baseName(s.segment), err))
		}
	}
	return nil
}

// settle makes durable what is in the segment; syncMu is held.
func (s *segment) settle() error {
	if err := writeAgain(s.file, s.again, s.againEnd); err != nil {
		return err
	}
	s.again = s.againEnd
	return s.file.Sync()
}

// waitingFor lists the segments up to end that may hold something unsynced.
func (l *Log) waitingFor(end place) []*segment {
	l.mu.Lock()
	defer l.mu.Unlock()
	var waiting []*segment
	for _, s := range l.segments {
		if s.file != nil && s.segment <= end.segment() {
			waiting = append(waiting, s)
		}
	}
	return waiting
}

// closeFile closes the file of a segment that is full and durable. Its mapping was ended when the segment was left.
func (l *Log) closeFile(s *segment) error {
	l.mu.Lock()
	f := s.file
	s.file = nil
	l.mu.Unlock()
	return f.Close()
}

const (
	forgetBytes = 1 << 20 // that are durable are worth a call
	// largestPage is the most that the system keeps as one piece. It forgets no piece of which it is told a part.
	largestPage = 2 << 20
)

// forget tells the system that it need not keep records in memory that are durable now, where they are not mapped any more: the log is
// read by those who follow it, who keep theirs, and after a crash. Else they drive out what is going to be read, and each takes fresh
// memory, which costs more than to write it. syncMu is held.
func (l *Log) forget(s *segment, synced place) {
	to, full := s.passed.Load(), s.segment != synced.segment()
	if !full {
		to = min(to, synced.offset())
	}
	f, ok := s.file.(vfs.Forgetter)
	if !ok || to <= s.forgotten || to-s.forgotten < forgetBytes && !full {
		return
	}
	l.mu.Lock()
	followed := s.pins > 0
	l.mu.Unlock()
	if !followed {
		f.Forget(s.forgotten, to-s.forgotten)
		s.forgotten = to &^ (largestPage - 1)
	}
}
