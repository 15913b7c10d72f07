package offheap

import "golang.org/x/sys/unix"

// PhysicalMemory returns the memory of the machine in bytes, 0 when the system does not tell.
func PhysicalMemory() int64 {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0
	}
	return int64(uint64(info.Totalram) * uint64(info.Unit))
}
