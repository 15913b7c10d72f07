package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
)

// KeepFrom tells that readers want no record below seq: Recycle keeps no segment for them that holds only such ones.
func (l *Log) KeepFrom(seq uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wanted = max(l.wanted, seq)
}

// Recycle tells that recovery will never start below before. Segments that lie wholly below it are used again or removed,
// except for the last Options.KeepBytes of them, which readers may still want, and for those in which a reader is.
// The segment of before itself is always kept.
func (l *Log) Recycle(before Position) error {
	l.syncMu.Lock() // no file may vanish under a sync
	defer l.syncMu.Unlock()
	err := l.retire(before)
	return errors.Join(err, l.sweep(), l.trimSpares(l.keepSpares()))
}

// retire takes segments out of the log.
func (l *Log) retire(before Position) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var kept int64
	n := 0
	for i, s := range slices.Backward(l.segments) {
		if s == l.active || s.segment >= before.Segment {
			continue
		}
		unwanted := l.segments[i+1].before < l.wanted
		if unwanted || kept >= l.o.KeepBytes {
			n = i + 1
			for _, s := range l.segments[:n] {
				s.spent = unwanted // after a kill, a file that waits to be used again would pass for log that is kept
			}
			break
		}
		kept += s.end - s.start
	}
	err := release(l.segments[:n])
	l.retired = append(l.retired, l.segments[:n]...)
	l.segments = slices.Delete(l.segments, 0, n)
	oldest := l.segments[0]
	l.synced.Store(max(l.synced.Load(), uint64(at(oldest.segment, firstFrame))))
	return err
}

// sweep makes spares of the retired segments that no reader is in. Files of another size are useless as such; trimSpares
// removes what is too much.
func (l *Log) sweep() error {
	var odd []uint64
	l.mu.Lock()
	l.retired = slices.DeleteFunc(l.retired, func(s *segment) bool {
		if s.pins > 0 {
			return false
		}
		if s.size == l.o.SegmentBytes && !s.spent {
			l.spares = append(l.spares, s.segment)
		} else {
			odd = append(odd, s.segment)
		}
		return true
	})
	l.mu.Unlock()
	var err error
	for _, segment := range odd {
		err = errors.Join(err, l.remove(segment))
	}
	return err
}

func (l *Log) keepSpares() int { return max(l.o.SpareSegments, 0) }

// trimSpares removes spare files until only keep are left.
func (l *Log) trimSpares(keep int) error {
	var err error
	for {
		l.mu.Lock()
		n := len(l.spares)
		if n <= keep {
			l.mu.Unlock()
			return err
		}
		segment := l.spares[0]
		l.spares = l.spares[1:]
		l.mu.Unlock()
		err = errors.Join(err, l.remove(segment))
	}
}

// remove deletes the file of a segment that is not part of the log any more. One that stays because of an error, or comes
// back after a power cut, does no harm: the next recovery finds that nothing leads to it.
func (l *Log) remove(segment uint64) error {
	err := l.o.FS.Remove(l.o.path(segment))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("log: remove %s: %w", baseName(segment), err)
	}
	return nil
}

// discard gives up segments that were ready and are not going to be used as they are.
func (l *Log) discard(segments []*segment) error {
	err := release(segments)
	var odd []uint64
	l.mu.Lock()
	for _, s := range segments {
		if s.size == l.o.SegmentBytes {
			l.spares = append(l.spares, s.segment)
		} else {
			odd = append(odd, s.segment)
		}
	}
	l.mu.Unlock()
	for _, segment := range odd {
		err = errors.Join(err, l.remove(segment))
	}
	return err
}

// Shrink is for a database that has gone idle: it removes the spare files and cuts the active one to what is used of it. The
// next Append begins a new segment. It is called by the goroutine that appends.
func (l *Log) Shrink() error {
	if err := l.Sync(); err != nil {
		return err
	}
	l.prepareMu.Lock()
	defer l.prepareMu.Unlock()
	l.mu.Lock()
	ready := l.ready
	l.ready = nil
	s := l.active
	s.uncut = s.uncut || !s.sealed
	uncut := s.uncut
	s.sealed, s.end = true, l.offset
	l.limit = l.offset
	l.mu.Unlock()
	err := errors.Join(l.discard(ready), l.trimSpares(0))
	if uncut {
		err = errors.Join(err, l.cut(s))
	}
	return err
}

// cut cuts the file of the active segment, which Shrink has sealed, to what is used of it. Where that fails the next Shrink tries again.
func (l *Log) cut(s *segment) error {
	l.syncMu.Lock()
	defer l.syncMu.Unlock()
	if err := s.unmap(); err != nil {
		return err
	}
	if err := s.file.Truncate(s.end); err != nil {
		return fmt.Errorf("log: cut %s to %d bytes: %w", baseName(s.segment), s.end, err)
	}
	l.mu.Lock()
	s.uncut = false
	l.mu.Unlock()
	return l.closeFile(s)
}
