package segment

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/pandodb/pando/vfs"
)

// nameSync tells whether names of new files still wait for a sync of the directory. What waits for one may have been carried out already: so
// that a want of files cannot keep a sync from being tried, the directories are opened before a file is created.
type nameSync struct {
	created atomic.Uint64
	mu      sync.Mutex
	synced  uint64
	named   bool        // the name of the directory itself was synced, which an earlier run may have been killed before
	dirs    []vfs.Dir   // what is open: the directory and, in front of it until named, the one that has its name
	ready   atomic.Bool // there is something in dirs: openNames need not wait for a sync to see it
	closed  bool
}

// openNames makes sure that syncNames can be tried.
func (s *Store) openNames() error {
	if s.names.ready.Load() {
		return nil
	}
	s.names.mu.Lock()
	defer s.names.mu.Unlock()
	return s.names.open(s.options.FS, s.dir, s.options.Dir)
}

// open opens the directories where they are not open. The caller holds mu.
func (n *nameSync) open(fsys vfs.FS, dir, parent string) error {
	switch {
	case n.closed:
		return ErrClosed
	case len(n.dirs) > 0:
		return nil
	}
	paths := []string{parent, dir}
	if n.named {
		paths = paths[1:]
	}
	for _, path := range paths {
		d, err := vfs.OpenDir(fsys, path)
		if err != nil {
			return errors.Join(err, n.release(len(n.dirs)))
		}
		n.dirs = append(n.dirs, d)
	}
	n.ready.Store(true)
	return nil
}

// release closes the first directories. The caller holds mu.
func (n *nameSync) release(count int) error {
	var errs []error
	for _, d := range n.dirs[:count] {
		errs = append(errs, d.Close())
	}
	n.dirs = n.dirs[count:]
	return errors.Join(errs...)
}

func (n *nameSync) close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	return n.release(len(n.dirs))
}

// syncNames makes the names of all files durable that were created before the call. When it could not even try it can be called again.
func (s *Store) syncNames() error {
	n := &s.names
	n.mu.Lock()
	defer n.mu.Unlock()
	created := n.created.Load()
	if created == n.synced && n.named {
		return nil
	}
	if err := n.open(s.options.FS, s.dir, s.options.Dir); err != nil {
		return fmt.Errorf("sync directory %s: %w", DirName, err)
	}
	for _, d := range n.dirs {
		if err := d.Sync(); err != nil {
			err = fmt.Errorf("sync directory %s: %w", DirName, err)
			s.fail(err)
			return err
		}
	}
	n.synced, n.named = created, true
	_ = n.release(len(n.dirs) - 1) // what was read only
	return nil
}
