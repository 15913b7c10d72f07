package page

import (
	"encoding/binary"
	"unsafe"

	"github.com/pandodb/pando/internal/record"
)

// locateSearching is locate for a page whose hash slots are not filled. The first who comes fills them; who comes meanwhile searches.
func (p Page) locateSearching(hash uint64, key []byte) unsafe.Pointer {
	h := p.header()
	if h.slots.CompareAndSwap(slotsEmpty, slotsClaimed) {
		p.fillSlots()
		h.slots.Store(slotsFilled)
		return p.locate(hash, key)
	}
	if i, ok := p.Search(key); ok {
		return p.entry(i)
	}
	return nil
}

// fillSlots enters all entries into the hash slots.
func (p Page) fillSlots() {
	clear(unsafe.Slice(p.slot(0), 1<<(p.bits&63)))
	offsets, ks := p.offsets(), p.header().keyspace
	keys := joiner{raw: p.Raw(), prefix: p.Prefix()}
	for i := range keys.room {
		copy(keys.room[i][:], keys.prefix)
	}
	for len(offsets) > 0 {
		n := min(len(offsets), joined)
		for j, at := range offsets[:n] {
			suffix := suffixAt(unsafe.Add(p.entries(), at))
			keys.add(j, int(uintptr(unsafe.Pointer(unsafe.SliceData(suffix)))-uintptr(p.entries())), suffix)
		}
		for j, at := range offsets[:n] {
			p.enter(at, record.Hash(ks, keys.key(j)))
		}
		offsets = offsets[n:]
	}
}

// enter makes the entry at offset at known to the hash slots.
func (p Page) enter(at uint32, hash uint64) {
	mask := uint64(1)<<(p.bits&63) - 1
	s := hash >> ((64 - p.bits) & 63)
	for *p.slot(s) != 0 {
		s = (s + 1) & mask
	}
	*p.slot(s) = uint32(hash)<<offsetBits | at
}

const (
	joined   = 8  // keys in a joiner
	joinRoom = 64 // longest key that a joiner keeps without an allocation
)

// joiner puts keys together from prefix and suffix, a few at a time: a processor that loads a word of which two stores have
// just written a part each waits until both have reached the cache, so we do not hash a key at once.
type joiner struct {
	raw    []byte
	prefix []byte
	length [joined]int
	long   [joined][]byte         // keys that are not in room; nil if they are
	room   [joined][joinRoom]byte // as much of the prefix as there is room for, then the suffix
}

// add makes key j the one with this suffix, which begins at offset begin of the raw page.
func (k *joiner) add(j, begin int, suffix []byte) {
	room, length := &k.room[j], len(k.prefix)+len(suffix)
	k.length[j], k.long[j] = length, nil
	switch {
	case len(k.prefix) == 0:
		k.long[j] = suffix
	case len(suffix) <= 16 && begin+16 <= len(k.raw) && len(k.prefix)+16 <= joinRoom:
		// Copying two words more than needed is cheaper than a call that copies just enough.
		two := k.raw[begin : begin+16 : begin+16]
		binary.LittleEndian.PutUint64(room[len(k.prefix):], binary.LittleEndian.Uint64(two))
		binary.LittleEndian.PutUint64(room[len(k.prefix)+8:], binary.LittleEndian.Uint64(two[8:]))
	case length <= joinRoom:
		copy(room[len(k.prefix):], suffix)
	default:
		k.long[j] = append(append(make([]byte, 0, length), k.prefix...), suffix...)
	}
}

// key is key j.
func (k *joiner) key(j int) []byte {
	if k.long[j] != nil {
		return k.long[j]
	}
	return k.room[j][:k.length[j]]
}
