// Package memfs is a vfs.FS in memory that keeps what was written apart from what was synced, so that tests can see what a
// power cut would leave.
//
// It promises the strictest reading of package vfs. A file's content and size are durable by Sync of that file only, page by
// page what it held at that moment. A directory's entries are durable by SyncDir of that directory only; a directory that
// was made but whose own entry was not synced is lost with all that is in it. Everything else may be lost, kept, reordered
// and torn in any mixture (Policy). Bytes stored through a mapping count as unsynced like bytes written. It never touches
// the operating system, reads no clock and draws no random number but from the seed that it is given.
//
// It fails like a real file system, and also where a real one would let a mistake pass: changing the size of a mapped file
// is an error, and a closed mapping's memory is poisoned and cut off from the file.
//
// Cost: one lock for all; a call costs what it copies. Durable content is kept in immutable pages of 4 KiB, so that a crash
// image shares all that did not change, and an image's file is copied when it is first written. Sync compares every page of
// a file that was mapped: keep mapped files small in tests that sync thousands of times.
package memfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/pandodb/pando/vfs"
)

var (
	errDirectory    = errors.New("is a directory")
	errNotDirectory = errors.New("is not a directory")
	errNotEmpty     = errors.New("directory is not empty")
	errIntoItself   = errors.New("cannot move a directory into itself")
)

// FS is a file system in memory. Make it with New or as an image of another.
type FS struct {
	mu       sync.RWMutex // guards everything below, nodes and handles included
	root     *node
	pending  []*operation // on directories, not yet durable, oldest first
	stamp    uint64       // number of the newest change to a name or a file
	locks    map[string]*lockState
	capacity int64 // bytes; 0 = unlimited
	used     int64
	tells    bool // how much room there is
	pid      int  // stands in lock files; a killed process's image is opened by the next
}

// node is a file or a directory, whatever names it has.
type node struct {
	content
	dir   *directory // nil for a file
	links int        // names, as a program sees them
	open  int        // handles and mappings
}

// directory holds entries as a program sees them and as the device has them.
type directory struct{ now, durable map[string]*node }

func newDirectory() *node {
	return &node{dir: &directory{now: map[string]*node{}, durable: map[string]*node{}}}
}

// New returns an empty file system with a durable root directory. Relative names start at the root.
func New() *FS {
	return &FS{root: newDirectory(), locks: map[string]*lockState{}, pid: 1}
}

// SetCapacity limits the sum of all file sizes, in blocks of 4 KiB; 0 is no limit. What is used already stays.
func (f *FS) SetCapacity(bytes int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.capacity = bytes
}

// TellSpace makes Free tell how much of the capacity is left. Until then nobody knows, as with a quota.
func (f *FS) TellSpace() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tells = true
}

// Free implements vfs.SpaceTeller.
func (f *FS) Free(string) (bytes int64, known bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return max(f.capacity-f.used, 0), f.tells && f.capacity > 0
}

// Used is the space that files take, counted like the capacity. Directories and names are free.
func (f *FS) Used() int64 {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.used
}

// mostHandles is so small that whoever closes files which nobody reads does so in every test. There may be more.
const mostHandles = 8

// MostHandles implements vfs.HandleLimiter.
func (f *FS) MostHandles() int { return mostHandles }

// place is where a name points: its directory, its last element, and what is there (nil = nothing).
type place struct {
	dir  *directory
	base string
	node *node
}

func clean(name string) string { return path.Clean("/" + filepath.ToSlash(name)) }

// find resolves name. The root has no directory that holds it.
func (f *FS) find(op, name string) (place, error) {
	at := place{node: f.root}
	rest := strings.TrimPrefix(clean(name), "/")
	for rest != "" {
		if at.node == nil {
			return place{}, fail(op, name, fs.ErrNotExist)
		}
		if at.node.dir == nil {
			return place{}, fail(op, name, errNotDirectory)
		}
		at.base, rest, _ = strings.Cut(rest, "/")
		at.dir = at.node.dir
		at.node = at.dir.now[at.base]
	}
	return at, nil
}

// existing is find for a name that must be there.
func (f *FS) existing(op, name string) (place, error) {
	at, err := f.find(op, name)
	if err == nil && at.node == nil {
		err = fail(op, name, fs.ErrNotExist)
	}
	return at, err
}

func fail(op, name string, err error) error { return &fs.PathError{Op: op, Path: name, Err: err} }

// Create is vfs.FS.Create.
func (f *FS) Create(name string) (vfs.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.make("create", name)
	if err != nil {
		return nil, err
	}
	if err := f.resize(n, 0); err != nil {
		return nil, fail("create", name, err)
	}
	return f.handle(n, name, true), nil
}

// make finds the file name or makes it.
func (f *FS) make(op, name string) (*node, error) {
	at, err := f.find(op, name)
	if err != nil {
		return nil, err
	}
	if at.node == nil {
		at.node = &node{}
		f.change(effect{at.dir, at.base, at.node})
	}
	if at.node.dir != nil {
		return nil, fail(op, name, errDirectory)
	}
	return at.node, nil
}

// Open is vfs.FS.Open.
func (f *FS) Open(name string) (vfs.File, error) { return f.openExisting("open", name, false) }

// OpenReadWrite is vfs.FS.OpenReadWrite.
func (f *FS) OpenReadWrite(name string) (vfs.File, error) { return f.openExisting("open", name, true) }

func (f *FS) openExisting(op, name string, writable bool) (vfs.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at, err := f.existing(op, name)
	if err != nil {
		return nil, err
	}
	if at.node.dir != nil {
		return nil, fail(op, name, errDirectory)
	}
	return f.handle(at.node, name, writable), nil
}

func (f *FS) handle(n *node, name string, writable bool) *file {
	n.open++
	return &file{fs: f, node: n, name: name, writable: writable}
}

// Remove is vfs.FS.Remove. Handles of the file stay usable.
func (f *FS) Remove(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	at, err := f.existing("remove", name)
	if err != nil {
		return err
	}
	if at.dir == nil {
		return fail("remove", name, fs.ErrPermission) // the root
	}
	if at.node.dir != nil && len(at.node.dir.now) > 0 {
		return fail("remove", name, errNotEmpty)
	}
	f.change(effect{at.dir, at.base, nil})
	return nil
}

// Rename is vfs.FS.Rename. Between two directories it is one operation still: no crash loses both names, but one that is
// followed by SyncDir of the new directory only may leave both.
func (f *FS) Rename(oldName, newName string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	from, err := f.existing("rename", oldName)
	if err != nil {
		return err
	}
	to, err := f.find("rename", newName)
	if err != nil {
		return err
	}
	switch {
	case from.node == to.node:
		return nil // also for two links of one file, as POSIX has it
	case from.dir == nil || to.dir == nil:
		return fail("rename", oldName, fs.ErrPermission) // the root
	case to.node != nil && to.node.dir != nil:
		return fail("rename", newName, fs.ErrExist)
	case to.node != nil && from.node.dir != nil:
		return fail("rename", newName, errNotDirectory)
	case from.node.dir != nil && strings.HasPrefix(clean(newName), clean(oldName)+"/"):
		return fail("rename", newName, errIntoItself)
	}
	f.change(effect{to.dir, to.base, from.node}, effect{from.dir, from.base, nil})
	return nil
}

// Link is vfs.FS.Link.
func (f *FS) Link(oldName, newName string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	from, err := f.existing("link", oldName)
	if err != nil {
		return err
	}
	to, err := f.find("link", newName)
	if err != nil {
		return err
	}
	if to.node != nil {
		return fail("link", newName, fs.ErrExist)
	}
	if from.node.dir != nil {
		return fail("link", oldName, fs.ErrPermission)
	}
	f.change(effect{to.dir, to.base, from.node})
	return nil
}

// MkdirAll is vfs.FS.MkdirAll.
func (f *FS) MkdirAll(dir string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := f.root
	for rest := strings.TrimPrefix(clean(dir), "/"); rest != ""; {
		var base string
		base, rest, _ = strings.Cut(rest, "/")
		below := at.dir.now[base]
		if below == nil {
			below = newDirectory()
			f.change(effect{at.dir, base, below})
		}
		if below.dir == nil {
			return fail("mkdir", dir, errNotDirectory)
		}
		at = below
	}
	return nil
}

// List is vfs.FS.List.
func (f *FS) List(dir string) ([]string, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	at, err := f.existing("list", dir)
	if err != nil {
		return nil, err
	}
	if at.node.dir == nil {
		return nil, fail("list", dir, errNotDirectory)
	}
	return slices.Sorted(maps.Keys(at.node.dir.now)), nil
}

// Stat is vfs.FS.Stat.
func (f *FS) Stat(name string) (vfs.Info, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	at, err := f.existing("stat", name)
	if err != nil {
		return vfs.Info{}, err
	}
	if at.node.dir != nil {
		return vfs.Info{Dir: true}, nil
	}
	return vfs.Info{Size: at.node.size()}, nil
}

// SyncDir is vfs.FS.SyncDir.
func (f *FS) SyncDir(dir string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	at, err := f.existing("sync directory", dir)
	if err != nil {
		return err
	}
	if at.node.dir == nil {
		return fail("sync directory", dir, errNotDirectory)
	}
	f.syncEntries(at.node.dir)
	return nil
}

// lockState says who holds a lock. It belongs to the name, so that it stays when the lock file is removed.
type lockState struct {
	exclusive bool
	shared    int
}

// Lock is vfs.FS.Lock.
func (f *FS) Lock(name string, mode vfs.LockMode) (io.Closer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if mode != vfs.Shared && mode != vfs.Exclusive {
		return nil, fail("lock", name, fs.ErrInvalid)
	}
	n, err := f.make("lock", name)
	if err != nil {
		return nil, err
	}
	state := f.locks[clean(name)]
	if state == nil {
		state = &lockState{}
		f.locks[clean(name)] = state
	}
	if state.exclusive {
		return nil, &vfs.LockedError{Name: name, PID: f.pid, Own: true}
	}
	if mode == vfs.Exclusive && state.shared > 0 {
		return nil, &vfs.LockedError{Name: name}
	}
	l := &held{fs: f, node: n, state: state, name: name, mode: mode}
	l.sign()
	if mode == vfs.Exclusive {
		state.exclusive = true
	} else {
		state.shared++
	}
	n.open++
	return l, nil
}

type held struct {
	fs    *FS
	node  *node
	state *lockState // nil once unlocked
	name  string
	mode  vfs.LockMode

	orderly bool // the holder before was
	leave   bool // in order
}

// sign writes the process number, as osfs does. It is for people: a full device must not keep a database from being opened.
func (l *held) sign() {
	text := make([]byte, len(vfs.InOrder)+1)
	l.orderly = string(text[:l.node.readAt(text, 0)]) == vfs.InOrder
	if l.orderly && l.mode == vfs.Shared {
		return
	}
	_ = l.fs.resize(l.node, 0) // shrinking takes no space
	if l.mode == vfs.Exclusive {
		_, _ = l.fs.write(l.node, fmt.Appendf(nil, "%d\n", l.fs.pid), 0)
	}
}

// Orderly implements vfs.OrderedLock.
func (l *held) Orderly() bool { return l.orderly && l.mode == vfs.Exclusive }

// LeaveInOrder implements vfs.OrderedLock.
func (l *held) LeaveInOrder() { l.leave = true }

// Close unlocks.
func (l *held) Close() error {
	l.fs.mu.Lock()
	defer l.fs.mu.Unlock()
	if l.state == nil {
		return fail("unlock", l.name, fs.ErrClosed)
	}
	if l.mode == vfs.Exclusive {
		l.state.exclusive = false
		_ = l.fs.resize(l.node, 0)
		if l.leave {
			_, _ = l.fs.write(l.node, []byte(vfs.InOrder), 0)
		}
	} else {
		l.state.shared--
	}
	l.state = nil
	l.fs.release(l.node)
	return nil
}
