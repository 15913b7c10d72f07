//go:build race || !(linux || darwin || dragonfly || freebsd || netbsd || openbsd || windows)

package offheap

import (
	"os"
	"unsafe"
)

// poisoned is how much of a freed block is overwritten: enough to catch a reader that came too late, without touching a
// large block as a whole.
const poisoned = 64 << 10

func mapPages(n int) (unsafe.Pointer, error) {
	page := os.Getpagesize()
	b := make([]byte, n+page)
	p := unsafe.Pointer(unsafe.SliceData(b))
	return unsafe.Add(p, -uintptr(p)&uintptr(page-1)), nil
}

func unmapPages(p unsafe.Pointer, n int) error {
	b := unsafe.Slice((*byte)(p), min(n, poisoned))
	for i := range b {
		b[i] = 0xDB
	}
	return nil
}

func releasePages([]byte) {}

func populatePages([]byte) {}

func splitPages([]byte) {}

func movePages(to, from []byte) bool { return false }
