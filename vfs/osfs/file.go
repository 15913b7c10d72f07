package osfs

import (
	"io/fs"
	"os"
	"syscall"

	"github.com/pandodb/pando/vfs"
)

// file is an open file. os.File holds the descriptor, so that a call that races with Close fails instead of reaching
// another file that was given the same number.
type file struct {
	f    *os.File
	raw  syscall.RawConn
	maps mappings
}

func newFile(f *os.File) (vfs.File, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	return &file{f: f, raw: raw}, nil
}

func (f *file) ReadAt(p []byte, off int64) (int, error) { return f.f.ReadAt(p, off) }

func (f *file) WriteAt(p []byte, off int64) (int, error) {
	n, err := f.f.WriteAt(p, off)
	if err != nil {
		err = explain(err)
	}
	return n, err
}

func (f *file) Close() error { return f.f.Close() }

func (f *file) Size() (int64, error) {
	info, err := f.f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (f *file) Truncate(size int64) error { return explain(f.f.Truncate(size)) }

func (f *file) Allocate(size int64) error {
	if size < 0 {
		return pathError("allocate", f.f.Name(), fs.ErrInvalid)
	}
	if size == 0 {
		return nil
	}
	return explain(f.allocate(size))
}

func (f *file) Sync() error { return explain(f.sync()) }

func (f *file) Map(length int64) (vfs.Mapping, error) {
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	// Memory beyond the end can be mapped, but a touch of it is a fault, and int is 32 bits wide on some machines.
	if length <= 0 || length > size || int64(int(length)) != length {
		return nil, pathError("map", f.f.Name(), fs.ErrInvalid)
	}
	return f.mapShared(int(length))
}

// extend makes the file at least size long, without space behind the new bytes.
func (f *file) extend(size int64) error {
	now, err := f.Size()
	if err != nil || now >= size {
		return err
	}
	return f.f.Truncate(size)
}

// control runs call with the descriptor, which stays open meanwhile.
func (f *file) control(op string, call func(fd uintptr) error) error {
	var failed error
	if err := f.raw.Control(func(fd uintptr) { failed = call(fd) }); err != nil {
		failed = fs.ErrClosed // the one reason for which Control does not run its function
	}
	return pathError(op, f.f.Name(), failed)
}
