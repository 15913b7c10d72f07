//go:build !linux && !darwin && !freebsd

package offheap

// MajorFaults returns for how many pages of memory the process has had to wait for a device; 0 when the system does not tell.
func MajorFaults() int64 { return 0 }
