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

// TouchEntry is the second round of Touch.
func (p Page) TouchEntry(hash uint64) byte {
	if p.header().slots.Load() != slotsFilled {
		return 0
	}
	slot := *p.slot(hash >> ((64 - p.bits) & 63))
	if (slot^uint32(hash)<<offsetBits)>>offsetBits != 0 {
		return 0 // empty, or another key's: Get finds out
	}
	return p.entryByte(slot & offsetMask)
}

// entryByte is the first byte of the entry at an offset.
func (p Page) entryByte(offset uint32) byte { return *(*byte)(unsafe.Add(p.entries(), offset)) }
