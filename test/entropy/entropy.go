// Package entropy makes values for tests that no compression makes shorter. A generator gives the same bytes each time, so that a test
// can make again what it has stored.
package entropy

import (
	"encoding/binary"
	"math/rand/v2"
)

// Bytes returns the next n bytes of a generator, in memory of their own.
func Bytes(rng *rand.Rand, n int) []byte {
	b := make([]byte, 0, n+8)
	for len(b) < n {
		b = binary.LittleEndian.AppendUint64(b, rng.Uint64())
	}
	return b[:n:n]
}
