package osfs

import (
	"os"

	"golang.org/x/sys/unix"
)

// sync writes mapped pages back first, which the system's sync of a descriptor does not promise.
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

// allocate moves the end only: ZFS, on which most of these systems run, writes elsewhere anyway and refuses to reserve.
func (f *file) allocate(size int64) error { return f.extend(size) }

// reservedToo is how many blocks are free with those that UFS keeps for root, if that is who we are; else 0.
func reservedToo(stat *unix.Statfs_t) int64 {
	if os.Geteuid() != 0 {
		return 0
	}
	return int64(stat.Bfree)
}
