// Package osfs is the vfs.FS of the operating system, and the only package of the project that makes system calls on files.
//
// It promises what package vfs says, with the strongest call that the system has for it: fdatasync, fallocate, mmap and
// flock on Linux; F_FULLFSYNC, F_PREALLOCATE, msync, mmap and flock on macOS; fsync, msync, mmap and flock on FreeBSD, where no
// space is reserved; FlushFileBuffers and LockFileEx on Windows, where Map is not supported. It never caches, never retries a
// failed sync, and keeps no state but what is open. EINTR is retried; every other failure is returned with the path, the
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

	"github.com/pandodb/pando/vfs"
)

// Databases hold what their owner would not show to everybody: the group may read, others may not.
const (
	fileMode fs.FileMode = 0o640
	dirMode  fs.FileMode = 0o750
)

// New returns the file system of the operating system.
func New() vfs.FS { return system{} }

type system struct{}

func (system) Create(name string) (vfs.File, error) {
	return open("create", name, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
}

func (system) Open(name string) (vfs.File, error) { return open("open", name, os.O_RDONLY) }

func (system) OpenReadWrite(name string) (vfs.File, error) { return open("open", name, os.O_RDWR) }

func (system) Remove(name string) error { return explain(os.Remove(name)) }

func (system) Rename(oldName, newName string) error { return explain(os.Rename(oldName, newName)) }

func (system) MkdirAll(dir string) error { return explain(os.MkdirAll(dir, dirMode)) }

func (system) Link(oldName, newName string) error {
	err := os.Link(oldName, newName)
	if err != nil && linkUnsupported(err) {
		return alsoIs(err, errors.ErrUnsupported)
	}
	return explain(err)
}

func (system) List(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, explain(err)
	}
	names := make([]string, len(entries)) // ReadDir has sorted them
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

func (system) Stat(name string) (vfs.Info, error) {
	info, err := os.Stat(name)
	if err != nil {
		return vfs.Info{}, explain(err)
	}
	return vfs.Info{Size: info.Size(), Dir: info.IsDir()}, nil
}

func (system) SyncDir(dir string) error { return explain(syncDir(dir)) }

func (system) Lock(name string, mode vfs.LockMode) (io.Closer, error) {
	if mode != vfs.Shared && mode != vfs.Exclusive {
		return nil, fmt.Errorf("lock %s: unknown mode %d", name, mode)
	}
	c, err := lock(name, mode)
	if err != nil {
		return nil, explain(err)
	}
	return c, nil
}

// errDirectory is the cause when a directory is opened as a file.
var errDirectory = errors.New("is a directory")

func open(op, name string, flag int) (vfs.File, error) {
	f, err := openFile(name, flag)
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
