//go:build linux && !race

package offheap

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapPages maps n bytes, a multiple of the page size. A huge page needs an aligned 2 MiB: a large block takes whole ones, which kernels
// from 6.7 on place so by themselves. Where one does not, the block is cut out of a mapping that is one huge page longer.
func mapPages(n int) (unsafe.Pointer, error) {
	n = wholePages(n)
	block, err := mapAnywhere(n)
	if err != nil || n < HugePage {
		return block, err
	}
	if uintptr(block)&(HugePage-1) != 0 {
		if err := unix.MunmapPtr(block, uintptr(n)); err != nil {
			return nil, err
		}
		p, err := mapAnywhere(n + HugePage)
		if err != nil {
			return nil, err
		}
		skip := -uintptr(p) & (HugePage - 1)
		block = unsafe.Add(p, skip)
		if skip > 0 {
			// A part that cannot be unmapped costs address space only: it is never touched.
			_ = unix.MunmapPtr(p, skip)
		}
		_ = unix.MunmapPtr(unsafe.Add(block, n), HugePage-skip)
	}
	_ = unix.Madvise(unsafe.Slice((*byte)(block), n), unix.MADV_HUGEPAGE) // refused by kernels without huge pages
	return block, nil
}

func mapAnywhere(n int) (unsafe.Pointer, error) {
	const protection, flags = unix.PROT_READ | unix.PROT_WRITE, unix.MAP_ANON | unix.MAP_PRIVATE | unix.MAP_NORESERVE
	return unix.MmapPtr(-1, 0, nil, uintptr(n), protection, flags)
}

// wholePages is what a block of n bytes takes of addresses.
func wholePages(n int) int {
	if n < HugePage {
		return n
	}
	return roundUp(n, HugePage)
}

func unmapPages(p unsafe.Pointer, n int) error { return unix.MunmapPtr(p, uintptr(wholePages(n))) }

func splitPages(b []byte) { _ = unix.Madvise(b, unix.MADV_NOHUGEPAGE) } // refused by kernels without huge pages

func releasePages(b []byte) { _ = unix.Madvise(b, unix.MADV_DONTNEED) }

// populatePages is refused by kernels before 5.14: then each page comes when it is written to.
func populatePages(b []byte) { _ = unix.Madvise(b, unix.MADV_POPULATE_WRITE) }

// movePages takes Linux 5.7. An older one refuses what it does not know before it changes anything, and so does one where the process has
// too many mappings. Where it fails later the addresses are nobody's: they get fresh memory.
func movePages(to, from []byte) bool {
	const flags = unix.MREMAP_MAYMOVE | unix.MREMAP_FIXED | unix.MREMAP_DONTUNMAP
	place, n := unsafe.Pointer(unsafe.SliceData(to)), uintptr(len(to))
	if _, err := unix.MremapPtr(unsafe.Pointer(unsafe.SliceData(from)), n, place, n, flags); err == nil {
		return true
	}
	const protection, anew = unix.PROT_READ | unix.PROT_WRITE, unix.MAP_ANON | unix.MAP_PRIVATE | unix.MAP_NORESERVE | unix.MAP_FIXED_NOREPLACE
	_, _ = unix.MmapPtr(-1, 0, place, n, protection, anew) // it is refused where they are what they were
	return false
}
