//go:build (darwin || dragonfly || freebsd || netbsd || openbsd) && !race

package offheap

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

func mapPages(n int) (unsafe.Pointer, error) {
	return unix.MmapPtr(-1, 0, nil, uintptr(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
}

func unmapPages(p unsafe.Pointer, n int) error { return unix.MunmapPtr(p, uintptr(n)) }

func releasePages(b []byte) { _ = unix.Madvise(b, unix.MADV_FREE) }

func populatePages([]byte) {}

func splitPages([]byte) {}

func movePages(to, from []byte) bool { return false }
