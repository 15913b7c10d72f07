package osfs

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/windows"

	"github.com/pandodb/pando/vfs"
)

// mappings is empty: a mapped file cannot be cut, replaced or removed on Windows, so files are not mapped there.
type mappings struct{}

func (f *file) mapShared(int) (vfs.Mapping, error) {
	return nil, pathError("map", f.f.Name(), errors.ErrUnsupported)
}

// sync is FlushFileBuffers.
func (f *file) sync() error { return f.f.Sync() }

// allocate moves the end: NTFS reserves the clusters of a file that is not sparse.
func (f *file) allocate(size int64) error { return f.extend(size) }

func noSpace(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL) ||
		errors.Is(err, windows.ERROR_DISK_QUOTA_EXCEEDED)
}

// linkUnsupported is wider than "not supported": a caller that cannot link copies, whatever stands in the way.
func linkUnsupported(err error) bool {
	return errors.Is(err, errors.ErrUnsupported) || errors.Is(err, windows.ERROR_INVALID_FUNCTION) ||
		errors.Is(err, windows.ERROR_NOT_SAME_DEVICE) || errors.Is(err, windows.ERROR_TOO_MANY_LINKS)
}

func (s system) syncDir(dir string) error {
	path, err := windows.UTF16PtrFromString(s.whole(dir))
	if err != nil {
		return pathError("sync directory", dir, err)
	}
	h, err := windows.CreateFile(path, windows.GENERIC_READ|windows.GENERIC_WRITE,
		windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE|windows.FILE_SHARE_DELETE, nil,
		windows.OPEN_EXISTING, windows.FILE_FLAG_BACKUP_SEMANTICS, 0)
	if err != nil {
		return pathError("sync directory", dir, err)
	}
	err = windows.FlushFileBuffers(h)
	if errors.Is(err, windows.ERROR_ACCESS_DENIED) || errors.Is(err, windows.ERROR_INVALID_FUNCTION) {
		err = nil // file systems that do not flush directories journal their entries in order
	}
	return pathError("sync directory", dir, both(err, windows.CloseHandle(h)))
}

// The locked byte lies far behind the text, because a lock here also keeps others from reading what it covers.
const (
	lockOffsetHigh = 0x7fffffff
	lockLength     = 1
)

func (s system) lock(name string, mode vfs.LockMode) (io.Closer, error) {
	f, err := s.openFile(name, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	flags := uint32(windows.LOCKFILE_FAIL_IMMEDIATELY)
	if mode == vfs.Exclusive {
		flags |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	where := windows.Overlapped{OffsetHigh: lockOffsetHigh}
	err = windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, lockLength, 0, &where)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return nil, both(lockedBy(name, f), f.Close())
	}
	if err != nil {
		return nil, both(pathError("lock", name, err), f.Close())
	}
	l := &held{file: f, exclusive: mode == vfs.Exclusive}
	l.sign()
	return l, nil
}

// unlock gives up what lock has taken. Where it fails the lock ends with the handle.
func unlock(f *os.File) {
	where := windows.Overlapped{OffsetHigh: lockOffsetHigh}
	_ = windows.UnlockFileEx(windows.Handle(f.Fd()), 0, lockLength, 0, &where)
}
