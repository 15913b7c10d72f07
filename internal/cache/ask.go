package cache

import (
	"unsafe"

	"github.com/pandodb/pando/internal/page"
	"github.com/pandodb/pando/internal/prefetch"
)

// Ask asks the processor for what a walk over the page of h reads, if that is still there: the first line, and all behind the hash slots.
// It looks at nothing of the page, so it may be called from anywhere.
func (c *Cache) Ask(h Handle) {
	f := h.frame()
	if f.chunk() >= len(c.strides) {
		return
	}
	stride := uint(c.strides[f.chunk()].Load())
	start, end := f.index()*stride, (f.index()+1)*stride
	if end > 1<<(c.shift&63) {
		return
	}
	memory := unsafe.Add(c.base, uint(f.chunk())<<(c.shift&63))
	prefetch.Lines(unsafe.Add(memory, start), 1)
	if slots := uint(page.HeaderSize + 4<<h.hashBits()); slots < stride {
		prefetch.Lines(unsafe.Add(memory, start+slots), int((stride-slots+prefetch.Line-1)/prefetch.Line))
	}
}
