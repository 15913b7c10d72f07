//go:build linux || darwin || freebsd

package osfs

import (
	"math"
	"os"

	"golang.org/x/sys/unix"
)

// Free implements vfs.SpaceTeller. A file system that tells of no blocks at all, as some network and FUSE ones do, tells nothing.
func (s system) Free(dir string) (bytes int64, known bool) {
	d, err := s.openFile(dir, os.O_RDONLY)
	if err != nil {
		return 0, false
	}
	defer d.Close()
	var stat unix.Statfs_t
	if err := retry(func() error { return unix.Fstatfs(int(d.Fd()), &stat) }); err != nil || stat.Blocks == 0 || stat.Bsize <= 0 {
		return 0, false
	}
	blocks := max(int64(stat.Bavail), 0) // FreeBSD counts below zero what only root may use
	blocks = max(blocks, reservedToo(&stat))
	if size := int64(stat.Bsize); blocks < math.MaxInt64/size {
		return blocks * size, true
	}
	return math.MaxInt64, true
}
