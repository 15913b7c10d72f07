//go:build linux || darwin || freebsd

package osfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/pandodb/pando/vfs"
)

// place is an open directory.
type place struct {
	f   *os.File
	raw syscall.RawConn
}

// HoldDir implements vfs.DirHolder.
func (s system) HoldDir(dir string) (vfs.HeldFS, error) {
	h := newHome(dir)
	var err error
	if h.f, err = s.openFile(dir, os.O_RDONLY|unix.O_DIRECTORY); err != nil {
		return nil, explain(err)
	}
	if h.raw, err = h.f.SyscallConn(); err != nil {
		return nil, both(err, h.f.Close())
	}
	return system{h}, nil
}

// Close implements vfs.HeldFS.
func (s system) Close() error {
	if s.home == nil {
		return nil
	}
	return s.home.f.Close()
}

// at makes a call on a name: from the directory that it lies in, which stays open meanwhile, and with the rest of it. A call that was
// interrupted is made again.
func (s system) at(name string, call func(dir int, rest string) error) error {
	rest, ok := s.home.within(name)
	if !ok {
		return retry(func() error { return call(unix.AT_FDCWD, name) })
	}
	var failed error
	err := s.home.raw.Control(func(fd uintptr) { failed = retry(func() error { return call(int(fd), rest) }) })
	if err != nil {
		return fs.ErrClosed // the one reason for which Control does not run its function
	}
	return failed
}

// openFile is os.OpenFile for files that are never waited for: that asks the runtime's poller first whether it takes them, which costs five
// system calls, and a poller where the process has none yet. O_NONBLOCK is for what has no place in a database: to open a pipe would wait
// for somebody at its other end. It is taken back, or os.NewFile would ask the poller.
func (s system) openFile(name string, flag int) (f *os.File, err error) {
	err = s.at(name, func(dir int, rest string) error {
		fd, err := unix.Openat(dir, rest, flag|unix.O_CLOEXEC|unix.O_NONBLOCK, uint32(fileMode))
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

func (s system) remove(name string) error {
	err := s.at(name, func(dir int, rest string) error {
		err := unix.Unlinkat(dir, rest, 0)
		if err == nil {
			return nil
		}
		// What unlink says of a directory is not the same everywhere.
		if asDir := unix.Unlinkat(dir, rest, unix.AT_REMOVEDIR); asDir != unix.ENOTDIR {
			return asDir
		}
		return err
	})
	return pathError("remove", name, err)
}

func (s system) rename(oldName, newName string) error {
	return s.between("rename", oldName, newName, unix.Renameat)
}

func (s system) link(oldName, newName string) error {
	return s.between("link", oldName, newName, func(from int, old string, to int, name string) error {
		return unix.Linkat(from, old, to, name, 0)
	})
}

// between makes a call on two names.
func (s system) between(op, oldName, newName string, call func(from int, old string, to int, name string) error) error {
	err := s.at(oldName, func(from int, old string) error {
		return s.at(newName, func(to int, name string) error { return call(from, old, to, name) })
	})
	if err != nil {
		return &os.LinkError{Op: op, Old: oldName, New: newName, Err: err}
	}
	return nil
}

// mkdirAll is os.MkdirAll.
func (s system) mkdirAll(dir string) error {
	there, err := s.stat(dir)
	if err == nil && there.Dir {
		return nil
	}
	if err == nil {
		return pathError("mkdir", dir, unix.ENOTDIR)
	}
	if up := filepath.Dir(dir); up != dir {
		if err := s.mkdirAll(up); err != nil {
			return err
		}
	}
	err = s.at(dir, func(at int, rest string) error { return unix.Mkdirat(at, rest, uint32(dirMode)) })
	if errors.Is(err, fs.ErrExist) { // somebody else was first
		if there, missing := s.stat(dir); missing == nil && there.Dir {
			return nil
		}
	}
	return pathError("mkdir", dir, err)
}

func (s system) stat(name string) (vfs.Info, error) {
	stat, err := s.status(name)
	if err != nil {
		return vfs.Info{}, err
	}
	return vfs.Info{Size: stat.Size, Dir: stat.Mode&unix.S_IFMT == unix.S_IFDIR}, nil
}

func (s system) status(name string) (stat unix.Stat_t, err error) {
	err = s.at(name, func(dir int, rest string) error { return unix.Fstatat(dir, rest, &stat, 0) })
	return stat, pathError("stat", name, err)
}
