package page

import (
	"bytes"
	"fmt"
	"unsafe"

	"github.com/pandodb/pando/internal/record"
)

// shape is how the parts of a resident page lie.
type shape struct {
	bits      uint64 // hash slots, as a power of two
	offsetsAt int
	size      int
}

// shapeOf lays out a page of so many entries and raw bytes. At most three of four hash slots are taken.
func shapeOf(count, rawLen int) shape {
	s := shape{bits: minBits}
	for s.bits < maxBits && 3<<s.bits < 4*count {
		s.bits++
	}
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

// Load makes the resident form of raw in dst, for the keyspace whose keys are hashed with ks. It checks everything, so that
// damaged bytes are an error and dst then no page. dst must be aligned to 8 bytes and hold ResidentSize; its Header stays.
func Load(dst, raw []byte, ks uint32) error {
	h, err := decodeHead(raw)
	if err != nil {
		return err
	}
	l, err := newLoader(dst, h.count, len(raw))
	if err != nil {
		return err
	}
	raw = l.raw[:copy(l.raw, raw)]
	l.setPrefix(h.size-len(h.prefix), len(h.prefix))
	return l.loadEntries(raw, h, ks)
}

// loadEntries checks the entries of raw, which is the page's own copy by now, and enters them into the indexes.
func (l *loader) loadEntries(raw []byte, h head, ks uint32) error {
	var room [192]byte // longer keys are rare and pay an allocation
	prefix := len(h.prefix)
	key := append(room[:0], h.prefix...)
	var last []byte
	at, lastHead := h.size, uint32(0)
	for i := range l.offsets {
		e, next, err := decodeEntry(raw, at, prefix)
		if err != nil {
			return fmt.Errorf("entry %d: %w", i, err)
		}
		head := headOf(e.suffix)
		if head <= lastHead && i > 0 && (head < lastHead || bytes.Compare(last, e.suffix) >= 0) {
			return fmt.Errorf("entry %d: %w", i, damaged(at, "key is not greater than the one before it"))
		}
		key = append(key[:prefix], e.suffix...)
		l.enter(i, uint32(at), head, record.Hash(ks, key))
		last, lastHead, at = e.suffix, head, next
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
	slots   []uint32
	offsets []uint32
	heads   []uint32
}

// newLoader lays out a page in dst with empty indexes.
func newLoader(dst []byte, count, rawLen int) (loader, error) {
	s := shapeOf(count, rawLen)
	if len(dst) < s.size {
		return loader{}, fmt.Errorf("page: %d bytes for a page of %d: %w", len(dst), s.size, ErrShort)
	}
	base := unsafe.Pointer(unsafe.SliceData(dst))
	h := (*header)(base)
	h.count, h.rawLen = uint32(count), uint32(rawLen)
	h.offsetsAt, h.bits = uint32(s.offsetsAt), uint32(s.bits)
	p := Page{base: base, bits: s.bits}
	l := loader{
		page:    p,
		raw:     p.Raw(),
		slots:   unsafe.Slice(p.slot(0), 1<<s.bits),
		offsets: p.offsets(),
		heads:   p.heads(),
	}
	clear(l.slots)
	return l, nil
}

// setPrefix tells the header where the prefix lies in the raw bytes. A short one is repeated in the header.
func (l *loader) setPrefix(at, length int) {
	h := l.page.header()
	h.prefixLen = uint32(length)
	h.prefixAt = uint32(HeaderSize + 4*len(l.slots) + at)
	if length <= prefixRoom {
		copy(h.prefix[:], l.raw[at:at+length])
		h.prefixAt = uint32(unsafe.Offsetof(h.prefix))
	}
}

// enter makes entry i, which begins at offset at, known to the indexes.
func (l *loader) enter(i int, at, head uint32, hash uint64) {
	l.offsets[i], l.heads[i] = at, head
	mask := uint64(len(l.slots) - 1)
	s := hash >> ((64 - l.page.bits) & 63)
	for l.slots[s&mask] != 0 {
		s++
	}
	l.slots[s&mask] = uint32(hash)<<offsetBits | at
}
