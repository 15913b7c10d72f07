// Package osfs is the vfs.FS of the operating system, and the only package of the project that makes system calls on files.
//
// It promises what package vfs says, with the strongest call that the system has for it: fdatasync, fallocate, mmap and
// flock on Linux; F_FULLFSYNC, F_PREALLOCATE, msync, mmap and flock on macOS; fsync, msync, mmap and flock on FreeBSD, where no
// space is reserved; FlushFileBuffers and LockFileEx on Windows, where Map is not supported. It never caches, never retries a
// failed sync, and keeps no state but what is open: a file system from HoldDir has its directory open, and looks names up from there (openat
// and its like; on Windows, where a directory with open files cannot be moved, by the whole path). EINTR is retried; every other failure is returned with the path, the
// operation and the system's error in it.
//
// Cost: one system call a call, and no allocation in ReadAt and WriteAt.
package osfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/pandodb/pando/vfs"
)

// Databases hold what their owner would not show to everybody: the group may read, others may not.
const (
	fileMode fs.FileMode = 0o640
	dirMode  fs.FileMode = 0o750
)

// New returns the file system of the operating system.
func New() vfs.FS { return system{} }

type system struct {
	home *home // nil: all names are looked up from the working directory
}

func (s system) Create(name string) (vfs.File, error) {
	return s.open("create", name, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
}

func (s system) Open(name string) (vfs.File, error) { return s.open("open", name, os.O_RDONLY) }

func (s system) OpenReadWrite(name string) (vfs.File, error) { return s.open("open", name, os.O_RDWR) }

func (s system) Remove(name string) error { return explain(s.remove(name)) }

func (s system) Rename(oldName, newName string) error { return explain(s.rename(oldName, newName)) }

func (s system) MkdirAll(dir string) error { return explain(s.mkdirAll(filepath.Clean(dir))) }

func (s system) Link(oldName, newName string) error {
	err := s.link(oldName, newName)
	if err != nil && linkUnsupported(err) {
		return alsoIs(err, errors.ErrUnsupported)
	}
	return explain(err)
}

func (s system) List(dir string) ([]string, error) {
	d, err := s.openFile(dir, os.O_RDONLY)
	if err != nil {
		return nil, explain(err)
	}
	names, err := d.Readdirnames(-1)
	if err = both(err, d.Close()); err != nil {
		return nil, explain(err)
	}
	slices.Sort(names)
	return names, nil
}

func (s system) Stat(name string) (vfs.Info, error) {
	info, err := s.stat(name)
	return info, explain(err)
}

func (s system) SyncDir(dir string) error { return explain(s.syncDir(dir)) }

func (s system) Lock(name string, mode vfs.LockMode) (io.Closer, error) {
	if mode != vfs.Shared && mode != vfs.Exclusive {
		return nil, fmt.Errorf("lock %s: unknown mode %d", name, mode)
	}
	c, err := s.lock(name, mode)
	if err != nil {
		return nil, explain(err)
	}
	return c, nil
}

// errDirectory is the cause when a directory is opened as a file.
var errDirectory = errors.New("is a directory")

func (s system) open(op, name string, flag int) (vfs.File, error) {
	f, err := s.openFile(name, flag)
	if err != nil {
		return nil, explain(err)
	}
	if info, err := f.Stat(); err != nil || info.IsDir() {
		if err == nil {
			err = &fs.PathError{Op: op, Path: name, Err: errDirectory}
		}
		return nil, both(err, f.Close())
	}
	return newFile(f)
}

// A linkedError is err that errors.Is also finds as one of the causes which package vfs promises.
type linkedError struct{ err, cause error }

func (e *linkedError) Error() string   { return e.err.Error() }
func (e *linkedError) Unwrap() []error { return []error{e.err, e.cause} }

func alsoIs(err, cause error) error {
	if errors.Is(err, cause) {
		return err
	}
	return &linkedError{err: err, cause: cause}
}

// explain adds the cause vfs.ErrNoSpace to the system's ways of saying so. Unlike the errors of missing files, these have
// no name in the standard library.
func explain(err error) error {
	if err != nil && noSpace(err) {
		return alsoIs(err, vfs.ErrNoSpace)
	}
	return err
}

func pathError(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// both is errors.Join without its wrapping of a lone error.
func both(err, more error) error {
	if err == nil {
		return more
	}
	if more == nil {
		return err
	}
	return errors.Join(err, more)
}
