package memtable

import "testing"

// TestIndexGrowth: an index grows to what a full arena will need, in bounds.
func TestIndexGrowth(t *testing.T) {
	const large = 1 << 30
	for _, c := range []struct{ slots, keys, used, size, want int }{
		{firstSlots, 640, 64 << 10, 128 << 10, 2 * firstSlots}, // 1280 keys need 2048 slots
		{firstSlots, 640, 64 << 10, 64 << 10, 2 * firstSlots},  // it is full, and has to grow nevertheless
		{firstSlots, 640, 64 << 10, large, maxGrowth * firstSlots},
		{1 << 16, 40_960, 6 << 20, large, pageSlots},
		{pageSlots, 163_840, 24 << 20, large, maxGrowth * pageSlots},
		{pageSlots, 163_840, 24 << 20, 48 << 20, 2 * pageSlots},
	} {
		ix := &index{mask: uint32(c.slots - 1)}
		if got := ix.nextSlots(c.keys, c.used, c.size); got != c.want {
			t.Errorf("%d slots, %d keys in %d of %d bytes: next %d slots, want %d", c.slots, c.keys, c.used, c.size, got, c.want)
		}
	}
}
