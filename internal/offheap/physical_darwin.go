package offheap

import "golang.org/x/sys/unix"

// PhysicalMemory returns the memory of the machine in bytes, 0 when the system does not tell.
func PhysicalMemory() int64 {
	n, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return 0
	}
	return int64(n)
}
