package memfs

import (
	"errors"
	"slices"
	"unsafe"

	"github.com/pandodb/pando/vfs"
)

// pageSize is the unit in which content is shared between images and mapped memory is aligned.
const pageSize = 4096

// extentsMax bounds what a file remembers of its unsynced writes; beyond it the older half is remembered as one.
const extentsMax = 1024

var (
	errMapped   = errors.New("cannot change the size of a mapped file")
	errNegative = errors.New("negative size or offset")
)

// page is a piece of durable content. It is never changed, so that images can share it. A nil page is all zeroes.
type page [pageSize]byte

// content is the bytes of a file: those that programs see, and those that the device has.
type content struct {
	data   []byte // what programs see, when loaded; otherwise that is what is durable
	loaded bool

	durable     []*page // of durableSize bytes; zero behind them
	durableSize int64

	dirty  []extent // written since the last sync, oldest first; a superset of what differs
	sized  uint64   // stamp of the last change of size
	mapped int      // live mappings: data must not move
	stored bool     // was mapped since the last sync: any byte may differ

	// forgotten are pages that are marked clean although the device does not have them, as they were then. See
	// (*file).DropUnsynced.
	forgotten map[int]*page
}

// extent is a range of bytes that was written, and when.
type extent struct {
	off, end int64
	stamp    uint64
}

func pages(size int64) int { return int((size + pageSize - 1) / pageSize) }

func blocks(size int64) int64 { return int64(pages(size)) * pageSize }

func (c *content) size() int64 {
	if c.loaded {
		return int64(len(c.data))
	}
	return c.durableSize
}

// load gives the file bytes of its own.
func (c *content) load() {
	if !c.loaded {
		data := make([]byte, c.durableSize)
		c.readDurable(data, 0)
		c.data, c.loaded = data, true
	}
}

// readDurable fills p, which must lie below durableSize.
func (c *content) readDurable(p []byte, off int64) {
	for len(p) > 0 {
		i, within := int(off/pageSize), off%pageSize
		n := min(len(p), int(pageSize-within))
		if pg := c.durable[i]; pg != nil {
			copy(p[:n], pg[within:])
		} else {
			clear(p[:n])
		}
		p, off = p[n:], off+int64(n)
	}
}

// readAt copies what is there and returns how much.
func (c *content) readAt(p []byte, off int64) int {
	n := int(max(0, min(int64(len(p)), c.size()-off)))
	if n == 0 {
		return 0
	}
	if c.loaded {
		copyBytes(p[:n], c.data[off:])
	} else {
		c.readDurable(p[:n], off)
	}
	return n
}

// touch remembers that [off,end) was written.
func (c *content) touch(off, end int64, stamp uint64) {
	if off >= end {
		return
	}
	if len(c.dirty) == extentsMax {
		one := c.dirty[0]
		for _, e := range c.dirty[:extentsMax/2] {
			one = extent{min(one.off, e.off), max(one.end, e.end), e.stamp}
		}
		c.dirty = slices.Replace(c.dirty, 0, extentsMax/2, one)
	}
	c.dirty = append(c.dirty, extent{off, end, stamp})
	for i := int(off / pageSize); len(c.forgotten) > 0 && i <= int((end-1)/pageSize); i++ {
		delete(c.forgotten, i)
	}
}

// resize changes the size that programs see.
func (f *FS) resize(n *node, size int64) error {
	now := n.size()
	switch {
	case size == now:
		return nil
	case size < 0:
		return errNegative
	case n.mapped > 0:
		return errMapped
	case f.capacity > 0 && size > now && f.used+blocks(size)-blocks(now) > f.capacity:
		return vfs.ErrNoSpace
	}
	n.load()
	f.stamp++
	f.used += blocks(size) - blocks(now)
	n.sized = f.stamp
	if size < now {
		n.touch(size, now, f.stamp)
		clear(n.data[size:]) // what was cut must not come back
		n.data = n.data[:size]
		return nil
	}
	// Bytes between length and capacity are zero: nothing is ever stored there, and cut bytes were cleared.
	n.data = slices.Grow(n.data, int(size-now))[:size]
	return nil
}

// write stores p, as much of it as the device has space for.
func (f *FS) write(n *node, p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, errNegative
	}
	if len(p) == 0 {
		return 0, nil
	}
	end := off + int64(len(p))
	var failed error
	if end > n.size() {
		failed = f.resize(n, end) // takes the stamp of the write too, so that in order they survive together
	} else {
		f.stamp++
	}
	if failed == vfs.ErrNoSpace {
		fits := blocks(n.size()) + max(0, f.capacity-f.used)/pageSize*pageSize
		if end = min(end, fits); end <= off {
			return 0, failed
		}
		if err := f.resize(n, max(end, n.size())); err != nil {
			return 0, err
		}
	} else if failed != nil {
		return 0, failed
	}
	n.load()
	copyBytes(n.data[off:end], p)
	n.touch(off, end, f.stamp)
	return int(end - off), failed
}

// changed tells whether anything may differ from what is durable.
func (c *content) changed() bool {
	return c.loaded && (c.stored || len(c.dirty) > 0 || int64(len(c.data)) != c.durableSize)
}

// dirtyPages lists the pages that may differ, sorted, as far as programs see them.
func (c *content) dirtyPages() []int {
	count := pages(int64(len(c.data)))
	var list []int
	if c.stored {
		for i := range count {
			list = append(list, i)
		}
		return list
	}
	for _, e := range c.dirty {
		first, last := int(e.off/pageSize), int((e.end-1)/pageSize)
		for i := first; i <= last && i < count; i++ {
			if n := len(list); n == 0 || list[n-1] != i {
				list = append(list, i)
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// seen copies page i as programs see it.
func (c *content) seen(i int) *page {
	var p page
	off := i * pageSize
	copyBytes(p[:], c.data[off:min(len(c.data), off+pageSize)])
	return &p
}

// differs tells whether page i is not as it is on the device, as far as a kernel knows.
func (c *content) differs(i int) bool {
	off := i * pageSize
	now := c.data[off:min(len(c.data), off+pageSize)]
	if p := c.forgotten[i]; p != nil && sameBytes(now, p[:len(now)]) {
		return false
	}
	if i >= len(c.durable) || c.durable[i] == nil {
		return !zeroBytes(now)
	}
	old := c.durable[i]
	return !sameBytes(now, old[:len(now)]) || !zeroBytes(old[len(now):])
}

// sync makes durable what programs see.
func (c *content) sync() {
	if c.changed() {
		size := int64(len(c.data))
		c.durable = resizePages(c.durable, c.durableSize, size)
		for _, i := range c.dirtyPages() {
			if c.differs(i) {
				c.durable[i] = c.seen(i)
				delete(c.forgotten, i)
			}
		}
		c.durableSize = size
	}
	c.dirty = c.dirty[:0]
	c.stored = c.mapped > 0
}

// drop marks every page clean without writing it. What programs see stays.
func (c *content) drop() {
	if c.changed() {
		if c.forgotten == nil {
			c.forgotten = map[int]*page{}
		}
		for _, i := range c.dirtyPages() {
			if c.differs(i) {
				c.forgotten[i] = c.seen(i)
			}
		}
	}
	c.dirty = c.dirty[:0]
	c.stored = c.mapped > 0
}

// resizePages cuts or extends list, and keeps the bytes behind the end zero.
func resizePages(list []*page, now, size int64) []*page {
	count := pages(size)
	if size < now && size%pageSize != 0 && list[count-1] != nil {
		cut := *list[count-1]
		clear(cut[size%pageSize:])
		list[count-1] = &cut
	}
	if count <= len(list) {
		clear(list[count:])
		return list[:count]
	}
	return append(list, make([]*page, count-len(list))...)
}

// alignedCopy is a copy of data in memory that starts at a page boundary, as mapped memory does.
func alignedCopy(data []byte) []byte {
	room := make([]byte, len(data)+pageSize)
	skip := -int(uintptr(unsafe.Pointer(&room[0]))) & (pageSize - 1)
	aligned := room[skip : skip+len(data) : skip+len(data)]
	copyBytes(aligned, data)
	return aligned
}
