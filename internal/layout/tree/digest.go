package tree

import "github.com/pandodb/pando/internal/segment"

// delta is where a delta lies, and what the slot knows of its keys.
type delta struct {
	segment.Pointer
	digest digest
}

// digest tells of a key that it is certainly not in a delta, or that it may be: a Bloom filter of one word, two bits a key. A delta
// mostly holds a handful of changes, of which it lets one other key in fifty through; and a leaf has several deltas, each of
// which would cost a read of its own. Zero knows nothing: every delta has a key.
type digest uint64

// add enters the key with this hash.
func (d *digest) add(hash uint64) { *d |= digestBits(hash) }

// has reports whether the key with this hash may be in the delta.
func (d digest) has(hash uint64) bool {
	bits := digestBits(hash)
	return d == 0 || d&bits == bits
}

// digestBits are the bits of a key; filters choose theirs by other parts of the hash.
func digestBits(hash uint64) digest { return 1<<(hash>>20&63) | 1<<(hash>>26&63) }
