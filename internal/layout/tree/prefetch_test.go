package tree

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// A guess of where in a leaf a key lies stays inside of the leaf, and grows with the key.
func TestShare(t *testing.T) {
	b := &body{slots: make([]slot, 4)}
	for _, bound := range []string{"", "sameA", "sameC", "sameC\x01"} {
		b.keys = append(b.keys, bound...)
		b.ends = append(b.ends, uint32(len(b.keys)))
	}
	b.index()
	for i := range b.slots {
		last := -1
		for x := range 1 << 10 {
			key := binary.BigEndian.AppendUint16([]byte("same"), uint16(x<<6))
			if b.find(key) != i {
				continue
			}
			share := b.share(i, key)
			if share < last || share > 255 {
				t.Fatalf("key %x in leaf %d: %d after %d", key, i, share, last)
			}
			last = share
		}
		if known := i == 1; known != (last > 200) {
			t.Errorf("leaf %d: the last key lies at %d", i, last)
		}
	}
	for _, key := range []string{"", "s", "sam", "same", "zzzz", "aaaaaaaaaaaaaaaa", string(bytes.Repeat([]byte{255}, 40))} {
		for i := range b.slots {
			if share := b.share(i, []byte(key)); share < -1 || share > 255 {
				t.Errorf("key %q in leaf %d: %d", key, i, share)
			}
		}
	}
}
