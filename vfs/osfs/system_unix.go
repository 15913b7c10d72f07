//go:build linux || darwin || freebsd

package osfs

import (
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/pandodb/pando/vfs"
)

func noSpace(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

// linkUnsupported is wider than "not supported": a caller that cannot link copies, whatever stands in the way (EPERM is how
// FAT says it has no links, EXDEV another device, EMLINK too many names).
func linkUnsupported(err error) bool {
	return errors.Is(err, errors.ErrUnsupported) || errors.Is(err, unix.EPERM) ||
		errors.Is(err, unix.EXDEV) || errors.Is(err, unix.EMLINK)
}

// retry repeats a call that a signal interrupted before it did anything. No other failure is ever repeated.
func retry(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}

// MostHandles implements vfs.HandleLimiter.
func (system) MostHandles() int {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return int(min(uint64(limit.Cur), math.MaxInt32))
}

// OpenDir implements vfs.DirOpener.
func (s system) OpenDir(dir string) (vfs.Dir, error) {
	f, err := s.openFile(dir, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	return directory{f}, nil
}

// directory is an open directory.
type directory struct{ f *os.File }

// Sync implements vfs.Dir.
func (d directory) Sync() error {
	err := d.f.Sync()
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		// File systems without a call for it (some network and FUSE ones) keep entries on their own terms.
		if info, statErr := d.f.Stat(); statErr == nil && info.IsDir() {
			err = nil
		}
	}
	return explain(err)
}

// Close implements vfs.Dir.
func (d directory) Close() error { return d.f.Close() }

func (s system) syncDir(dir string) error {
	d, err := s.OpenDir(dir)
	if err != nil {
		return err
	}
	return both(d.Sync(), d.Close())
}

// lockTries bounds how often a lock file may be replaced between our open and our check.
const lockTries = 16

func (s system) lock(name string, mode vfs.LockMode) (io.Closer, error) {
	for range lockTries {
		f, err := s.openLock(name, mode)
		if err != nil {
			return nil, err
		}
		l := &held{file: f, exclusive: mode == vfs.Exclusive}
		replaced, err := l.take(s, name, mode)
		if err == nil && !replaced {
			l.sign()
			return l, nil
		}
		if err := both(err, l.release()); err != nil {
			return nil, err
		}
	}
	return nil, pathError("lock", name, errors.New("the lock file keeps being replaced"))
}

func (s system) openLock(name string, mode vfs.LockMode) (*os.File, error) {
	f, err := s.openFile(name, os.O_RDWR|os.O_CREATE)
	if err != nil && mode == vfs.Shared && (errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS)) {
		if reader, err := s.openFile(name, os.O_RDONLY); err == nil {
			return reader, nil
		}
	}
	return f, err
}

// take locks the file and then its directory. It reports replaced when name no longer stands for the locked file.
func (l *held) take(s system, name string, mode vfs.LockMode) (replaced bool, err error) {
	if err := flock(l.file, mode); err != nil {
		if err == unix.EWOULDBLOCK {
			return false, lockedBy(name, l.file)
		}
		return false, pathError("lock", name, err)
	}
	var mine unix.Stat_t
	if err := retry(func() error { return unix.Fstat(int(l.file.Fd()), &mine) }); err != nil {
		return false, pathError("stat", name, err)
	}
	if now, err := s.status(name); err != nil || now.Dev != mine.Dev || now.Ino != mine.Ino {
		return true, nil
	}
	dir, err := s.openFile(filepath.Dir(name), os.O_RDONLY)
	if err != nil {
		return false, nil // a directory that may be searched but not read: the file's lock has to do
	}
	err = flock(dir, mode)
	if err == nil {
		l.dir = dir
		return false, nil
	}
	if err == unix.EWOULDBLOCK {
		return false, both(&vfs.LockedError{Name: name}, dir.Close())
	}
	return false, dir.Close() // network file systems lock files only
}

// flock uses flock(2), not fcntl(2): its locks belong to the open file, so that they also hold between two databases of one
// process and do not vanish when any other descriptor of the file is closed.
func flock(f *os.File, mode vfs.LockMode) error {
	how := unix.LOCK_EX | unix.LOCK_NB
	if mode == vfs.Shared {
		how = unix.LOCK_SH | unix.LOCK_NB
	}
	return retry(func() error { return unix.Flock(int(f.Fd()), how) })
}

// unlock gives up what flock has taken. Where it fails the lock ends with the descriptor.
func unlock(f *os.File) { _ = retry(func() error { return unix.Flock(int(f.Fd()), unix.LOCK_UN) }) }
