package root

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"sync"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/vfs"
)

// Name is the name of the root file in the database directory.
const Name = "ROOT"

// FirstGeneration is the generation of the slot in force after Create.
const FirstGeneration = 2

const fileSize = 2 * slotSize

var (
	// ErrFailed is what errors.Is finds in every Store after a sync has failed.
	ErrFailed = errors.New("root file failed to sync before")
	// ErrReadOnly is what errors.Is finds when a file that was opened for reading is asked to Store.
	ErrReadOnly = errors.New("root file is open for reading only")
)

// File is an open root file. Its methods may be called concurrently.
type File struct {
	mu       sync.Mutex
	file     vfs.File
	readOnly bool
	current  Slot
	place    int   // of current: 0 or 1
	damaged  bool  // as Open found it, until a Store has repaired it
	unread   error // why the device did not give the other slot back then
	alone    bool  // no other slot than current is known to lead to the same sequence number
	storing  bool  // a Store has begun and was not found durable
	failure  error
}

// Create makes the root file of a new database in dir, with s in force; it must not exist. It is durable when Create returns.
// Both slots are filled, so that from the first moment on a slot that does not verify is a damaged one.
func Create(fsys vfs.FS, dir string, s Slot) (*File, error) {
	name := filepath.Join(dir, Name)
	if _, err := fsys.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			err = fs.ErrExist
		}
		return nil, fmt.Errorf("create %s: %w", Name, err)
	}
	s.Version = Version
	s.Generation = 1
	b := appendSlot(make([]byte, 0, fileSize), s)
	s.Generation = FirstGeneration
	if err := vfs.WriteFile(fsys, name, appendSlot(b, s)); err != nil {
		return nil, fmt.Errorf("create %s: %w", Name, err)
	}
	return Open(fsys, dir)
}

// Open opens the root file in dir for reading and storing. A missing file is fs.ErrNotExist. The file and its name are
// durable when Open returns: an earlier run may have been killed between storing a slot and syncing it, and what follows from
// this slot (removing what it no longer refers to) must not outlive it in a power cut. The slot in force is written once more for that:
// after a failed sync of that run the system may call it clean, and the next sync a success, though the device never got it.
func Open(fsys vfs.FS, dir string) (*File, error) {
	f, err := OpenDurable(fsys, dir)
	if err != nil {
		return nil, err
	}
	err = f.renew()
	if err == nil {
		err = f.file.Sync()
	}
	if err == nil {
		err = fsys.SyncDir(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: sync: %w", Name, errors.Join(err, f.Close()))
	}
	return f, nil
}

// renew writes the slot in force once more where it lies.
func (f *File) renew() error {
	b, at := make([]byte, slotSize), int64(f.place)*slotSize
	if n, err := f.file.ReadAt(b, at); n < len(b) {
		return err
	}
	if s, err := f.slot(b, int64(f.place)); err != nil || s != f.current {
		return corrupt.New(Name, at, slotSize, "the slot in force has changed: %v", err)
	}
	_, err := f.file.WriteAt(appendSlot(b[:0], f.current), at)
	return err
}

// OpenDurable is Open for a file that is known to be durable: whoever wrote to it last asked Durable afterwards. It syncs nothing.
func OpenDurable(fsys vfs.FS, dir string) (*File, error) {
	return open(fsys.OpenReadWrite, dir, false)
}

// OpenReadOnly opens the root file in dir; Store fails.
func OpenReadOnly(fsys vfs.FS, dir string) (*File, error) { return open(fsys.Open, dir, true) }

func open(opener func(string) (vfs.File, error), dir string, readOnly bool) (*File, error) {
	file, err := opener(filepath.Join(dir, Name))
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", Name, err)
	}
	f := &File{file: file, readOnly: readOnly}
	if err := f.load(); err != nil {
		return nil, fmt.Errorf("open %s: %w", Name, errors.Join(err, file.Close()))
	}
	return f, nil
}

// load reads both slots and picks the newer one that verifies.
func (f *File) load() error {
	b := make([]byte, fileSize)
	n, _ := f.file.ReadAt(b, 0) // what is missing is asked for again
	size, err := f.file.Size()
	if err != nil {
		return err
	}
	b = b[:n]
	first, err0 := f.slot(b[:min(n, slotSize)], 0)
	second, err1 := f.slot(b[min(n, slotSize):], 1)
	for _, err := range []error{err0, err1} {
		if version := (*VersionError)(nil); errors.As(err, &version) {
			return version // an undamaged slot of another version: the file is not ours to judge
		}
	}
	switch {
	case err0 != nil && err1 != nil && (unread(err0) || unread(err1)):
		return fmt.Errorf("neither slot can be read: %w; %w", err0, err1)
	case err0 != nil && err1 != nil:
		if errors.Is(err0, errMagic) && (errors.Is(err1, errMagic) || errors.Is(err1, errShort)) {
			return ErrNotDatabase
		}
		return corrupt.New(Name, 0, fileSize, "neither slot verifies: %v; %v", err0, err1)
	case err0 == nil && err1 == nil && first.Database != second.Database:
		return corrupt.New(Name, 0, fileSize, "the slots belong to different databases")
	case err0 == nil && err1 == nil && first.Generation == second.Generation && first != second:
		return corrupt.New(Name, 0, fileSize, "two different slots of generation %d", first.Generation)
	}
	f.current, f.place = first, 0
	if err0 != nil || err1 == nil && second.Generation > first.Generation {
		f.current, f.place = second, 1
	}
	f.damaged = err0 != nil || err1 != nil || size != fileSize
	f.alone = err0 != nil || err1 != nil || first.Seq != second.Seq
	if err := cmp.Or(err0, err1); unread(err) {
		f.unread = fmt.Errorf("read %s: %w", Name, err)
	}
	return nil
}

// slot reads the slot at a place, of which b has been read. One that does not verify is read once more before it is taken for damaged: what failed
// once may be a fault of the way from the disk, and who believes the older slot then removes what the newer one refers to.
func (f *File) slot(b []byte, place int64) (Slot, error) {
	s, err := decodeSlot(b)
	if err == nil || errors.Is(err, ErrVersion) {
		return s, err
	}
	again := make([]byte, slotSize)
	n, failed := f.file.ReadAt(again, place*slotSize)
	if n < slotSize && failed != nil && !errors.Is(failed, io.EOF) {
		return s, &unreadSlot{failed}
	}
	return decodeSlot(again[:n])
}

// unreadSlot says that the device does not give a slot back. Like one that does not verify it may be the one in force, or not.
type unreadSlot struct{ error }

// Unwrap returns what the device has said.
func (u *unreadSlot) Unwrap() error { return u.error }

func unread(err error) bool {
	slot := (*unreadSlot)(nil)
	return errors.As(err, &slot)
}

// Unread returns why the device did not give back one of the two slots when the file was opened, nil where it did. That may pass, so if the
// other one turns out to be no longer in force, this is what is wrong.
func (f *File) Unread() error { return f.unread }

// Damaged reports whether Open found a slot that did not verify, or could not be read, or a file of the wrong length, and no Store has repaired
// that since.
// The slot in force is intact; the other one was being stored when the power went, or was damaged on the disk.
func (f *File) Damaged() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.damaged
}

// Alone reports whether the slot in force is the only one that leads to its sequence number.
func (f *File) Alone() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.alone
}

// Current returns the slot in force.
func (f *File) Current() Slot {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.current
}

// Store puts s in force, as the next generation, and returns when it is durable. When it fails the old slot stays in force
// for this File, but which one a later Open finds is not known; after a failed sync every further Store fails.
func (f *File) Store(s Slot) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.readOnly:
		return fmt.Errorf("store root: %w", ErrReadOnly)
	case f.failure != nil:
		return fmt.Errorf("store root: %w: %w", ErrFailed, f.failure)
	case s.Database != f.current.Database:
		return fmt.Errorf("store root: database %x instead of %x", s.Database, f.current.Database)
	}
	s.Version = Version
	s.Generation = f.current.Generation + 1
	place := 1 - f.place
	f.storing, f.alone = true, true
	if _, err := f.file.WriteAt(appendSlot(nil, s), int64(place)*slotSize); err != nil {
		return fmt.Errorf("store root generation %d: %w", s.Generation, err)
	}
	if f.damaged { // what lies behind the slots goes too
		if err := f.file.Truncate(fileSize); err != nil {
			return fmt.Errorf("store root generation %d: truncate: %w", s.Generation, err)
		}
	}
	if err := f.file.Sync(); err != nil {
		f.failure = err
		return fmt.Errorf("store root generation %d: sync: %w", s.Generation, err)
	}
	f.alone = s.Seq != f.current.Seq
	f.current, f.place, f.storing, f.damaged = s, place, false, false
	return nil
}

// Certain reports whether a later Open is known to find the slot in force, also after a Store that failed: one that found no space has
// hardly ever written all of its slot.
func (f *File) Certain() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.storing {
		return true
	}
	if f.failure != nil {
		return false
	}
	b := make([]byte, slotSize)
	n, err := f.file.ReadAt(b, int64(1-f.place)*slotSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return false
	}
	s, err := decodeSlot(b[:n])
	return err != nil || s.Generation < f.current.Generation
}

// Durable reports whether all that was ever stored is known to be durable.
func (f *File) Durable() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.readOnly && !f.storing
}

// Close closes the file. Closing twice is no error.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil {
		return nil
	}
	file := f.file
	f.file, f.failure = nil, fs.ErrClosed
	if err := file.Close(); err != nil {
		return fmt.Errorf("close %s: %w", Name, err)
	}
	return nil
}
