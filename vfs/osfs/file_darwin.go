package osfs

import (
	"golang.org/x/sys/unix"
)

// sync writes mapped pages back first, which the system's sync of a descriptor does not promise; os.File.Sync then asks
// with F_FULLFSYNC that the drive empties its own cache.
func (f *file) sync() error {
	f.maps.mu.Lock()
	defer f.maps.mu.Unlock()
	for _, m := range f.maps.live {
		if err := retry(func() error { return unix.Msync(m.bytes, unix.MS_SYNC) }); err != nil {
			return pathError("msync", f.f.Name(), err)
		}
	}
	return f.f.Sync()
}

// allocate reserves behind the end of the file, where F_PREALLOCATE works, and then moves the end. Holes inside the file
// stay holes: the engine makes none.
func (f *file) allocate(size int64) error {
	now, err := f.Size()
	if err != nil || now >= size {
		return err
	}
	err = f.control("preallocate", func(fd uintptr) error {
		store := unix.Fstore_t{Flags: unix.F_ALLOCATEALL, Posmode: unix.F_PEOFPOSMODE, Length: size - now}
		return retry(func() error { return unix.FcntlFstore(fd, unix.F_PREALLOCATE, &store) })
	})
	if err != nil && noSpace(err) {
		return err
	}
	return f.f.Truncate(size) // also where the file system knows no preallocation
}

// reservedToo is how many blocks are free with those that are kept for root, if that is who we are. APFS and HFS+ keep none.
func reservedToo(*unix.Statfs_t) int64 { return 0 }
