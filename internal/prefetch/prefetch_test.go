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
	}
	prefetch.Lines(nil, 3)
	for i := range memory {
		if memory[i] != byte(i) {
			t.Fatalf("byte %d has changed to %d", i, memory[i])
		}
	}
}
