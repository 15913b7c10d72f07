//go:build !linux

package offheap

// AvailableMemory returns the memory in bytes that this process may have, which is that of the machine; 0 when the system does not tell.
func AvailableMemory() int64 { return PhysicalMemory() }
