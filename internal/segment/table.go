package segment

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/pandodb/pando/internal/corrupt"
)

// Live changes the number of live bytes of the segment in which p lies by delta, outside of a Writer: -p.Length for a blob
// that is no longer in use.
func (s *Store) Live(p Pointer, delta int64) {
	if f := s.files.Load().find(p.Segment); f != nil {
		f.live.Add(delta)
	}
}

// SetLastSeq raises the highest sequence number that refers to a value in segment. When it does so for a segment of an
// earlier run of the process, the log has been found to refer to it: those values survived a kill, but maybe not yet a power
// cut, so the next SyncValues covers the segment.
func (s *Store) SetLastSeq(segment uint32, seq uint64) {
	f := s.files.Load().find(segment)
	if f == nil || !f.raiseSeq(seq) || !f.earlier {
		return
	}
	s.values.mu.Lock()
	defer s.values.mu.Unlock()
	s.distrust(f)
}

// RaiseLastSeq is SetLastSeq for all segments of values that are no newer than newest: something lies in them, and nobody knows in which.
func (s *Store) RaiseLastSeq(newest uint32, seq uint64) {
	for id, f := range s.files.Load().all {
		if f.class == Values && id <= newest {
			s.SetLastSeq(id, seq)
		}
	}
}

// LowerLastSeq makes the highest sequence number of each segment of values what it was when Segments returned a table, or none: what was
// to refer to them since comes to nothing. Nobody may raise them meanwhile.
func (s *Store) LowerLastSeq(table []Info) {
	then := make(map[uint32]uint64, len(table))
	for _, i := range table {
		then[i.ID] = i.LastSeq
	}
	for id, f := range s.files.Load().all {
		if f.class == Values {
			f.lastSeq.Store(then[id])
		}
	}
}

func (f *file) raiseSeq(seq uint64) bool {
	for {
		old := f.lastSeq.Load()
		if seq <= old {
			return false
		}
		if f.lastSeq.CompareAndSwap(old, seq) {
			return true
		}
	}
}

// distrust makes the next SyncValues sync a file of an earlier run of the process. The caller holds values.mu, or is Open.
func (s *Store) distrust(f *file) {
	if !f.distrusted && !s.options.ReadOnly {
		f.distrusted = true
		f.dirty.Store(true)
		s.values.unsynced = append(s.values.unsynced, f)
	}
}

// Renew writes the blob under p, which an earlier run of the process left, once more where it lies, and has the next SyncValues sync it.
// After a failed sync of that run the system may call its pages clean, and the next sync a success, though the device never got them.
func (s *Store) Renew(p Pointer) error {
	if err := s.enter(); err != nil {
		return fmt.Errorf("renew value: %w", err)
	}
	defer s.leave()
	if err := s.writable(); err != nil {
		return fmt.Errorf("renew value: %w", err)
	}
	f, err := s.lookupBlob(p)
	if err != nil {
		return err
	}
	defer f.release()
	buf := s.GetBuffer()
	defer s.PutBuffer(buf)
	buf.stored = resize(buf.stored, int(p.Length))
	if err := f.readAt(buf.stored, int64(p.Offset)); err != nil {
		return err
	}
	if _, err := s.verify(buf.stored, p); err != nil {
		return corrupt.New(f.name, int64(p.Offset), int64(p.Length), "%v", err)
	}
	h, err := s.options.FS.OpenReadWrite(f.path)
	if err != nil {
		return fmt.Errorf("renew value: %w", err)
	}
	_, err = h.WriteAt(buf.stored, int64(p.Offset))
	if err = errors.Join(err, h.Close()); err != nil {
		return fmt.Errorf("%s: renew value of %d bytes at %d: %w", f.name, p.Length, p.Offset, err)
	}
	s.values.mu.Lock()
	defer s.values.mu.Unlock()
	s.distrust(f)
	f.dirty.Store(true)
	return nil
}

// Segments returns the table for the catalogue, sorted by ID: neither orphans nor the work of unfinished Writers. Size and
// Live of value segments belong to one moment: every blob below Size counts in Live, and none above it.
func (s *Store) Segments() []Info { return s.infos(listed) }

// Orphans returns the value segments that Open found and that were neither adopted nor removed since, sorted by ID.
func (s *Store) Orphans() []Info { return s.infos(orphan) }

func (s *Store) infos(state uint32) []Info {
	s.values.mu.Lock() // nobody takes a place meanwhile
	defer s.values.mu.Unlock()
	var out []Info
	for _, f := range s.files.Load().all {
		if f.state.Load() == state {
			out = append(out, f.info())
		}
	}
	slices.SortFunc(out, func(a, b Info) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// NextID returns the number that the next segment will get; the last one there is when none is left.
func (s *Store) NextID() uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return uint32(s.next)
}

// OpenValueSegment returns the lowest number that the segment of a value can have whose AppendValue begins later.
func (s *Store) OpenValueSegment() uint32 {
	s.values.mu.Lock()
	defer s.values.mu.Unlock()
	if f := s.values.current; f != nil {
		return f.id
	}
	return s.NextID()
}

// Adopt puts an orphan into the table. Adopting a segment that is in the table changes nothing.
func (s *Store) Adopt(id uint32) error {
	s.values.mu.Lock()
	defer s.values.mu.Unlock()
	f := s.files.Load().find(id)
	if f == nil || f.state.Load() == inWork {
		return fmt.Errorf("adopt segment %d: %w", id, ErrUnknownSegment)
	}
	f.state.Store(listed)
	return nil
}
