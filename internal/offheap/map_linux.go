//go:build linux && !race

package offheap

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapPages maps n bytes, a multiple of the page size. Kernels before 6.7 place a mapping at any page, and a huge page
// needs an aligned 2 MiB; so a large block is cut out of a mapping that is one huge page longer.
func mapPages(n int) (unsafe.Pointer, error) {
	const protection, flags = unix.PROT_READ | unix.PROT_WRITE, unix.MAP_ANON | unix.MAP_PRIVATE | unix.MAP_NORESERVE
	if n < hugePage {
		return unix.MmapPtr(-1, 0, nil, uintptr(n), protection, flags)
	}
	p, err := unix.MmapPtr(-1, 0, nil, uintptr(n)+hugePage, protection, flags)
	if err != nil {
		return nil, err
	}
	skip := -uintptr(p) & (hugePage - 1)
	block := unsafe.Add(p, skip)
	if skip > 0 {
		// A part that cannot be unmapped costs address space only: it is never touched.
		_ = unix.MunmapPtr(p, skip)
	}
	_ = unix.MunmapPtr(unsafe.Add(block, n), hugePage-skip)
	_ = unix.Madvise(unsafe.Slice((*byte)(block), n), unix.MADV_HUGEPAGE) // refused by kernels without huge pages
	return block, nil
}

func unmapPages(p unsafe.Pointer, n int) error { return unix.MunmapPtr(p, uintptr(n)) }

func releasePages(b []byte) { _ = unix.Madvise(b, unix.MADV_DONTNEED) }

// populatePages is refused by kernels before 5.14: then each page comes when it is written to.
func populatePages(b []byte) { _ = unix.Madvise(b, unix.MADV_POPULATE_WRITE) }
