//go:build !race

package memfs

import "bytes"

// With the race detector these functions are loops that it does not see: see bytes_race.go.

func copyBytes(dst, src []byte) { copy(dst, src) }

func sameBytes(a, b []byte) bool { return bytes.Equal(a, b) }

// zeroBytes asks whether the first byte is 0, and each one the same as the one before it.
func zeroBytes(b []byte) bool {
	return len(b) == 0 || b[0] == 0 && bytes.Equal(b[1:], b[:len(b)-1])
}
