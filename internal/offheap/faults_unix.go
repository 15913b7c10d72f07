//go:build linux || darwin || freebsd

package offheap

import "golang.org/x/sys/unix"

// MajorFaults returns for how many pages of memory the process has had to wait for a device; 0 when the system does not tell.
func MajorFaults() int64 {
	var usage unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return int64(usage.Majflt)
}
