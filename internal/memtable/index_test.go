package memtable

import "testing"

// TestIndexGrowth: an index grows to what a full arena will need, in bounds.
func TestIndexGrowth(t *testing.T) {
	const large = 1 << 30
	for _, c := range []struct {
		slots, keys, used, size int
		ordered                 bool
		want                    int
	}{
		{firstSlots, 640, 64 << 10, 128 << 10, false, 2 * firstSlots}, // 1280 keys need 2048 slots
		{firstSlots, 640, 64 << 10, 64 << 10, false, 2 * firstSlots},  // it is full, and has to grow nevertheless
		{firstSlots, 640, 64 << 10, large, false, maxGrowth * firstSlots},
		{1 << 16, 40_960, 6 << 20, large, false, pageSlots},
		{pageSlots, 163_840, 24 << 20, large, false, maxGrowth * pageSlots},
		{pageSlots, 163_840, 24 << 20, 48 << 20, false, 2 * pageSlots},
		{pageSlots, 163_840, 24 << 20, large, true, 2 * pageSlots}, // they settle before the arena is full
		{1 << 16, 40_960, 6 << 20, large, true, pageSlots},
	} {
		ix := &index{mask: uint32(c.slots - 1)}
		if got := ix.nextSlots(c.keys, c.used, c.size, c.ordered); got != c.want {
			t.Errorf("%d slots, %d keys in %d of %d bytes: next %d slots, want %d", c.slots, c.keys, c.used, c.size, got, c.want)
		}
	}
}
