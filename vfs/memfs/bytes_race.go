//go:build race

package memfs

import "encoding/binary"

// The functions of this file touch memory that a program may store to at the same moment through a mapping, as the kernel
// does with pages of a real one. The race detector must not see these accesses: it would blame programs for what every
// system allows. They are plain loops because the built-in copy reports itself to the detector wherever it is called.

const word = 8

//go:norace
func copyBytes(dst, src []byte) {
	n := min(len(dst), len(src))
	dst, src = dst[:n], src[:n]
	for len(src) >= word && len(dst) >= word {
		binary.LittleEndian.PutUint64(dst, binary.LittleEndian.Uint64(src))
		dst, src = dst[word:], src[word:]
	}
	//lint:ignore S1001 the race detector would see copy
	for i := range src {
		dst[i] = src[i]
	}
}

//go:norace
func sameBytes(a, b []byte) bool {
	if len(a) != len(b) {
		return false
	}
	for len(a) >= word && len(b) >= word {
		if binary.LittleEndian.Uint64(a) != binary.LittleEndian.Uint64(b) {
			return false
		}
		a, b = a[word:], b[word:]
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

//go:norace
func zeroBytes(b []byte) bool {
	for len(b) >= word {
		if binary.LittleEndian.Uint64(b) != 0 {
			return false
		}
		b = b[word:]
	}
	for _, x := range b {
		if x != 0 {
			return false
		}
	}
	return true
}
