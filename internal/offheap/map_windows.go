//go:build windows && !race

package offheap

import (
	"unsafe"

	"golang.org/x/sys/windows"
)

func mapPages(n int) (unsafe.Pointer, error) {
	address, err := windows.VirtualAlloc(0, uintptr(n), windows.MEM_RESERVE|windows.MEM_COMMIT, windows.PAGE_READWRITE)
	if err != nil {
		return nil, err
	}
	// The address is not of the Go heap, so that the collector cannot move or free what it points to; the double
	// indirection says so to vet.
	return *(*unsafe.Pointer)(unsafe.Pointer(&address)), nil
}

func unmapPages(p unsafe.Pointer, _ int) error {
	return windows.VirtualFree(uintptr(p), 0, windows.MEM_RELEASE)
}

// releasePages resets the pages: they stay committed, so that writing them again cannot fail.
func releasePages(b []byte) {
	address := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	_, _ = windows.VirtualAlloc(address, uintptr(len(b)), windows.MEM_RESET, windows.PAGE_READWRITE)
}

func populatePages([]byte) {}

func splitPages([]byte) {}

func movePages(to, from []byte) bool { return false }
