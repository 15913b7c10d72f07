package memtable

import (
	"sync/atomic"
	"unsafe"

	"github.com/pandodb/pando/internal/offheap"
)

// index finds key nodes by hash: open addressing with linear probing over 64-bit slots, each the upper half of the
// key's hash above the node's ref; 0 is an empty slot. The place of a slot comes from the top bits of its hash, so that
// a larger index can be filled from a smaller one in one pass over both in the same order, without touching a key.
//
// Slots are set by the writer, never changed and never cleared. A reader that still holds an index which has been
// replaced finds in it everything that was there when it began.
type index struct {
	base   unsafe.Pointer
	block  []byte // what to free; nil when the slots are on the Go heap
	shift  uint   // 32 - log2(slots)
	mask   uint32
	growAt int // number of keys at which a larger index is due
}

const (
	firstSlots = 1 << 10
	maxGrowth  = 8
	pageSlots  = offheap.HugePage / 8 // what a huge page holds

	// An index is at most 5/8 full: then a miss looks at four slots on average, which is one cache line or two
	// neighbouring ones.
	loadNumerator   = 5
	loadDenominator = 8
)

// newIndex returns an empty index of the given number of slots, a power of two, in memory of the pool if that has such. When there is no
// memory outside of the heap, the heap takes it: Put has no way to fail.
func newIndex(p *Pool, slots int) *index {
	ix := &index{mask: uint32(slots - 1), growAt: slots / loadDenominator * loadNumerator}
	for ix.shift = 32; slots>>(32-ix.shift) > 1; ix.shift-- {
	}
	block := p.takeIndex(slots * 8)
	if block == nil {
		var err error
		if block, err = offheap.Alloc(slots * 8); err != nil {
			ix.base = unsafe.Pointer(unsafe.SliceData(make([]uint64, slots)))
			return ix
		}
		if slots > firstSlots { // else it may stay nearly empty
			// All of it is about to be filled. A page that is read before it is written to would be provided twice.
			offheap.Populate(block)
		}
	}
	ix.block, ix.base = block, unsafe.Pointer(unsafe.SliceData(block))
	return ix
}

func (ix *index) bytes() int { return (int(ix.mask) + 1) * 8 }

func (ix *index) slot(i uint32) *uint64 { return (*uint64)(unsafe.Add(ix.base, uintptr(i)*8)) }

// find returns the node of a key and its slot, or 0 and the slot where it belongs.
func (ix *index) find(a *arena, ks uint32, hash uint64, key []byte) (node ref, slot uint32) {
	top := uint32(hash >> 32)
	for i := top >> ix.shift; ; i = (i + 1) & ix.mask {
		s := atomic.LoadUint64(ix.slot(i))
		if s == 0 {
			return 0, i
		}
		if uint32(s>>32) != top {
			continue
		}
		n := ref(s)
		if a.keyspace(n) == ks && string(a.key(n)) == string(key) {
			return n, i
		}
	}
}

// set publishes a node in a slot that find returned.
func (ix *index) set(slot uint32, hash uint64, node ref) {
	atomic.StoreUint64(ix.slot(slot), hash>>32<<32|uint64(node))
}

// moveTo enters all nodes into an empty index that is larger.
func (ix *index) moveTo(larger *index) {
	for i := range ix.mask + 1 {
		s := *ix.slot(i) // only the writer sets slots, and we are the writer
		if s == 0 {
			continue
		}
		j := uint32(s>>32) >> larger.shift
		for *larger.slot(j) != 0 {
			j = (j + 1) & larger.mask
		}
		*larger.slot(j) = s
	}
}

// nextSlots says how large the next index should be, when keys keys take used of size bytes: large enough for the keys
// that a full arena will hold if they go on like this, so that most tables grow once or twice; but no more than
// maxGrowth times the present one, since the guess may be wrong. Below the size of a huge page it does not grow beyond it at once: most
// tables need no more. Keys that come in order settle long before the arena is full, and get twice as much each time.
func (ix *index) nextSlots(keys, used, size int, ordered bool) int {
	slots := (int(ix.mask) + 1) * 2
	if ordered && slots > pageSlots {
		return slots
	}
	largest := slots / 2 * maxGrowth
	expected := uint64(keys) * uint64(size) / uint64(max(used, 1))
	if slots <= pageSlots {
		largest = min(largest, pageSlots)
	}
	for slots < largest && expected > uint64(slots)/loadDenominator*loadNumerator {
		slots *= 2
	}
	return slots
}
