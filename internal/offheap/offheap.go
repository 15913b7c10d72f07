// Package offheap hands out large zeroed blocks of memory that the garbage collector neither scans nor counts.
//
// Blocks come straight from the operating system and cost address space until they are touched. On Linux a block of
// at least 2 MiB is aligned to, and advised for, huge pages, which roughly halves the cost of a random access to it. A
// block must hold no Go pointers. Nothing here keeps a block alive or frees it by itself: whoever called Alloc calls
// Free, once, when no reader is left.
//
// Systems without a known way to map memory, and builds with the race detector (which watches only the Go heap), take
// blocks from the Go heap instead; Free then overwrites the start of the block, so that the race detector reports
// whoever still reads it.
//
// Besides, it tells what the system says of memory: how much there is, how much the process may have and has, and for how many pages it waited.
//
// It fails when the system has no memory or address space left, with an error that says how much was asked for.
// Costs: one to four system calls for Alloc, one for Free, Release, Populate, Split and Move; no lock, no global state.
package offheap

import (
	"fmt"
	"math"
	"os"
	"unsafe"
)

// Alloc returns n zeroed bytes that start at a page boundary; none, and no error, for n of 0.
func Alloc(n int) ([]byte, error) {
	if n == 0 {
		return nil, nil
	}
	page := os.Getpagesize()
	if n < 0 || n > math.MaxInt-HugePage-page {
		return nil, fmt.Errorf("allocate %d bytes outside of the heap: impossible size", n)
	}
	p, err := mapPages(roundUp(n, page))
	if err != nil {
		return nil, fmt.Errorf("allocate %d bytes outside of the heap: %w", n, err)
	}
	return unsafe.Slice((*byte)(p), n)[:n:n], nil
}

// Free gives back a block. b must be what Alloc returned, with the same start and length; no reader may be left.
func Free(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if err := unmapPages(unsafe.Pointer(unsafe.SliceData(b)), roundUp(len(b), os.Getpagesize())); err != nil {
		return fmt.Errorf("free %d bytes outside of the heap: %w", len(b), err)
	}
	return nil
}

// Release tells the system that the content of b, any part of a block, is not needed any more. The pages that lie
// wholly inside of b may be taken back; the addresses stay valid. Afterwards each byte of b reads as what it was or as 0,
// until it is written again. It is advice: where the system refuses, nothing happens.
func Release(b []byte) {
	if len(b) == 0 {
		return
	}
	page := os.Getpagesize()
	start := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	skip := roundUp(int(start&uintptr(page-1)), page) - int(start&uintptr(page-1))
	length := (len(b) - skip) &^ (page - 1)
	if skip >= len(b) || length <= 0 {
		return
	}
	releasePages(b[skip : skip+length])
}

// Populate asks the system to provide the pages of b, any part of a block, now: whoever writes to them then does not wait for that.
// It is advice, takes the time that this takes, and changes no byte: others may read and write b meanwhile.
func Populate(b []byte) {
	if len(b) == 0 {
		return
	}
	skip := int(uintptr(unsafe.Pointer(unsafe.SliceData(b))) & uintptr(os.Getpagesize()-1))
	populatePages(unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(b)), -skip)), len(b)+skip))
}

// Split withdraws the advice to use huge pages in b, any part of a block, behind the huge page in which b begins: for memory that is
// filled from front to back. A huge page has to be a free one, and where the system is a guest the host has taken free ones back and
// gives them again piece by piece, at a multiple of the cost of single pages, which were in use a moment ago.
func Split(b []byte) {
	if len(b) == 0 {
		return
	}
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) & (HugePage - 1))
	if skip < len(b) {
		splitPages(b[skip:])
	}
}

// Move gives to, a part of a block, the memory of from, a part of another one as long, with what is in it: both begin and end where huge
// pages do. Afterwards from reads as zeros, and takes memory again when it is written to. Nobody may look at either meanwhile. It is false,
// and nothing has changed, where the system does not offer that. It takes microseconds, where fresh memory has to be found and cleared.
func Move(to, from []byte) bool {
	if len(to) != len(from) || len(to) == 0 || !hugePages(to) || !hugePages(from) {
		return false
	}
	return movePages(to, from)
}

// hugePages reports whether b begins and ends where huge pages do.
func hugePages(b []byte) bool {
	return (uintptr(unsafe.Pointer(unsafe.SliceData(b)))|uintptr(len(b)))&(HugePage-1) == 0
}

// HugePage is the size of a huge page on the systems that have them: what a block of a multiple of it takes is of such pages alone.
const HugePage = 2 << 20

func roundUp(n, page int) int { return (n + page - 1) &^ (page - 1) }
