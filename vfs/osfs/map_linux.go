package osfs

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// pageBytes is what a page has by the interface. Where the system's are larger it is not asked.
const pageBytes = 4096

// Resident implements vfs.ResidentMapping. The system tells the truth to those who may write the file, and says yes to others.
func (m *mapping) Resident(offset int64, pages []bool) bool {
	if os.Getpagesize() != pageBytes || len(pages) == 0 || offset < 0 || offset%pageBytes != 0 || offset >= int64(len(m.bytes)) {
		return false
	}
	asked := m.bytes[offset:min(offset+int64(len(pages))*pageBytes, int64(len(m.bytes)))]
	told := make([]byte, len(pages))
	_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(unsafe.SliceData(asked))), uintptr(len(asked)),
		uintptr(unsafe.Pointer(unsafe.SliceData(told))))
	for i, t := range told {
		pages[i] = t&1 != 0
	}
	return errno == 0
}

// Detach implements vfs.Detacher. Of a shared mapping the system drops only the way to the pages, after it has noted which were stored
// into: their content belongs to the file.
func (m *mapping) Detach(offset, length int64) {
	page := int64(os.Getpagesize())
	from, to := (offset+page-1)&^(page-1), min(offset+length, int64(len(m.bytes)))&^(page-1)
	if offset >= 0 && from < to {
		_ = unix.Madvise(m.bytes[from:to], unix.MADV_DONTNEED) // advice
	}
}
