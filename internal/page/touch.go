package page

import "unsafe"

// Touch loads what Get of a key with this hash reads first, and TouchEntry what it reads next. Who has several keys to look up
// calls each of them for all keys before Get: the loads of one round do not wait for each other, so their cache misses overlap.
// The sum of what they return must be used for something, lest the compiler leaves the loads out.
func (p Page) Touch(hash uint64) byte {
	if p.header().slots.Load() != slotsFilled {
		return 0
	}
	return byte(*p.slot(hash >> ((64 - p.bits) & 63)))
}

// TouchEntry is the second round of Touch. It follows the way that Get will go through the slots, which seldom leaves the cache line
// that is there by now, and loads the next line too: few records fit into what the first one has of them.
func (p Page) TouchEntry(hash uint64) byte {
	h := p.header()
	if h.slots.Load() != slotsFilled {
		return 0
	}
	mask := uint64(1)<<(p.bits&63) - 1
	i := hash >> ((64 - p.bits) & 63)
	for range touchedSlots {
		slot := *p.slot(i)
		if slot == 0 {
			return 0 // the key is not there
		}
		if (slot^uint32(hash)<<offsetBits)>>offsetBits == 0 {
			at := slot & offsetMask
			return p.entryByte(at) + p.entryByte(min(at+lineSize, h.rawLen-1))
		}
		i = (i + 1) & mask
	}
	return 0 // Get finds out
}

const (
	touchedSlots = 16 // as many as lie in a cache line
	lineSize     = 64
)

// entryByte is the byte of the entries at an offset.
func (p Page) entryByte(offset uint32) byte { return *(*byte)(unsafe.Add(p.entries(), offset)) }
