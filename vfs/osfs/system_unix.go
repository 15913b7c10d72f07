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

// openFile is os.OpenFile for files that are never waited for: that asks the runtime's poller first whether it takes them, which costs five
// system calls, and a poller where the process has none yet. O_NONBLOCK is for what has no place in a database: to open a pipe would wait
// for somebody at its other end. It is taken back, or os.NewFile would ask the poller.
func openFile(name string, flag int) (f *os.File, err error) {
	err = retry(func() error {
		fd, err := unix.Open(name, flag|unix.O_CLOEXEC|unix.O_NONBLOCK, uint32(fileMode))
		if err != nil {
			return err
		}
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFL, flag); err != nil {
			return both(err, unix.Close(fd))
		}
		f = os.NewFile(uintptr(fd), name)
		return nil
	})
	return f, pathError("open", name, err)
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
func (system) OpenDir(dir string) (vfs.Dir, error) {
	f, err := openFile(dir, os.O_RDONLY)
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

func syncDir(dir string) error {
	d, err := system{}.OpenDir(dir)
	if err != nil {
		return err
	}
	return both(d.Sync(), d.Close())
}

// lockTries bounds how often a lock file may be replaced between our open and our check.
const lockTries = 16

func lock(name string, mode vfs.LockMode) (io.Closer, error) {
	for range lockTries {
		f, err := openLock(name, mode)
		if err != nil {
			return nil, err
		}
		l := &held{file: f, exclusive: mode == vfs.Exclusive}
		replaced, err := l.take(name, mode)
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

func openLock(name string, mode vfs.LockMode) (*os.File, error) {
	f, err := openFile(name, os.O_RDWR|os.O_CREATE)
	if err != nil && mode == vfs.Shared && (errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS)) {
		if reader, err := openFile(name, os.O_RDONLY); err == nil {
			return reader, nil
		}
	}
	return f, err
}

// take locks the file and then its directory. It reports replaced when name no longer stands for the locked file.
func (l *held) take(name string, mode vfs.LockMode) (replaced bool, err error) {
	if err := flock(l.file, mode); err != nil {
		if err == unix.EWOULDBLOCK {
			return false, lockedBy(name, l.file)
		}
		return false, pathError("lock", name, err)
	}
	mine, err := l.file.Stat()
	if err != nil {
		return false, err
	}
	if now, err := os.Stat(name); err != nil || !os.SameFile(mine, now) {
		return true, nil
	}
	dir, err := openFile(filepath.Dir(name), os.O_RDONLY)
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
