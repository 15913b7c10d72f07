package cache

import (
	"unsafe"

	"github.com/pandodb/pando/internal/page"
	"github.com/pandodb/pando/internal/prefetch"
)

// beginLines is how many lines AskBegin asks for: what comes behind them the reader asks for when it knows where that is.
const beginLines = 8

// Ask asks the processor for what a walk over the page of h reads, if that is still there: the first line, and all behind the hash slots.
// It looks at nothing of the page, so it may be called from anywhere.
func (c *Cache) Ask(h Handle) { c.ask(h, 1<<30) }

// AskBegin is Ask for a walk that may not come to the page: it asks for the first line, and a few behind the hash slots.
func (c *Cache) AskBegin(h Handle) { c.ask(h, beginLines) }

// ask asks for the first line and at most so many behind the hash slots.
func (c *Cache) ask(h Handle, most int) {
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
		prefetch.Lines(unsafe.Add(memory, start+slots), min(most, int((stride-slots+prefetch.Line-1)/prefetch.Line)))
	}
}
