package segment

import (
	"sync"
	"sync/atomic"
)

// A store may outlive the lock of its database: blobs are read for as long as somebody holds a view. The directory is another's by then,
// who has it open, or has made a database of his own there whose segments bear the same numbers. So the store can be told to change
// nothing there any more, and goes on reading.

// door lets those in who change what lies in the directory.
type door struct {
	mu   sync.RWMutex // held for reading by those who are inside; taken before all other locks, and not twice
	shut atomic.Bool  // changed under mu
}

// enter keeps the directory the store's own until leave. It is ErrClosed when that is over.
func (s *Store) enter() error {
	s.door.mu.RLock()
	if s.door.shut.Load() {
		s.door.mu.RUnlock()
		return ErrClosed
	}
	return nil
}

func (s *Store) leave() { s.door.mu.RUnlock() }

// HandOver leaves the directory to whoever takes the lock of the database next. It waits for what is being written, and gives back what is
// kept for values to come. Afterwards no file is made, renamed, written to, cut or removed: what would have been stays for the next Open,
// writing is ErrClosed, and blobs can be read until Close. A second HandOver does nothing.
func (s *Store) HandOver() {
	s.door.mu.Lock()
	defer s.door.mu.Unlock()
	if s.door.shut.Load() {
		return
	}
	s.sealValues()
	s.giveBack()
	s.handles.keepAll()
	s.door.shut.Store(true)
}
