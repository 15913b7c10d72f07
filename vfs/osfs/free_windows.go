package osfs

import (
	"math"

	"golang.org/x/sys/windows"
)

// Free implements vfs.SpaceTeller.
func (s system) Free(dir string) (bytes int64, known bool) {
	path, err := windows.UTF16PtrFromString(s.whole(dir))
	if err != nil {
		return 0, false
	}
	var free, size uint64
	if windows.GetDiskFreeSpaceEx(path, &free, &size, nil) != nil || size == 0 {
		return 0, false
	}
	return int64(min(free, math.MaxInt64)), true
}
