package osfs

import (
	"golang.org/x/sys/unix"
)

// sync leaves out times and owners, which nothing here depends upon, and so often saves a second write. It covers mapped
// stores: the kernel finds them in the same page cache.
func (f *file) sync() error {
	return f.control("fdatasync", func(fd uintptr) error {
		return retry(func() error { return unix.Fdatasync(int(fd)) })
	})
}

func (f *file) allocate(size int64) error {
	var cause error
	err := f.control("fallocate", func(fd uintptr) error {
		cause = retry(func() error { return unix.Fallocate(int(fd), 0, 0, size) })
		return cause
	})
	if cause == unix.EOPNOTSUPP || cause == unix.ENOSYS {
		return f.extend(size)
	}
	return err
}
