// Package vfs is the only door from Pando to the operating system: every file that the engine reads, writes, maps, syncs,
// renames or locks goes through an FS.
//
// It promises the same meaning on every implementation, and the suite in vfstest holds them to it. It says exactly what is
// durable when: a file's content and size by File.Sync, the entries of a directory by FS.SyncDir of that directory, and
// nothing else by anything else. It never retries a failed sync, never prints, and starts no goroutine.
//
// Failures are ordinary errors that wrap the causes which callers decide upon: fs.ErrNotExist, fs.ErrExist, fs.ErrClosed,
// errors.ErrUnsupported, ErrNoSpace and ErrLocked.
//
// Cost: one call is one system call in osfs (Open, Lock and Map need two or three), without an allocation for ReadAt
// and WriteAt. Bytes of a Mapping cost nothing to reach.
//
// Names are paths with the separators of the system; "/" works everywhere.
package vfs

import (
	"errors"
	"fmt"
	"io"
)

var (
	// ErrLocked is what errors.Is finds when a lock is held by somebody else; errors.As with *LockedError says by whom.
	ErrLocked = errors.New("locked")
	// ErrNoSpace is what errors.Is finds when the device, the quota or a simulated capacity is used up.
	ErrNoSpace = errors.New("no space left")
	// ErrTooLarge is what errors.Is finds when ReadFile meets more bytes than its caller was ready for.
	ErrTooLarge = errors.New("file is larger than allowed")
)

// FS is a file system. All methods may be called concurrently.
type FS interface {
	// Create opens name for reading and writing. An existing file is truncated, a missing one is made; its directory
	// must exist. The new entry is durable after SyncDir.
	Create(name string) (File, error)
	// Open opens an existing file for reading. Sync is allowed, writing is not.
	Open(name string) (File, error)
	// OpenReadWrite opens an existing file for reading and writing.
	OpenReadWrite(name string) (File, error)
	// Remove removes a file or an empty directory. Open handles and mappings of a removed file stay usable where the
	// system allows it; Windows does not, so close before you remove.
	Remove(name string) error
	// Rename moves oldName to newName in one step, replacing a file of that name. It does not sync anything: sync the
	// file before and the directory after, or use WriteFile.
	Rename(oldName, newName string) error
	// Link gives the file oldName the further name newName, which must not exist. It fails with
	// errors.ErrUnsupported on file systems without hard links.
	Link(oldName, newName string) error
	// MkdirAll makes dir and its missing parents. To make them durable use MkdirAllSync.
	MkdirAll(dir string) error
	// List returns the base names of what lies in dir, sorted.
	List(dir string) ([]string, error)
	// Stat tells what name is.
	Stat(name string) (Info, error)
	// SyncDir makes the creations, renames, links and removals in dir durable that happened before the call.
	SyncDir(dir string) error
	// Lock takes the advisory lock of the file name, making the file when it is missing. It never waits: when the lock
	// is held in a conflicting mode, by another process or by this one, it fails with a *LockedError. An exclusive
	// holder's process number stands in the file as text. The lock ends with Close, or with the process. Use one lock
	// file in a directory: osfs also locks the directory, so that nobody gets in by removing the lock file.
	Lock(name string, mode LockMode) (io.Closer, error)
}

// HandleLimiter is what an FS may be besides: one that knows how many files there may be open at a time.
type HandleLimiter interface {
	// MostHandles is how many the process may have, with what it has open elsewhere; 0 where the system does not tell.
	MostHandles() int
}

// SpaceTeller is what an FS may be besides: one that knows how much room there is.
type SpaceTeller interface {
	// Free is how many bytes more may be written to files in dir, by this process, before writes fail with ErrNoSpace, as far as the system
	// knows: quotas of users may allow less. It is false where the system does not tell.
	Free(dir string) (bytes int64, known bool)
}

// DirOpener is what an FS may be besides: one that opens a directory before it syncs it, so that it is known whether it has tried to.
type DirOpener interface {
	// OpenDir opens a directory. It fails, and nothing was done, where the process has as many files open as it may have.
	OpenDir(dir string) (Dir, error)
}

// Dir is an open directory.
type Dir interface {
	// Sync is FS.SyncDir of the directory.
	Sync() error
	io.Closer
}

// DirHolder is what an FS may be besides: one that can keep to a directory.
type DirHolder interface {
	// HoldDir returns an FS for which the name of a directory, and all names in it, stay those of the directory that is there now, also
	// when the process changes its working directory, or that directory is moved, or another one put in its place. Other names are as
	// before. After Close names in the directory fail with fs.ErrClosed where the system kept it open; open files stay open.
	HoldDir(dir string) (HeldFS, error)
}

// HeldFS is an FS that keeps to a directory until it is closed.
type HeldFS interface {
	FS
	io.Closer
}

// File is an open file. ReadAt, WriteAt, Sync and Size may be called concurrently. After Close every method fails with
// fs.ErrClosed.
type File interface {
	io.ReaderAt // io.EOF at the end, as io.ReaderAt says
	io.WriterAt // extends the file as needed; on an error a part may have been written
	io.Closer   // syncs nothing

	// Size is the length in bytes.
	Size() (int64, error)
	// Truncate sets the length. New bytes read as zero and may still lack space on the device. A mapped file must not
	// be truncated below its mapping.
	Truncate(size int64) error
	// Allocate reserves space for the bytes [0,size) and makes the file at least that long, so that later writes and
	// mapped stores below size do not fail for lack of space. It never shrinks a file. Where the system has no such
	// call it only sets the length.
	Allocate(size int64) error
	// Sync makes the content durable, whether it was written with WriteAt or stored through a Mapping of this File,
	// and the size with it. After an error the state on the device is unknown: a later success says nothing about what
	// was written before, so do not retry.
	Sync() error
	// Map maps [0,length) shared and writable; the file must be that long, must be open for writing, and must not grow
	// while it is mapped. It fails with errors.ErrUnsupported where files cannot be mapped. Close the mapping before
	// the file; Sync of another File of the same name need not cover its stores.
	Map(length int64) (Mapping, error)
}

// Mapping is a stretch of a file in memory. Stores are seen by ReadAt at once. Storing where the device fails or the file
// was cut from outside is a memory fault; guard with debug.SetPanicOnFault.
type Mapping interface {
	// Bytes is the mapped memory, aligned to 4,096 bytes; it must not be touched after Close.
	Bytes() []byte
	// Close ends the mapping. What was stored stays in the file and is durable after the next Sync of it.
	Close() error
}

// ReadMapper is what a File may be besides: one whose bytes can be reached without a system call. A File that is not, or fails,
// is read with ReadAt instead.
type ReadMapper interface {
	// MapRead maps [0,length) for reading. The file may be shorter and may grow: memory behind its end is a fault until the
	// bytes are there. Reads at random are expected, so that the system reads nothing ahead. Close the mapping before the file.
	MapRead(length int64) (Mapping, error)
}

// Reserver is what a File may be besides: one that takes space for what is going to be appended, so that each write does not have to
// look for its own. It is advice, after which a write may lack space nevertheless.
type Reserver interface {
	// Reserve asks for space for the bytes of [from,to), and leaves the length as it is. Truncate gives back what lies behind the end.
	Reserve(from, to int64)
}

// PieceWriter is what a File may be besides: one that writes what lies in several places with one call.
type PieceWriter interface {
	// WritePiecesAt writes the pieces, one behind the other, as WriteAt would if they were one. n is how many bytes of all of them were
	// written, from the first one on.
	WritePiecesAt(pieces [][]byte, offset int64) (n int, err error)
}

// OrderedLock is what an exclusive lock may be besides: one that hands a word from holder to holder. Where it is not one, nobody was
// orderly.
type OrderedLock interface {
	io.Closer
	// Orderly reports whether the holder before this one called LeaveInOrder. It is false after a holder that was killed, for a lock
	// file that is new or was removed, and where there was no room for the word. After a power cut it may be true, of any holder.
	Orderly() bool
	// LeaveInOrder makes the coming Close tell the next holder.
	LeaveInOrder()
}

// InOrder is what stands in a lock file that nobody holds and whose last holder left in order.
const InOrder = "in order\n"

// SequentialMapping is what a Mapping for reading may be besides: one whose owner says that it is going to be read from front to back,
// so that the system reads ahead.
type SequentialMapping interface{ Sequential() }

// ResidentMapping is what a Mapping may be besides: one that knows which of its bytes lie in memory, so that touching them waits for
// no device.
type ResidentMapping interface {
	// Resident sets pages[i] to whether all of the i-th 4,096 bytes from offset on, a multiple of that, were in memory a moment ago.
	// It is false, and pages then anything, where the system does not tell.
	Resident(offset int64, pages []bool) bool
}

// Detacher is what a Mapping for writing may be besides: one that lets go of pages which nobody is going to touch soon. A sync asks every
// processor about each page that is still in a mapping, one by one, and about those that are not it need not.
type Detacher interface {
	// Detach takes the pages that lie wholly in [offset, offset+length) out of the mapping. What was stored into them is in the file, as
	// it was before, and the next sync makes it durable; a page comes back when it is touched. It is advice, and changes no byte.
	Detach(offset, length int64)
}

// Forgetter is what a File may be besides: one whose bytes the system keeps in memory without being asked.
type Forgetter interface {
	// Forget says that nobody is going to read or write [offset, offset+length) soon. It is advice, which changes no byte; what is not
	// durable yet, and pages that are mapped, stay.
	Forget(offset, length int64)
}

// Sole is what a File may be besides: one that can be given another content, instead of making a new file, when nobody needs what it
// holds.
type Sole interface {
	// Sole reports whether the file had no more than one name a moment ago, and all of its first length bytes were in memory, so that
	// writing over a part of it reads nothing from the device. It is false where the system does not tell.
	Sole(length int64) bool
}

// HoleFinder is what a File may be besides: one that knows where nothing was ever written.
type HoleFinder interface {
	// Hole returns the first stretch [start,end) behind offset which reads as zeroes because nothing was written there, as far as
	// the system knows. Where there is none, or none is known of, both are the size of the file.
	Hole(offset int64) (start, end int64, err error)
}

// Info tells what a name stands for.
type Info struct {
	Size int64 // bytes; meaningless for a directory
	Dir  bool
}

// LockMode says with whom a lock may be shared.
type LockMode uint8

const (
	Shared    LockMode = iota + 1 // any number of shared holders at a time
	Exclusive                     // one holder at a time
)

// LockedError says which lock was taken, and by whom as far as is known.
type LockedError struct {
	Name string // of the lock file
	PID  int    // the exclusive holder; 0 when it is not known or when the holders are shared ones
	Own  bool   // the exclusive holder is this process
}

// Error tells who holds the lock, as far as that is known.
func (e *LockedError) Error() string {
	switch {
	case e.Own:
		return fmt.Sprintf("%s: locked by this process, which has it open already", e.Name)
	case e.PID == 0: // shared holders may be of this process
		return fmt.Sprintf("%s: locked by somebody else", e.Name)
	}
	return fmt.Sprintf("%s: locked by process %d", e.Name, e.PID)
}

// Is makes errors.Is(err, ErrLocked) true.
func (e *LockedError) Is(target error) bool { return target == ErrLocked }
