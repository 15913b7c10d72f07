package page

import (
	"bytes"
	"fmt"
	"unsafe"

	"github.com/pandodb/pando/internal/pageformat"
)

// shape is how the parts of a resident page lie.
type shape struct {
	bits      uint64 // hash slots, as a power of two
	offsetsAt int
	size      int
}

// shapeOf lays out a page of so many entries and raw bytes. At most three of four hash slots are taken.
func shapeOf(count, rawLen int) shape {
	bits := uint64(minBits)
	for bits < maxBits && 3<<bits < 4*count {
		bits++
	}
	return shapeWith(bits, count, rawLen)
}

// orderedShape is shapeOf without room for hash slots.
func orderedShape(count, rawLen int) shape { return shapeWith(0, count, rawLen) }

func shapeWith(bits uint64, count, rawLen int) shape {
	s := shape{bits: bits}
	s.offsetsAt = (HeaderSize + 4<<s.bits + rawLen + 3) &^ 3
	s.size = s.offsetsAt + 8*count
	return s
}

// ResidentSize is how much memory Load needs for raw. It looks at no more than the beginning of raw.
func ResidentSize(raw []byte) (int, error) {
	h, err := decodeHead(raw)
	if err != nil {
		return 0, err
	}
	return shapeOf(h.count, len(raw)).size, nil
}

// OrderedSize is how much memory LoadOrdered needs for raw.
func OrderedSize(raw []byte) (int, error) {
	h, err := decodeHead(raw)
	if err != nil {
		return 0, err
	}
	return orderedShape(h.count, len(raw)).size, nil
}

// Load makes the resident form of raw in dst, for the keyspace whose keys are hashed with ks. It checks everything, so that
// damaged bytes are an error and dst then no page. dst must be aligned to 8 bytes and hold ResidentSize; its Header stays.
func Load(dst, raw []byte, ks uint32) error { return load(dst, raw, ks, shapeOf) }

// LoadOrdered is Load for one who goes over the page in order. It takes less memory, as there is no room for hash slots: Get has to
// search.
func LoadOrdered(dst, raw []byte) error { return load(dst, raw, 0, orderedShape) }

func load(dst, raw []byte, ks uint32, shape func(count, rawLen int) shape) error {
	h, err := decodeHead(raw)
	if err != nil {
		return err
	}
	l, err := newLoader(dst, h.count, len(raw), shape(h.count, len(raw)), ks)
	if err != nil {
		return err
	}
	raw = l.raw[:copy(l.raw, raw)]
	l.setPrefix(h.size-len(h.prefix), len(h.prefix))
	return l.loadEntries(raw, h)
}

// BytesSize is how much memory LoadBytes needs for n bytes.
func BytesSize(n int) int { return orderedShape(0, n).size }

// LoadBytes makes a page of dst that has no entries: all that it answers is Raw. It is for what lies in a cache of pages and is none.
func LoadBytes(dst, raw []byte) error {
	l, err := newLoader(dst, 0, len(raw), orderedShape(0, len(raw)), 0)
	if err == nil {
		copy(l.raw, raw)
	}
	return err
}

// loadEntries checks the entries of raw, which is the page's own copy by now, and enters them into the indexes.
func (l *loader) loadEntries(raw []byte, h head) error {
	at, last, lastHead := h.size, []byte(nil), uint32(0)
	for i := range l.offsets {
		begin, value, next := span(raw, at, len(h.prefix))
		if next == 0 {
			var err error
			if begin, value, next, err = spanAny(raw, at, len(h.prefix)); err != nil {
				return fmt.Errorf("entry %d: %w", i, err)
			}
		}
		suffix := raw[begin:value]
		head := pageformat.FirstFour(suffix)
		if head <= lastHead && i > 0 && (head < lastHead || bytes.Compare(last, suffix) >= 0) {
			return fmt.Errorf("entry %d: %w", i, damaged(at, "key is not greater than the one before it"))
		}
		l.offsets[i], l.heads[i] = uint32(at), head
		last, lastHead, at = suffix, head, next
	}
	if at != len(raw) {
		return damaged(at, "%d bytes after the last entry", len(raw)-at)
	}
	return nil
}

// loader fills the indexes of a resident page.
type loader struct {
	page    Page
	raw     []byte
	offsets []uint32
	heads   []uint32
}

// newLoader lays out a page in dst, whose indexes hold anything.
func newLoader(dst []byte, count, rawLen int, s shape, ks uint32) (loader, error) {
	if len(dst) < s.size {
		return loader{}, fmt.Errorf("page: %d bytes for a page of %d: %w", len(dst), s.size, ErrShort)
	}
	base := unsafe.Pointer(unsafe.SliceData(dst))
	h := (*header)(base)
	h.keyspace, h.count, h.rawLen = ks, uint32(count), uint32(rawLen)
	h.offsetsAt, h.lengths = uint32(s.offsetsAt), uint32(s.bits)
	h.slots.Store(slotsEmpty)
	if s.bits == 0 {
		h.slots.Store(slotsNone)
	}
	p := Page{base: base, bits: s.bits}
	l := loader{
		page:    p,
		raw:     p.Raw(),
		offsets: p.offsets(),
		heads:   p.heads(),
	}
	return l, nil
}

// setPrefix tells the header where the prefix lies in the raw bytes. A short one is repeated in the header.
func (l *loader) setPrefix(at, length int) {
	h := l.page.header()
	h.lengths |= uint32(length) << bitsBits
	h.prefixAt = uint32(HeaderSize + 4<<l.page.bits + at)
	if length <= prefixRoom {
		copy(h.prefix[:], l.raw[at:at+length])
		h.prefixAt = uint32(unsafe.Offsetof(h.prefix))
	}
}
