package wal

import (
	"errors"
	"fmt"
	"math"

	"github.com/pandodb/pando/vfs"
)

// Prepare makes the next segment ready, so that an Append which fills the active one needs no system call except for the
// mapping. It does nothing when one is ready. Call it in the background, for instance when Due says so.
func (l *Log) Prepare() error {
	l.prepareMu.Lock()
	defer l.prepareMu.Unlock()
	return l.prepare(0)
}

// Due reports, once for each segment, that the active one is half full, so that the next one should be made ready. It is called by the
// goroutine that appends.
func (l *Log) Due() bool {
	if l.offset < l.due {
		return false
	}
	l.due = math.MaxInt64
	return true
}

// takeReady returns the next segments, at least one, with room for a payload of n bytes. They must be entered or discarded;
// prepareMu is held.
func (l *Log) takeReady(n int64) ([]*segment, error) {
	if err := l.prepare(n); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	count := 1
	for room := l.ready[0].room(); room < n; count++ {
		room += l.ready[count].room()
	}
	taken := append([]*segment(nil), l.ready[:count]...)
	l.ready = append(l.ready[:0], l.ready[count:]...)
	return taken, nil
}

// prepare sees to it that at least one segment is ready, and room for a payload of n bytes; prepareMu is held.
func (l *Log) prepare(n int64) error {
	for {
		if err := l.Err(); err != nil {
			return err
		}
		l.mu.Lock()
		count, room := len(l.ready), int64(0)
		for _, s := range l.ready {
			room += s.room()
		}
		l.mu.Unlock()
		if count > 0 && room >= n {
			return nil
		}
		s, err := l.makeReady(n - room)
		if err != nil {
			return err
		}
		l.mu.Lock()
		l.ready = append(l.ready, s)
		l.mu.Unlock()
	}
}

// room is how much payload an empty segment takes in one frame.
func (h *header) room() int64 { return roomOf(h.size) }

func roomOf(size int64) int64 { return size - 2*blockSize - frameHeader }

// makeReady makes the segment that follows the last one. When it returns, the file has all of its space, its header and its
// name are durable, and nothing in it verifies as a frame.
//
// It takes n bytes of payload, or as much as a segment can.
func (l *Log) makeReady(n int64) (*segment, error) {
	h, spare, err := l.nextHeader(n)
	if err != nil {
		return nil, err
	}
	s := &segment{header: h, start: firstFrame, blank: true}
	if err := l.makeFile(s, spare); err != nil {
		err = fmt.Errorf("make segment %s: %w", baseName(h.segment), err)
		return nil, errors.Join(err, s.release(), l.remove(h.segment)) // so that it takes no space
	}
	return s, nil
}

// foreseen is how many records like one that is too long for the next file fit into the one that is made instead.
const foreseen = 4

// nextHeader takes the next number, and a spare file if there is one.
func (l *Log) nextHeader(n int64) (h header, spare *uint64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next >= 1<<32 {
		return h, nil, errors.New("segment numbers are used up")
	}
	h = header{
		database:    l.o.Database,
		segment:     l.next,
		salt:        l.o.Salt(),
		size:        l.o.FirstBytes,
		prevSegment: noSegment,
		durable:     place(l.synced.Load()),
	}
	l.next++
	prev := l.active
	if len(l.ready) > 0 {
		prev = l.ready[len(l.ready)-1]
	}
	if prev != nil {
		h.prevSegment, h.prevSalt = prev.segment, prev.salt
		if prev.sealed {
			h.prevEnd = prev.end
		} else {
			h.size = 2 * prev.size
		}
	}
	// A log that grows gets ever larger files; one that is used little takes little space. Where a record asks for a larger file,
	// more like it will come, and making a file keeps their writer waiting for the device.
	if roomOf(h.size) < n {
		n *= foreseen
	}
	for h.size < l.o.SegmentBytes && roomOf(h.size) < n {
		h.size *= 2
	}
	h.size = min(h.size, l.o.SegmentBytes)
	if n := len(l.spares); n > 0 {
		spare = new(l.spares[n-1])
		l.spares = l.spares[:n-1]
		h.size = l.o.SegmentBytes
	}
	return h, spare, nil
}

// makeFile brings a spare file under the name of s, or creates one, and writes the header.
func (l *Log) makeFile(s *segment, spare *uint64) (err error) {
	path := l.o.path(s.segment)
	if spare != nil {
		if err := l.o.FS.Rename(l.o.path(*spare), path); err != nil {
			return errors.Join(fmt.Errorf("rename spare %s: %w", baseName(*spare), err), l.remove(*spare))
		}
		s.file, err = l.o.FS.OpenReadWrite(path)
	} else {
		s.file, err = l.o.FS.Create(path)
	}
	if err != nil {
		return err
	}
	if err := s.file.Allocate(s.size); err != nil {
		return fmt.Errorf("allocate %d bytes: %w", s.size, err)
	}
	if err := s.writeHeader(); err != nil {
		return err
	}
	if err := s.file.Sync(); err != nil {
		return l.unlessFull(fmt.Errorf("sync: %w", err))
	}
	if tried, err := vfs.SyncDir(l.o.FS, l.o.Dir); err != nil {
		err = fmt.Errorf("sync directory: %w", err)
		if !tried {
			return err
		}
		return l.unlessFull(err)
	}
	return l.mapFile(s)
}

// writeHeader writes the header at both of its places. Each block is padded with zeroes, and holds nothing else.
func (s *segment) writeHeader() error {
	block := make([]byte, blockSize)
	copy(block, s.header.encode())
	if _, err := s.file.WriteAt(block, 0); err != nil {
		return fmt.Errorf("write header: %w", err)
	}
	if _, err := s.file.WriteAt(block, s.limit()); err != nil {
		return fmt.Errorf("write copy of the header: %w", err)
	}
	return nil
}

// unlessFull poisons the log because of a failed sync or write, except for a lack of space: the file holds no record yet and is
// not going to be used, or no header of a frame says that what was written is a record.
func (l *Log) unlessFull(err error) error {
	if errors.Is(err, vfs.ErrNoSpace) {
		return err
	}
	return l.fail(err)
}

// mapFile maps the segment, or goes over to plain mode where that is not possible.
func (l *Log) mapFile(s *segment) error {
	if l.plain.Load() {
		return nil
	}
	m, err := s.file.Map(s.size)
	if errors.Is(err, errors.ErrUnsupported) {
		l.plain.Store(true)
		return nil
	}
	if err != nil {
		return fmt.Errorf("map: %w", err)
	}
	s.mapping, s.data = m, m.Bytes()
	return nil
}
