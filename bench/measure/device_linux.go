package measure

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// FreeBytes is how much may still be written where dir lies.
func FreeBytes(dir string) (n int64, ok bool) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, false
	}
	return int64(st.Bavail) * st.Bsize, true
}

// deviceOf returns the number of the block device that dir lies on, as the kernel writes it.
func deviceOf(dir string) (string, bool) {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return "", false
	}
	return fmt.Sprintf("%d:%d", unix.Major(uint64(st.Dev)), unix.Minor(uint64(st.Dev))), true
}
