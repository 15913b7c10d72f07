package prefetch_test

import (
	"testing"
	"unsafe"

	"github.com/pandodb/pando/internal/prefetch"
)

// What is asked for comes, or nothing happens: memory stays as it is, and what is no memory does not fault.
func TestLines(t *testing.T) {
	var memory [8 * prefetch.Line]byte
	for i := range memory {
		memory[i] = byte(i)
	}
	for n := -1; n < 10; n++ {
		prefetch.Lines(unsafe.Pointer(&memory[100]), n)
		prefetch.Near(unsafe.Pointer(&memory[100]), n)
	}
	prefetch.Lines(nil, 3)
	prefetch.Near(nil, 3)
	for i := range memory {
		if memory[i] != byte(i) {
			t.Fatalf("byte %d has changed to %d", i, memory[i])
		}
	}
}

// The same of a list of places, of which any number may be asked for.
func TestGather(t *testing.T) {
	var memory [8 * prefetch.Line]byte
	list := []struct {
		other uint64
		place uint32
	}{{1, 0}, {2, 3}, {3, 1 << 31}, {4, ^uint32(0)}}
	for n := -1; n <= len(list); n++ {
		for _, length := range []int{1, prefetch.Line, prefetch.Line + 1, 300} {
			prefetch.Gather(unsafe.Pointer(&memory[0]), unsafe.Pointer(&list[0].place), n, int(unsafe.Sizeof(list[0])), length)
		}
	}
	prefetch.Gather(nil, unsafe.Pointer(&list[0].place), len(list), int(unsafe.Sizeof(list[0])), 1)
	if memory != [len(memory)]byte{} || list[3].place != ^uint32(0) {
		t.Fatal("something has changed")
	}
}
