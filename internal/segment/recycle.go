package segment

import (
	"errors"
	"io/fs"
	"slices"

	"github.com/pandodb/pando/vfs"
)

// A value that is written over what the page cache has of a dead one costs less than half of one for which the system has to find
// memory and a place on the device. So the files of a few removed value segments are kept, and become those of new segments under
// other names.
//
// Nothing of what such a file held verifies in its new place, because a blob proves the number of its segment. Until it is used a
// file keeps its name: after a crash it is one that no catalogue lists, like a file which had not been removed yet. Two kinds of
// files are not used again: in those of an earlier run there may be blobs under a number that a power cut has made free, and those
// with another name are somebody else's too, as a backup's that is made of links.

// keep makes a spare of the file of a removed segment, which is closed. It is false when the file is to go.
func (s *Store) keep(f *file) bool {
	full := s.options.SegmentBytes
	if size := f.size.Load(); f.class != Values || f.earlier || size < full/2 || size > full {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.spares) >= s.options.Spares || s.writable() != nil {
		return false
	}
	s.spares = append(s.spares, f.path)
	return true
}

// reuse makes one of the spares the file of the new segment f, and tells its handle; nil when there is none. The caller holds mu.
func (s *Store) reuse(f *file) vfs.File {
	for f.class == Values && len(s.spares) > 0 {
		last := len(s.spares) - 1
		path := s.spares[last]
		s.spares = s.spares[:last]
		if handle := s.rename(path, f); handle != nil {
			return handle
		}
		_ = s.discardLocked(path) // what stays is tried again
	}
	return nil
}

// rename gives a spare the name of f. It is nil where that cannot be, where the file has a second name, and where the page cache does
// not have all of it: to write a part of a page that has to be read first.
func (s *Store) rename(path string, f *file) vfs.File {
	handle, err := s.options.FS.OpenReadWrite(path)
	if err != nil {
		return nil
	}
	size, err := handle.Size()
	sole, ok := handle.(vfs.Sole)
	if err == nil && ok && sole.Sole(size) && s.options.FS.Rename(path, f.path) == nil {
		f.left = size
		return handle
	}
	_ = handle.Close()
	return nil
}

// GiveBack removes the files that are kept for values to come, and those that could not be removed so far.
func (s *Store) GiveBack() {
	if s.enter() != nil {
		return // they have been given back
	}
	defer s.leave()
	s.giveBack()
}

// giveBack is GiveBack for who has entered, or keeps others from it.
func (s *Store) giveBack() {
	s.mu.Lock()
	paths := slices.Concat(s.spares, s.stale)
	s.spares, s.stale = nil, nil
	s.mu.Unlock()
	for _, path := range paths {
		_ = s.discard(path) // what stays is tried again
	}
}

// discard removes the file of a segment that is out of the table. One that stays is removed by the next GiveBack, or the next open.
func (s *Store) discard(path string) error {
	err := s.remove(path)
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.stale = append(s.stale, path)
	}
	return err
}

// discardLocked is discard for who holds mu.
func (s *Store) discardLocked(path string) error {
	err := s.remove(path)
	if err != nil {
		s.stale = append(s.stale, path)
	}
	return err
}

// remove removes a file, if it is there.
func (s *Store) remove(path string) error {
	if err := s.options.FS.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
